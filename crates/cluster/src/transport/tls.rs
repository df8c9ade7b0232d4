//! Certificates on both sides, by rustls: TLS 1.3 alone, since both sides are of this crate.
//!
//! The files are looked at for every connection. Sessions are never resumed: a resumed one would not look at certificates again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{Resumption, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::error::DialCause;
use super::frame::Fault;
use super::hello::Intended;
use super::limits::HANDSHAKE_BODY_MAX_BYTES;
use super::security::Halves;
use crate::error::ClusterError;

/// Certificates and a key, as the files have them.
pub(super) struct Certificates {
    files: Arc<Files>,
    loaded: Mutex<Arc<Loaded>>,
}

struct Files {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

/// What one state of the files leads to.
struct Loaded {
    contents: [Vec<u8>; 3],
    server: Arc<ServerConfig>,
    client: ClientConfig,
    verifier: Arc<WebPkiServerVerifier>,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be read, or do not go together.
    pub(super) fn open(
        ca: PathBuf,
        certificate: PathBuf,
        key: PathBuf,
    ) -> Result<Certificates, ClusterError> {
        let files = Files { ca, certificate, key };
        let loaded = Mutex::new(Arc::new(files.load(files.read()?)?));
        Ok(Certificates { files: Arc::new(files), loaded })
    }

    /// The listener's side.
    pub(super) async fn accept(&self, socket: TcpStream) -> Result<Halves, Fault> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.current().await.server));
        match acceptor.accept(socket).into_fallible().await {
            Ok(stream) => {
                let (read, write) = tokio::io::split(stream);
                Ok((Box::new(read), Box::new(write)))
            }
            Err((error, socket)) => {
                drain(socket).await;
                Err(error.into())
            }
        }
    }

    /// The dialler's side.
    pub(super) async fn connect(
        &self,
        socket: TcpStream,
        host: &str,
        intended: &Intended,
    ) -> Result<Halves, DialCause> {
        let host = ServerName::try_from(host.to_owned())
            .map_err(|_| DialCause::Untrusted(format!("no certificate can be for the host {host:?}")))?;
        let name = match intended {
            Intended::Node(_, name) | Intended::Name(name) => {
                ServerName::try_from(name.as_str().to_owned()).ok()
            }
            Intended::Anyone => None,
        };
        let loaded = self.current().await;
        let mut config = loaded.client.clone();
        let verifier = NameOrHost { verifier: Arc::clone(&loaded.verifier), name };
        config.dangerous().set_certificate_verifier(Arc::new(verifier));
        let stream = TlsConnector::from(Arc::new(config))
            .connect(host, socket)
            .await
            .map_err(|error| dial_cause(&error))?;
        let (read, write) = tokio::io::split(stream);
        Ok((Box::new(read), Box::new(write)))
    }

    /// What the files say now. Files that do not go together are in the middle of being replaced, so the previous ones still count.
    async fn current(&self) -> Arc<Loaded> {
        let files = Arc::clone(&self.files);
        let before = Arc::clone(&self.loaded.lock().unwrap_or_else(PoisonError::into_inner));
        let known = Arc::clone(&before);
        let load = move || {
            let contents = files.read()?;
            if contents == known.contents { Ok(known) } else { files.load(contents).map(Arc::new) }
        };
        let read = match tokio::task::spawn_blocking(load).await {
            Ok(read) => read,
            Err(error) => Err(ClusterError::storage(error.to_string())),
        };
        match read {
            Ok(now) => {
                *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&now);
                now
            }
            Err(error) => {
                tracing::warn!(%error, "the certificates on disk cannot be used; the previous ones still count");
                before
            }
        }
    }
}

/// Takes what the peer still sends. Closed before that, the connection is reset, and the peer never reads the alert that says why. The
/// handshake's limit ends it.
async fn drain(mut socket: TcpStream) {
    if socket.shutdown().await.is_ok() {
        let mut rest = (&mut socket).take(HANDSHAKE_BODY_MAX_BYTES as u64);
        let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    }
}

/// What a failure of the encryption means to a dialler.
pub(super) fn dial_cause(error: &std::io::Error) -> DialCause {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => DialCause::Untrusted(format!(
            "TLS failed: {error}; check that both sides use certificates of the same authority, for the right names, and still valid"
        )),
        None => DialCause::Failed(error.to_string()),
    }
}

impl Files {
    fn read(&self) -> Result<[Vec<u8>; 3], ClusterError> {
        let read = |path: &Path| {
            fs::read(path)
                .map_err(|error| ClusterError::invalid(format!("cannot read {}: {error}", path.display())))
        };
        Ok([read(&self.ca)?, read(&self.certificate)?, read(&self.key)?])
    }

    fn load(&self, contents: [Vec<u8>; 3]) -> Result<Loaded, ClusterError> {
        let [ca, certificate, key] = &contents;
        let mut roots = RootCertStore::empty();
        for authority in certificates(&self.ca, ca)? {
            roots.add(authority).map_err(|error| unusable(&self.ca, &error))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&self.certificate, certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            // The error of the parser could have parts of the key in it.
            ClusterError::invalid(format!(
                "there is no private key in {}: it has to be a PEM file",
                self.key.display()
            ))
        })?;
        let apart = |error: Error| {
            ClusterError::invalid(format!(
                "{} and {} do not go together: {error}",
                self.certificate.display(),
                self.key.display()
            ))
        };
        let provider = Arc::new(ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| unusable(&self.ca, &error))?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| unusable(&self.ca, &error))?;
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(apart)?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(apart)?;
        server.send_tls13_tickets = 0;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(apart)?
            .with_webpki_verifier(Arc::clone(&verifier))
            .with_client_auth_cert(chain, key)
            .map_err(apart)?;
        client.resumption = Resumption::disabled();
        Ok(Loaded { contents, server: Arc::new(server), client, verifier })
    }
}

fn certificates(path: &Path, content: &[u8]) -> Result<Vec<CertificateDer<'static>>, ClusterError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(ClusterError::invalid(format!(
            "there is no certificate in {}: it has to be a PEM file",
            path.display()
        ))),
    }
}

fn unusable(path: &Path, error: &dyn std::error::Error) -> ClusterError {
    ClusterError::invalid(format!("the certificate in {} cannot be used: {error}", path.display()))
}

/// Accepts a certificate for the host that was dialled, or for the node that was meant: addresses change, and names do not.
#[derive(Debug)]
struct NameOrHost {
    verifier: Arc<WebPkiServerVerifier>,
    name: Option<ServerName<'static>>,
}

impl ServerCertVerifier for NameOrHost {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let for_host = self.verifier.verify_server_cert(certificate, between, host, ocsp, now);
        match (&for_host, &self.name) {
            (
                Err(Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                )),
                Some(name),
            ) => self.verifier.verify_server_cert(certificate, between, name, ocsp, now).or(for_host),
            _ => for_host,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
