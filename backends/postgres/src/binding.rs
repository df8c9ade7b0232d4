//! Channel binding `tls-server-end-point` (RFC 5929): the hash of the server's certificate, by which a password by SCRAM is
//! good for this one encrypted connection only.
//!
//! The hash is that of the certificate's signature; for MD5 and SHA-1 it is SHA-256. Where the signature's algorithm
//! names no hash (Ed25519) or hides it in parameters (RSA-PSS), there is no binding.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// Of a certificate in DER, if its algorithm is one of the known.
pub(crate) fn tls_server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let (last, family) = signature_algorithm(certificate)?.split_last()?;
    match (family, last) {
        // MD5, SHA-1 and SHA-256 with RSA; SHA-1 and SHA-256 with ECDSA.
        (RSA, 4 | 5 | 11) | (ECDSA, 1) | (ECDSA_SHA2, 2) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA_SHA2, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA_SHA2, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// `Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { algorithm OBJECT IDENTIFIER, … }, … }`
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (inside, _) = element(certificate, SEQUENCE)?;
    let (_, after) = element(inside, SEQUENCE)?;
    let (algorithm, _) = element(after, SEQUENCE)?;
    element(algorithm, OBJECT_IDENTIFIER).map(|(identifier, _)| identifier)
}

/// The content of the element of this type at the beginning, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length =
            digits.iter().try_fold(0_usize, |sum, digit| Some(sum.checked_mul(256)? + usize::from(*digit)));
        (length?, rest)
    };
    (*found == tag).then_some(())?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        let made = rcgen::CertificateParams::new(vec!["db".to_owned()]).unwrap().self_signed(&key).unwrap();
        assert_eq!(tls_server_end_point(made.der()).unwrap(), Sha384::digest(made.der()).to_vec());
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let made = rcgen::CertificateParams::new(vec!["db".to_owned()]).unwrap().self_signed(&key).unwrap();
        assert_eq!(tls_server_end_point(made.der()), None);
    }

    #[test]
    fn what_is_no_certificate_has_none() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x84, 1],
            &[0x30, 0x88, 255, 255, 255, 255, 255, 255, 255, 255],
            b"hello",
        ] {
            assert_eq!(tls_server_end_point(bytes), None, "{bytes:?}");
        }
    }
}
