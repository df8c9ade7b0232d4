//! Claiming, renewing, releasing.

use bellwether_core::Outcome;

use super::case::{Case, Ran, Stop, case, ensure};
use super::stage::{Actor, Stage, certainly_not};
use super::stale::untouched;
use crate::faults::{Fault, Gate, Op};

pub(super) const CASES: &[Case] = &[
    case!("a single candidate acquires", single_acquires),
    case!("a second candidate is blocked", second_is_blocked),
    case!("two candidates on one connection exclude each other", one_connection_two_candidates),
    case!("of many at once one gets in", one_of_many),
    case!("of many at once one succeeds a silent leader", one_successor_of_many),
    case!("a claim that found nobody is denied when somebody came", found_nobody),
    case!("renewal extends", renewal_extends),
    case!("release lets the next in at once", release_lets_in),
    case!("who missed a change of leaders is let in at once by the next release", missed_a_change),
    case!("a released leadership cannot be renewed", released_is_over),
];

async fn single_acquires(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let before = a.clock.boot();
    let grant = a.lead().await?;
    ensure!(grant.counted_from >= before, "the grant counts from before its own call");
    ensure!(grant.counted_from <= a.clock.boot(), "the grant counts from after its own call");
    ensure!(grant.ttl >= stage.ttl, "granted {:?} instead of {:?}", grant.ttl, stage.ttl);
    ensure!(!grant.after_crash, "nobody had crashed");
    a.keep(&grant).await?;
    a.release_done(&grant).await
}

async fn second_is_blocked(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    let seen = b.denied().await?;
    ensure!(seen.leader() == Some(&a.bid.who.id), "b was told that {:?} leads", seen.leader());
    // Being denied must not have cost the leader anything.
    a.keep(&grant).await?;
    b.denied().await?;
    Ok(())
}

async fn one_connection_two_candidates(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let b = stage.actor("b", a.backend.clone(), a.clock.clone());
    let grant = a.lead().await?;
    b.denied().await?;
    a.keep(&grant).await?;
    a.release_done(&grant).await?;
    let second = b.lead().await?;
    ensure!(second.epoch > grant.epoch, "{:?} followed {:?}", second.epoch, grant.epoch);
    a.denied().await?;
    Ok(())
}

async fn crowd(stage: &Stage) -> Result<Vec<Actor>, Stop> {
    let mut crowd = Vec::new();
    for id in ["c0", "c1", "c2", "c3"] {
        crowd.push(stage.candidate(id).await?);
    }
    Ok(crowd)
}

async fn one_of_many(stage: Stage) -> Ran {
    let crowd = crowd(&stage).await?;
    for round in 0..5 {
        let claims = crowd.iter().map(|candidate| candidate.claim());
        let outcomes = futures_util::future::join_all(claims).await;
        let winners: Vec<_> =
            outcomes.iter().enumerate().filter(|(_, outcome)| matches!(outcome, Outcome::Done(_))).collect();
        // Nobody winning is allowed: everyone may have lost against somebody who then gave up.
        ensure!(winners.len() <= 1, "round {round}: {} candidates were let in: {winners:?}", winners.len());
        if let [(winner, Outcome::Done(grant))] = winners[..] {
            crowd[winner].release_done(grant).await?;
        }
    }
    Ok(())
}

async fn one_successor_of_many(stage: Stage) -> Ran {
    let old = stage.candidate("old").await?;
    let crowd = crowd(&stage).await?;
    let grant = old.lead().await?;
    for candidate in &crowd {
        candidate.denied().await?;
    }
    let by = old.clock.boot() + stage.ttl + stage.slack;
    loop {
        tokio::time::sleep(stage.ttl / 10).await;
        let claims = crowd.iter().map(|candidate| candidate.claim());
        let outcomes = futures_util::future::join_all(claims).await;
        let winners: Vec<_> = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Done(_))).collect();
        ensure!(winners.len() <= 1, "{} candidates took over: {winners:?}", winners.len());
        if let [Outcome::Done(won)] = winners[..] {
            ensure!(won.epoch > grant.epoch, "{:?} followed {:?}", won.epoch, grant.epoch);
            let until = grant.counted_from + grant.ttl;
            ensure!(old.clock.boot() >= until, "one took over before the ttl had passed");
            return Ok(());
        }
        ensure!(old.clock.boot() < by, "nobody took over: {outcomes:?}");
    }
}

async fn found_nobody(stage: Stage) -> Ran {
    let ((a, faults), b) = (stage.faulty("a").await?, stage.candidate("b").await?);
    let gate = Gate::new();
    faults.next(Op::Read, Fault::HoldsAnswer(gate.clone()));
    let mut claim = a.spawn_claim();
    tokio::select! {
        () = gate.reached() => {}
        _ = &mut claim => return Err(Stop::skipped("a claim does not read first")),
    }
    let grant = b.lead().await?;
    gate.open();
    let answer = stage.promptly("the claim ends", claim).await?;
    ensure!(!matches!(answer, Ok(Outcome::Done(_))), "both lead: {answer:?}");
    untouched(&b, &grant).await
}

async fn renewal_extends(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let mut grant = a.lead().await?;
    let end = a.clock.boot() + 3 * stage.ttl;
    let mut next = a.clock.boot() + stage.ttl / 4;
    while a.clock.boot() < end {
        if a.clock.boot() >= next {
            grant = a.keep(&grant).await?;
            next = a.clock.boot() + stage.ttl / 4;
        }
        let outcome = b.claim().await;
        let now = b.clock.boot();
        if let Outcome::Done(_) = outcome {
            let early = (grant.counted_from + grant.ttl).since(now);
            ensure!(
                !early.is_zero(),
                "the machine is too busy for this case: a renewal came a whole ttl late"
            );
            ensure!(false, "b got in although a's last renewal held for another {early:?}");
        }
        tokio::time::sleep(stage.ttl / 40).await;
    }
    a.release_done(&grant).await
}

async fn release_lets_in(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    b.denied().await?;
    a.release_done(&grant).await?;
    // One try, no waiting: whoever is told of the release finds the door open.
    let second = b.lead().await?;
    ensure!(second.epoch > grant.epoch, "{:?} followed {:?}", second.epoch, grant.epoch);
    ensure!(!second.after_crash, "a release is not a crash");
    b.release_done(&second).await?;
    let third = a.lead().await?;
    ensure!(third.epoch > second.epoch, "{:?} followed {:?}", third.epoch, second.epoch);
    Ok(())
}

async fn missed_a_change(stage: Stage) -> Ran {
    let (a, b, c) = (stage.candidate("a").await?, stage.candidate("b").await?, stage.candidate("c").await?);
    // Often, so that versions which do not rise show: what looks older than before counts as a store that fell back.
    for _ in 0..6 {
        let first = a.lead().await?;
        c.denied().await?;
        a.release_done(&first).await?;
        let second = b.lead().await?;
        c.denied().await?;
        b.release_done(&second).await?;
        let third = c.lead().await?;
        c.release_done(&third).await?;
    }
    Ok(())
}

async fn released_is_over(stage: Stage) -> Ran {
    let a = stage.candidate("a").await?;
    let grant = a.lead().await?;
    a.release_done(&grant).await?;
    certainly_not("the renewal of a released leadership", || a.renew(&grant)).await?;
    let seen = a.observe().await?;
    ensure!(seen.leader().is_none(), "{:?} still leads", seen.leader());
    Ok(())
}
