//! Encryption, by rustls, with libpq's words for how much the server's certificate has to prove.
//!
//! Certificates and keys are read when the configuration is, so that what is wrong shows at once, and again for every
//! connection, so that renewed ones count. The duplicate of the socket that a guard keeps is below the encryption: nothing is
//! said on it, and closing it last ends the connection as it does without encryption.

use std::error::Error as _;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_core::{ErrorKind, StoreError};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig, RootCertStore};

use crate::Config;
use crate::binding::tls_server_end_point;
use crate::config::{Root, Ssl, bad};
use crate::errors::{BACKEND, Cause, misconfigured, not_logged_in, unavailable};
use crate::transport::{Socket, name, passes_bytes};
use crate::verifier::Verifier;

/// How to encrypt.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    asked: Ssl,
    /// The system's authorities, which are many, read once.
    system: Option<Arc<RootCertStore>>,
}

impl Tls {
    /// # Errors
    /// When a certificate or key cannot be read.
    pub(crate) fn new(asked: &Ssl) -> Result<Tls, StoreError> {
        let system = if asked.root == Some(Root::System) { Some(Arc::new(system_roots()?)) } else { None };
        let tls = Tls { asked: asked.clone(), system };
        tls.client_config()?;
        Ok(tls)
    }

    /// For one connection to the server at this place of the list.
    pub(crate) fn connector(&self, config: &Config, host: usize) -> Result<Connector, StoreError> {
        let name = name(config, host);
        let config = Arc::new(self.client_config()?);
        Ok(Connector { name, config, begun: Arc::default(), failed: Arc::default() })
    }

    fn client_config(&self) -> Result<ClientConfig, StoreError> {
        let provider = Arc::new(ring::default_provider());
        let verifier =
            Verifier { verify: self.asked.verify, roots: self.roots()?, algorithms: algorithms(&provider) };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bug("TLS cannot be set up").caused_by(error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.asked.own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                .map_err(|error| {
                    bad(format!("{} and {} do not go together", certificate.display(), key.display()))
                        .caused_by(error)
                })?,
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(config)
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, StoreError> {
        match (&self.asked.root, &self.system) {
            (_, Some(system)) => Ok(Arc::clone(system)),
            (Some(Root::File(file)), None) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    roots.add(certificate).map_err(|error| {
                        bad(format!("{} holds a certificate that cannot be used", file.display()))
                            .caused_by(error)
                    })?;
                }
                Ok(Arc::new(roots))
            }
            (_, None) => Ok(Arc::new(RootCertStore::empty())),
        }
    }
}

fn algorithms(provider: &CryptoProvider) -> WebPkiSupportedAlgorithms {
    provider.signature_verification_algorithms
}

fn system_roots() -> Result<RootCertStore, StoreError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err(misconfigured(
            "this system has no certificate authorities: install ca-certificates, or name a file with sslrootcert",
        ));
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let unreadable = |error: rustls::pki_types::pem::Error| {
        bad(format!("no certificates can be read from {}: it has to be a PEM file", file.display()))
            .caused_by(error)
    };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect();
    let all = all.map_err(unreadable)?;
    if all.is_empty() {
        return Err(bad(format!("there is no certificate in {}: it has to be a PEM file", file.display())));
    }
    Ok(all)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, StoreError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| {
        bad(format!(
            "no private key can be read from {}: it has to be a PEM file without a passphrase",
            file.display()
        ))
        .caused_by(error)
    })
}

fn bug(sentence: &str) -> StoreError {
    StoreError::new(ErrorKind::Bug, BACKEND, sentence)
}

/// Encrypts one connection.
#[derive(Clone)]
pub(crate) struct Connector {
    name: String,
    config: Arc<ClientConfig>,
    begun: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
}

impl Connector {
    pub(crate) fn driver(&self) -> Connector {
        self.clone()
    }

    /// Whether the server wanted to encrypt, and it came to nothing.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// What an error means that the server did not send. `required`: whether plain text was out of the question.
    pub(crate) fn meaning(
        &self,
        error: tokio_postgres::Error,
        required: bool,
        has_password: bool,
    ) -> StoreError {
        let source = error.source();
        if let Some(ours) = source.and_then(|source| source.downcast_ref::<StoreError>()) {
            return ours.clone();
        }
        if let Some(failed) = source.and_then(|source| source.downcast_ref::<io::Error>()) {
            return self
                .handshake(failed)
                .unwrap_or_else(|| unavailable("the connection failed").caused_by(Cause::of(&error)));
        }
        // What is left comes from the driver itself: before the handshake, that there is none; after it, about logging in.
        if required && !self.begun.load(Ordering::Relaxed) {
            let sentence = "the server does not encrypt: set ssl = on there, or sslmode=disable here if you trust the network";
            return misconfigured(sentence).caused_by(Cause::of(&error));
        }
        not_logged_in(error, has_password)
    }

    /// What a failed handshake means, if that is what it was.
    fn handshake(&self, error: &io::Error) -> Option<StoreError> {
        let cause = error.get_ref()?.downcast_ref::<rustls::Error>()?.clone();
        let told = match &cause {
            rustls::Error::InvalidCertificate(why) => misconfigured(format!(
                "the certificate of {} is not accepted ({why:?}): name the authority that signed it with sslrootcert, and the \
                 server as the certificate does",
                self.name
            )),
            rustls::Error::AlertReceived(alert) if is_about_client(*alert) => StoreError::new(
                ErrorKind::PermissionDenied,
                BACKEND,
                "the server does not accept the client certificate: check sslcert, sslkey and who signed it",
            ),
            rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => misconfigured(format!(
                "{} and this program have no encryption in common: the server has to offer TLS 1.2 or 1.3",
                self.name
            )),
            _ => unavailable(format!("no encrypted connection to {}", self.name)),
        };
        Some(told.caused_by(cause))
    }
}

/// Alerts by which a server refuses a client's certificate.
fn is_about_client(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
            | Alert::CertificateRequired
    )
}

impl TlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type Error = StoreError;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, StoreError>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        self.begun.store(true, Ordering::Relaxed);
        Box::pin(async move {
            // A name that is none, as of a directory of sockets, is accepted only where names are not looked at.
            let server = ServerName::try_from(self.name.clone())
                .map_err(|error| bad(format!("{:?} is no name of a server", self.name)).caused_by(error))?;
            let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.config));
            let stream = connector.connect(server, stream).await.map_err(|error| {
                self.failed.store(true, Ordering::Relaxed);
                self.handshake(&error)
                    .unwrap_or_else(|| unavailable("no encrypted connection").caused_by(error))
            })?;
            Ok(Encrypted(stream))
        })
    }
}

/// An encrypted connection.
pub(crate) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.0.get_ref().1.peer_certificates().and_then(<[_]>::first);
        match certificate.and_then(|certificate| tls_server_end_point(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

passes_bytes!(Encrypted);
