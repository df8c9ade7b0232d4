//! Colour where a person looks, none where a file or a pipe does.

use std::io::IsTerminal;
use std::time::Duration;

/// How to paint on one stream.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    colour: bool,
}

pub(crate) fn on_stdout() -> Paint {
    Paint { colour: std::io::stdout().is_terminal() && !no_colour() }
}

pub(crate) fn on_stderr() -> Paint {
    Paint { colour: std::io::stderr().is_terminal() && !no_colour() }
}

/// The convention of <https://no-color.org>.
fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

impl Paint {
    pub(crate) fn head(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// `340 ms`, `1.2 s`, `2 min 03 s`.
pub(crate) fn span(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{} ms", took.as_millis()),
        1..60 => format!("{:.1} s", took.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_say_them() {
        assert_eq!(span(Duration::from_millis(340)), "340 ms");
        assert_eq!(span(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(span(Duration::from_secs(123)), "2 min 03 s");
    }

    #[test]
    fn nothing_is_painted_off_a_terminal() {
        assert_eq!(Paint { colour: false }.bad("no"), "no");
        assert_eq!(Paint { colour: true }.good("ok"), "\x1b[32mok\x1b[0m");
    }
}
