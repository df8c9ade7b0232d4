//! A Raft cluster of three processes with fsync, and etcd's of three beside it in the same run: durable writes, failovers, transfers,
//! handovers of elections, forming, restarts and memory. With the name of a measure as an argument, that one alone.

mod failovers;
mod forming;
mod handovers;
mod machine;
mod many;
mod node;
mod restarts;
mod transfers;
mod trio;
mod writes;

use bellwether_support::role;
use tokio::runtime::Builder;

/// The measures, in their order.
const ALL: [&str; 7] = ["writes", "forming", "transfers", "failovers", "restarts", "handovers", "many"];

fn main() {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
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
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for name in only.as_deref().map_or(ALL.to_vec(), |only| vec![only]) {
        measure(name).await;
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
        other => panic!("there is no measure `{other}`; there are: {}", ALL.join(", ")),
    }
}
