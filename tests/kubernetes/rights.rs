//! The rights of `rbac.yaml`, by a token of its ServiceAccount: enough to hold elections, and each of them needed.

use std::process::Command;

use bellwether_support::until;
use bellwether_tests::{Candidate, bellwether, run_to_end};
use rustix::process::Signal;
use serde_json::Value;

use crate::place::{POD_IP, Place, container, list, text};

const LEASES: (&str, &str) = ("coordination.k8s.io", "leases");
const FLAGS: &[&str] = &["--ttl", "2s", "--events"];
const WORK: &[&str] = &["sleep", "1000"];

/// The container of deployment.yaml as this pod.
async fn candidate(place: &Place, pod: &str) -> Command {
    let deployment = &place.objects("deployment.yaml")[0];
    place.candidate(deployment, container(deployment), pod, FLAGS, WORK).await
}

/// Another command of the same account.
async fn as_account(place: &Place, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(bellwether());
    command.env("BELLWETHER_BACKEND", format!("kubernetes://{}", place.namespace)).args(arguments);
    command.env("KUBECONFIG", place.server.kubeconfig_of_account(&place.namespace, "reports").await);
    run_to_end(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_is_enough_to_lead_renew_hand_over_and_release() {
    let place = Place::new("enough").await;
    place.apply_file("rbac.yaml").await;
    let mut first = Candidate::start(candidate(&place, "reports-a").await);
    let epoch = first.expect("acquired").epoch();
    let lease = place.lease("reports").await;
    assert!(text(&lease["spec"]["holderIdentity"]).starts_with("reports-a_"), "{lease}");
    until(|| async {
        let now = place.lease("reports").await["spec"]["renewTime"].clone();
        if now == lease["spec"]["renewTime"] { Err(format!("not renewed: {now}")) } else { Ok(()) }
    })
    .await;

    let mut second = Candidate::start(candidate(&place, "reports-b").await);
    second.joined();
    let asked = as_account(&place, &["step-down", "reports"]).await;
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    assert!(second.expect("acquired").epoch() > epoch);

    first.signal(Signal::TERM);
    first.exit_code();
    second.signal(Signal::TERM);
    second.expect("released");
    second.exit_code();
    assert_eq!(place.lease("reports").await["spec"]["holderIdentity"], "");
    assert_eq!(place.denied("leases"), [], "nothing more is needed");
    for verb in ["list", "delete", "patch"] {
        assert!(!place.may("reports", verb, LEASES, "reports").await, "{verb}");
    }
    assert!(!place.may("reports", "update", LEASES, "other").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_one_verb_a_candidate_ends_with_code_77_and_names_it() {
    for verb in ["create", "get", "update"] {
        let place = without(verb, &format!("without-{verb}")).await;
        let ended = run_to_end(candidate(&place, "reports-a").await);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(77), "without {verb}: {said}");
        assert!(said.contains(verb) && said.contains("grant that verb in a Role"), "without {verb}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_watch_a_candidate_leads_and_says_that_it_takes_over_late() {
    let place = without("watch", "without-watch").await;
    let mut leader = Candidate::start(candidate(&place, "reports-a").await);
    leader.expect("acquired");
    until(|| async {
        let denied = place.denied("leases");
        if denied.iter().any(|request| request.verb == "watch") { Ok(()) } else { Err(format!("{denied:?}")) }
    })
    .await;
    leader.signal(Signal::TERM);
    let said = leader.ended().stderr;
    assert!(said.contains("cannot watch Leases") && said.contains("take over late"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_works_with_the_rights_of_the_role_and_names_a_verb_that_is_missing() {
    let place = Place::new("doctor").await;
    place.apply_file("rbac.yaml").await;
    let asked = as_account(&place, &["doctor", "reports"]).await;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    assert!(said.contains("get, update and watch reports"), "{said}");
    let asked = as_account(&place, &["doctor"]).await;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    assert!(said.contains("bellwether doctor ELECTION"), "{said}");
    let writes: Vec<_> = place
        .server
        .requests()
        .into_iter()
        .filter(|request| {
            request.namespace == place.namespace
                && request.user.contains("serviceaccount")
                && request.status < 300
        })
        .filter(|request| !["get", "watch"].contains(&&*request.verb))
        .collect();
    assert_eq!(writes, [], "nothing was written but questions, which are in no namespace");

    let place = without("update", "doctor-without").await;
    let asked = as_account(&place, &["doctor", "reports"]).await;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert_eq!(asked.status.code(), Some(77), "{asked:?}");
    assert!(said.contains("may not update leases/reports"), "{said}");
}

/// The rights of rbac.yaml but for this verb, in a namespace of this name.
async fn without(verb: &str, namespace: &str) -> Place {
    let place = Place::new(namespace).await;
    for mut object in place.objects("rbac.yaml") {
        for rule in object.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
            let verbs: Vec<Value> = list(&rule["verbs"]).iter().filter(|v| *v != verb).cloned().collect();
            // A rule without verbs is refused.
            rule["verbs"] = if verbs.is_empty() { ["deletecollection"].into() } else { verbs.into() };
        }
        place.apply(&object).await;
    }
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn the_optional_roles_allow_what_they_are_for() {
    let place = Place::new("optional").await;
    place.apply_file("rbac.yaml").await;
    assert_eq!(as_account(&place, &["status"]).await.status.code(), Some(77), "may not list");
    place.apply_file("rbac-optional.yaml").await;

    let mut leader = Candidate::start(candidate(&place, "reports-a").await);
    leader.expect("acquired");
    let events = format!("/api/v1/namespaces/{}/events", place.namespace);
    until(|| async {
        let events = place.server.api("GET", &events, Value::Null).await;
        let told = |event: &Value| event["message"] == "reports-a became leader";
        if list(&events["items"]).iter().any(told) { Ok(()) } else { Err(format!("{events}")) }
    })
    .await;
    let seen = as_account(&place, &["status"]).await;
    assert!(String::from_utf8_lossy(&seen.stdout).contains("reports-a"), "{seen:?}");

    leader.signal(Signal::TERM);
    leader.exit_code();

    place.pod("reports-b").await;
    let mut command = candidate(&place, "reports-b").await;
    let url = "kubernetes://?label=yes&service=reports&port=http:8080";
    command.env("BELLWETHER_BACKEND", url).env("POD_IP", POD_IP);
    let mut leader = Candidate::start(command);
    place.until_announced("reports-b", "reports", &[POD_IP], true).await;
    leader.signal(Signal::TERM);
    leader.exit_code();
    place.until_announced("reports-b", "reports", &[], false).await;
    assert_eq!((place.denied("pods"), place.denied("endpointslices")), (Vec::new(), Vec::new()));

    let (pods, slices) = (("", "pods"), ("discovery.k8s.io", "endpointslices"));
    for (verb, resource, name, allowed) in [
        ("patch", pods, "reports-a", true),
        ("delete", pods, "reports-a", false),
        ("create", slices, "", true),
        ("get", slices, "reports", true),
        ("update", slices, "reports", true),
        ("update", slices, "other", false),
    ] {
        assert_eq!(place.may("reports", verb, resource, name).await, allowed, "{verb} {resource:?} {name}");
    }
}
