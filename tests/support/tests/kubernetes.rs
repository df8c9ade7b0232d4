//! The API server that tests start: it is a real one, it can be taken down and brought back, and nothing of it is left over.

use std::path::Path;

use bellwether_support::netns::Network;
use bellwether_support::servers::kubernetes::{ADMIN, ClientGo, LIMITED, Server, Timing};
use bellwether_support::{Child, role, until_blocking};
use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

async fn status(server: &Server, user: &str, path: &str) -> u16 {
    server.asked(user, "GET", path, None).await.expect("the API server answers").status
}

#[tokio::test]
async fn a_server_that_was_killed_or_restarted_has_the_same_objects_on_the_same_port() {
    let mut server = Server::start().await;
    let made = server.api("POST", LEASES, json!({ "metadata": { "name": "kept" } })).await;
    let path = format!("{LEASES}/kept");
    let url = server.url();

    server.down("KILL");
    let refused = server.asked(ADMIN, "GET", &path, None).await.unwrap_err();
    assert!(refused.contains("refused"), "{refused}");
    server.up().await;
    server.restart().await;

    let kept = server.api("GET", &path, Value::Null).await;
    assert_eq!(kept["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(server.url(), url);
}

#[tokio::test]
async fn a_paused_server_says_nothing_until_it_goes_on() {
    let server = Server::start().await;
    let paused = server.pause();
    assert!(server.asked(ADMIN, "GET", "/readyz", None).await.unwrap_err().contains("no answer"));
    drop(paused);
    assert_eq!(status(&server, ADMIN, "/readyz").await, 200);
}

#[tokio::test]
async fn a_limited_user_may_do_what_a_role_permits_and_the_requests_are_on_record() {
    let server = Server::shared().await;
    server.namespace("roles").await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/roles/leases";
    assert_eq!(status(server, LIMITED[0], leases).await, 403);
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/roles";
    let rules = json!([{ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"] }]);
    server
        .api("POST", &format!("{roles}/roles"), json!({ "metadata": { "name": "r" }, "rules": rules }))
        .await;
    let binding = json!({
        "metadata": { "name": "r" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": LIMITED[0] }],
    });
    server.api("POST", &format!("{roles}/rolebindings"), binding).await;
    bellwether_support::until(|| async {
        match status(server, LIMITED[0], leases).await {
            200 => Ok(()),
            other => Err(format!("the role does not permit it: {other}")),
        }
    })
    .await;
    assert_eq!(status(server, LIMITED[1], leases).await, 403);
    let asked = server
        .requests()
        .into_iter()
        .filter(|request| request.namespace == "roles" && request.user == LIMITED[1]);
    let asked: Vec<_> = asked.map(|request| (request.verb, request.resource, request.status)).collect();
    assert_eq!(asked, [("list".to_owned(), "leases".to_owned(), 403)]);
}

#[tokio::test]
async fn candidates_of_client_go_hand_over_and_tell_when() {
    let server = Server::shared().await;
    server.namespace("go").await;
    let kubeconfig = server.kubeconfig(ADMIN);
    let start = |id: &str| ClientGo::start(server, &kubeconfig, ("go", "shared"), id, Timing::SHORT);
    let mut first = start("first");
    let led = first.until("started_leading");
    let mut second = start("second");
    assert_eq!(second.until("new_leader").leader.as_deref(), Some("first"));
    first.cancel();
    let next = second.until("started_leading");
    let ended = first.until("work_ended");
    assert!(led.at < ended.at && ended.at < next.at, "{led:?} {ended:?} {next:?}");
    let lease =
        server.api("GET", "/apis/coordination.k8s.io/v1/namespaces/go/leases/shared", Value::Null).await;
    assert_eq!(lease["spec"]["holderIdentity"], "second");
    second.kill();
    assert!(second.said().iter().all(|said| said.event == "new_leader"));
}

#[tokio::test]
async fn client_go_measures_itself_and_counts_no_request_that_the_server_did_not_get() {
    let server = Server::shared().await;
    server.namespace("figures").await;
    let kubeconfig = server.kubeconfig(ADMIN);
    let bench = |measure: &str, flags: &[&str]| {
        let flags = [&["--namespace", "figures", "--name", measure], flags].concat();
        ClientGo::bench(&kubeconfig, measure, Timing::SHORT, &flags)
    };
    let figures = bench("acquire", &["--rounds", "3"]);
    let nanos = figures["nanos"].as_array().expect("three times");
    assert!(nanos.len() == 3 && nanos.iter().all(|nanos| nanos.as_u64() > Some(0)), "{figures}");

    let figures = bench("requests", &["--for", "1s"]);
    let served = server.requests().into_iter().filter(|request| request.name == "requests").count() as u64;
    // Before it counts, and after, it asks for something too.
    let counted = figures["requests"].as_u64();
    assert!(counted > Some(0) && counted < Some(served), "{served} served, {figures}");
}

#[tokio::test]
async fn a_server_on_another_machine_is_reached_by_its_neighbours() {
    let Some(mut network) = Network::new() else { return };
    let (node, neighbour) = (network.node(), network.node());
    let server = Server::start_on(&node).await;
    let at = format!("{}:{}", node.address, server.port()).parse().unwrap();
    let connect = || std::net::TcpStream::connect_timeout(&at, std::time::Duration::from_secs(1));
    assert!(neighbour.inside(connect).is_ok());
    network.cut(&node);
    assert!(neighbour.inside(connect).is_err());
    let answer = server.asked(ADMIN, "GET", "/readyz", None).await;
    assert!(answer.is_ok(), "on its own machine it is reached whatever becomes of the cable: {answer:?}");
}

#[test]
fn a_test_program_that_is_killed_leaves_nothing_behind() {
    const NAME: &str = "a_test_program_that_is_killed_leaves_nothing_behind";
    if role().is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::shared());
        println!("up: {} {}", server.pid(), server.ca().display());
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
    let mut program = Child::start(NAME, "start a server");
    let line = program.wait_for("up: ");
    let (pid, file) = line.split_once("up: ").unwrap().1.split_once(' ').unwrap();
    let dir = Path::new(file).parent().unwrap();
    let running = processes_in(dir);
    assert!(running.len() >= 2 && running.contains(&pid.to_owned()), "{running:?}");
    program.kill();
    until_blocking(|| {
        let left = processes_in(dir);
        if left.is_empty() && !dir.exists() {
            Ok(())
        } else {
            Err(format!("{left:?} and {} are left", dir.display()))
        }
    });
}

/// Those that have the directory in their arguments; a process that has ended has none.
fn processes_in(dir: &Path) -> Vec<String> {
    let all = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let names = |pid: &String| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(dir.to_str().unwrap())
    };
    all.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(names).collect()
}
