//! What happened, as one number, and on request as text.
//!
//! Two runs of one seed must give the same number: every event goes in, with its instant and what came of it.

/// A running hash of everything that happens.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    /// The story, if it is wanted: telling it costs more than living it.
    lines: Option<Vec<String>>,
}

impl Trace {
    /// With or without the text.
    pub fn new(verbose: bool) -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, lines: verbose.then(Vec::new) }
    }

    /// Takes a number in.
    #[inline]
    pub fn mix(&mut self, number: u64) {
        // FNV's step on whole words, with a fold so that high bits come back down.
        self.hash = (self.hash ^ number).wrapping_mul(0x0000_0100_0000_01b3);
        self.hash ^= self.hash >> 29;
    }

    /// Whether anybody wants the text.
    #[inline]
    pub fn is_verbose(&self) -> bool {
        self.lines.is_some()
    }

    /// Adds a line.
    pub fn line(&mut self, line: String) {
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }

    /// The number.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The text.
    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}
