//! Looking: what it shows, and that it changes nothing.

use std::time::Duration;

use bellwether_core::Proof;

use super::case::{Case, Ran, Stop, case, ensure, needs};
use super::stage::Stage;

pub(super) const CASES: &[Case] = &[
    case!("observe shows what the store can tell", observe_shows),
    case!("metadata is readable", metadata),
    case!("priority is visible to others", priority),
    case!("elections are listed", listed),
    case!("who leads does not follow, and nobody follows what nobody stands for", followers),
    case!(alone, "observe writes nothing", observe_writes_nothing),
];

async fn observe_shows(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let seen = b.observe().await?;
    ensure!(seen.holder.is_none() && seen.leader().is_none(), "before anybody led: {seen:?}");
    ensure!(seen.proof == Proof::Absent, "before anybody led the proof is {:?}", seen.proof);

    let grant = a.lead().await?;
    let seen = b.observe().await?;
    ensure!(seen.leader() == Some(&a.bid.who.id), "{:?} is shown as leader", seen.leader());
    let incarnation = seen.holder.as_ref().and_then(|holder| holder.incarnation);
    ensure!(
        incarnation.is_none_or(|shown| shown == grant.incarnation),
        "another incarnation is shown: {incarnation:?}"
    );
    ensure!(matches!(seen.proof, Proof::Record | Proof::Alive), "the proof is {:?}", seen.proof);
    let epoch = stage.can.epoch_visible.then_some(grant.epoch);
    ensure!(seen.epoch == epoch, "epoch {:?} is shown instead of {epoch:?}", seen.epoch);
    match seen.ttl {
        Some(shown) => {
            ensure!(stage.can.ttl_visible, "a ttl of {shown:?} is shown that nobody can know");
            // Shown shorter, others would come in early; longer by more than the rounding, they would wait.
            let longest = grant.ttl + stage.can.ttl_unit.max(Duration::from_nanos(1));
            ensure!(shown >= grant.ttl && shown < longest, "{:?} is shown as {shown:?}", grant.ttl);
        }
        None => ensure!(!stage.can.ttl_visible, "the ttl is not shown"),
    }
    if let (Some(free_at), true) = (seen.free_at, stage.can.ttl_visible) {
        let end = grant.counted_from + grant.ttl;
        ensure!(free_at >= end, "others are told to try {:?} too early", end.since(free_at));
    }

    a.release_done(&grant).await?;
    let seen = b.observe().await?;
    ensure!(seen.leader().is_none() && seen.holder.is_none(), "after the release: {seen:?}");
    ensure!(matches!(seen.proof, Proof::Released | Proof::Absent), "the proof is {:?}", seen.proof);
    Ok(())
}

async fn metadata(stage: Stage) -> Ran {
    needs!(stage.can.metadata_visible, "the store shows no metadata");
    let (mut a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    a.bid.metadata.insert("url".to_owned(), "http://[::1]:80/?q=\"é\"&r=\\".to_owned());
    a.bid.metadata.insert("Zone of the \u{1F411}".to_owned(), String::new());
    let grant = a.lead().await?;
    ensure!(b.observe().await?.metadata == a.bid.metadata, "not shown after the claim");
    a.keep(&grant).await?;
    ensure!(b.observe().await?.metadata == a.bid.metadata, "lost by a renewal");
    Ok(())
}

async fn priority(stage: Stage) -> Ran {
    needs!(stage.can.metadata_visible, "the store shows no priority");
    for (number, priority) in [-7, 0, 42].into_iter().enumerate() {
        let on = stage.election(number);
        let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
        let (mut a, b) = (a.in_election(&on), b.in_election(&on));
        a.bid.priority = priority;
        a.lead().await?;
        let shown = b.denied().await?.priority;
        ensure!(shown == Some(priority), "{priority} is shown as {shown:?}");
    }
    Ok(())
}

async fn listed(stage: Stage) -> Ran {
    needs!(stage.can.lists, "the store cannot list its elections");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    ensure!(!b.backend.elections().await?.contains(&stage.on), "listed before anybody took part");
    a.lead().await?;
    let other = stage.election("other");
    a.in_election(&other).lead().await?;
    let all = b.backend.elections().await?;
    for on in [&stage.on, &other] {
        let times = all.iter().filter(|listed| *listed == on).count();
        ensure!(times == 1, "{on} is listed {times} times");
    }
    Ok(())
}

async fn followers(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    a.lead().await?;
    b.denied().await?;
    // A store that does not know says so, of every election.
    let known = b.backend.followers(&stage.on).await?;
    let others = b.backend.followers(&stage.election("never-held")).await?;
    ensure!(known.is_some() == others.is_some(), "known of one election only: {known:?}, {others:?}");
    ensure!(known.is_none_or(|known| !known.ids.contains(&a.bid.who.id)), "the leader is listed");
    ensure!(others.is_none_or(|others| others.ids.is_empty()), "followers of what nobody held are listed");
    Ok(())
}

async fn observe_writes_nothing(stage: Stage) -> Ran {
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    a.lead().await?;
    b.denied().await?;
    let Some(before) = stage.harness.fingerprint().await? else {
        return Err(Stop::skipped("the harness cannot tell whether the store changed"));
    };
    let (idle, never) = (stage.candidate("c").await?, stage.election("never-held"));
    for _ in 0..100 {
        b.observe().await?;
        idle.observe().await?;
        idle.in_election(&never).observe().await?;
        b.backend.followers(&b.on).await?;
        b.backend.history(&b.on).await?;
        b.backend.elections().await?;
    }
    let _news = idle.backend.signals();
    idle.backend.follow(&idle.on);
    idle.observe().await?;
    idle.backend.unfollow(&idle.on);
    let after = stage.harness.fingerprint().await?;
    ensure!(after.as_ref() == Some(&before), "the store was {before}, and is {after:?}");
    Ok(())
}
