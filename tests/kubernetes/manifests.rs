//! Every manifest is accepted as it is, and pods have the time to stop in order.

use std::time::Duration;

use bellwether_core::duration;
use serde_json::Value;

use crate::place::{Place, command_line, container, deploy, list};

/// That of `bellwether run` where the command line has none.
const TTL: Duration = Duration::from_secs(15);

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
                stops_in_order(&object);
                workloads += 1;
            }
        }
    }
    assert_eq!(workloads, 3, "a Deployment, a StatefulSet and a sidecar");
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
