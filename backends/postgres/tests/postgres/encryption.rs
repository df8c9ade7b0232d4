//! Encrypted connections to a real server: what each `sslmode` lets in and what it refuses.
#![cfg(feature = "tls")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{ErrorKind, Outcome, StoreError};
use bellwether_postgres::Keys;
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Child, election, role};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use crate::support::actor;

const TTL: Duration = Duration::from_secs(1);

/// An authority, with its certificate.
struct Authority(Issuer<'static, KeyPair>, String);

impl Authority {
    fn new(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority(Issuer::new(params, key), certificate)
    }

    /// A certificate of that common name for these hosts, and its key.
    fn sign(&self, name: &str, hosts: &[&str], purpose: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages.push(purpose);
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

/// A server that encrypts, for `localhost` only by name.
struct Encrypting {
    server: Server,
    authority: Authority,
    root: PathBuf,
}

impl Encrypting {
    async fn start() -> Encrypting {
        let server = Server::start(TTL).await;
        let authority = Authority::new("an authority");
        let (certificate, key) =
            authority.sign("a server", &["localhost"], ExtendedKeyUsagePurpose::ServerAuth);
        for (name, content) in
            [("server.crt", &certificate), ("server.key", &key), ("root.crt", &authority.1)]
        {
            server.write(&format!("data/{name}"), content);
        }
        let rules = "local all all trust\n\
                     hostssl all certified 127.0.0.1/32 cert\n\
                     hostssl all secret 127.0.0.1/32 scram-sha-256\n\
                     host all postgres 127.0.0.1/32 trust\n";
        server.write("data/pg_hba.conf", rules);
        server
            .admin()
            .await
            .batch_execute("CREATE ROLE certified LOGIN; CREATE ROLE secret LOGIN PASSWORD 'open sesame'")
            .await
            .unwrap();
        server.set("ssl_ca_file", "root.crt").await;
        server.set("ssl", "on").await;
        let root = server.dir().join("data/root.crt");
        Encrypting { server, authority, root }
    }

    /// To that host, by this user, with more options.
    fn url(&self, host: &str, user: &str, more: &str) -> String {
        let port = self.server.port;
        let root = self.root.display();
        format!(
            "host={host} hostaddr=127.0.0.1 port={port} user={user} dbname=postgres {}",
            more.replace("ROOT", &root.to_string())
        )
    }
}

/// How many sessions the winner has, and how many of them are encrypted. Leads, and lets go again.
async fn led(server: &Server, url: &str) -> (i64, i64) {
    let candidate = actor(url, "a", TTL);
    let (grant, _) = candidate.lead_within(5 * TTL).await;
    let sessions = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'bellwether%'";
    let all = server.number(sessions).await;
    let encrypted = server.number(&format!("{sessions} AND ssl")).await;
    candidate.let_go(&grant).await;
    drop(candidate);
    server.until(sessions, |number| number == 0).await;
    (all, encrypted)
}

async fn refused(url: &str) -> StoreError {
    match actor(url, "a", TTL).claim().await {
        Outcome::Refused(error) => error,
        other => panic!("{url} was to be refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_encrypt_is_used_only_where_that_is_allowed() {
    let server = Server::start(TTL).await;
    for mode in ["", "?sslmode=prefer", "?sslmode=disable"] {
        assert_eq!(led(&server, &format!("{}{mode}", server.url())).await, (2, 0), "{mode}");
    }
    let error = refused(&format!("{}?sslmode=require", server.url())).await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("does not encrypt"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_asks_what_it_says_of_the_server_s_certificate() {
    let place = Encrypting::start().await;
    let (server, any) = (&place.server, |more: &str| place.url("127.0.0.1", "postgres", more));
    assert_eq!(led(server, &any("sslmode=disable")).await, (2, 0));
    for more in ["", "sslmode=prefer", "sslmode=require", "sslmode=verify-ca sslrootcert=ROOT"] {
        assert_eq!(led(server, &any(more)).await, (2, 2), "{more:?}");
    }
    let by_name = |more: &str| place.url("localhost", "postgres", more);
    assert_eq!(led(server, &by_name("sslmode=verify-full sslrootcert=ROOT")).await, (2, 2));

    let other = server.write("other.crt", &Authority::new("another authority").1);
    let other = |mode: &str| format!("sslmode={mode} sslrootcert={}", other.display());
    for (url, why) in [
        (any("sslmode=verify-full sslrootcert=ROOT"), "NotValidForName"),
        (any(&other("verify-ca")), "UnknownIssuer"),
        (by_name(&other("verify-full")), "UnknownIssuer"),
        // With authorities named, that has always meant to ask them.
        (any(&other("require")), "UnknownIssuer"),
        // Those of the system know nothing of ours.
        (by_name("sslmode=verify-full sslrootcert=system"), "UnknownIssuer"),
    ] {
        let error = refused(&url).await;
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{url}: {error}");
        assert!(error.to_string().contains(why), "{url}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_let_in_by_its_certificate_and_by_a_password_bound_to_the_server_s() {
    let place = Encrypting::start().await;
    let server = &place.server;
    let write = |authority: &Authority, name: &str| {
        let (certificate, key) = authority.sign("certified", &[], ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = server.write(&format!("{name}.crt"), &certificate);
        let key = server.write(&format!("{name}.key"), &key);
        format!(
            "sslmode=verify-ca sslrootcert=ROOT sslcert={} sslkey={}",
            certificate.display(),
            key.display()
        )
    };
    let (own, strange) = (write(&place.authority, "own"), write(&Authority::new("a stranger"), "strange"));
    assert_eq!(led(server, &place.url("localhost", "certified", &own)).await, (2, 2));
    let bare = "sslmode=verify-ca sslrootcert=ROOT";
    for more in [bare, &strange] {
        let error = refused(&place.url("localhost", "certified", more)).await;
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }
    let bound = format!("{bare} channel_binding=require password='open sesame'");
    assert_eq!(led(server, &place.url("localhost", "secret", &bound)).await, (2, 2));
    let wrong = refused(&place.url("localhost", "secret", &bound.replace("open", "close"))).await;
    assert_eq!(wrong.kind(), ErrorKind::PermissionDenied, "{wrong}");
    assert!(!format!("{wrong} {wrong:?}").contains("sesame"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_encryption_fails_only_who_would_do_without_it_gets_in() {
    let place = Encrypting::start().await;
    place.server.set("ssl_min_protocol_version", "TLSv1").await;
    place.server.set("ssl_max_protocol_version", "TLSv1.1").await;
    let url = |more: &str| place.url("127.0.0.1", "postgres", more);
    assert_eq!(led(&place.server, &url("sslmode=prefer")).await, (2, 0));
    let error = refused(&url("sslmode=require")).await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("TLS 1.2"), "{error}");
}

/// In a child: leads, and leaves the proof to another process, as to a guard.
async fn lead_with_a_guard(url: &str) {
    let candidate = actor(url, "a", TTL * 4);
    candidate.lead_within(TTL * 12).await;
    let mut proof = candidate.backend.crash_proof(&candidate.on, &candidate.bid.who);
    assert_eq!(proof.len(), 1);
    let mut guard = Command::new("sleep");
    let mut guard = guard.arg("600").stdin(proof.remove(0)).stdout(Stdio::null()).spawn().unwrap();
    println!("leading {}", guard.id());
    guard.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_proves_a_crash_dies_last_over_encryption_too() {
    const NAME: &str = "encryption::what_proves_a_crash_dies_last_over_encryption_too";
    if let Some(url) = role() {
        return lead_with_a_guard(&url).await;
    }
    let place = Encrypting::start().await;
    let url = place.url("127.0.0.1", "postgres", "sslmode=require");
    let mut child = Child::start(NAME, &url);
    let said = child.wait_for("leading");
    let guard = said.rsplit(' ').next().unwrap();
    child.kill();
    let presence = Keys::of(&election("reports")).presence();
    let present = format!(
        "SELECT count(*) FROM pg_locks WHERE mode = 'ShareLock' AND classid::int8 = {} AND objid::int8 = {}",
        presence.0 as u32, presence.1 as u32
    );
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'bellwether%'";
    place.server.until(sessions, |number| number <= 1).await;
    assert_eq!(place.server.number(&present).await, 1, "the guard still keeps it");
    assert!(Command::new("kill").arg(guard).status().unwrap().success());
    place.server.until(&present, |number| number == 0).await;
}
