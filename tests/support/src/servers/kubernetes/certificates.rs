//! Who the API server is: an authority of the test's own, and what it signed.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use super::https::Https;

/// As PEM.
pub(super) struct Certificates {
    ca: String,
    certificate: String,
    key: KeyPair,
}

impl Certificates {
    /// For a server on this address, and for ways to it from the loopback.
    pub(super) fn make(address: Ipv4Addr) -> Certificates {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are fine");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "bellwether-test");
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), address.to_string()];
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names).expect("names");
        let certificate = params.signed_by(&key, &authority).expect("a certificate").pem();
        Certificates { ca: authority.pem(), certificate, key }
    }

    pub(super) fn write(&self, dir: &Path) {
        let (private, public) = (self.key.serialize_pem(), self.key.public_key_pem());
        let files = [("ca.pem", &self.ca), ("server.pem", &self.certificate)];
        for (name, text) in files.into_iter().chain([("server.key", &private), ("server.pub", &public)]) {
            std::fs::write(dir.join(name), text).expect("a scratch directory is writable");
        }
    }

    pub(super) fn client(&self) -> Https {
        Https::trusting(&self.ca)
    }
}

/// The same key signs the tokens of service accounts: the server insists on one.
pub(super) fn flags(dir: &Path) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", dir.join(name).display());
    vec![
        file("tls-cert-file", "server.pem"),
        file("tls-private-key-file", "server.key"),
        file("service-account-key-file", "server.pub"),
        file("service-account-signing-key-file", "server.key"),
        "--service-account-issuer=https://bellwether.test".to_owned(),
    ]
}

pub(super) fn ca(dir: &Path) -> PathBuf {
    dir.join("ca.pem")
}
