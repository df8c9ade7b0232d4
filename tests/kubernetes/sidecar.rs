//! The sidecar tells the program by a file while it leads, and takes the file away before it releases the lease.

use bellwether_support::{Scratch, until};
use bellwether_tests::Candidate;
use rustix::process::Signal;

use crate::place::{Place, command_line, container};

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_there_while_the_pod_leads_and_gone_before_the_lease_is_free() {
    let place = Place::new("sidecar").await;
    place.apply_file("rbac.yaml").await;
    let workload = place.apply_file("sidecar.yaml").await;
    let volume = Scratch::new();
    let leader = volume.path().display().to_string();
    let script = command_line(container(&workload)).pop().expect("a script").replace("/leader", &leader);
    let work = ["/bin/sh", "-c", &script];
    let mut pod =
        Candidate::start(place.candidate(&workload, container(&workload), "a", &["--events"], &work).await);

    let epoch = pod.expect("acquired").epoch().expect("a leadership has an epoch").to_string();
    let file = volume.path().join("epoch");
    let written = || std::fs::metadata(&file).and_then(|file| file.modified()).ok();
    until(|| async { written().ok_or_else(|| "there is no file".to_owned()) }).await;
    assert_eq!(std::fs::read_to_string(&file).expect("a file").trim(), epoch);
    let first = written();
    until(|| async { if written() > first { Ok(()) } else { Err("is not written again".to_owned()) } }).await;

    pod.signal(Signal::TERM);
    until(|| async { if file.exists() { Err("the file stays".to_owned()) } else { Ok(()) } }).await;
    let holder = place.lease("reports").await["spec"]["holderIdentity"].to_string();
    assert!(holder.contains("a_"), "the program has some time to stop: {holder}");
    pod.expect("released");
    assert!(!file.exists());
}
