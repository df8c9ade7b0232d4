//! The example of a program in a pod, twice, on a real API server: the second leads as soon as the first is told to go.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use bellwether_support::servers::kubernetes::{ADMIN, Server};
use bellwether_support::until;
use serde_json::Value;

/// That of the example.
const TTL: Duration = Duration::from_secs(15);
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/jobs/leases/reports";

/// Cargo builds the examples with the tests, beside them.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let built = test.parent().and_then(|deps| deps.parent()).expect("a directory of programs");
    built.join("examples/kubernetes")
}

/// The example as a pod. Killed when dropped.
struct Pod {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Pod {
    /// As the downward API of deployment.yaml would start it, with credentials from a file.
    fn start(name: &str, kubeconfig: &Path) -> Pod {
        let mut command = Command::new(example());
        command.env("KUBECONFIG", kubeconfig).env("POD_NAME", name).env("POD_NAMESPACE", "jobs");
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the example starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Pod { process, lines }
    }

    /// The epoch of its next report.
    fn epoch(&mut self) -> u64 {
        let line = self.lines.next().expect("a report").expect("text");
        line.rsplit(' ').next().and_then(|epoch| epoch.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    }

    /// Tells it to go, as the kubelet does, and returns the last that it says.
    fn terminate(&mut self) -> String {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        let last = self.lines.by_ref().last().expect("a line").expect("text");
        assert!(self.process.wait().expect("our own child").success());
        last
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_pod_leads_when_the_first_is_terminated() {
    let server = Server::start().await;
    server.namespace("jobs").await;
    let kubeconfig = server.kubeconfig(ADMIN);
    let mut first = Pod::start("reports-a", &kubeconfig);
    let old = first.epoch();
    let mut second = Pod::start("reports-b", &kubeconfig);
    until(|| async {
        let watching = server.requests().iter().filter(|request| request.verb == "watch").count();
        if watching < 2 { Err(format!("{watching} watch the election")) } else { Ok(()) }
    })
    .await;

    let told = bellwether::boot_now();
    assert_eq!(first.terminate(), "stopped");
    assert!(second.epoch() > old);
    let took = bellwether::boot_now().since(told);
    assert!(took < TTL / 2, "a release is not waited for as a death is: {took:?}");
    assert_eq!(second.terminate(), "stopped");
    let lease = server.api("GET", LEASE, Value::Null).await;
    assert_eq!(lease["spec"]["holderIdentity"], "", "released in the end: {lease}");
}
