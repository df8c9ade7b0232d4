//! Log lines on stderr. They are written in the background ([`stderr`]), so that nothing waits for whoever reads them.
//!
//! At the default level they are for people: time, level, a sentence. What tells lines apart for machines (incarnation, attempt,
//! spans) is shown with `-v` and in JSON only.

use std::fmt;
use std::io::{IsTerminal, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Global, LogFormat};
use crate::stderr;

/// What the lines of the library's own events come from. Their sentences say all that their fields do.
const EVENTS: &str = "bellwether_election::log";

/// Log lines on stderr; colours only on a terminal. With a live screen, the election's own events are shown there, and
/// other lines first wipe the live line away.
pub(crate) fn start(global: &Global, live: bool) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::INFO,
        (false, 1) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    let mut wanted = Targets::new().with_default(level);
    if global.verbose == 0 {
        // A driver's own log: what matters of it is said here, with what to do.
        wanted = wanted.with_target("async_nats", LevelFilter::OFF);
        wanted = wanted.with_target("openraft", LevelFilter::OFF);
    }
    if live && global.verbose == 0 {
        wanted = wanted.with_target("bellwether_election", LevelFilter::OFF);
    }
    stderr::start();
    let wipe = if live { WIPE } else { "" };
    let lines = tracing_subscriber::fmt::layer().with_target(false);
    let text = lines.with_writer(move || Line { wipe }).with_ansi(std::io::stderr().is_terminal());
    let lines = match global.log {
        LogFormat::Text if global.verbose == 0 => text.event_format(ForPeople).boxed(),
        LogFormat::Text => text.boxed(),
        LogFormat::Json => {
            let lines = tracing_subscriber::fmt::layer().with_target(false).json().flatten_event(true);
            lines.with_current_span(false).with_span_list(false).with_writer(|| Line { wipe: "" }).boxed()
        }
    };
    tracing_subscriber::registry().with(wanted).with(lines).init();
}

/// Time, level, sentence, and the fields that a sentence leaves to them.
struct ForPeople;

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let level = *event.metadata().level();
        let colour = match level {
            Level::ERROR => "\x1b[31m",
            Level::WARN => "\x1b[33m",
            _ => "\x1b[32m",
        };
        let (colour, plain) = if writer.has_ansi_escapes() { (colour, "\x1b[0m") } else { ("", "") };
        write!(writer, " {colour}{level:>5}{plain}")?;
        let mut fields = Fields { writer, all: event.metadata().target() != EVENTS, result: Ok(()) };
        event.record(&mut fields);
        fields.result?;
        writeln!(fields.writer)
    }
}

struct Fields<'a> {
    writer: Writer<'a>,
    all: bool,
    result: fmt::Result,
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.writer, " {value:?}"),
            "incarnation" => Ok(()),
            name if self.all => write!(self.writer, " {name}={value:?}"),
            _ => Ok(()),
        };
        self.result = self.result.and(written);
    }
}

/// Goes to the start of a terminal's line and clears it.
pub(crate) const WIPE: &str = "\r\x1b[K";

/// Writes after wiping the present line away, in one piece.
struct Line {
    wipe: &'static str,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        stderr::write([self.wipe.as_bytes(), bytes].concat());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
