//! A thousand elections of one process, with one watch: what the process costs while nothing happens. A process of its own, beside one
//! of client-go.

use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{Axis, Row, Unit, cpu_time_of, progress, report, resident_bytes_of};
use bellwether_support::servers::kubernetes::Server;

use crate::stage::{Namespace, client_go_name, led_by_a_child};

const MANY: usize = 1_000;
const TTL: Duration = Duration::from_secs(15);
/// For what the start leaves behind: Events, histories, and first renewals.
const SETTLING: Duration = Duration::from_secs(15);
const STEADY: Duration = Duration::from_secs(20);
const MIB: f64 = 1_048_576.0;

pub(crate) async fn many(server: &Server) {
    let namespace = Namespace::of(server, "many");
    progress(&format!("starting {MANY} elections in one process"));
    let begin = boot_now();
    let child = led_by_a_child(&namespace.url(), TTL, MANY);
    let started = boot_now().since(begin);
    let at_first = resident_bytes_of(child.id()) as f64 / MIB;
    progress(&format!("letting them settle for {SETTLING:?}, and measuring for {STEADY:?}"));
    tokio::time::sleep(SETTLING).await;
    let (requests, cpu, start) = (namespace.requests(), cpu_time_of(child.id()), boot_now());
    tokio::time::sleep(STEADY).await;
    let (cpu, span) = (cpu_time_of(child.id()).saturating_sub(cpu), boot_now().since(start));
    let memory = resident_bytes_of(child.id()) as f64 / MIB;
    let requests = (namespace.requests() - requests) as f64 / span.as_secs_f64();
    let share = cpu.as_secs_f64() / span.as_secs_f64() * 100.0;
    drop(child);
    let theirs = client_go(server);
    let row = |what, unit, ours, theirs| {
        let row = Row::figure("kubernetes", what, unit, ours).set("ttl 15 s");
        row.peer(client_go_name(), theirs).at(Axis::Elections, MANY)
    };
    row("memory of the process", Unit::Bytes, memory * MIB, theirs.memory * MIB).bound(30.0 * MIB).print();
    row("processor of the process", Unit::Cores, share / 100.0, theirs.share / 100.0).bound(0.1).print();
    row("requests while nothing changes", Unit::PerSecond, requests, theirs.requests)
        .note("ours renews each every 5 s, client-go every 2 s")
        .print();
    report("  when all had just begun to lead", &format!("{at_first:.1} MiB"), "");
    report(&format!("  start of the process to leading all {MANY}"), &format!("{started:.2?}"), "");
}

struct Cost {
    memory: f64,
    share: f64,
    requests: f64,
}

fn client_go(server: &Server) -> Cost {
    let namespace = Namespace::of(server, "client-go-many");
    progress(&format!("the same of client-go, for {STEADY:?}"));
    let (count, lasting) = (MANY.to_string(), format!("{}s", STEADY.as_secs()));
    let counted = namespace.client_go("many", &["--elections", &count, "--for", &lasting]);
    let number = |key: &str| counted[key].as_f64().expect("a number");
    let lasted = number("lasted_nanos");
    Cost {
        memory: number("resident_bytes") / MIB,
        share: number("cpu_nanos") / lasted * 100.0,
        requests: number("requests") / (lasted / 1e9),
    }
}
