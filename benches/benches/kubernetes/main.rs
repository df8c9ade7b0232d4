//! Elections on an API server of its own, with client-go on the same server in the same run: writes beside the raw PUT, handovers,
//! failovers, what is sent while nothing changes, a thousand elections of one process, and `is_leader()`; and two makes in Rust beside ours. With
//! the name of a measure as an argument, that one alone.

mod beside;
mod failovers;
mod handovers;
mod is_leader;
mod many;
mod quiet;
mod raw;
mod stage;
mod writes;

use bellwether::Store;
use bellwether_benches::peers::ours::Asked;
use bellwether_benches::progress;
use bellwether_kubernetes::from_url;
use bellwether_support::servers::kubernetes::Server;
use bellwether_support::{clock, role};
use tokio::runtime::Builder;

/// The measures that can be had alone.
const ALONE: [&str; 8] =
    ["writes", "one-follower", "many-followers", "failovers", "many", "is-leader", "beside", "growth"];

fn main() {
    // A thousand elections are one task and short calls: a second thread would only wake the first.
    if let Some(asked) = Asked::of_arguments() {
        let open = |url: &str| Store::from(from_url(url, clock()).expect("a URL"));
        return on(Builder::new_current_thread(), asked.run(open));
    }
    if let Some(told) = role() {
        return on(Builder::new_current_thread(), stage::lead_until_killed(&told));
    }
    on(Builder::new_multi_thread(), measure_all());
}

fn on(mut runtime: Builder, work: impl Future<Output = ()>) {
    runtime.enable_all().build().expect("a runtime").block_on(work);
}

async fn measure_all() {
    progress("starting etcd and kube-apiserver");
    let server = stage::server().await;
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if !only.is_empty() {
        for name in only {
            measure(&name, &server).await;
        }
        return;
    }
    // A watch lasts for minutes, so followers are counted for as long as all the rest takes.
    let quiet = quiet::start(&server).await;
    for name in ALONE {
        measure(name, &server).await;
    }
    let theirs = quiet::client_go(&server);
    quiet.end(theirs).await;
}

async fn measure(name: &str, server: &Server) {
    match name {
        "writes" => writes::writes(server).await,
        "one-follower" => handovers::one_follower(server).await,
        "many-followers" => handovers::many_followers(server).await,
        "failovers" => failovers::failovers(server).await,
        "many" => many::many(server).await,
        "is-leader" => is_leader::is_leader(server).await,
        "beside" => beside::beside(server).await,
        "growth" => beside::growth(server).await,
        other => panic!("there is no measure `{other}`; there are: {}", ALONE.join(", ")),
    }
}
