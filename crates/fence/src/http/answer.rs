//! What a request is answered that is not handled.

use bellwether_core::ElectionName;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::{FenceError, Fenced};

/// Seconds after which a request that met a busy fence is worth another try.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Why a request is not handled.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A header is missing.
    Missing(HeaderName),
    /// What the headers say makes no sense.
    Malformed(String),
    /// The headers name another election.
    OtherElection(ElectionName),
    /// A later epoch has asked.
    Fenced(Fenced),
    /// Requests of an earlier epoch were still being handled, or the store was still busy, when the time was over.
    Busy,
    /// The epoch could not be kept.
    NotKept(FenceError),
}

impl From<FenceError> for Refusal {
    fn from(error: FenceError) -> Refusal {
        match error {
            FenceError::Fenced(fenced) => Refusal::Fenced(fenced),
            error => Refusal::NotKept(error),
        }
    }
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Refusal::Missing(_) => StatusCode::PRECONDITION_REQUIRED,
            Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
            Refusal::OtherElection(_) => StatusCode::CONFLICT,
            Refusal::Fenced(_) => StatusCode::PRECONDITION_FAILED,
            Refusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::NotKept(error) if error.is_retryable() => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::NotKept(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Refusal::Missing(_) => "epoch_required",
            Refusal::Malformed(_) => "malformed_epoch",
            Refusal::OtherElection(_) => "other_election",
            Refusal::Fenced(_) => "fenced",
            Refusal::Busy => "busy",
            Refusal::NotKept(_) => "epoch_not_kept",
        }
    }

    fn message(&self, election: &ElectionName) -> String {
        match self {
            Refusal::Missing(name) => {
                format!("send the header {name}, with the epoch and the election of the leader")
            }
            Refusal::Malformed(what) => format!("the headers cannot be read: {what}"),
            Refusal::OtherElection(theirs) => {
                format!(
                    "not handled: leaders of \"{election}\" are served here, and this request is of \"{theirs}\"; give each election a \
                     service of its own"
                )
            }
            Refusal::Fenced(fenced) => fenced.to_string(),
            Refusal::Busy => "requests of an earlier epoch are still being handled; try again".to_owned(),
            // What the store says is for the operator's log, not for whoever asks.
            Refusal::NotKept(_) => "the epoch could not be kept; nothing was handled".to_owned(),
        }
    }

    /// `header` is the one in which requests carry their epoch.
    pub(super) fn answer<B: From<String>>(
        &self,
        election: &ElectionName,
        header: &HeaderName,
    ) -> Response<B> {
        let mut body = json!({
            "error": self.word(), "election": election.as_str(), "message": self.message(election),
        });
        let mut response = Response::builder().status(self.status());
        if let Refusal::Fenced(fenced) = self {
            body["epoch"] = fenced.mine.get().into();
            body["latest"] = fenced.latest.get().into();
            response = response.header(header, fenced.latest.get());
        }
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            response = response.header(header::RETRY_AFTER, RETRY_AFTER);
        }
        let response = response
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CACHE_CONTROL, "no-store");
        response.body(B::from(body.to_string())).expect("every part is fit for a response")
    }
}
