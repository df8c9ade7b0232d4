//! The command on a PostgreSQL server: the ways to name it, its exit codes, and what the doctor says.

use std::process::{Command, Output};
use std::time::Duration;

use bellwether_support::servers::pgbouncer::Pooler;
use bellwether_support::servers::postgres::Server;
use bellwether_tests::{Candidate, bellwether, run_to_end};
use serde_json::Value;

use super::TTL;

/// The command, with nothing of the tests' own environment that names a server.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(bellwether());
    for variable in [
        "BELLWETHER_BACKEND",
        "PG_DSN",
        "PGHOST",
        "PGPORT",
        "PGUSER",
        "PGDATABASE",
        "PGPASSWORD",
        "PGPASSFILE",
        "PGSERVICE",
        "PGSERVICEFILE",
    ] {
        command.env_remove(variable);
    }
    command.args(arguments);
    command
}

/// Runs it to its end beside the test's own tasks.
async fn ended(command: Command) -> Output {
    tokio::task::spawn_blocking(move || run_to_end(command)).await.expect("it ends")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_named_in_every_way_that_its_users_know() {
    let server = Server::start(TTL).await;
    let (url, port) = (server.url(), server.port.to_string());
    let pairs = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let mut by_file = command(&["--backend-file"]);
    by_file.arg(server.write("url", &url)).args(["acquire", "job", "--ttl", "3s"]);
    let mut by_variable = command(&["acquire", "job", "--ttl", "3s"]);
    by_variable.env("PG_DSN", &pairs);
    let mut by_libpq = command(&["--backend", "postgres:", "acquire", "job", "--ttl", "3s"]);
    by_libpq.envs([
        ("PGHOST", "127.0.0.1"),
        ("PGPORT", &port),
        ("PGUSER", "postgres"),
        ("PGDATABASE", "postgres"),
    ]);
    let mut flag_first = command(&["--dsn", &url, "acquire", "job", "--ttl", "3s"]);
    flag_first.env("BELLWETHER_BACKEND", "memory:").env("PG_DSN", "postgres://127.0.0.1:1/nowhere");
    let mut last = 0;
    for one in [
        by_file,
        by_variable,
        by_libpq,
        flag_first,
        command(&["acquire", "job", "--ttl", "3s", "--dsn", &pairs]),
    ] {
        let text = format!("{one:?}");
        let output = ended(one).await;
        assert_eq!(output.status.code(), Some(0), "{text}: {}", said(&output));
        let epoch: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("an epoch");
        assert!(epoch > last, "{text}: all are one election");
        last = epoch;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explicit_keys_are_the_lock_and_the_name_is_shown() {
    let server = Server::start(TTL).await;
    let url = server.url();
    let mut leads =
        command(&["run", "job", "--dsn", &url, "--key1", "-5", "--key2", "7", "--id", "one", "--ttl", "3s"]);
    leads.args(["--health-interval", "0.3", "--events"]);
    let mut leader = Candidate::start(leads);
    let leader = tokio::task::spawn_blocking(move || {
        let line = leader.expect("acquired");
        assert_eq!(line.text("election"), Some("job"));
        leader
    });
    let leader = leader.await.expect("it leads");
    let held =
        "SELECT count(*) FROM pg_locks WHERE classid::int8 = 4294967291 AND objid::int8 = 7 AND objsubid = 2";
    assert_eq!(server.number(held).await, 1);
    let output =
        ended(command(&["status", "job", "--dsn", &url, "--key1=-5", "--key2=7", "-o", "json"])).await;
    let seen: Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!((seen["election"].as_str(), seen["holder"].as_str()), (Some("job"), Some("one")), "{seen}");
    // By the hash of its name it is another lock.
    let output = ended(command(&["acquire", "job", "--dsn", &url, "--ttl", "3s"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    drop(leader);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_ends_with_its_code_and_never_says_the_password() {
    let server = Server::start(Duration::ZERO).await;
    let admin = server.admin().await;
    admin.batch_execute("CREATE ROLE secret LOGIN PASSWORD 'open-sesame'").await.expect("a role");
    server.write(
        "data/pg_hba.conf",
        "local all all trust\nhost all secret 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n",
    );
    server.set("log_connections", "on").await;
    let place = format!("127.0.0.1:{}", server.port);
    let wrong = format!("postgres://secret:close-sesame@{place}/postgres");
    let nowhere = format!("postgres://postgres@{place}/nowhere");
    let plain = format!("postgres://postgres@{place}/postgres?sslmode=require");
    let pooler = Pooler::start(&server, "transaction");
    let pooled = pooler.url();
    let run = ["run", "job", "--ttl", "3s"];
    let without = format!("postgres://secret@{place}/postgres");
    for (backend, more, code, part) in [
        (wrong.as_str(), &run[..], 77, "does not let this user in"),
        (&wrong, &["doctor"], 77, "does not let this user in"),
        (&wrong, &["acquire", "job"], 77, "password authentication failed for user"),
        (&without, &run, 77, "PGPASSWORD"),
        (&nowhere, &run, 78, "no such database"),
        (&plain, &run, 78, "does not encrypt"),
        (&pooled, &run, 78, "pooler"),
        (&pooled, &["acquire", "job"], 78, "pooler"),
        ("memory:", &["acquire", "job", "--key1", "1", "--key2", "2"], 64, "PostgreSQL"),
        ("memory:", &["acquire", "job", "--key1", "1"], 64, "--key2"),
        ("memory:", &["acquire", "job", "--dsn", "postgres://h/d"], 64, "give one"),
        ("postgres://h/d?sslmode=maybe", &["status", "job"], 64, "verify-full"),
    ] {
        let mut command = command(&["--backend", backend, "-v"]);
        command.args(more);
        let output = ended(command).await;
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.contains(part) && !said.contains("sesame"), "{more:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_and_hosts_are_found_where_libpq_finds_them() {
    // A password costs each session a fifth of a second of one processor, of which a busy machine may have none to spare.
    let server = Server::start(3 * TTL).await;
    let admin = server.admin().await;
    admin.batch_execute("CREATE ROLE secret LOGIN PASSWORD 'open:sesame'").await.expect("a role");
    server.write(
        "data/pg_hba.conf",
        "local all all trust\nhost all secret 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n",
    );
    server.set("log_connections", "on").await;
    let port = server.port.to_string();
    let url = format!("postgres://secret@127.0.0.1:{port}/postgres");
    let path = |name: &str, content: &str| server.write(name, content).display().to_string();
    let passwords =
        path("pgpass", &format!("other:*:*:*:no\n127.0.0.1:{port}:postgres:secret:open\\:sesame\n"));
    let readable = path("readable", &format!("127.0.0.1:{port}:postgres:secret:open\\:sesame\n"));
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&readable, everybody).expect("a file that everybody can read");
    let services = path(
        "services",
        &format!(
            "[reports]\nhost=127.0.0.1\nport={port}\nuser=secret\ndbname=postgres\npassword=open:sesame\n"
        ),
    );
    let (hosts, ports) = ("127.0.0.1,127.0.0.1", format!("1,{port}"));
    let no_host = "postgres://secret@/postgres";
    for (backend, variables, code) in [
        (url.as_str(), &[("PGPASSWORD", "open:sesame")][..], 0),
        (&url, &[("PGPASSFILE", &passwords)], 0),
        (&format!("{url}?passfile={passwords}"), &[], 0),
        // As libpq does: a file that others can read is not used.
        (&url, &[("PGPASSFILE", &readable)], 77),
        ("postgres:", &[("PGSERVICE", "reports"), ("PGSERVICEFILE", &services)], 0),
        ("postgres:///?service=reports", &[("PGSERVICEFILE", &services)], 0),
        ("postgres:///?service=nothing", &[("PGSERVICEFILE", &services)], 64),
        (no_host, &[("PGHOST", hosts), ("PGPORT", &ports), ("PGPASSWORD", "open:sesame")], 0),
    ] {
        let mut command = command(&["--backend", backend, "acquire", "job", "--ttl", "9s"]);
        command.envs(variables.iter().copied());
        let output = ended(command).await;
        assert_eq!(output.status.code(), Some(code), "{backend} {variables:?}: {}", said(&output));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_examines_a_server_and_leaves_nothing_behind() {
    // Long enough that the calls of a busy machine do not count as too slow.
    let server = Server::start(TTL).await;
    let before = server.number("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8").await;
    let looked = ended(command(&["--backend", &server.url(), "doctor", "--no-write", "-o", "json"])).await;
    assert_eq!(looked.status.code(), Some(0), "{}", said(&looked));
    let after = server.number("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8").await;
    assert_eq!(before, after, "only looked");
    let output = ended(command(&["--backend", &server.url(), "doctor", "--ttl", "3s", "-o", "json"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let verdict = |what: &str| {
        let all = report["findings"].as_array().expect("an array");
        let one =
            all.iter().find(|one| one["what"] == what).unwrap_or_else(|| panic!("no {what} in {report:#}"));
        one["verdict"].as_str().expect("a word").to_owned()
    };
    for what in [
        "server",
        "pooling",
        "permission",
        "lock table",
        "connections",
        "durability",
        "replicas",
        "lease",
        "election",
    ] {
        assert_eq!(verdict(what), "good", "{what} in {report:#}");
    }
    assert_eq!(verdict("encryption"), "warning");
    assert!(report["renew_latency"]["p50_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{report:#}");
    let left = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    server.until(left, |number| number == 0).await;
}
