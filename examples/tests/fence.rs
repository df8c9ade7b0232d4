//! The example that fences its writes, twice at once on a real server.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use bellwether_support::servers::postgres::Server;

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_fence"));
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
