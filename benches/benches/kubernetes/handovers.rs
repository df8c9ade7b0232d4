//! From the release of a leader to the next: hop by hop beside the raw one with one follower, and with fifty; client-go's beside
//! each.

use std::time::Duration;

use bellwether::{Election, boot_now};
use bellwether_benches::{Axis, Hops, Row, judged, median, percentile, progress, report};
use bellwether_support::servers::kubernetes::Server;
use futures_util::future::{join_all, select_all, try_join_all};

use crate::raw::RawPair;
use crate::stage::{Namespace, client_go_name, following, stamping, stand_alone, times};

const TTL: Duration = Duration::from_secs(15);
const ROUNDS: usize = 100;
const FOLLOWERS: usize = 50;
const ROUNDS_WITH_MANY: usize = 30;
/// Few: client-go takes seconds for each.
const ROUNDS_OF_CLIENT_GO: usize = 10;
/// Between two, so that what one leaves behind is not part of the next.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn one_follower(server: &Server) {
    let namespace = Namespace::of(server, "one-follower");
    progress(&format!("handing over {ROUNDS} times to one follower"));
    let url = namespace.url();
    let mut leader = stamping(&url, "c0", TTL).await;
    leader.election.wait_for_leadership().await.expect("a leadership");
    let (mut hops, mut raw) = (Hops::default(), RawPair::start(&namespace, "job-0").await);
    for round in 1..=ROUNDS {
        let follower = stamping(&url, &format!("c{round}"), TTL).await;
        following([&follower.election], leader.election.id().as_str()).await;
        hops.hand_over(&leader, &follower).await;
        // In the same rhythm.
        tokio::time::sleep(PAUSE).await;
        hops.note_raw(raw.handover().await);
        leader = follower;
    }
    leader.election.stop().await.expect("a release");
    client_go(&namespace, 1, hops.median()).raw(hops.raw_median()).print();
    hops.report("one follower: ", Duration::from_millis(15));
    hops.judge_p99("one follower: ", Duration::from_millis(50));
}

pub(crate) async fn many_followers(server: &Server) {
    let namespace = Namespace::of(server, "many-followers");
    progress(&format!("handing over {ROUNDS_WITH_MANY} times to one of {FOLLOWERS} followers"));
    let url = namespace.url();
    let mut leader = stand_alone(&url, "c0", TTL).await;
    leader.wait_for_leadership().await.expect("a leadership");
    let stand = |number: usize| {
        let url = &url;
        async move { stand_alone(url, &format!("c{number}"), TTL).await }
    };
    let mut followers = join_all((1..=FOLLOWERS).map(stand)).await;
    following(&followers, "c0").await;
    let (mut took, conflicts) = (Vec::new(), namespace.conflicts());
    for round in 1..=ROUNDS_WITH_MANY {
        let (next, span) = hand_over(&leader, &followers).await;
        took.push(span);
        leader = followers.swap_remove(next);
        followers.push(stand(FOLLOWERS + round).await);
        following(&followers, leader.id().as_str()).await;
    }
    let conflicts = (namespace.conflicts() - conflicts) as f64 / ROUNDS_WITH_MANY as f64;
    followers.push(leader);
    try_join_all(followers.iter().map(Election::stop)).await.expect("releases");
    let (middle, longest) = (median(took.clone()), percentile(took, 1.0));
    client_go(&namespace, FOLLOWERS, middle).print();
    let what = format!("{FOLLOWERS} followers: stop() to the next leadership, median of {ROUNDS_WITH_MANY}");
    judged(&what, middle, Duration::from_millis(40));
    report(&format!("{FOLLOWERS} followers: the longest"), &format!("{longest:.2?}"), "");
    report(&format!("{FOLLOWERS} followers: PUTs refused, each time"), &format!("{conflicts:.1}"), "");
}

/// Stops the leader; which follower leads, and how long that took.
pub(crate) async fn hand_over(leader: &Election, followers: &[Election]) -> (usize, Duration) {
    let start = boot_now();
    let led = async {
        let all = followers.iter().map(|follower| Box::pin(follower.wait_for_leadership()));
        let (leadership, next, _) = select_all(all).await;
        leadership.expect("a leadership");
        (next, boot_now().since(start))
    };
    let (stopped, led) = tokio::join!(leader.stop(), led);
    stopped.expect("a release");
    led
}

/// The row of a handover beside client-go's. Its followers are told of nothing.
fn client_go(namespace: &Namespace<'_>, followers: usize, ours: Duration) -> Row {
    progress(&format!("the same of client-go, {ROUNDS_OF_CLIENT_GO} times"));
    let (rounds, count) = (ROUNDS_OF_CLIENT_GO.to_string(), followers.to_string());
    let took = times(&namespace.client_go("handover", &["--rounds", &rounds, "--followers", &count]));
    let (theirs, longest) = (median(took.clone()), percentile(took, 1.0));
    Row::time("kubernetes", "handover", ours)
        .set("ttl 15 s")
        .peer(client_go_name(), theirs.as_secs_f64())
        .at(Axis::Followers, followers)
        .note(format!("median of {ROUNDS_OF_CLIENT_GO} of theirs, the longest {longest:.2?}"))
}
