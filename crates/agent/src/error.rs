//! What can go wrong before anything is served.

use std::fmt;

/// Why nothing can be served; says what to do.
///
/// ```
/// let error = bellwether_agent::Address::parse("http://localhost:80").unwrap_err();
/// assert!(error.to_string().contains("leave `http://` out"));
/// ```
#[derive(Debug)]
pub struct AgentError(String);

impl AgentError {
    pub(crate) fn new(sentence: impl Into<String>) -> AgentError {
        AgentError(sentence.into())
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AgentError {}
