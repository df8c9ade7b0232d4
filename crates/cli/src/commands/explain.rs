//! `bellwether explain`: what the settings mean in seconds.

use bellwether::{Settings, Timeline};
use serde_json::json;

use crate::args::{Explain, Format, Global};
use crate::backend;
use crate::exit::{Exit, Failure};
use crate::output::{self, span};

/// Prints the timeline.
pub(crate) fn explain(global: &Global, explain: &Explain) -> Result<Exit, Failure> {
    let mut options = backend::options(global)?;
    explain.timing.apply(&mut options);
    explain.standing.apply(&mut options);
    options.timing.work_grace = super::run::grace(explain.grace, options.timing.rounded_ttl());
    options.stop_timeout = explain.stop_timeout;
    let settings = Settings::new(options.clone()).map_err(bellwether::Error::from)?;
    let line = Timeline::new(&settings);
    let timing = settings.timing();
    let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1_000.0;
    if global.output == Format::Json {
        output::line(
            &json!({
                "ttl_ms": ms(timing.ttl()),
                "renew_ms": ms(line.renew),
                "retry_ms": ms(timing.retry()),
                "call_timeout_ms": ms(timing.call_timeout()),
                "margin_ms": ms(timing.margin()),
                "stop_ms": ms(line.stop),
                "kill_ms": ms(line.kill),
                "deadline_ms": ms(line.deadline),
                "takeover_ms": ms(line.takeover),
                "stop_timeout_ms": ms(explain.stop_timeout),
                "handover_ms": ms(line.handover),
                "failover_ms": ms(line.failover),
                "recovery_ms": ms(line.recovery),
                "clock_rate": line.clock_rate,
                "latency_ms": ms(line.latency),
            })
            .to_string(),
        )?;
        return Ok(Exit::Clean);
    }
    let percent = format!("{:.1}%", line.clock_rate * 100.0);
    let rows = [
        ("Counted from the start of the last call that the store confirmed:", String::new()),
        ("  the next renewal is sent", span(line.renew)),
        ("  a call without an answer counts as unknown", format!("after {}", span(timing.call_timeout()))),
        ("  work is told to stop, if nothing was confirmed", span(line.stop)),
        ("  a command that has not stopped is killed", span(line.kill)),
        ("  the leadership ends: is_leader() is false", span(line.deadline)),
        ("  a follower that saw that call may take over", span(line.takeover)),
        ("On a planned end, a command is killed this long after TERM", span(explain.stop_timeout)),
        ("After a release, somebody leads again within", span(line.handover)),
        ("After a crash or a silence, somebody leads again within", span(line.failover)),
        ("After any combination of faults has ended, within", span(line.recovery)),
        ("Tolerated: a follower's clock faster than the leader's by", percent),
        ("Tolerated: a store that takes, for every call", span(line.latency)),
    ];
    let rounded = backend::rounded_ttl(&options, &settings);
    let rows = rows.map(|(what, when)| format!("{what:<62}{when}").trim_end().to_owned());
    output::lines(&rounded.into_iter().chain(rows).collect::<Vec<String>>())?;
    Ok(Exit::Clean)
}
