use super::*;

#[test]
fn a_url_names_a_namespace_or_leaves_it_to_the_context() {
    for (url, namespace) in [
        ("kubernetes:", None),
        ("kubernetes://", None),
        ("kubernetes://jobs", Some("jobs")),
        ("kubernetes://jobs/", Some("jobs")),
        ("kubernetes://jobs?context=prod&events=no&timeout=1s", Some("jobs")),
        ("kubernetes://?kubeconfig=/etc/k", None),
    ] {
        assert_eq!(Config::from_url(url).unwrap().namespace.as_deref(), namespace, "{url}");
    }
    let pod = Environment { namespace: Some("pods".into()), ..Environment::default() };
    let namespace = |url| Config::from_url(url).unwrap().in_environment(&pod).unwrap().namespace;
    assert_eq!(namespace("kubernetes://jobs").as_deref(), Some("jobs"));
    assert_eq!(namespace("kubernetes://").as_deref(), Some("pods"));
    let config = Config::from_url("kubernetes://?context=prod&events=no&timeout=1s").unwrap();
    assert_eq!((config.events, config.timeout), (false, Some(Duration::from_secs(1))));
}

#[test]
fn the_environment_of_a_pod_completes_what_the_url_asks_for() {
    let pod = Environment {
        pod: Some("reports-0".into()),
        address: Some("10.1.2.3".into()),
        ..Environment::default()
    };
    let of = |url| Config::from_url(url).unwrap().in_environment(&pod).unwrap();
    let config = of("kubernetes://jobs?label=yes&service=reports&port=http:80,81");
    assert_eq!(config.labelled_pod().as_deref(), Some("reports-0"));
    assert_eq!(config.leader_address().unwrap().service(), "reports");
    let config = of("kubernetes://jobs");
    assert!(config.labelled_pod().is_none() && config.leader_address().is_none(), "nobody asked for it");
    let config = of("kubernetes://jobs?label=yes&pod=other&service=a&port=1&address=10.9.9.9");
    assert_eq!(config.labelled_pod().as_deref(), Some("other"));
    assert_eq!(config.address, Some(IpAddr::from([10, 9, 9, 9])));
}

#[test]
fn a_mistake_in_a_url_is_met_with_what_to_write() {
    for (url, part) in [
        ("kube://jobs", "kubernetes://NAMESPACE"),
        ("kubernetes://Jobs", "lower-case"),
        ("kubernetes://a.b", "lower-case"),
        ("kubernetes://a?contxt=b", "there are kubeconfig, context"),
        ("kubernetes://a?events=maybe", "yes or no"),
        ("kubernetes://a?timeout=0s", "at least 10ms"),
        ("kubernetes://a?watch=1h", "from 1s to 200s"),
        ("kubernetes://a?port=0", "NAME:NUMBER"),
        ("kubernetes://a?address=host", "10.1.2.3"),
        ("kubernetes://a?label=yes", "POD_NAME"),
        ("kubernetes://a?label=yes&pod=A/b", "not the name of a pod"),
        ("kubernetes://a?service=a&port=80", "POD_IP"),
        ("kubernetes://a?service=a", "port=NUMBER"),
        ("kubernetes://a?port=80", "service=NAME"),
        ("kubernetes://a?service=a&port=80&address=127.0.0.1", "status.podIP"),
    ] {
        let read = Config::from_url(url).and_then(|config| config.in_environment(&Environment::default()));
        let said = read.unwrap_err().to_string();
        assert!(said.contains(part), "{url}: {said}");
    }
}
