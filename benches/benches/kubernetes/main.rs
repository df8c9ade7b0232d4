//! Elections on an API server of its own, with client-go on the same server in the same run: writes beside the raw PUT, handovers,
//! failovers, what is sent while nothing changes, a thousand elections of one process, and `is_leader()`.

mod failovers;
mod handovers;
mod is_leader;
mod many;
mod quiet;
mod raw;
mod stage;
mod writes;

use bellwether_benches::progress;
use bellwether_support::role;

#[tokio::main]
async fn main() {
    if let Some(told) = role() {
        return stage::lead_until_killed(&told).await;
    }
    progress("starting etcd and kube-apiserver");
    let server = stage::server().await;
    // A watch lasts for minutes, so followers are counted for as long as all the rest takes.
    let quiet = quiet::start(&server).await;
    writes::writes(&server).await;
    handovers::one_follower(&server).await;
    handovers::many_followers(&server).await;
    failovers::failovers(&server).await;
    many::many(&server).await;
    is_leader::is_leader(&server).await;
    quiet::client_go(&server);
    quiet.end().await;
}
