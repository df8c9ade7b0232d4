//! What is used from the machine, beyond the toolchain that compiled this.
//!
//! A step that needs one of these and does not find it fails with the tool's name and [`Tool::advice`].

use crate::process;

#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// A command that prints a version if the tool is there.
    probe: &'static [&'static str],
    pub(crate) used_for: &'static str,
    /// What to do when it is missing.
    advice: &'static str,
}

pub(crate) const RUSTFMT: Tool = Tool {
    name: "rustfmt",
    probe: &["cargo", "fmt", "--version"],
    used_for: "the format of the code",
    advice: "run `rustup component add rustfmt`, or install the package of that name",
};

pub(crate) const CLIPPY: Tool = Tool {
    name: "clippy",
    probe: &["cargo", "clippy", "--version"],
    used_for: "lints",
    advice: "run `rustup component add clippy`, or install the package of that name",
};

/// All of them, for `cargo xtask env`. Servers that tests run against join this list with their backends.
pub(crate) const ALL: &[&Tool] = &[&RUSTFMT, &CLIPPY];

impl Tool {
    /// What it says of its version, or a sentence that says what to do.
    pub(crate) fn find(&self) -> Result<String, String> {
        process::version(self.probe).ok_or_else(|| format!("{} is missing: {}", self.name, self.advice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let absent = Tool {
            name: "abacus",
            probe: &["there-is-no-such-program", "--version"],
            used_for: "counting",
            advice: "carve one",
        };
        assert_eq!(absent.find().unwrap_err(), "abacus is missing: carve one");
    }
}
