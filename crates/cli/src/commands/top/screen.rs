//! A terminal that is ours for a while.
//!
//! Takes the alternate screen, hides the cursor, and has keys delivered as they are pressed; dropping it puts everything back as
//! it was, also when the program unwinds. Ctrl-C stays a signal, so that it works whatever else hangs. Ctrl-Z is switched
//! off, since a stopped program would leave its screen behind. Draws nothing by itself.

use std::io::{IsTerminal, Read, Write, stdin, stdout};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::sync::mpsc;
use unicode_width::UnicodeWidthChar;

/// Alternate screen, no cursor, no wrapping of long lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// For terminals that do not tell.
const USUAL_SIZE: (usize, usize) = (24, 80);

pub(super) struct Screen {
    /// How the keyboard was, if there is one.
    before: Option<Termios>,
}

impl Screen {
    /// `None` where standard output is no terminal.
    pub(super) fn take() -> Option<Screen> {
        if !stdout().is_terminal() {
            return None;
        }
        let before = tcgetattr(stdin()).ok();
        if let Some(before) = &before {
            let mut keys = before.clone();
            keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            keys.special_codes[SpecialCodeIndex::VMIN] = 1;
            keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            keys.special_codes[SpecialCodeIndex::VSUSP] = 0;
            // Without it keys show and need Enter, which is no reason not to show the elections.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &keys);
        }
        write(ENTER);
        Some(Screen { before })
    }

    /// The keys that are pressed; silent where there is no keyboard.
    pub(super) fn keys(&self) -> mpsc::UnboundedReceiver<u8> {
        let (sender, keys) = mpsc::unbounded_channel();
        if self.before.is_some() {
            // A thread of its own, because a read of a terminal cannot be called off; it ends with the process.
            std::thread::spawn(move || {
                for key in stdin().lock().bytes().map_while(Result::ok) {
                    if sender.send(key).is_err() {
                        return;
                    }
                }
            });
        }
        keys
    }

    /// Draws this heading, these lines and this footing; what does not fit is counted. False if nobody looks any more.
    #[must_use]
    pub(super) fn draw(&self, title: &str, lines: &[String], footing: &str) -> bool {
        let (rows, columns) = size();
        write(&frame(title, lines, footing, rows, columns))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(LEAVE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

fn size() -> (usize, usize) {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => USUAL_SIZE,
    }
}

/// One write for all of it, so that nothing flickers.
fn frame(title: &str, lines: &[String], footing: &str, rows: usize, columns: usize) -> String {
    // The title, a blank line, the table's heading, and the footing.
    let room = rows.saturating_sub(3).max(1);
    let mut shown: Vec<String> = lines.iter().take(room).cloned().collect();
    if lines.len() > room {
        let hidden = lines.len() + 1 - room;
        shown.pop();
        shown.push(format!("… and {hidden} more: make the window taller, or name the elections to see"));
    }
    let cut = |line: &str| cut(line, columns);
    let mut text = format!("\x1b[H\x1b[1m{}\x1b[0m\x1b[K\r\n\x1b[K\r\n", cut(title));
    for line in &shown {
        text.push_str(&format!("{}\x1b[K\r\n", cut(line)));
    }
    text.push_str(&format!("\x1b[2m{}\x1b[0m\x1b[K\x1b[J", cut(footing)));
    text
}

/// As much of a line as fits; some characters take two columns.
fn cut(line: &str, columns: usize) -> String {
    let mut used = 0;
    let fits = |char: &char| {
        used += char.width().unwrap_or(0);
        used <= columns
    };
    line.chars().take_while(fits).collect()
}

/// Whatever the error, a terminal that takes nothing is gone.
fn write(text: &str) -> bool {
    stdout().lock().write_all(text.as_bytes()).and_then(|()| stdout().flush()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_the_columns_that_it_takes() {
        assert_eq!(cut("選挙の名前", 7), "選挙の");
        assert_eq!(cut("e\u{301}lection", 2), "e\u{301}l");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_cut() {
        let lines: Vec<String> = (0..10).map(|n| format!("election {n}")).collect();
        let text = frame("title", &lines, "footing", 6, 10);
        assert!(text.contains("election 1") && !text.contains("election 2"), "{text:?}");
        assert!(text.contains("… and 8 mo\x1b"), "{text:?}");
        assert_eq!(text.matches("\r\n").count(), 5, "one line less than there is room for: {text:?}");
        let whole = frame("title", &lines, "footing", 40, 80);
        assert!(whole.contains("election 9") && !whole.contains("more"));
    }
}
