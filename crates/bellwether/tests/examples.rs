//! Each example does what it shows, with a second copy of itself on the same directory or server.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use bellwether_support::servers::postgres::Server;

/// Cargo builds the examples with the tests, beside them.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let built = test.parent().and_then(|deps| deps.parent()).expect("a directory of programs");
    built.join("examples").join(name)
}

fn twice(name: &str) -> Vec<String> {
    let program = example(name);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = || {
        Command::new(&program)
            .arg(directory.path().join("elections"))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the example starts")
    };
    let copies = [start(), start()];
    copies
        .into_iter()
        .map(|copy| {
            let output = copy.wait_with_output().expect("the example ends");
            assert!(output.status.success(), "{name}: {}", output.status);
            String::from_utf8(output.stdout).expect("text")
        })
        .collect()
}

fn epochs(outputs: &[String], before: &str) -> Vec<u64> {
    let number = |text: &str| -> u64 {
        let after = &text[text.find(before).expect("an epoch") + before.len()..];
        after.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).expect("a number")
    };
    outputs.iter().map(|text| number(text)).collect()
}

#[test]
fn poll() {
    for text in twice("poll") {
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}

#[test]
fn wait() {
    let outputs = twice("wait");
    let epochs = epochs(&outputs, "epoch ");
    assert_ne!(epochs[0], epochs[1], "{outputs:?}");
    assert!(
        outputs.iter().all(|text| text.contains("step 3") && text.contains("stepped down")),
        "{outputs:?}"
    );
}

#[test]
fn lead() {
    let outputs = twice("lead");
    let epochs = epochs(&outputs, "under epoch ");
    assert_ne!(epochs[0], epochs[1], "{outputs:?}");
    assert!(outputs.iter().all(|text| text.contains("step 3")), "{outputs:?}");
}

#[test]
fn hooks() {
    for text in twice("hooks") {
        let (begun, over) = (text.find("hook: leading"), text.find("is over"));
        assert!(begun.is_some() && begun < over, "{text}");
        assert!(text.contains("callback: acquired") && text.contains("leadership released"), "{text}");
    }
}

#[test]
fn fenced_file() {
    let outputs = twice("fenced_file");
    let (first, second) = (epochs(&outputs, "under the epochs "), epochs(&outputs, " and "));
    for (text, (first, second)) in outputs.iter().zip(first.iter().zip(&second)) {
        assert!(
            first < second && text.contains(&format!("too late, refused: epoch {first} is fenced")),
            "{text}"
        );
        assert!(!text.contains("by me alone"), "{text}");
    }
    // Whoever ended last has seen what all four leaderships wrote.
    let steps = outputs.iter().map(|text| text.matches("step ").count()).max();
    assert_eq!(steps, Some(12), "{outputs:?}");
}

/// Formed by the first run, found on its disks by the second, with what was agreed on before.
#[test]
fn embedded_cluster() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Free now, and held at the same time so that they differ.
    let held: Vec<_> = (0..3).map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let ports: Vec<String> =
        held.iter().map(|port| port.local_addr().expect("an address").port().to_string()).collect();
    drop(held);
    for (mode, before) in [("app-0: bootstrap", 0), ("app-0: restart", 4)] {
        let mut command = Command::new(example("embedded_cluster"));
        let output = command.arg(directory.path()).arg(ports.join(",")).output().expect("the example runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains(mode), "{said}");
        assert!(said.contains(&format!("without the old leader: {} × yes", before + 4)), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fence() {
    let server = Server::start(Duration::from_secs(3)).await;
    let sql =
        bellwether::postgres::Schema::new("bellwether").and_then(|schema| schema.sql(&[])).expect("SQL");
    let admin = server.admin().await;
    admin.batch_execute(&sql).await.expect("the tables are made");
    // Both make it if it is not there, and two that do so at once get in each other's way.
    let demo = "CREATE TABLE fence_demo (epoch int8, line text)";
    admin.batch_execute(demo).await.expect("a table");
    let start = || {
        let mut command = Command::new(example("fence"));
        command.arg(server.url()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the example starts")
    };
    let copies = [start(), start()];
    for copy in copies {
        let Output { status, stdout, stderr } = copy.wait_with_output().expect("the example ends");
        let (said, wrong) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{said}{wrong}");
        assert!(said.contains("step 3 written") && said.contains("too late, refused"), "{said}");
    }
    let epochs = "SELECT count(DISTINCT epoch) FROM fence_demo WHERE line LIKE 'step %'";
    assert_eq!(server.number(epochs).await, 2, "each led under an epoch of its own");
    assert_eq!(server.number("SELECT count(*) FROM fence_demo").await, 6, "and nothing came late");
}
