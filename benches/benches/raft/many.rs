//! Ten thousand elections, held by a hundred clients: how long until all are led, what the nodes and the clients take while nothing happens,
//! and how many leaderships are kept.
//!
//! A client is a store with a session and a connection of its own. All of them are in one process beside the nodes: a hundred processes would
//! measure the scheduler of a small machine.

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use bellwether::{Election, Epoch, boot_now, open};
use bellwether_benches::{cpu_time_of, progress, report, resident_bytes_of};
use bellwether_support::Child;
use futures_util::future::{join_all, try_join_all};

use crate::trio::{NODES, Trio};

/// The first line of the role of the process with the clients.
pub(crate) const ROLE: &str = "clients";
const CLIENTS: usize = 100;
const ELECTIONS_EACH: usize = 100;
const MANY: usize = CLIENTS * ELECTIONS_EACH;
/// For what the start leaves behind: histories, and the first renewals.
const SETTLING: Duration = Duration::from_secs(20);
const STEADY: Duration = Duration::from_secs(30);
const MIB: f64 = 1_048_576.0;

pub(crate) async fn many() {
    let trio = Trio::with_elections();
    progress(&format!("leading {MANY} elections with {CLIENTS} clients"));
    let urls: Vec<String> = (0..NODES).map(|number| trio.url_from(number)).collect();
    let mut child = Child::start("bench", &format!("{ROLE}\n{}", urls.join("\n")));
    let mut said = BufReader::new(child.process().stdout.take().expect("a pipe")).lines();
    let mut say = child.process().stdin.take().expect("a pipe");
    let mut next = || said.next().expect("the clients are there").expect("a line");
    let began: Duration = Duration::from_nanos(next().parse().expect("nanoseconds"));
    report(
        &format!("{CLIENTS} clients from the start to leading all of {MANY}"),
        &format!("{began:.2?}"),
        &format!("{:.0} elections a second", MANY as f64 / began.as_secs_f64()),
    );
    progress(&format!("letting them settle for {SETTLING:?}, and measuring for {STEADY:?}"));
    tokio::time::sleep(SETTLING).await;
    let leader = trio.leader().await;
    let who = |number: usize| if number == leader { "the leading node" } else { "a following node" };
    let nodes = (0..NODES).map(|number| (who(number), trio.pid(number)));
    let all: Vec<(&str, u32)> = nodes.chain([("the clients", child.id())]).collect();
    let (before, start) = (all.iter().map(|(_, pid)| cpu_time_of(*pid)).collect::<Vec<_>>(), boot_now());
    tokio::time::sleep(STEADY).await;
    let after = all.iter().map(|(_, pid)| cpu_time_of(*pid));
    let span = boot_now().since(start);
    for (((who, pid), before), after) in all.iter().zip(before).zip(after) {
        let share = after.saturating_sub(before).as_secs_f64() / span.as_secs_f64() * 100.0;
        let memory = resident_bytes_of(*pid) as f64 / MIB;
        report(
            &format!("  {who}, over {:.0} s without a change", span.as_secs_f64()),
            &format!("{memory:.1} MiB"),
            &format!("{share:.1} % of a core"),
        );
    }
    writeln!(say, "count").expect("the clients are there");
    let kept: usize = next().parse().expect("a number");
    let verdict = if kept == MANY { "none was lost: ok" } else { "some were lost: MISSED" };
    report("leaderships kept, under the epochs that they began with", &format!("{kept} of {MANY}"), verdict);
}

/// In the process of the clients: leads, says how long that took, waits for a line, and says how many it still leads.
pub(crate) async fn hold(told: &str) {
    let urls: Vec<&str> = told.split('\n').collect();
    let begin = boot_now();
    let clients = join_all((0..CLIENTS).map(|number| lead(urls[number % urls.len()], number))).await;
    let held: Vec<(Election, Epoch)> = clients.into_iter().flatten().collect();
    println!("{}", boot_now().since(begin).as_nanos());
    let asked = tokio::task::spawn_blocking(|| std::io::stdin().lock().read_line(&mut String::new())).await;
    asked.expect("it is not aborted").expect("standard input");
    let is_kept = |(election, epoch): &&(Election, Epoch)| {
        election.leadership().is_some_and(|leadership| leadership.epoch() == *epoch)
    };
    println!("{}", held.iter().filter(is_kept).count());
    std::future::pending().await
}

/// All elections of one client.
async fn lead(url: &str, client: usize) -> Vec<(Election, Epoch)> {
    let store = open(url).expect("a URL");
    let start = |number: usize| {
        let name = format!("client-{client}-job-{number}");
        Election::builder(name).backend(store.clone()).id(format!("c{client}")).start()
    };
    let all = try_join_all((0..ELECTIONS_EACH).map(start)).await.expect("a start");
    let mut held = Vec::new();
    for election in all {
        let epoch = election.wait_for_leadership().await.expect("a leadership").epoch();
        held.push((election, epoch));
    }
    held
}
