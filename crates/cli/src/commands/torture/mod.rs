//! `bellwether torture`: candidates on the user's store under faults, and a verdict on them.
//!
//! Owns what is asked for, what is refused, and what is printed. What is done, and the verdict, are `bellwether-torture`'s.

mod directory;
mod progress;
mod store;
mod way;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use bellwether::backend::Discarded;
use bellwether::duration::print;
use bellwether::{ElectionName, Scheme, Store};
use bellwether_audit::Judgement;
use bellwether_deadman::random_bits;
use bellwether_torture::{Kind, Report, Settings, TortureError, clock_library, torture as run};
use serde_json::json;

use self::directory::Directory;
use self::progress::Shown;
use super::signals::Signals;
use crate::args::{Format, Global, Torture};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// Runs it, prints the verdict, and ends by it.
pub(crate) async fn torture(global: &Global, flags: &Torture) -> Result<Exit, Failure> {
    // First of all: from here on a signal ends this in order.
    let mut signals = Signals::new()?;
    let url = backend::url(global)?;
    store::refuse(global, &url)?;
    let seed = flags.seed.unwrap_or_else(|| random_bits() as u64);
    let name = format!("torture-{seed}-{:06x}", random_bits() as u32 & 0xff_ffff);
    let on = ElectionName::new(&name).map_err(bellwether::Error::from)?;
    let ttl = store::ttl(global, &url, flags.ttl)?;
    let store = backend::connect(global)?;
    // Before anything is started: whoever cannot reach the store is told so, and by the usual code.
    tokio::select! {
        seen = store.backend().observe(&on) => drop(seen?),
        () = signals.leave() => return Err(Failure::new(Exit::NotLed, TortureError::Interrupted.to_string())),
    }
    let mut directory = Directory::make(flags.dir.as_deref(), &name)?;
    let places = directory.places()?;
    let way =
        way::way(&url, &on, &places.of_candidate("trial").map_err(|error| directory.unusable(&error))?).await;
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Bug, format!("this program has no path: {error}")))?;
    let clock = clock_library(&program, places.root());
    let (kinds, left_out) = faults(flags, way.as_ref().err(), clock.as_ref().err());
    let settings = Settings {
        seed,
        length: flags.length,
        ttl,
        candidates: flags.candidates,
        left_out,
        election: on.clone(),
        backend: url.clone(),
        way: way.ok(),
        server_restart: flags.server_restart.clone(),
        clock: clock.ok().filter(|_| kinds.contains(&Kind::Clock)),
        program,
        places,
        kinds,
    };
    let kept = settings.places.clone();
    let again = again(global, &url, &settings);
    let mut shown = Shown::new(global, &settings);
    // The second signal ends this at once, and with it everything that was started.
    let interrupted = async {
        signals.leave().await;
        tokio::spawn(async move {
            signals.leave().await;
            std::process::exit(Exit::None.code().into());
        });
    };
    let outcome = run(settings, interrupted, &mut |progress| shown.show(progress)).await;
    shown.end();
    kept.remove_credentials();
    let report = outcome.map_err(|error| failure(error, &directory, flags))?;
    let is_clean = report.judgement() == Judgement::Clean;
    let remains =
        if is_clean { clear_away(&store, &on, ttl).await } else { Some(format!("the election {on}")) };
    let kept = directory.end(is_clean, flags.dir.is_some());
    tell(global, &report, remains, kept, &again)?;
    Ok(if is_clean { Exit::Clean } else { Exit::None })
}

/// Those that happen, and those that do not, with the reasons.
fn faults(
    flags: &Torture,
    no_way: Option<&String>,
    no_clock: Option<&String>,
) -> (BTreeSet<Kind>, BTreeMap<Kind, String>) {
    let asked = |kind: &Kind| flags.faults.is_empty() || flags.faults.contains(kind);
    let mut left_out = BTreeMap::new();
    for kind in Kind::ALL {
        let why = if !asked(&kind) {
            "not among --faults"
        } else if let Some(why) = no_way.filter(|_| Kind::OF_NETWORK.contains(&kind)) {
            why
        } else if let Some(why) = no_clock.filter(|_| kind == Kind::Clock) {
            why
        } else if kind == Kind::ServerRestart && flags.server_restart.is_none() {
            "name a command for it with --server-restart"
        } else {
            continue;
        };
        left_out.insert(kind, why.to_owned());
    }
    let kinds = Kind::ALL.into_iter().filter(|kind| !left_out.contains_key(kind)).collect();
    (kinds, left_out)
}

/// The command that does the same again. A password is not repeated.
fn again(global: &Global, url: &str, settings: &Settings) -> String {
    let backend = match &global.backend_file {
        Some(file) => format!("--backend-file {}", quoted(&file.to_string_lossy())),
        None if Scheme::has_secret(url) => "--backend \"$BELLWETHER_BACKEND\"".to_owned(),
        None => format!("--backend {}", quoted(url)),
    };
    let faults: Vec<&str> = settings.kinds.iter().map(|kind| kind.as_str()).collect();
    let restart = settings.server_restart.as_ref().map(|line| format!(" --server-restart {}", quoted(line)));
    let Settings { seed, length, candidates, ttl, .. } = settings;
    format!(
        "bellwether {backend} torture --seed {seed} --for {} --candidates {candidates} --ttl {} --faults {}{}",
        print(*length),
        print(*ttl),
        faults.join(","),
        restart.unwrap_or_default()
    )
}

/// As a shell reads it as one word.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:.,@%+=_-".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Removes the election; what of it is still there, if anything. Sessions of candidates that were killed at the end last for a ttl.
async fn clear_away(store: &Store, on: &ElectionName, ttl: Duration) -> Option<String> {
    let mut discarded = store.backend().danger_discard(on).await;
    if matches!(discarded, Ok(Discarded::Remains(_))) {
        tokio::time::sleep(ttl).await;
        discarded = store.backend().danger_discard(on).await;
    }
    match discarded {
        Ok(Discarded::Gone) => None,
        Ok(Discarded::Remains(what)) => Some(what),
        Err(error) => Some(format!("the election {on}, released; it could not be removed: {error}")),
    }
}

fn failure(error: TortureError, directory: &Directory, flags: &Torture) -> Failure {
    let exit = match error {
        TortureError::Machine(_) => Exit::Unavailable,
        TortureError::Candidate(code, _) => Exit::of_code(code),
        TortureError::NobodyLed(_) | TortureError::Interrupted => Exit::NotLed,
    };
    let sentence = error.to_string();
    let sentence = sentence.strip_prefix("bellwether: ").unwrap_or(&sentence);
    let is_of_no_use = matches!(error, TortureError::Interrupted);
    let kept = directory.end(is_of_no_use, flags.dir.is_some());
    let kept = kept.map(|kept| format!(" (files: {})", kept.display())).unwrap_or_default();
    Failure::new(exit, format!("{sentence}{kept}"))
}

fn tell(
    global: &Global,
    report: &Report,
    remains: Option<String>,
    kept: Option<&Path>,
    again: &str,
) -> Result<(), Failure> {
    if global.output == Format::Json {
        let mut told = report.json();
        told["remains"] = json!(remains);
        told["files"] = json!(kept.map(|kept| kept.to_string_lossy()));
        told["reproduce_with"] = json!(again);
        output::line(&told.to_string())?;
        return Ok(());
    }
    let mut lines = report.lines();
    lines.push(match remains {
        Some(what) => format!("left in the store, safe to remove: {what}"),
        None => "nothing is left in the store".to_owned(),
    });
    lines.extend(kept.map(|kept| format!("files: {}", kept.display())));
    lines.push(format!("REPRODUCE WITH: {again}"));
    output::lines(&lines)?;
    Ok(())
}
