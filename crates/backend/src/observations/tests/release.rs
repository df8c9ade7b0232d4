//! News of a release, on which a follower may claim without reading again.

use super::*;

fn millis(count: u64) -> Boot {
    Boot::from_nanos(count * 1_000_000)
}

impl Follower {
    /// `b` follows `a`, whose last sign of life it saw at 100 s.
    fn of_a() -> Follower {
        Follower::seeing(100, record("a", 1, 1, 1), 1)
    }

    fn told_at(&mut self, at: Boot, record: Record, version: u64) {
        self.0.saw(at, &on(), Some((record, version)), Source::Watch);
    }

    fn may_do_without_a_read(&self, at: Boot) -> bool {
        self.0.is_fresh_release(at, &on())
    }
}

#[test]
fn a_release_that_was_told_just_now_is_not_read_once_more() {
    let mut b = Follower::of_a();
    assert!(!b.may_do_without_a_read(millis(100_000)), "held");
    b.told_at(millis(103_000), released(1, 2), 2);
    assert!(b.may_do_without_a_read(millis(103_099)));
    assert!(!b.may_do_without_a_read(millis(103_100)), "not so new any more");
    b.told_at(millis(103_050), record("c", 3, 2, 3), 3);
    assert!(!b.may_do_without_a_read(millis(103_050)), "somebody was faster");
}

#[test]
fn a_release_is_read_again_where_there_is_any_doubt() {
    let told = |change: &dyn Fn(&mut Follower)| {
        let mut b = Follower::of_a();
        change(&mut b);
        b.may_do_without_a_read(millis(103_001))
    };
    let release = |b: &mut Follower| b.told_at(millis(103_000), released(1, 2), 2);
    assert!(told(&release));
    assert!(!told(&|b| assert!(b.load(103, Some((released(1, 2), 2))))), "it was read: nothing to spare");
    assert!(!told(&|b| b.told_at(millis(103_000), released(5, 2), 2)), "of a leadership that was not seen");
    assert!(!told(&|b| b.told_at(millis(103_000), Record { broken: true, ..released(1, 2) }, 2)));
    assert!(!told(&|b| {
        release(b);
        b.0.doubt();
    }));
    assert!(!told(&|b| {
        release(b);
        b.0.restart(millis(103_000));
    }));
    assert!(
        !told(&|b| {
            b.load(101, None);
            b.told_at(millis(102_000), record("c", 3, 2, 1), 2);
            b.told_at(millis(103_000), Record { holder: None, ..record("c", 3, 2, 2) }, 3);
        }),
        "another leader's record vanished before"
    );
    assert!(!told(&|b| {
        release(b);
        b.0.saw(millis(103_000), &on(), None, Source::Watch);
    }));
    // Released for good, but when? The process was stopped, and this lay unread for longer than the lease lasts.
    let mut b = Follower::of_a();
    b.told_at(millis(110_000), released(1, 2), 2);
    assert!(!b.may_do_without_a_read(millis(110_000)));
    let mut b = Follower::of_a();
    b.told_at(millis(109_950), released(1, 2), 2);
    assert!(b.may_do_without_a_read(millis(109_999)));
    assert!(!b.may_do_without_a_read(millis(110_000)));
}
