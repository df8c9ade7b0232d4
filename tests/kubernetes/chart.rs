//! The chart as Helm renders it: accepted with any values, refused with bad ones, and its candidates lead.

use std::process::{Command, Output};

use bellwether_support::Scratch;
use bellwether_support::servers::kubernetes::helm;
use bellwether_tests::{Candidate, run_to_end};
use rustix::process::Signal;
use serde_json::Value;

use crate::manifests::stops_in_order;
use crate::place::{POD_IP, Place, container, deploy, parse};

const REQUIRED: &[&str] = &["image=example.com/reports:1", "command={/app/make-reports,--all}"];

/// Helm with this chart. It finds neither a cluster nor settings of whoever runs the tests.
fn on_chart(arguments: &[&str], values: &[&str]) -> Output {
    let home = Scratch::new();
    let mut command = Command::new(helm());
    command
        .env("HOME", home.path())
        .env("KUBECONFIG", "/dev/null")
        .args(arguments)
        .arg(deploy().join("chart"));
    command.args(values.iter().flat_map(|value| ["--set", value]));
    run_to_end(command)
}

fn rendered(place: &Place, values: &[&str]) -> Vec<Value> {
    let output =
        on_chart(&["template", "--namespace", &place.namespace, "demo"], &[REQUIRED, values].concat());
    assert!(output.status.success(), "{values:?}: {output:?}");
    parse(&String::from_utf8(output.stdout).expect("text"))
}

fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {objects:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_chart_renders_is_accepted() {
    for (number, values) in [
        &[][..],
        &["kind=StatefulSet", "replicas=0", "rbac.list=true", "label=true", "servicePort=8080"],
        &["rbac.create=false", "rbac.serviceAccountName=other", "ttlSeconds=60", "stopTimeoutSeconds=600"],
        &[
            "election=a.b-7",
            "env[0].name=A",
            "env[0].value=b: c",
            "flags={--restart,on-failure}",
            "resources=null",
        ],
    ]
    .iter()
    .enumerate()
    {
        let place = Place::new(&format!("chart-{number}")).await;
        let objects = rendered(&place, values);
        for object in &objects {
            place.apply(object).await;
        }
        let workload = objects.last().expect("objects");
        stops_in_order(workload);
        let account = workload["spec"]["template"]["spec"]["serviceAccountName"].clone();
        assert_eq!(account, if number == 2 { "other" } else { "demo" });
        assert_eq!(objects.len(), [4, 5, 1, 4][number], "{objects:#?}");
    }
    let linted = on_chart(&["lint", "--strict"], REQUIRED);
    assert!(linted.status.success(), "{linted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_of_the_chart_leads_with_the_rights_of_the_manifests() {
    let place = Place::new("chart").await;
    let least = rendered(&place, &["rbac.events=false"]);
    assert_eq!(one(&least, "Role")["rules"], one(&place.objects("rbac.yaml"), "Role")["rules"]);
    let objects = rendered(&place, &["election=nightly", "ttlSeconds=2"]);
    for object in &objects {
        place.apply(object).await;
    }
    let workload = one(&objects, "Deployment");
    let work = ["sleep", "1000"];
    let command = place.candidate(workload, container(workload), "demo-a", &["--events"], &work).await;
    let mut leader = Candidate::start(command);
    leader.expect("acquired");
    leader.signal(Signal::TERM);
    leader.expect("released");
    assert_eq!(place.lease("nightly").await["spec"]["holderIdentity"], "");
    assert_eq!((place.denied("leases"), place.denied("events")), (Vec::new(), Vec::new()));
}

/// With the rights that the chart gives, and nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_of_the_chart_leads_to_the_leader() {
    let place = Place::new("chart-service").await;
    let objects = rendered(&place, &["label=true", "servicePort=8080", "ttlSeconds=2"]);
    for object in &objects {
        place.apply(object).await;
    }
    let workload = one(&objects, "Deployment");
    place.pod("demo-a").await;
    let work = ["sleep", "1000"];
    let command = place.candidate(workload, container(workload), "demo-a", &["--events"], &work).await;
    let mut leader = Candidate::start(command);
    leader.expect("acquired");
    place.until_announced("demo-a", "demo", &[POD_IP], true).await;
    leader.signal(Signal::TERM);
    leader.exit_code();
    place.until_announced("demo-a", "demo", &[], false).await;
    assert_eq!((place.denied("pods"), place.denied("endpointslices")), (Vec::new(), Vec::new()));
}

#[test]
fn values_that_cannot_work_are_refused_with_a_sentence() {
    for (value, part) in [
        ("image=", "/image"),
        ("command=null", "missing property 'command'"),
        ("election=Reports", "/election"),
        ("election=reports.notes", "/election"),
        ("election=a-0123456789abcdef", "/election"),
        ("kind=DaemonSet", "/kind"),
        ("ttlSeconds=0", "/ttlSeconds"),
        ("ttlSeconds=1.5", "/ttlSeconds"),
        ("servicePort=http", "/servicePort"),
        ("replica=3", "replica"),
        ("rbac.create=false", "rbac.serviceAccountName is needed"),
    ] {
        let output = on_chart(&["template", "demo"], &[REQUIRED, &[value]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(part), "{value}: {said}");
    }
}
