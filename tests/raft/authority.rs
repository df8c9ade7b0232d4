//! An authority that signs certificates.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// A year that is over.
pub(crate) const LONG_AGO: i32 = 2002;
/// A year that is not over soon.
pub(crate) const FAR_AHEAD: i32 = 2999;

/// An authority whose files are in a directory.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: PathBuf,
}

impl Authority {
    /// In this directory.
    pub(crate) fn new(directory: &Path) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signed = params.self_signed(&key).expect("a certificate");
        std::fs::write(directory.join("ca.pem"), signed.pem()).expect("our own directory");
        Authority { issuer: Issuer::new(params, key), directory: directory.to_owned() }
    }

    /// A certificate for a host, in files of this name, that ended or will end in this year.
    pub(crate) fn sign(&self, file: &str, host: &str, ends: i32) -> [String; 3] {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("an address");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(ends, 1, 1);
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let [certificate, key_file] = ["pem", "key"].map(|end| self.directory.join(format!("{file}.{end}")));
        std::fs::write(&certificate, signed.pem()).expect("our own directory");
        std::fs::write(&key_file, key.serialize_pem()).expect("our own directory");
        [self.directory.join("ca.pem"), certificate, key_file].map(|path| path.display().to_string())
    }
}
