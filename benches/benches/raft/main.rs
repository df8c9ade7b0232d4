//! A Raft cluster of three processes with fsync, and etcd's of three beside it in the same run: durable writes, failovers, transfers,
//! handovers of elections, forming, restarts and memory; and hashicorp/raft and the election of etcd's client library beside ours. With the name of a measure as an argument, that one alone.

mod beside;
mod failovers;
mod forming;
mod handovers;
mod hashicorp;
mod machine;
mod many;
mod node;
mod restarts;
mod transfers;
mod trio;
mod writes;

use bellwether_benches::peers::ours::Asked;
use bellwether_support::role;
use tokio::runtime::Builder;

/// The measures, in their order.
const ALL: [&str; 10] = [
    "writes",
    "forming",
    "transfers",
    "failovers",
    "restarts",
    "handovers",
    "many",
    "beside",
    "growth",
    "hashicorp",
];

fn main() {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if let Some(asked) = Asked::of_arguments() {
        return runtime.block_on(asked.run(|url| bellwether::open(url).expect("a URL")));
    }
    match role() {
        Some(told) => match told.split_once('\n') {
            Some((node::ROLE, told)) => runtime.block_on(node::run_until_killed(told)),
            Some((many::ROLE, told)) => runtime.block_on(many::hold(told)),
            _ => panic!("not a role of this benchmark: {told}"),
        },
        None => runtime.block_on(measure_all()),
    }
}

async fn measure_all() {
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for name in if only.is_empty() { ALL.map(str::to_owned).to_vec() } else { only } {
        measure(&name).await;
    }
}

async fn measure(name: &str) {
    match name {
        "writes" => writes::writes().await,
        "forming" => forming::forming().await,
        "transfers" => transfers::transfers().await,
        "failovers" => failovers::failovers().await,
        "restarts" => restarts::restarts().await,
        "handovers" => handovers::handovers().await,
        "many" => many::many().await,
        "beside" => beside::beside().await,
        "growth" => beside::growth().await,
        "hashicorp" => hashicorp::hashicorp().await,
        other => panic!("there is no measure `{other}`; there are: {}", ALL.join(", ")),
    }
}
