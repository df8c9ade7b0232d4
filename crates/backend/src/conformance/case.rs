//! What a case is made of.

use crate::Fut;

use super::stage::Stage;

/// One story with one point.
pub(super) struct Case {
    /// Says the case; stands in the report.
    pub(super) name: &'static str,
    /// Wants the store for itself.
    pub(super) alone: bool,
    pub(super) run: fn(Stage) -> Fut<'static, Ran>,
}

/// How a case ended.
pub(super) type Ran = Result<(), Stop>;

/// Why a case did not come to its good end.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(String),
    Skipped(String),
}

impl Stop {
    pub(super) fn failed(why: impl Into<String>) -> Stop {
        Stop::Failed(why.into())
    }

    pub(super) fn skipped(why: impl Into<String>) -> Stop {
        Stop::Skipped(why.into())
    }
}

impl From<bellwether_core::StoreError> for Stop {
    fn from(error: bellwether_core::StoreError) -> Stop {
        Stop::Failed(format!("unexpected error: {error}"))
    }
}

/// A case of a table, from its name and its function.
macro_rules! case {
    ($name:literal, $run:path) => {
        $crate::conformance::case::Case { name: $name, alone: false, run: |stage| Box::pin($run(stage)) }
    };
    (alone, $name:literal, $run:path) => {
        $crate::conformance::case::Case { name: $name, alone: true, run: |stage| Box::pin($run(stage)) }
    };
}

/// Ends the case as failed unless this holds.
macro_rules! ensure {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err($crate::conformance::case::Stop::Failed(format!($($why)+)));
        }
    };
}

/// Ends the case as skipped unless the store claims to do this.
macro_rules! needs {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err($crate::conformance::case::Stop::Skipped(format!($($why)+)));
        }
    };
}

pub(super) use {case, ensure, needs};
