//! The deadline holds, whoever sleeps and whatever hangs.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_backend::MemoryStore;
use bellwether_deadman::boot_now;
use bellwether_election::{Error, Over, Reason};
use common::*;

#[tokio::test]
async fn a_thread_that_slept_past_the_deadline_does_not_lead() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").ttl(ms(300)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    // Always ready, so that the runtime would poll it before it looks at any timer.
    let polled_late = Arc::new(AtomicU64::new(0));
    let polls = Arc::new(AtomicU64::new(0));
    let work = tokio::spawn({
        let (leadership, late, polls) = (leadership.clone(), Arc::clone(&polled_late), Arc::clone(&polls));
        async move {
            let busy = async {
                loop {
                    polls.fetch_add(1, Ordering::Relaxed);
                    if !leadership.is_valid() {
                        late.fetch_add(1, Ordering::Relaxed);
                    }
                    tokio::task::yield_now().await;
                }
            };
            leadership.run(busy).await
        }
    });
    while polls.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    // The only thread of this runtime: nothing runs meanwhile, neither driver nor timer.
    let asleep_until = leadership.deadline() + ms(20);
    std::thread::sleep(asleep_until.since(boot_now()));
    assert!(!election.is_leader() && !leadership.is_valid() && election.leadership().is_none());
    assert!(matches!(leadership.check(), Err(Error::LeaseExpired)));
    assert!(matches!(soon(work).await.unwrap(), Err(Over::Expired | Over::Lost(Reason::Deadline))));
    assert_eq!(polled_late.load(Ordering::Relaxed), 0, "work was polled past its deadline");
}

#[tokio::test]
async fn a_store_that_swallows_renewals_ends_it_at_the_deadline() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(600)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    puppet.set_all(Rule::Hang);
    puppet.log.until("called renew", 1).await;
    let deadline = leadership.deadline();
    let over = soon(leadership.lost()).await;
    let late = boot_now().since(deadline);
    assert!(matches!(over, Over::Expired | Over::Lost(Reason::Deadline)), "{over}");
    assert!(boot_now() >= deadline && late < ms(500), "{late:?} late");
    assert!(!election.is_leader());
    let words = words_until(&mut events, "lost").await;
    assert!(words.contains(&"danger"), "{words:?}");
    puppet.set_all(Rule::Pass);
    let again = soon(election.wait_for_leadership()).await.unwrap();
    assert!(again.epoch() > leadership.epoch());
}

#[tokio::test]
async fn renewals_that_fail_do_not_demote_before_the_deadline() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(1_500)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Renew, Rule::Fail);
    puppet.log.until("called renew", 3).await;
    assert!(leadership.is_valid());
    puppet.set(Op::Renew, Rule::Pass);
    puppet.log.until("answered renew", 2).await;
    assert!(leadership.is_valid() && election.is_leader());
}

#[tokio::test]
async fn a_late_answer_to_a_renewal_counts_from_when_it_was_sent() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.ttl(ms(1_500)).start().await.unwrap();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    puppet.set(Op::Renew, Rule::Late);
    puppet.log.until("renew", 1).await;
    let sent_before = boot_now();
    tokio::time::sleep(ms(200)).await;
    puppet.set(Op::Renew, Rule::Hang);
    puppet.log.until("answered renew", 1).await;
    let margin = election.settings().timing().margin();
    assert!(leadership.deadline() <= sent_before + ms(1_500) - margin);
    puppet.set(Op::Renew, Rule::Pass);
}

#[tokio::test]
async fn a_follower_leads_only_after_the_hung_leader_has_ended() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let first = builder.ttl(ms(600)).start().await.unwrap();
    let leadership = soon(first.wait_for_leadership()).await.unwrap();
    let second = candidate(&store, "b").ttl(ms(600)).start().await.unwrap();
    puppet.set_all(Rule::Hang);
    let polling = async {
        loop {
            // The one that may be over is asked last: if it still leads then, both did.
            let (b, a) = (second.is_leader(), first.is_leader());
            assert!(!(a && b), "two leaders");
            if b {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(polling).await;
    assert!(!leadership.is_valid());
    puppet.set_all(Rule::Pass);
}
