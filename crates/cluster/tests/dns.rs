//! Peers by SRV records, on a real DNS server.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use bellwether_cluster::{DnsConfig, DnsResolver, ResolveError, Resolver};
use bellwether_deadman::boot_now;
use bellwether_support::servers::dns::DnsServer;

const NAME: &str = "_raft._tcp.app.prod.test";
const THREE: [(&str, &str, u16); 3] = [
    (NAME, "app-1.app.prod.test", 7001),
    (NAME, "app-0.app.prod.test", 7000),
    (NAME, "app-2.app.prod.test", 7002),
];

fn resolver(server: SocketAddr, service: &str, expected: usize) -> DnsResolver {
    let config = DnsConfig {
        service: service.to_owned(),
        port_name: "raft".to_owned(),
        expected,
        server: Some(server),
    };
    DnsResolver::new(config).unwrap()
}

async fn found(resolver: &DnsResolver) -> Vec<String> {
    resolver.resolve().await.unwrap().iter().map(ToString::to_string).collect()
}

async fn fails(resolver: &DnsResolver, is_permanent: bool, parts: &[&str]) -> ResolveError {
    let error = resolver.resolve().await.unwrap_err();
    assert_eq!(error.is_permanent(), is_permanent, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is missing: {error}");
    }
    error
}

#[tokio::test]
async fn peers_are_the_targets_with_their_ports_in_the_order_of_their_names() {
    let server = DnsServer::start(&THREE);
    let peers = found(&resolver(server.at(), "app.prod.test", 3)).await;
    assert_eq!(
        peers,
        [
            "app-0=app-0.app.prod.test:7000",
            "app-1=app-1.app.prod.test:7001",
            "app-2=app-2.app.prod.test:7002"
        ]
    );
}

#[tokio::test]
async fn the_service_may_be_written_in_any_case_and_with_a_dot_at_its_end() {
    let server = DnsServer::start(&[(NAME, "app-0.app.prod.test", 7)]);
    assert_eq!(found(&resolver(server.at(), "App.prod.TEST.", 1)).await, ["app-0=app-0.app.prod.test:7"]);
}

/// A StatefulSet that starts: no name, some pods, all of them, one more. Each time the server is asked again.
#[tokio::test]
async fn peers_that_come_one_after_the_other_are_waited_for() {
    let mut server = DnsServer::start(&[]);
    let resolver = resolver(server.at(), "app.prod.test", 3);
    let at = server.at().to_string();
    fails(&resolver, false, &[NAME, "no SRV records yet", &at]).await;
    server.serve(&THREE[..2]);
    fails(&resolver, false, &[NAME, "2 of 3 expected peers (app-0, app-1)"]).await;
    server.serve(&THREE);
    assert_eq!(found(&resolver).await.len(), 3);
    let more = [&THREE[..], &[(NAME, "app-3.app.prod.test", 7003)]].concat();
    server.serve(&more);
    assert_eq!(found(&resolver).await.len(), 4);
    server.serve(&THREE[1..2]);
    fails(&resolver, false, &["1 of 3 expected peers (app-0)"]).await;
}

/// More than a datagram holds: the answer comes by TCP.
#[tokio::test]
async fn a_large_cluster_is_found_whole() {
    let names: Vec<String> = (0..60).map(|number| format!("application-{number}.app.prod.test")).collect();
    let records: Vec<(&str, &str, u16)> = names.iter().map(|name| (NAME, name.as_str(), 7000)).collect();
    let server = DnsServer::start(&records);
    assert_eq!(found(&resolver(server.at(), "app.prod.test", 60)).await.len(), 60);
}

#[tokio::test]
async fn a_server_that_refuses_is_named_and_has_to_be_mended() {
    let server = DnsServer::start(&THREE);
    let at = format!("the DNS server {} refused", server.at());
    let elsewhere = resolver(server.at(), "app.elsewhere.example", 3);
    fails(&elsewhere, true, &["_raft._tcp.app.elsewhere.example", &at]).await;
}

#[tokio::test]
async fn a_server_that_is_down_may_come_back() {
    let mut server = DnsServer::start(&THREE);
    let resolver = resolver(server.at(), "app.prod.test", 3);
    server.stop();
    fails(&resolver, false, &["at the moment", &server.at().to_string()]).await;
    server.serve(&THREE);
    assert_eq!(found(&resolver).await.len(), 3);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_bounded_time() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let from = boot_now();
    fails(&resolver(at, "app.prod.test", 3), false, &["did not answer in time"]).await;
    let took = boot_now().since(from);
    assert!(took < Duration::from_secs(8), "{took:?}");
}

/// As a resolver does whose upstream is gone. No server can be told to, so this one only sends each question back with that code.
#[tokio::test]
async fn a_server_that_fails_may_recover() {
    let broken = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = broken.local_addr().unwrap();
    let echo = tokio::spawn(async move {
        let mut packet = [0; 512];
        loop {
            let (length, from) = broken.recv_from(&mut packet).await.unwrap();
            // An answer, and SERVFAIL.
            (packet[2], packet[3]) = (packet[2] | 0x80, 2);
            broken.send_to(&packet[..length], from).await.unwrap();
        }
    });
    let parts = ["at the moment", "Server Failure", &at.to_string()];
    fails(&resolver(at, "app.prod.test", 3), false, &parts).await;
    echo.abort();
}

/// Two Services that share a name: which of the two is meant nobody can tell.
#[tokio::test]
async fn one_pod_under_two_names_is_not_two_peers() {
    let server = DnsServer::start(&[(NAME, "app-0.app.prod.test", 7000), (NAME, "app-0.other.test", 7000)]);
    let parts = ["lists app-0 twice", "app-0.app.prod.test:7000", "app-0.other.test:7000"];
    fails(&resolver(server.at(), "app.prod.test", 2), false, &parts).await;
}

#[tokio::test]
async fn a_target_that_is_no_node_name_is_named() {
    let server = DnsServer::start(&[(NAME, "_odd.app.prod.test", 7000)]);
    fails(&resolver(server.at(), "app.prod.test", 1), true, &["_odd.app.prod.test", "not a node name"]).await;
}
