//! Clusters with certificates, and one that has expired.

use std::path::{Path, PathBuf};

use bellwether_tests::raft::Nodes;
use bellwether_tests::run_to_end;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

use crate::stderr;

/// An authority whose files are in a directory.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: PathBuf,
}

impl Authority {
    fn new(directory: &Path) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signed = params.self_signed(&key).expect("a certificate");
        std::fs::write(directory.join("ca.pem"), signed.pem()).expect("our own directory");
        Authority { issuer: Issuer::new(params, key), directory: directory.to_owned() }
    }

    /// A certificate for a host, in files of this name, that ended or will end in this year.
    fn sign(&self, file: &str, host: &str, ends: i32) -> [String; 3] {
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

const LONG_AGO: i32 = 2002;
const FAR_AHEAD: i32 = 2999;

#[test]
fn an_expired_certificate_is_refused_by_name_and_the_others_go_on() {
    let mut nodes = Nodes::new(3);
    let host = nodes.seats[0].address.rsplit_once(':').expect("a port").0.to_owned();
    let authority = Authority::new(nodes.path());
    let [ca, certificate, key] = authority.sign("good", &host, FAR_AHEAD);
    let expired = authority.sign("expired", &host, LONG_AGO);
    let flags = |[ca, certificate, key]: [&str; 3]| {
        ["--tls-ca", ca, "--tls-cert", certificate, "--tls-key", key].map(str::to_owned)
    };
    let usual = nodes.flags.clone();
    nodes.flags.extend(flags([&ca, &certificate, &key]));
    nodes.form();
    let list = |nodes: &Nodes, [ca, certificate, key]: [&str; 3]| {
        let mut command = nodes.seats[0].command();
        let url =
            format!("raft://{}?tls-ca={ca}&tls-cert={certificate}&tls-key={key}", nodes.seats[0].address);
        command.args(["members", "list", "-o", "json", "--backend", &url]);
        run_to_end(command)
    };
    let before = list(&nodes, [&ca, &certificate, &key]);
    assert!(before.status.success(), "{}", stderr(&before));

    let [_, expired_certificate, expired_key] = &expired;
    let looked = list(&nodes, [&ca, expired_certificate, expired_key]);
    assert_eq!(looked.status.code(), Some(69), "{}", stderr(&looked));
    assert!(stderr(&looked).contains("Expired"), "{}", stderr(&looked));

    let joining = nodes.add_seat_beside();
    let good = std::mem::replace(&mut nodes.flags, usual);
    nodes.flags.extend(flags([&ca, expired_certificate, expired_key]));
    nodes.flags.extend(["--join-timeout", "2s"].map(str::to_owned));
    let output = run_to_end(nodes.node_command(joining));
    assert_eq!(output.status.code(), Some(69), "{}", stderr(&output));
    assert!(stderr(&output).contains("Expired"), "{}", stderr(&output));

    // The files are read for every connection, so a renewed certificate counts without a restart; and this node joins with it.
    nodes.flags = good;
    nodes.start_ready([joining]);
    let after = list(&nodes, [&ca, &certificate, &key]);
    assert!(String::from_utf8_lossy(&after.stdout).contains("\"n3\""), "{after:?}");
}
