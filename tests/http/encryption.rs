//! TLS: the certificate of the files, and the next one when they change.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bellwether_tests::http::HttpPlace;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{served_at, temporary};

/// Writes a certificate for `localhost` and its key; returns the certificate.
fn new_certificate(directory: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(directory.join("key.pem"), signing_key.serialize_pem()).expect("our own directory");
    std::fs::write(directory.join("cert.pem"), cert.pem()).expect("our own directory");
    cert.der().clone()
}

/// Asks `/leader` with trust in this certificate alone.
async fn ask(place: &HttpPlace, trusted: &CertificateDer<'static>) -> io::Result<String> {
    let HttpPlace::Tcp(address) = place else { panic!("a port") };
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(b"GET /leader HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut text = String::new();
    // A peer that closes without saying so has still answered.
    let _ = stream.read_to_string(&mut text).await;
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_with_the_certificate_that_the_files_have_now() {
    let directory = temporary();
    let first = new_certificate(directory.path());
    let file = |name: &str| directory.path().join(name).display().to_string();
    let place = HttpPlace::free_port();
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    let tls = ["--ttl", "30s", "--http-tls-cert", &certificate, "--http-tls-key", &key];
    let mut candidate = served_at(directory.path(), "a", &place, &tls);
    candidate.expect("acquired");
    assert!(ask(&place, &first).await.expect("trusted").starts_with("HTTP/1.1 200"));
    let second = new_certificate(directory.path());
    assert!(ask(&place, &first).await.is_err(), "the old one is not used any more");
    assert!(ask(&place, &second).await.expect("trusted").starts_with("HTTP/1.1 200"));
    // A half-written file: the one before still counts.
    std::fs::write(&certificate, "-----BEGIN CERTIFICATE-----\n").expect("our own directory");
    assert!(ask(&place, &second).await.expect("trusted").starts_with("HTTP/1.1 200"));
    // Not encrypted at all.
    let mut plain = place.connect();
    plain.write_all(b"GET /leader HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it listens");
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
}
