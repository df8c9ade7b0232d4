//! Every way to say who we are, against servers that mind.

mod support;

use std::path::Path;

use bellwether_core::{ErrorKind, Outcome};
use bellwether_nats::{Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, Scratch, clock};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::TTL;

fn actor(server: &Server, scheme: &str, user: &str, options: &str) -> Actor<Nats> {
    let url = format!("{scheme}://{user}127.0.0.1:{}?create{options}", server.port());
    Actor::new(from_url(&url, clock()).unwrap(), "a", TTL)
}

async fn let_in(actor: Actor<Nats>) {
    let grant = actor.lead().await;
    actor.let_go(&grant).await;
}

async fn kept_out(actor: Actor<Nats>) {
    match actor.claim().await {
        Outcome::Refused(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}"),
        other => panic!("was to be kept out: {other:?}"),
    }
}

#[tokio::test]
async fn a_user_with_a_password() {
    let config = r#"authorization { user: "someone", password: "p@ss:word" }"#;
    let server = Server::start_with(Version::Current, config).await;
    let_in(actor(&server, "nats", "someone:p%40ss%3Aword@", "")).await;
    kept_out(actor(&server, "nats", "someone:else@", "")).await;
    kept_out(actor(&server, "nats", "", "")).await;
}

#[tokio::test]
async fn a_token() {
    let server = Server::start_with(Version::Current, r#"authorization { token: "s3cret" }"#).await;
    let_in(actor(&server, "nats", "s3cret@", "")).await;
    kept_out(actor(&server, "nats", "guess@", "")).await;
}

#[tokio::test]
async fn a_seed_in_a_file() {
    let pair = nkeys::KeyPair::new_user();
    let config = format!("authorization {{ users = [ {{ nkey: {} }} ] }}", pair.public_key());
    let server = Server::start_with(Version::Current, &config).await;
    let scratch = Scratch::new();
    let (right, wrong) = (scratch.path().join("right"), scratch.path().join("wrong"));
    std::fs::write(&right, format!("{}\n", pair.seed().unwrap())).unwrap();
    std::fs::write(&wrong, nkeys::KeyPair::new_user().seed().unwrap()).unwrap();
    let_in(actor(&server, "nats", "", &format!("&nkey={}", right.display()))).await;
    kept_out(actor(&server, "nats", "", &format!("&nkey={}", wrong.display()))).await;
    let missing = actor(&server, "nats", "", "&nkey=/nowhere/seed");
    match missing.claim().await {
        Outcome::Refused(error) => assert!(error.to_string().contains("/nowhere/seed"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_credentials_file_that_is_none_is_refused_by_its_name() {
    let server = Server::start(Version::Current).await;
    let scratch = Scratch::new();
    let file = scratch.path().join("creds");
    std::fs::write(&file, "no credentials").unwrap();
    match actor(&server, "nats", "", &format!("&creds={}", file.display())).claim().await {
        Outcome::Refused(error) => {
            assert!(error.to_string().contains("is not a credentials file"), "{error}")
        }
        other => panic!("{other:?}"),
    }
}

/// An authority, and what it signed for the server and for a client, as files.
fn certificates(dir: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        std::fs::write(dir.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

/// What is said to a candidate that gets no connection.
async fn complaint(a: &Actor<Nats>) -> String {
    match a.claim().await {
        Outcome::Unknown(error) | Outcome::Refused(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tls_with_an_authority_of_one_s_own_and_a_certificate() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    certificates(dir);
    let file = |name: &str| dir.join(name).display().to_string();
    let config = format!(
        r#"tls {{ cert_file: "{}", key_file: "{}", ca_file: "{}", verify: true }}"#,
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    );
    let server = Server::start_with(Version::Current, &config).await;
    let authority = format!("&ca={}", file("ca.pem"));
    let own = format!("{authority}&cert={}&key={}", file("client.pem"), file("client.key"));
    let_in(actor(&server, "tls", "", &own)).await;
    for options in ["", &authority] {
        let error = complaint(&actor(&server, "tls", "", options)).await;
        assert!(error.contains("check ca, cert and key"), "{options}: {error}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_talked_to_where_tls_was_asked_for() {
    let server = Server::start(Version::Current).await;
    let error = complaint(&actor(&server, "tls", "s3cret@", "")).await;
    assert!(error.contains("does not speak TLS") && !error.contains("s3cret"), "{error}");
}
