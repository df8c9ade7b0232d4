//! Certificates on both sides.

use std::fs;
use std::path::{Path, PathBuf};

use bellwether_cluster::transport::{
    Connection, DialCause, DialError, Dialler, Hello, Intended, Limits, Listener, Security,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use tempfile::TempDir;

use crate::support::{NODE, Node, Served, ask, client, dialler, name, serve_with, soon};

/// An authority, and a directory with what it signed.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { issuer: Issuer::new(params, key), directory }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// A certificate for these hosts, in files of this name.
    fn sign(&self, file: &str, hosts: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Security {
        let key = KeyPair::generate().unwrap();
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        fs::write(self.path(&format!("{file}.pem")), params.signed_by(&key, &self.issuer).unwrap().pem())
            .unwrap();
        fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
        mutual(&self.path("ca.pem"), &self.path(file))
    }

    fn good(&self, file: &str) -> Security {
        self.sign(file, &["127.0.0.1", "localhost"], |_| {})
    }
}

fn mutual(ca: &Path, file: &Path) -> Security {
    Security::Mutual {
        ca: ca.to_owned(),
        certificate: file.with_extension("pem"),
        key: file.with_extension("key"),
    }
}

fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

async fn serve(security: Security) -> Served {
    serve_with(Node::default(), security, Limits::default()).await
}

async fn connect_as(served: &Served, security: Security, hello: &Hello) -> Result<Connection, DialError> {
    soon(Dialler::new(security).unwrap().connect(&served.address, hello)).await
}

async fn connect(served: &Served, security: Security) -> Result<Connection, DialError> {
    connect_as(served, security, &client()).await
}

/// The dialler says that it, or the node, is not trusted; and the host has heard of nothing.
fn is_untrusted(served: &Served, dialled: Result<Connection, DialError>, reason: &str) {
    let error = dialled.expect_err("a refusal");
    assert!(matches!(&error.cause, DialCause::Untrusted(why) if why.contains(reason)), "{error:?}");
    assert!(error.to_string().contains("still valid"), "it does not say what to check: {error}");
    assert_eq!(served.node.greeted.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn those_with_certificates_of_one_authority_talk() {
    let authority = Authority::new();
    let served = serve(authority.good("a")).await;
    let connection = connect(&served, authority.good("b")).await.unwrap();
    assert_eq!(soon(ask(&connection, "x")).await, Ok("x".to_owned()));
    let longest = vec![1; 8 << 20];
    assert_eq!(soon(connection.call(longest.clone(), crate::support::PATIENCE)).await, Ok(longest));
    let mut stream = connection.open_stream(b"count 1".to_vec()).unwrap();
    assert_eq!(soon(stream.next()).await, Some(Ok(b"0".to_vec())));
}

#[tokio::test]
async fn an_expired_certificate_is_refused_on_either_side() {
    let authority = Authority::new();
    let old = authority.sign("old", &["127.0.0.1"], expired);
    let served = serve(authority.good("a")).await;
    is_untrusted(&served, connect(&served, old.clone()).await, "CertificateExpired");
    let served = serve(old).await;
    is_untrusted(&served, connect(&served, authority.good("b")).await, "expired");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_on_either_side() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    theirs.good("b");
    // It trusts our node, and has a certificate that our node does not trust.
    let stranger = mutual(&ours.path("ca.pem"), &theirs.path("b"));
    let served = serve(ours.good("a")).await;
    let dialled = connect(&served, stranger.clone()).await;
    is_untrusted(&served, dialled, "received fatal alert");
    let served = serve(stranger).await;
    is_untrusted(&served, connect(&served, ours.good("b")).await, "invalid peer certificate");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    use std::sync::Arc;
    use tokio::io::AsyncReadExt;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

    let authority = Authority::new();
    let served = serve(authority.good("a")).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.path("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = tokio::net::TcpStream::connect(&served.address).await.unwrap();
    let host = ServerName::try_from("127.0.0.1").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = soon(connector.connect(host, socket)).await.unwrap();
    let error = soon(stream.read_u8()).await.unwrap_err().to_string();
    assert!(error.contains("CertificateRequired"), "{error}");

    // One without TLS gets no further, and neither does one with TLS at a node without.
    let error = soon(dialler().connect(&served.address, &client())).await.unwrap_err();
    assert!(matches!(&error.cause, DialCause::Failed(why) if why.contains("TLS")), "{error:?}");
    let plain = serve(Security::LoopbackOnly).await;
    assert!(connect(&plain, authority.good("b")).await.is_err());
    assert_eq!(served.node.greeted.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert!(connect(&served, authority.good("b")).await.is_ok());
}

#[tokio::test]
async fn a_certificate_is_for_the_host_or_for_the_name_of_the_intended_node() {
    let authority = Authority::new();
    let ours = authority.good("b");
    let intend = |intended| Hello { intended, ..client() };
    let other = serve(authority.sign("a", &["b"], |_| {})).await;
    for hello in [client(), intend(Intended::Node(NODE, name("a"))), intend(Intended::Name(name("a")))] {
        let dialled = connect_as(&other, ours.clone(), &hello).await;
        is_untrusted(&other, dialled, "not valid for name");
    }
    let named = serve(authority.sign("a", &["a"], |_| {})).await;
    is_untrusted(&named, connect(&named, ours.clone()).await, "not valid for name");
    for hello in [intend(Intended::Node(NODE, name("a"))), intend(Intended::Name(name("a")))] {
        connect_as(&named, ours.clone(), &hello).await.unwrap();
    }
}

#[tokio::test]
async fn the_right_name_does_not_help_a_certificate_that_is_not_trusted() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let dialling = ours.good("b");
    let intended = Hello { intended: Intended::Name(name("a")), ..client() };
    let old = serve(ours.sign("a", &["a"], expired)).await;
    is_untrusted(&old, connect_as(&old, dialling.clone(), &intended).await, "expired");
    let strange = serve(theirs.sign("a", &["a"], |_| {})).await;
    is_untrusted(&strange, connect_as(&strange, dialling, &intended).await, "invalid peer certificate");
}

#[tokio::test]
async fn a_certificate_for_servers_only_does_not_do_for_a_client() {
    let authority = Authority::new();
    let served = serve(authority.good("a")).await;
    let only = authority.sign("b", &["127.0.0.1"], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    is_untrusted(&served, connect(&served, only).await, "fatal alert");
}

#[tokio::test]
async fn certificates_that_are_replaced_on_disk_count_from_the_next_connection() {
    let authority = Authority::new();
    let dialling = Dialler::new(authority.sign("b", &["b"], expired)).unwrap();
    let hello = client();
    let served = serve(authority.sign("a", &["127.0.0.1"], expired)).await;
    let dial = async || soon(dialling.connect(&served.address, &hello)).await;
    assert!(dial().await.is_err());
    // The listener's alone is not enough.
    authority.good("a");
    is_untrusted(&served, dial().await, "CertificateExpired");
    authority.good("b");
    let connection = dial().await.unwrap();
    // Another authority: those of the old one are out, though a connection that is open stays.
    let next = Authority::new();
    next.good("a");
    for file in ["ca.pem", "a.pem", "a.key"] {
        fs::copy(next.path(file), authority.path(file)).unwrap();
    }
    assert!(dial().await.is_err());
    assert_eq!(soon(ask(&connection, "x")).await, Ok("x".to_owned()));
    next.good("b");
    for file in ["b.pem", "b.key"] {
        fs::copy(next.path(file), authority.path(file)).unwrap();
    }
    dial().await.unwrap();
}

#[tokio::test]
async fn files_in_the_middle_of_being_replaced_change_nothing() {
    let authority = Authority::new();
    let served = serve(authority.good("a")).await;
    let ours = authority.good("b");
    // The certificate is new, and the key is not there yet.
    let key = fs::read(authority.path("a.key")).unwrap();
    authority.good("a");
    fs::write(authority.path("a.key"), key).unwrap();
    connect(&served, ours.clone()).await.unwrap();
    fs::remove_file(authority.path("a.key")).unwrap();
    connect(&served, ours).await.unwrap();
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_at_the_start() {
    let authority = Authority::new();
    authority.good("a");
    let ca = authority.path("ca.pem");
    let bind = async |security: Security| {
        let host = std::sync::Arc::new(Node::default());
        let bound = soon(Listener::bind("127.0.0.1:0", security.clone(), host)).await;
        assert!(Dialler::new(security).is_err());
        bound.unwrap_err().to_string()
    };
    let error = bind(mutual(&ca, &authority.path("none"))).await;
    assert!(error.contains("none.pem"), "{error}");
    fs::copy(authority.path("a.pem"), authority.path("c.pem")).unwrap();
    fs::write(authority.path("c.key"), "not a key, but a secret all the same").unwrap();
    let error = bind(mutual(&ca, &authority.path("c"))).await;
    assert!(error.contains("c.key") && !error.contains("all the same"), "{error}");
    authority.good("d");
    fs::copy(authority.path("d.key"), authority.path("c.key")).unwrap();
    let error = bind(mutual(&ca, &authority.path("c"))).await;
    assert!(error.contains("do not go together"), "{error}");
}
