//! The container file and the compose example: everything that they name is there, and the commands in them work. No image is built here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_tests::http::HttpPlace;
use bellwether_tests::{Candidate, run_to_end};
use serde_json::Value;

use crate::checked::approves;
use crate::{deploy, program, temporary};

fn text(file: &str) -> String {
    std::fs::read_to_string(deploy(file)).unwrap_or_else(|error| panic!("deploy/{file}: {error}"))
}

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&text(file)).unwrap_or_else(|error| panic!("deploy/{file}: {error}"))
}

fn compose() -> Value {
    yaml("compose/compose.yaml")
}

/// The directory that the image is built from.
fn context() -> PathBuf {
    deploy("compose").join(compose()["services"]["candidate"]["build"]["context"].as_str().expect("a path"))
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// The lines of the container file, by their first word.
fn instructions(word: &str) -> Vec<Vec<String>> {
    let lines = text("container/Dockerfile");
    let lines =
        lines.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ').map(str::to_owned));
    lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn what_the_container_file_copies_is_there_and_its_build_command_works() {
    let built = instructions("RUN").into_iter().find(|words| words[0] == "cargo").expect("a build command");
    let root = context().canonicalize().expect("the root of the project");
    assert!(root.join("Cargo.lock").is_file(), "--locked needs it");
    // In the profile of this test, in which it has been built; CI for releases builds the other.
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    // As where tests build the command: what the cargo around this test says of its package must not count as a change to others.
    cargo.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_PKG_NAME");
    cargo.args(built.iter().skip(1).filter(|word| *word != "--release")).current_dir(&root);
    assert!(cargo.status().expect("cargo runs").success(), "{cargo:?}");
    assert!(built.contains(&"--release".to_owned()) && built.contains(&"--locked".to_owned()), "{built:?}");
    for copied in instructions("COPY") {
        let (from_build, sources) = match copied[0].strip_prefix("--from=") {
            Some(stage) => (Some(stage), &copied[1..copied.len() - 1]),
            None => (None, &copied[..copied.len() - 1]),
        };
        for source in sources {
            let in_project = match from_build {
                Some("build") => source.strip_prefix("/src/").expect("below WORKDIR"),
                Some(other) => panic!("there is no stage {other}"),
                None => source,
            };
            let is_there = in_project == "target/release/bellwether" || root.join(in_project).exists();
            assert!(is_there, "COPY {source}: there is no {in_project}");
        }
    }
    assert_ne!(instructions("USER")[0], ["root"], "nothing needs root");
}

#[test]
fn every_file_that_the_compose_example_mounts_is_there_and_every_port_is_served() {
    let compose = compose();
    let services = compose["services"].as_object().expect("services");
    let mut mounted = BTreeSet::new();
    for (name, service) in services {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let volume = volume.as_str().expect("SOURCE:TARGET:ro");
            let (source, _) = volume.split_once(':').expect("a target");
            let path = deploy("compose").join(source).canonicalize();
            mounted.insert(path.unwrap_or_else(|error| panic!("{name} mounts {source}: {error}")));
        }
        for needed in service["depends_on"].as_object().into_iter().flatten() {
            assert!(services.contains_key(needed.0), "{name} depends on {}", needed.0);
        }
    }
    for file in ["prometheus/alerts.yaml", "grafana/bellwether.json", "compose/prometheus.yml"] {
        assert!(mounted.contains(&deploy(file).canonicalize().expect("it is there")), "nobody mounts {file}");
    }
    let built = services["candidate"]["build"]["dockerfile"].as_str().expect("a path");
    assert!(context().join(built).is_file(), "{built}");

    // Prometheus asks for the service by its name, at the port that it serves on.
    let (_, port) = words(&services["candidate"]["command"])
        .into_iter()
        .find_map(|word| word.rsplit_once(':').filter(|(host, _)| *host == "0.0.0.0"))
        .expect("--http 0.0.0.0:PORT");
    let found = &yaml("compose/prometheus.yml")["scrape_configs"][0]["dns_sd_configs"][0];
    assert_eq!((words(&found["names"]), found["port"].to_string()), (vec!["candidate"], port.to_owned()));
    // And Grafana for Prometheus.
    let source = &yaml("compose/grafana/provisioning/datasources/prometheus.yaml")["datasources"][0];
    assert_eq!(source["url"], "http://prometheus:9090");
    let provider = &yaml("compose/grafana/provisioning/dashboards/bellwether.yaml")["providers"][0];
    let place = provider["options"]["path"].as_str().expect("a path");
    let targets = services["grafana"]["volumes"].as_array().expect("volumes");
    assert!(
        targets.iter().filter_map(Value::as_str).any(|volume| volume.contains(&format!(":{place}/"))),
        "no dashboard is mounted at {place}"
    );
}

#[test]
fn promtool_approves_of_the_compose_example() {
    // As the volumes have it: the rules are beside the configuration.
    let directory = temporary();
    for file in ["compose/prometheus.yml", "prometheus/alerts.yaml"] {
        let name = Path::new(file).file_name().expect("a name");
        std::fs::copy(deploy(file), directory.path().join(name)).expect("our own directory");
    }
    let mut promtool = program("promtool");
    promtool.args(["check", "config", "prometheus.yml"]).current_dir(directory.path());
    approves(&run_to_end(promtool));
}

/// With the store and the address of this test in place of those in the example.
#[test]
fn the_candidate_of_the_compose_example_works_and_its_health_check_tells_life_from_death() {
    let directory = temporary();
    let compose = compose();
    let service = &compose["services"]["candidate"];
    let place = HttpPlace::free_port();
    let mut command = Command::new(bellwether_tests::bellwether());
    command.args(words(&service["command"]).into_iter().map(|word| match word {
        "0.0.0.0:8080" => place.flag(),
        // The event lines of the test are on the same stdout.
        word => word.replace("$$", "$"),
    }));
    command.env("BELLWETHER_BACKEND", format!("file:{}", directory.path().join("store").display()));
    let health = || {
        let check = words(&service["healthcheck"]["test"]);
        assert_eq!(check[0], "CMD");
        let HttpPlace::Tcp(address) = &place else { panic!("a port") };
        let mut command = Command::new(check[1]);
        command.args(check[2..].iter().map(|word| word.replace("8080", &address.port().to_string())));
        run_to_end(command).status.success()
    };
    assert!(!health(), "nothing is there");
    let candidate = Candidate::start(command);
    super::until_status(&place, "/leader", 200);
    assert!(health());
    drop(candidate);
    assert!(!health());
}
