//! What the server says, by meaning. Told apart by JetStream's codes, never by text.
//!
//! The one exception is forced by the protocol: that a subject is closed to this user comes as a line of text beside the
//! call and not as its answer. `connection.rs` reads it.

use bellwether_core::{ErrorKind, StoreError};

pub(crate) const BACKEND: &str = "nats";

/// The record has another revision: certainly not written.
pub(crate) const WRONG_LAST_SEQUENCE: u64 = 10_071;
pub(crate) const STREAM_NOT_FOUND: u64 = 10_059;
pub(crate) const MESSAGE_NOT_FOUND: u64 = 10_037;
/// A stream of that name is there with other settings.
pub(crate) const STREAM_NAME_IN_USE: u64 = 10_058;

/// How a call failed.
#[derive(Clone, Debug)]
pub(crate) enum CallFailure {
    /// JetStream answered with this code, and did nothing.
    Said(u64, String),
    /// Nobody listens on the subject: the stream has no leader at the moment, or there is no such stream.
    NobodyListens,
    /// Nobody listens on the subjects of JetStream's API, in this domain where one is named.
    NoJetStream(Option<String>),
    /// There is no answer: closed to us, too late, or the connection was lost. What was sent may still arrive.
    NoAnswer(StoreError),
}

impl CallFailure {
    pub(crate) fn is(&self, wanted: u64) -> bool {
        matches!(self, CallFailure::Said(code, _) if *code == wanted)
    }

    /// For everything but the codes that the caller has a meaning for.
    pub(crate) fn error(self, doing: &str) -> StoreError {
        match self {
            CallFailure::Said(code, said) => meaning(code, doing, &said),
            CallFailure::NobodyListens => unavailable(format!(
                "cannot {doing}: nobody answers for the bucket; its stream has no leader at the moment, or was deleted"
            )),
            CallFailure::NoJetStream(None) => unavailable(format!(
                "cannot {doing}: JetStream does not answer: turn it on in the servers, or name the domain that has it with \
                 domain=NAME"
            )),
            CallFailure::NoJetStream(Some(domain)) => unavailable(format!(
                "cannot {doing}: nobody answers for the JetStream domain {domain}: check its name, and that its servers are \
                 connected with this one"
            )),
            CallFailure::NoAnswer(error) => error,
        }
    }
}

fn meaning(code: u64, doing: &str, said: &str) -> StoreError {
    let (kind, advice) = match code {
        10_039 | 10_076 => {
            (ErrorKind::Misconfigured, "turn JetStream on for the server and for this account")
        }
        10_026 => (
            ErrorKind::Exhausted,
            "too many processes watch the bucket: raise its limit of consumers, or the account's",
        ),
        10_002 | 10_023 | 10_028 | 10_047 | 10_077 | 10_120 => (
            ErrorKind::Exhausted,
            "the server, the account or the bucket is full: make room or raise the limit",
        ),
        10_054 => (ErrorKind::Misconfigured, "the record is larger than the bucket allows: raise its limit"),
        10_109 => (ErrorKind::Misconfigured, "the bucket is sealed: use another"),
        STREAM_NOT_FOUND => (ErrorKind::Misconfigured, "the bucket does not exist"),
        // What a bucket that is to be made runs into, and what does not go away by itself.
        10_027 => (
            ErrorKind::Misconfigured,
            "this account has all the streams that it may have: raise max_streams, or name a bucket that is there with \
             bucket=NAME",
        ),
        10_074 => (
            ErrorKind::Misconfigured,
            "this server is not part of a cluster, so there is one replica: write replicas=1",
        ),
        10_113 => (
            ErrorKind::Misconfigured,
            "this account wants a size for every bucket: create it by hand (nats kv add … --history 1 --max-bucket-size 1MB)",
        ),
        10_065 => (
            ErrorKind::Misconfigured,
            "another stream has taken the bucket's subjects: name another bucket with bucket=NAME",
        ),
        10_052 => (ErrorKind::Misconfigured, "create the bucket by hand"),
        10_005 => (
            ErrorKind::Unavailable,
            "there are fewer servers than replicas: start the others, or write a smaller number as replicas=",
        ),
        // Cluster without a leader, write in flight, rate limit, and whatever else passes.
        _ => (ErrorKind::Unavailable, "it is tried again"),
    };
    StoreError::new(kind, BACKEND, format!("cannot {doing}: the server says \"{said}\" ({code}): {advice}"))
}

pub(crate) fn invalid(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence)
}

pub(crate) fn misconfigured(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Misconfigured, BACKEND, sentence)
}

pub(crate) fn unavailable(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, BACKEND, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again_and_what_cannot_is_not() {
        for (code, kind) in [
            // "Wrong last sequence" of a write that is still in flight on a cluster: not a conflict.
            (10_164, ErrorKind::Unavailable),
            (10_008, ErrorKind::Unavailable),
            (10_167, ErrorKind::Unavailable),
            (10_026, ErrorKind::Exhausted),
            (10_077, ErrorKind::Exhausted),
            (10_076, ErrorKind::Misconfigured),
            (10_039, ErrorKind::Misconfigured),
            (10_059, ErrorKind::Misconfigured),
            (10_074, ErrorKind::Misconfigured),
            (10_027, ErrorKind::Misconfigured),
            (10_113, ErrorKind::Misconfigured),
            (10_005, ErrorKind::Unavailable),
        ] {
            let error = CallFailure::Said(code, "no".to_owned()).error("write");
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert!(CallFailure::NobodyListens.error("write").is_retryable());
        assert!(CallFailure::NoJetStream(None).error("look").is_retryable());
    }
}
