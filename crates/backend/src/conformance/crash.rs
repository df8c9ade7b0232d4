//! Proof that a leader's process is dead.

use super::case::{Case, Ran, Stop, case, ensure, needs};
use super::stage::Stage;

pub(super) const CASES: &[Case] = &[
    case!("a killed leader is replaced before its ttl", killed),
    case!("a silent leader is not taken for dead", silent),
];

async fn killed(stage: Stage) -> Ran {
    needs!(stage.can.crash_proof, "the death of a process cannot be proven");
    // So long that only proof can be the reason.
    let ttl = 10 * stage.ttl + 10 * stage.slack;
    let who = stage.actor("killed", stage.candidate("x").await?.backend, stage.clock.clone()).bid.who;
    if !stage.harness.crash(&stage.on, &who, ttl).await? {
        return Err(Stop::skipped("the harness cannot kill a process"));
    }
    let b = stage.candidate("b").await?;
    let (grant, _) = b.lead_by(b.clock.boot() + stage.slack).await?;
    // Who comes after a death that left no record behind, and never saw its holder, cannot know of it.
    let told = grant.after_crash || !stage.can.crash_leaves_record;
    ensure!(told, "the grant does not say that it was taken after a crash");
    Ok(())
}

async fn silent(stage: Stage) -> Ran {
    needs!(stage.can.crash_proof, "the death of a process cannot be proven");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    // It lives, in this very process, and merely says nothing.
    let next = b.take_over(&grant).await?;
    ensure!(!next.after_crash, "a leader that lives was taken for crashed");
    Ok(())
}
