//! The shared secret: how both sides prove that they know it, and how frames are kept from being altered.
//!
//! Nobody sends the secret. The dialler and the listener each draw a nonce; each proves itself by an HMAC-SHA256 under the secret over its
//! role, both nonces and a hash of the hello. From the same come two keys, one for each direction. Every later frame carries a MAC under
//! the key of its direction over a counter, its head and a hash of its body. So frames cannot be altered, inserted, repeated, left out or
//! sent back, and neither can those of another connection be used. **Nothing is encrypted**: whoever is on the way can read along. Use
//! certificates where that matters.
//!
//! The dialler proves itself first. A stranger who connects to a listener gets nothing to guess the secret with.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use bellwether_deadman::random_bits;
use ring::{digest, hmac};

use crate::error::ClusterError;

/// Fewer bytes can be guessed.
const SECRET_MIN_BYTES: usize = 16;
/// More than anybody needs: whoever names the wrong file learns it before the node has read all of it.
const SECRET_MAX_BYTES: usize = 4 << 10;
/// The permission bits of everybody but the owner and the group. The group may read: Kubernetes mounts secrets that way for `fsGroup`.
const OTHERS: u32 = 0o007;

/// The bytes of a MAC.
pub(super) const TAG_BYTES: usize = 32;

/// A number that is used once.
pub(super) type Nonce = [u8; 32];

/// What nodes and clients of one cluster know, and nobody else. Never printed.
#[derive(Clone)]
pub struct Secret(Arc<hmac::Key>);

impl Secret {
    /// These bytes.
    ///
    /// # Errors
    /// When there are fewer than 16.
    pub fn new(bytes: &[u8]) -> Result<Secret, ClusterError> {
        if bytes.len() < SECRET_MIN_BYTES {
            return Err(ClusterError::invalid(format!(
                "the secret has {} bytes, and at least {SECRET_MIN_BYTES} are needed: make one with `openssl rand -hex 32`",
                bytes.len()
            )));
        }
        Ok(Secret(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, bytes))))
    }

    /// The content of a file, without a line end behind it.
    ///
    /// # Errors
    /// When it cannot be read, when others may read it, and when it is too short or too long.
    pub fn from_file(path: &Path) -> Result<Secret, ClusterError> {
        let unreadable =
            |error| ClusterError::invalid(format!("cannot read the secret in {}: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        // Of the open file, and not of the path: another file could be there by now.
        let mode = file.metadata().map_err(unreadable)?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(ClusterError::invalid(format!(
                "everybody on this machine may use the secret in {}: run `chmod 600 {}`",
                path.display(),
                path.display()
            )));
        }
        let mut bytes = Vec::new();
        file.take(SECRET_MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > SECRET_MAX_BYTES {
            return Err(ClusterError::invalid(format!(
                "{} has more than {SECRET_MAX_BYTES} bytes: is it the file with the secret?",
                path.display()
            )));
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        Secret::new(line.strip_suffix(b"\r").unwrap_or(line))
            .map_err(|error| ClusterError::invalid(format!("{}: {error}", path.display())))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Which side proves itself, or sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Dialler,
    Listener,
}

/// A proof or a MAC is wrong.
#[derive(Debug)]
pub(super) struct Wrong;

/// What both sides of one connection have seen of its handshake.
pub(super) struct Transcript<'a> {
    secret: &'a Secret,
    seen: Vec<u8>,
}

impl<'a> Transcript<'a> {
    pub(super) fn new(secret: &'a Secret, dialler: &Nonce, listener: &Nonce, hello: &[u8]) -> Transcript<'a> {
        let mut seen = dialler.to_vec();
        seen.extend_from_slice(listener);
        seen.extend_from_slice(digest::digest(&digest::SHA256, hello).as_ref());
        Transcript { secret, seen }
    }

    /// What this side shows to the other.
    pub(super) fn prove(&self, side: Side) -> Vec<u8> {
        hmac::sign(&self.secret.0, &self.labelled(proof_label(side))).as_ref().to_vec()
    }

    /// Whether the other side, which is `side`, knows the secret. Takes as long for a proof that is nearly right.
    pub(super) fn verify(&self, side: Side, proof: &[u8]) -> Result<(), Wrong> {
        hmac::verify(&self.secret.0, &self.labelled(proof_label(side)), proof).map_err(|_| Wrong)
    }

    /// What protects the frames that `side` sends.
    pub(super) fn seal(&self, side: Side) -> Seal {
        let label = match side {
            Side::Dialler => "bellwether 1 frames of the dialler\0",
            Side::Listener => "bellwether 1 frames of the listener\0",
        };
        let key = hmac::sign(&self.secret.0, &self.labelled(label));
        Seal { key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()), count: 0 }
    }

    fn labelled(&self, label: &str) -> Vec<u8> {
        [label.as_bytes(), &self.seen].concat()
    }
}

/// The role is part of the proof: what one side shows cannot be shown back to it.
fn proof_label(side: Side) -> &'static str {
    match side {
        Side::Dialler => "bellwether 1 proof of the dialler\0",
        Side::Listener => "bellwether 1 proof of the listener\0",
    }
}

/// The MACs of one direction. Both ends count the frames: one that is repeated or out of its place has the wrong number.
pub(super) struct Seal {
    key: hmac::Key,
    count: u64,
}

impl Seal {
    pub(super) fn sign(&mut self, head: &[u8], body: &[u8]) -> hmac::Tag {
        let covered = self.next(head, body);
        hmac::sign(&self.key, &covered)
    }

    pub(super) fn verify(&mut self, head: &[u8], body: &[u8], tag: &[u8]) -> Result<(), Wrong> {
        let covered = self.next(head, body);
        hmac::verify(&self.key, &covered, tag).map_err(|_| Wrong)
    }

    fn next(&mut self, head: &[u8], body: &[u8]) -> Vec<u8> {
        let body = digest::digest(&digest::SHA256, body);
        let covered = [&self.count.to_be_bytes(), head, body.as_ref()].concat();
        self.count += 1;
        covered
    }
}

/// A nonce from the kernel's generator.
pub(super) fn draw_nonce() -> Nonce {
    let mut nonce = [0; 32];
    nonce[..16].copy_from_slice(&random_bits().to_be_bytes());
    nonce[16..].copy_from_slice(&random_bits().to_be_bytes());
    nonce
}
