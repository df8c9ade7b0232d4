//! From a [`Config`] to a client: what the files that it names hold, and why there is no connection.
//!
//! Owns the sentences for everything that goes wrong before the first call. What can never work (a file that is missing or holds something
//! else, an identity that the server does not accept) is refused at once; what may pass (a server that is away, or whose
//! certificate is being replaced) is tried again.

use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::sign::CertifiedKey;
use async_nats::rustls::{self, AlertDescription, CertificateError};
use async_nats::{ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use std::path::Path;

use bellwether_core::{ErrorKind, StoreError};

use crate::config::{Authentication, Config};
use crate::errors::{BACKEND, invalid, misconfigured};

const NOT_TLS: &str =
    "the server does not speak TLS: write nats:// instead of tls://, or turn TLS on in the server";
const NOT_NATS: &str = "what listens there does not greet as a NATS server does: check host and port";

/// Who we are and whom we trust, as the client takes it.
pub(crate) fn options(config: &Config) -> Result<ConnectOptions, StoreError> {
    let mut options = identified(&config.identity)?.require_tls(config.tls);
    if let Some(file) = &config.authority {
        certificates("ca", file)?;
        options = options.add_root_certificates(file.clone());
    }
    if let Some((certificate, key)) = &config.certificate {
        check_pair(certificate, key)?;
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

/// The servers, as the client takes them.
pub(crate) fn servers(config: &Config) -> Result<Vec<ServerAddr>, StoreError> {
    let parsed = |server: &String| {
        let wrong = |error: std::io::Error| invalid("a server's address cannot be read").caused_by(error);
        server.parse().map_err(wrong)
    };
    config.servers.iter().map(parsed).collect()
}

/// That the servers do not accept who we are.
pub(crate) fn unwelcome(identity: &Authentication) -> StoreError {
    let sentence = match identity {
        Authentication::Nobody => {
            "the server lets nobody in without a name: write USER:PASSWORD@ or TOKEN@ before the host, or name a file with \
             creds= or nkey="
        }
        Authentication::Token(_) => {
            "the server rejected the login: check the token, and whether it wants USER:PASSWORD@ instead"
        }
        Authentication::User(..) => "the server rejected the login: check user and password",
        Authentication::Credentials(_) => {
            "the server rejected the login: check the credentials file, which may have expired or been revoked"
        }
        Authentication::Seed(_) => {
            "the server rejected the login: check whether it knows the public key of that seed"
        }
    };
    StoreError::new(ErrorKind::PermissionDenied, BACKEND, sentence)
}

/// Why there is no connection, and what to do about it.
pub(crate) fn not_connected(error: ConnectError, config: &Config) -> StoreError {
    let io = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let (kind, sentence) = match error.kind() {
        // The cause would only say so again.
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            return unwelcome(&config.identity);
        }
        ConnectErrorKind::ServerParse => (ErrorKind::InvalidInput, "a server's address cannot be read"),
        ConnectErrorKind::TimedOut => (
            ErrorKind::TimedOut,
            "no server answered in time: check host and port, and that a NATS server listens there",
        ),
        ConnectErrorKind::Dns => (ErrorKind::Unavailable, "no server can be reached: check the host's name"),
        ConnectErrorKind::Tls => (ErrorKind::Misconfigured, "TLS cannot be set up here"),
        _ => match io {
            None => (ErrorKind::Unavailable, NOT_NATS),
            Some(io) => match io.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
                Some(cause) => no_tls(cause),
                // Bytes that make no sense.
                None if is_nonsense(io.kind()) => (ErrorKind::Unavailable, NOT_NATS),
                None => (ErrorKind::Unavailable, "no server can be reached"),
            },
        },
    };
    StoreError::new(kind, BACKEND, sentence).caused_by(error)
}

fn is_nonsense(kind: std::io::ErrorKind) -> bool {
    matches!(kind, std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput)
}

/// Whose fault it is that there is no TLS.
fn no_tls(error: &rustls::Error) -> (ErrorKind, &'static str) {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => (
            ErrorKind::Unavailable,
            "the server's certificate is not for this host name: write a name that is in the certificate",
        ),
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => (
            ErrorKind::Unavailable,
            "we do not trust the server's certificate: name the certificate of the authority that signed it with ca=FILE",
        ),
        rustls::Error::InvalidCertificate(_) => {
            (ErrorKind::Unavailable, "we do not trust the server's certificate")
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => (
            ErrorKind::PermissionDenied,
            "the server wants a certificate of ours: name one with cert=FILE and key=FILE",
        ),
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied,
        ) => (
            ErrorKind::PermissionDenied,
            "the server does not trust our certificate: name another with cert=FILE and key=FILE, or have the server trust \
             the authority that signed this one",
        ),
        rustls::Error::InvalidMessage(_) => (ErrorKind::Unavailable, NOT_TLS),
        _ => (ErrorKind::Unavailable, "the TLS handshake with the server failed"),
    }
}

fn identified(identity: &Authentication) -> Result<ConnectOptions, StoreError> {
    match identity {
        Authentication::Nobody => Ok(ConnectOptions::new()),
        Authentication::Token(token) => Ok(ConnectOptions::with_token(token.clone())),
        Authentication::User(user, password) => {
            Ok(ConnectOptions::with_user_and_password(user.clone(), password.clone()))
        }
        Authentication::Seed(file) => {
            let seed = read(file)?.trim().to_owned();
            nkeys::KeyPair::from_seed(&seed).map_err(|error| {
                let sentence =
                    format!("{} holds no seed of an nkey, one line that begins with SU", file.display());
                misconfigured(sentence).caused_by(error)
            })?;
            Ok(ConnectOptions::with_nkey(seed))
        }
        Authentication::Credentials(file) => {
            ConnectOptions::with_credentials(&read(file)?).map_err(|error| {
                misconfigured(format!("{} is not a credentials file", file.display())).caused_by(error)
            })
        }
    }
}

fn read(file: &Path) -> Result<String, StoreError> {
    std::fs::read_to_string(file)
        .map_err(|error| misconfigured(format!("cannot read {}", file.display())).caused_by(error))
}

/// The certificates in a file that `option` names.
fn certificates(option: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let text = read(file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let all = all.unwrap_or_default();
    if !all.is_empty() {
        return Ok(all);
    }
    let holds = if PrivateKeyDer::from_pem_slice(text.as_bytes()).is_ok() {
        "a private key and no certificate"
    } else {
        "no certificate in PEM"
    };
    Err(misconfigured(format!("{} holds {holds}: {option} names a certificate's file", file.display())))
}

/// Whether these are a certificate and its key.
fn check_pair(certificate: &Path, key: &Path) -> Result<(), StoreError> {
    let chain = certificates("cert", certificate)?;
    let private = PrivateKeyDer::from_pem_slice(read(key)?.as_bytes()).map_err(|error| {
        let sentence = format!("{} holds no private key in PEM: key names the key's file", key.display());
        misconfigured(sentence).caused_by(error)
    })?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, private, &provider).map(drop).map_err(|error| {
        let (certificate, key) = (certificate.display(), key.display());
        misconfigured(format!("{certificate} and {key} are not a certificate and its key")).caused_by(error)
    })
}
