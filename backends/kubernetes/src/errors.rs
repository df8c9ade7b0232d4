//! What the API server says, by meaning. Told apart by HTTP status and reason, never by text.

use bellwether_core::{ErrorKind, StoreError};
use kube::core::Status;

pub(crate) const BACKEND: &str = "kubernetes";

/// How a call failed.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// The server answered with this status. Below 500 nothing was written.
    Answered(Box<Status>),
    /// There is no answer: too late, or the connection was lost. What was sent may still arrive.
    NoAnswer(StoreError),
}

impl CallFailure {
    pub(crate) fn is(&self, code: u16) -> bool {
        matches!(self, CallFailure::Answered(status) if status.code == code)
    }

    /// For every status that the caller has no meaning for. `doing` says what was tried, in the namespace or on the object that it
    /// names.
    pub(crate) fn error(self, doing: &str) -> StoreError {
        match self {
            CallFailure::Answered(status) => meaning(&status, doing),
            CallFailure::NoAnswer(error) => error,
        }
    }
}

fn meaning(status: &Status, doing: &str) -> StoreError {
    let (kind, advice) = match status.code {
        401 => (
            ErrorKind::PermissionDenied,
            "the API server does not accept who we are: check the token or certificate",
        ),
        403 if is_terminating(status) => {
            (ErrorKind::Misconfigured, "the namespace is being deleted: use another")
        }
        403 => (ErrorKind::PermissionDenied, "grant that verb in a Role, and bind it to this user"),
        404 => (
            ErrorKind::Misconfigured,
            "the namespace does not exist: create it, or name another as kubernetes://NAMESPACE",
        ),
        413 => {
            (ErrorKind::InvalidInput, "the record is larger than the API server takes: write less metadata")
        }
        400 | 405 | 406 | 415 | 422 => {
            (ErrorKind::Misconfigured, "the API server does not take what was written")
        }
        // Overloaded, without a leader of etcd, shutting down, and whatever else passes.
        _ => (ErrorKind::Unavailable, "it is tried again"),
    };
    let said = if status.message.is_empty() { &status.reason } else { &status.message };
    StoreError::new(
        kind,
        BACKEND,
        format!("cannot {doing}: {advice} (the server says \"{said}\", {})", status.code),
    )
}

/// Admission refuses new objects with 403 while a namespace goes away, and names the cause.
fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
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
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn status(code: u16) -> Box<Status> {
        Box::new(Status::failure("no", "Because").with_code(code))
    }

    #[test]
    fn what_may_pass_is_tried_again_and_what_cannot_is_not() {
        for (code, kind) in [
            (401, ErrorKind::PermissionDenied),
            (403, ErrorKind::PermissionDenied),
            (404, ErrorKind::Misconfigured),
            (422, ErrorKind::Misconfigured),
            (429, ErrorKind::Unavailable),
            (500, ErrorKind::Unavailable),
            (503, ErrorKind::Unavailable),
            (504, ErrorKind::Unavailable),
        ] {
            let error = CallFailure::Answered(status(code)).error("renew the Lease a");
            assert_eq!(error.kind(), kind, "{code}");
            assert!(error.to_string().contains("cannot renew the Lease a"), "{error}");
        }
    }

    #[test]
    fn a_namespace_that_goes_away_is_not_a_missing_right() {
        let cause = StatusCause {
            reason: "NamespaceTerminating".into(),
            message: String::new(),
            field: "metadata.namespace".into(),
        };
        let details: StatusDetails = serde_json::from_value(serde_json::json!({})).unwrap();
        let details = StatusDetails { causes: vec![cause], ..details };
        let error =
            CallFailure::Answered(Box::new(status(403).with_details(details))).error("create the Lease a");
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.to_string().contains("being deleted"), "{error}");
    }
}
