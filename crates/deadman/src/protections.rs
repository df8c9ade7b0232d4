//! What this system can enforce, for whoever has to say so.

/// What stands between a leadership's end and work that goes on regardless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protections {
    /// The kernel kills a process at its deadline, even a stopped one.
    pub kernel_deadline: bool,
    /// A process dies with its parent.
    pub parent_death_signal: bool,
    /// A process tree that nobody can leave can be made, given the rights.
    pub pid_namespace: bool,
    /// Orphans come to an ancestor that asked for them.
    pub adopts_orphans: bool,
}

impl Protections {
    /// What is missing, in words; empty where nothing is.
    pub fn missing(self) -> Vec<&'static str> {
        [
            (self.kernel_deadline, "a stopped process is not killed at its deadline"),
            (self.parent_death_signal, "a process does not die with its parent"),
            (self.pid_namespace, "a descendant can leave the process tree"),
            (self.adopts_orphans, "orphans of the process tree are not found"),
        ]
        .into_iter()
        .filter_map(|(there, sentence)| (!there).then_some(sentence))
        .collect()
    }
}

const KERNEL_HAS_THEM: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// What this system has: all of it on Linux, none elsewhere.
pub const PROTECTIONS: Protections = Protections {
    kernel_deadline: KERNEL_HAS_THEM,
    parent_death_signal: KERNEL_HAS_THEM,
    pid_namespace: KERNEL_HAS_THEM,
    adopts_orphans: KERNEL_HAS_THEM,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_in_words() {
        assert_eq!(PROTECTIONS.missing().is_empty(), cfg!(target_os = "linux"));
        let one = Protections { kernel_deadline: false, ..PROTECTIONS };
        assert!(one.missing().contains(&"a stopped process is not killed at its deadline"));
    }
}
