//! How a run stands: one live line at a terminal, else a line now and then.

use std::io::IsTerminal;
use std::time::Duration;

use bellwether::duration::print;
use bellwether_torture::{Progress, Settings};
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthChar;

use crate::args::{Format, Global, LogFormat};
use crate::logging::WIPE;
use crate::stderr;

/// Cells of the bar.
const BAR: usize = 20;
/// The shortest time between two plain lines.
const PLAIN: Duration = Duration::from_secs(5);
/// For terminals that do not tell.
const USUAL_COLUMNS: usize = 80;

/// What is shown of a run.
pub(super) enum Shown {
    Nothing,
    Live,
    Plain { every: Duration, next: Duration },
}

impl Shown {
    /// Says what is about to happen.
    pub(super) fn new(global: &Global, settings: &Settings) -> Shown {
        if global.quiet || global.log == LogFormat::Json {
            return Shown::Nothing;
        }
        let Settings { seed, candidates, ttl, election, length, .. } = settings;
        stderr::write(format!(
            "{candidates} candidates in the election {election}, ttl {}, faults of seed {seed} for {}\n",
            print(*ttl),
            print(*length)
        ));
        if std::io::stderr().is_terminal() && global.output == Format::Table {
            return Shown::Live;
        }
        Shown::Plain { every: PLAIN.max(settings.length / 20), next: Duration::ZERO }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        match self {
            Shown::Nothing => {}
            Shown::Live => {
                let columns = tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
                let columns = if columns == 0 { USUAL_COLUMNS } else { columns };
                stderr::write(format!("{WIPE}{}", fitted(&live(progress), columns - 1)));
            }
            Shown::Plain { every, next } => {
                if progress.elapsed >= *next {
                    *next += *every;
                    stderr::write(format!("{}\n", line(progress)));
                }
            }
        }
    }

    /// Nothing of a live line is left.
    pub(super) fn end(&self) {
        if matches!(self, Shown::Live) {
            stderr::write(WIPE);
        }
    }
}

fn live(progress: &Progress) -> String {
    let share = progress.elapsed.as_secs_f64() / progress.length.as_secs_f64();
    let full = ((share * BAR as f64) as usize).min(BAR);
    let last = progress.last.as_ref().map(|last| format!("; {last}")).unwrap_or_default();
    format!("{}{} {}{last}", "█".repeat(full), "░".repeat(BAR - full), line(progress))
}

fn line(progress: &Progress) -> String {
    let leads = match &progress.leader {
        Some((who, epoch)) => format!("{who} leads (epoch {epoch})"),
        None => "nobody leads".to_owned(),
    };
    let whole = |duration: Duration| print(Duration::from_secs(duration.as_secs()));
    let wrong = match progress.complaints {
        0 => String::new(),
        count => format!(", {count} broken promises"),
    };
    let Progress { elapsed, length, changes, faults, .. } = progress;
    format!(
        "{} of {}: {leads}, {changes} changes under {faults} faults{wrong}",
        whole(*elapsed),
        whole(*length)
    )
}

/// As much of it as fits into one line of the terminal: a second line would stay.
fn fitted(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_line_never_needs_a_second_one() {
        let progress = Progress {
            elapsed: Duration::from_secs(30),
            length: Duration::from_secs(60),
            leader: Some(("c1".to_owned(), 7)),
            changes: 3,
            faults: 4,
            last: Some("kill for 100ms of leader c1".to_owned()),
            complaints: 0,
        };
        let text = live(&progress);
        assert!(
            text.starts_with("██████████░░░░░░░░░░ 30s of 1m0s: c1 leads (epoch 7), 3 changes"),
            "{text}"
        );
        assert_eq!(fitted(&text, 10).chars().count(), 10);
        assert_eq!(fitted(&text, 1_000), text);
    }
}
