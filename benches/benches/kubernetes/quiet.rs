//! What one leader and fifty followers send while nothing changes, by the server's own log; and how fast a handover is after that,
//! when connections that nobody used have been closed.

use std::time::Duration;

use bellwether::{Boot, Election, boot_now};
use bellwether_benches::{Axis, Row, Unit, progress, report};
use bellwether_support::servers::kubernetes::Server;
use futures_util::future::{join_all, try_join_all};

use crate::handovers::hand_over;
use crate::stage::{Namespace, client_go_name, following, stand_alone};

const TTL: Duration = Duration::from_secs(15);
const FOLLOWERS: usize = 50;
/// For what the start leaves behind: the Event and the history.
const SETTLING: Duration = Duration::from_secs(2);
/// Every watch has ended once after this time, and another has been opened.
const WATCHES_END: Duration = Duration::from_secs(231);
const CLIENT_GO_FOR: &str = "20s";

pub(crate) struct Quiet<'a> {
    namespace: Namespace<'a>,
    leader: Election,
    followers: Vec<Election>,
    since: Boot,
    requests: usize,
}

pub(crate) async fn start(server: &Server) -> Quiet<'_> {
    let namespace = Namespace::of(server, "quiet");
    progress(&format!("starting {FOLLOWERS} followers, to be counted at the end"));
    let url = namespace.url();
    let leader = stand_alone(&url, "leader", TTL).await;
    leader.wait_for_leadership().await.expect("a leadership");
    let stand = |number: usize| {
        let url = &url;
        async move { stand_alone(url, &format!("c{number}"), TTL).await }
    };
    let followers = join_all((0..FOLLOWERS).map(stand)).await;
    following(&followers, "leader").await;
    tokio::time::sleep(SETTLING).await;
    let (since, requests) = (boot_now(), namespace.requests());
    Quiet { namespace, leader, followers, since, requests }
}

impl Quiet<'_> {
    /// `theirs` is what client-go asks for, each second.
    pub(crate) async fn end(self, theirs: f64) {
        let left = WATCHES_END.saturating_sub(boot_now().since(self.since));
        if !left.is_zero() {
            progress(&format!("waiting for {left:.0?}, until every watch has ended once"));
            tokio::time::sleep(left).await;
        }
        let (span, requests) = (boot_now().since(self.since), self.namespace.requests() - self.requests);
        let each_second = requests as f64 / span.as_secs_f64();
        Row::figure("kubernetes", "requests while nothing changes", Unit::PerSecond, each_second)
            .set("ttl 15 s")
            .peer(client_go_name(), theirs)
            .bound(0.5)
            .at(Axis::Followers, FOLLOWERS)
            .print();
        report("  counted by the server", &requests.to_string(), &format!("in {span:.0?}, ttl {TTL:?}"));
        let (_, took) = hand_over(&self.leader, &self.followers).await;
        report(
            &format!("{FOLLOWERS} followers, after these minutes: one handover"),
            &format!("{took:.2?}"),
            "connections that nobody used were closed",
        );
        try_join_all(self.followers.iter().map(Election::stop)).await.expect("releases");
    }
}

/// Its requests each second.
pub(crate) fn client_go(server: &Server) -> f64 {
    let namespace = Namespace::of(server, "client-go-requests");
    progress(&format!("counting the requests of client-go's {FOLLOWERS} followers for {CLIENT_GO_FOR}"));
    let followers = FOLLOWERS.to_string();
    let counted = namespace.client_go("requests", &["--followers", &followers, "--for", CLIENT_GO_FOR]);
    let number = |key: &str| counted[key].as_f64().expect("a number");
    number("requests") / (number("lasted_nanos") / 1e9)
}
