//! Every way to say who we are, against servers that mind.

use std::path::Path;
use std::time::Duration;

use crate::support::TTL;
use bellwether_core::{ErrorKind, Outcome};
use bellwether_deadman::boot_now;
use bellwether_nats::{Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, Scratch, clock};
use futures_util::future::join_all;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

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

/// Two authorities, and what they signed, as files: one for the server and for a client, the other for a stranger.
fn certificates(dir: &Path) {
    for (authority, names) in [("ca", &["server", "client"][..]), ("other", &["stranger"])] {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, authority);
        let signing = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(dir.join(format!("{authority}.pem")), signing.pem()).unwrap();
        for name in names {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &signing).unwrap();
            std::fs::write(dir.join(format!("{name}.pem")), certificate.pem()).unwrap();
            std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
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
    // Who does not trust whom, and what to do about it.
    let another = format!("&ca={}", file("other.pem"));
    let stranger = format!("{authority}&cert={}&key={}", file("stranger.pem"), file("stranger.key"));
    for (options, host, part) in [
        ("", "127.0.0.1", "we do not trust the server's certificate: name the certificate of the authority"),
        (another.as_str(), "127.0.0.1", "we do not trust the server's certificate"),
        (authority.as_str(), "localhost", "the server's certificate is not for this host name"),
        (authority.as_str(), "127.0.0.1", "the server wants a certificate of ours"),
        (stranger.as_str(), "127.0.0.1", "the server does not trust our certificate"),
    ] {
        let url = format!("tls://{host}:{}?create{options}", server.port());
        let error = complaint(&crate::support::actor(&url, "a")).await;
        assert!(error.contains(part) && !error.contains("does not speak TLS"), "{options}: {error}");
    }
}

#[tokio::test]
async fn files_that_hold_something_else_are_refused_by_their_name_before_a_server_is_asked() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    certificates(dir);
    std::fs::write(dir.join("junk"), "SUchjunk").unwrap();
    for (options, part) in [
        ("ca=DIR/missing", "cannot read DIR/missing"),
        ("ca=DIR/junk", "DIR/junk holds no certificate"),
        ("ca=DIR/client.key", "DIR/client.key holds a private key and no certificate"),
        ("cert=DIR/client.key&key=DIR/client.pem", "DIR/client.key holds a private key and no certificate"),
        ("cert=DIR/client.pem&key=DIR/client.pem", "DIR/client.pem holds no private key"),
        ("cert=DIR/client.pem&key=DIR/missing", "cannot read DIR/missing"),
        ("cert=DIR/client.pem&key=DIR/stranger.key", "are not a certificate and its key"),
        ("nkey=DIR/junk", "DIR/junk holds no seed of an nkey"),
        ("creds=DIR/junk", "DIR/junk is not a credentials file"),
    ] {
        let named = |text: &str| text.replace("DIR", &dir.display().to_string());
        // Nothing listens there.
        match crate::support::actor(&named(&format!("tls://127.0.0.1:1?{options}")), "a").claim().await {
            Outcome::Refused(error) => {
                assert_eq!(error.kind(), ErrorKind::Misconfigured, "{options}: {error}");
                let said = error.to_string();
                assert!(said.contains(&named(part)) && !said.contains("SUchjunk"), "{options}: {said}");
            }
            other => panic!("{options} was to be refused: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_port_of_something_else_is_said_to_be_one_and_calls_do_not_queue_for_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // As an HTTP server does, it waits to be spoken to.
    let silent = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    let a = crate::support::actor(&format!("nats://127.0.0.1:{port}?timeout=1s"), "a");
    let start = boot_now();
    for error in join_all((0..20).map(|_| complaint(&a))).await {
        assert!(error.contains("check host and port"), "{error}");
    }
    assert!(boot_now().since(start) < Duration::from_secs(10), "each of twenty waited for those before it");
    silent.abort();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await;
        }
    });
    let error = complaint(&crate::support::actor(&format!("nats://127.0.0.1:{port}"), "a")).await;
    assert!(error.contains("does not greet as a NATS server does"), "{error}");
    other.abort();
}

#[tokio::test]
async fn a_server_without_tls_is_not_talked_to_where_tls_was_asked_for() {
    let server = Server::start(Version::Current).await;
    let error = complaint(&actor(&server, "tls", "s3cret@", "")).await;
    assert!(error.contains("does not speak TLS") && !error.contains("s3cret"), "{error}");
}
