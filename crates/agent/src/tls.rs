//! Encryption, by rustls with ring.
//!
//! The files are looked at for every connection, so a certificate that was renewed counts from the next one on. Files that do not go
//! together are in the middle of being replaced: then the previous ones still count.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::AgentError;

/// A certificate with its chain, and its private key, each a PEM file.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by those that lead to the authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

pub(crate) struct Certificates {
    files: TlsFiles,
    loaded: Mutex<(Stamp, Arc<ServerConfig>)>,
}

/// What tells one state of the files from another.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Certificates {
    pub(crate) fn open(files: TlsFiles) -> Result<Certificates, AgentError> {
        let stamp = files.stamp();
        let config = files.load()?;
        Ok(Certificates { files, loaded: Mutex::new((stamp, Arc::new(config))) })
    }

    /// By what the files say now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if stamp != loaded.0 {
            match self.files.load() {
                Ok(config) => *loaded = (stamp, Arc::new(config)),
                Err(error) => {
                    tracing::warn!(%error, "the certificate of --http on disk cannot be used; the previous one still counts");
                    // Said once for each state of the files.
                    loaded.0 = stamp;
                }
            }
        }
        TlsAcceptor::from(Arc::clone(&loaded.1))
    }
}

impl TlsFiles {
    fn stamp(&self) -> Stamp {
        [&self.certificate, &self.key].map(|file| {
            let about = fs::metadata(file).ok()?;
            Some((about.modified().ok()?, about.len()))
        })
    }

    fn load(&self) -> Result<ServerConfig, AgentError> {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        let bad = |what: String| AgentError::new(what);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(|error| bad(format!("the certificate cannot be read from {certificate}: {error}")))?;
        if chain.is_empty() {
            return Err(bad(format!("there is no certificate in {certificate}: it has to be a PEM file")));
        }
        let private = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| bad(format!("the private key cannot be read from {key}: {error}")))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
            .map_err(|error| bad(format!("{certificate} and {key} do not go together: {error}")))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
