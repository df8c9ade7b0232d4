//! `bellwether doctor`: will elections go well here?
//!
//! It asks the store ([`Backend::checkup`](bellwether::Backend::checkup)), measures it ([`measure`]), looks at this machine
//! ([`machine`]), and prints what it found ([`print`]). It judges nothing that a store knows better about itself. With
//! `--no-write`, or with the name of an election, no byte of the store changes; otherwise, what the measuring left behind is said.

mod machine;
mod measure;
mod print;

use bellwether::backend::{Finding, Grade, PERMISSIONS, Probing};
use bellwether::{ErrorKind, Settings, Store};

use self::measure::{Latency, Leaving};
use crate::args::{Doctor, Global};
use crate::backend;
use crate::exit::{Exit, Failure, of_kind};

/// What was found, and what was measured.
#[derive(Default)]
struct DoctorReport {
    backend: Option<&'static str>,
    findings: Vec<Finding>,
    reads: Option<Latency>,
    renewals: Option<Latency>,
}

/// Checks everything, prints it, and ends by what was worst.
pub(crate) async fn doctor(global: &Global, doctor: &Doctor) -> Result<Exit, Failure> {
    let mut options = backend::options(global)?;
    doctor.timing.apply(&mut options);
    let settings = Settings::new(options).map_err(bellwether::Error::from)?;
    let probing = match &doctor.election {
        Some(election) => Probing::LookAt(election),
        None if doctor.no_write => Probing::Look,
        None => Probing::Write,
    };
    let mut report = match backend::connect(global) {
        Ok(store) => examine(&store, probing, &settings).await?,
        // The flags are wrong, so there is nothing to examine.
        Err(failure) if failure.exit() == Exit::Usage => return Err(failure),
        Err(failure) => unreachable(&failure),
    };
    report.findings.extend(machine::clocks());
    report.findings.extend(doctor.containment.as_ref().map(machine::containment));
    report.findings.extend(machine::freezer());
    print::print(global, &report)?;
    let worst = report.findings.iter().find_map(|finding| match finding.grade {
        Grade::Bad(kind) => Some(of_kind(kind)),
        Grade::Good | Grade::Warning => None,
    });
    Ok(worst.unwrap_or(Exit::Clean))
}

async fn examine(store: &Store, probing: Probing<'_>, settings: &Settings) -> Result<DoctorReport, Failure> {
    let backend = store.backend();
    let leaving = Leaving::listen()?;
    let mut report = measure::measure(backend.as_ref(), probing, settings.timing(), &leaving).await;
    // After the measuring, which makes what the first claim makes; before it in print, since the store knows best why
    // something failed.
    let mut findings = backend.checkup(probing).await;
    // A problem that the store has named itself is reported once. About permissions it has the last word: those for the election that
    // was held here may be missing where those for others are not.
    let known = |kind| {
        let judged = |one: &Finding| one.what == PERMISSIONS && kind == ErrorKind::PermissionDenied;
        findings.iter().any(|one| one.grade == Grade::Bad(kind) || judged(one))
    };
    report.findings.retain(|one| !matches!(one.grade, Grade::Bad(kind) if known(kind)));
    findings.append(&mut report.findings);
    // Everything else depends on this one, so it comes first.
    findings.sort_by_key(|finding| finding.what != "reachable");
    Ok(DoctorReport { findings, ..report })
}

fn unreachable(failure: &Failure) -> DoctorReport {
    let kind = match failure.exit() {
        Exit::Permission => ErrorKind::PermissionDenied,
        Exit::Misconfigured => ErrorKind::Misconfigured,
        Exit::Bug => ErrorKind::Bug,
        _ => ErrorKind::Unavailable,
    };
    let findings = vec![Finding::bad("reachable", kind, failure.to_string())];
    DoctorReport { findings, ..DoctorReport::default() }
}
