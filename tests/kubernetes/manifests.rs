//! Every manifest is accepted as it is, and pods have the time to stop in order.

use std::process::Command;
use std::time::Duration;

use bellwether_core::duration;
use bellwether_tests::{bellwether, run_to_end};
use serde_json::Value;

use crate::place::{Place, command_line, container, deploy, list};

/// That of `bellwether run` where the command line has none.
const TTL: Duration = Duration::from_secs(15);

/// What a node may take to hand its leadership over.
const HANDOVER: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn every_manifest_is_accepted_and_its_pods_can_stop_in_order() {
    let place = Place::new("jobs").await;
    let mut workloads = 0;
    for entry in std::fs::read_dir(deploy()).expect("the manifests") {
        let file = entry.expect("a file").file_name().into_string().expect("text");
        if !file.ends_with(".yaml") {
            continue;
        }
        for object in place.objects(&file) {
            place.apply(&object).await;
            if object["spec"]["template"].is_object() {
                match command_line(container(&object))[1].as_str() {
                    "node" => forms_a_cluster(&object),
                    _ => stops_in_order(&object),
                }
                workloads += 1;
            }
        }
    }
    assert_eq!(workloads, 4, "a Deployment, a StatefulSet, a sidecar and nodes of a cluster");
}

/// All nodes are up at once when the cluster is formed, have one flag set that the command takes, and stop in order.
fn forms_a_cluster(nodes: &Value) {
    assert_eq!(nodes["spec"]["podManagementPolicy"], "Parallel");
    let arguments = command_line(container(nodes));
    let expected =
        arguments.iter().find_map(|argument| argument.strip_prefix("--expect=")).expect("a number");
    assert_eq!(nodes["spec"]["replicas"].to_string(), expected);
    let pod = &nodes["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false, "no rights are needed");
    let grace = Duration::from_secs(pod["terminationGracePeriodSeconds"].as_u64().expect("seconds"));
    assert!(grace > HANDOVER, "{grace:?}");
    // As the kubelet does it, but for the secret, which is not there.
    let mut command = Command::new(bellwether());
    let arguments = arguments[1..].iter().map(|argument| argument.replace("$(POD_NAME)", "bellwether-0"));
    command.args(arguments).env("POD_NAME", "bellwether-0");
    let ended = run_to_end(command);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(64), "{said}");
    assert!(said.contains("cannot read the secret in /secret/secret"), "{said}");
}

/// The kubelet waits longer than the program may take to stop and the lease may take to expire, and no probe asks who leads.
pub(crate) fn stops_in_order(workload: &Value) {
    let pod = &workload["spec"]["template"]["spec"];
    let arguments = command_line(container(workload));
    let flag = |name: &str| {
        let at = arguments.iter().position(|argument| argument.split('=').next() == Some(name))?;
        duration::parse(arguments[at].split_once('=').map_or(arguments[at + 1].as_str(), |(_, value)| value))
    };
    let stop = flag("--stop-timeout").expect("the time that the program may take");
    let grace = Duration::from_secs(pod["terminationGracePeriodSeconds"].as_u64().expect("seconds"));
    assert!(grace > stop + flag("--ttl").unwrap_or(TTL), "{grace:?} {workload:#}");
    let probed = list(&pod["containers"]).iter().chain(list(&pod["initContainers"]));
    for container in probed {
        assert!(container["readinessProbe"].is_null(), "readiness must not mean leadership: {workload:#}");
    }
}
