//! Many elections on one connection, and names that stores stumble over.

use std::collections::BTreeSet;

use bellwether_core::{Boot, ElectionName, Grant, NAME_MAX_BYTES, Outcome};
use futures_util::future::join_all;

use super::case::{Case, Ran, Stop, case, ensure};
use super::stage::{Actor, Stage};

pub(super) const CASES: &[Case] = &[
    case!("many elections on one backend are independent", many_elections),
    case!("odd names are independent of each other", odd_names),
];

/// As many as make a mix-up likely to show.
const MANY: usize = 50;

async fn many_elections(stage: Stage) -> Ran {
    let (mut a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    a.bid.ttl = stage.long_ttl();
    let names: Vec<_> = (0..MANY).map(|number| stage.election(number)).collect();
    let (mut held, mut renewed) = (Vec::new(), a.clock.boot());
    for on in &names {
        held.push((on.clone(), a.in_election(on).lead().await?));
        renewed = renewed_since(&a, &held, renewed).await;
    }
    for on in &names {
        b.in_election(on).denied().await?;
        renewed = renewed_since(&a, &held, renewed).await;
    }
    // Every third goes to b; the others must not notice.
    let (gone, mut kept): (Vec<_>, Vec<_>) =
        held.into_iter().enumerate().partition(|(number, _)| number % 3 == 0);
    for (_, (on, grant)) in &gone {
        a.in_election(on).release_done(grant).await?;
        b.in_election(on).lead().await?;
    }
    let kept: Vec<_> = kept.drain(..).map(|(_, held)| held).collect();
    for (outcome, (on, _)) in renew_all(&a, &kept).await.iter().zip(&kept) {
        ensure!(matches!(outcome, Outcome::Done(_)), "{on} could not be renewed: {outcome:?}");
    }
    for (number, on) in names.iter().enumerate() {
        let leader = if number % 3 == 0 { &b } else { &a };
        let shown = a.in_election(on).observe().await?;
        ensure!(shown.leader() == Some(&leader.bid.who.id), "{on} is led by {:?}", shown.leader());
    }
    Ok(())
}

/// Renews everything if it is time, as a driver would: many calls may take longer than a ttl on a busy machine.
async fn renewed_since(a: &Actor, held: &[(ElectionName, Grant)], last: Boot) -> Boot {
    let now = a.clock.boot();
    if now.since(last) < a.bid.ttl / 4 {
        return last;
    }
    // What cannot be renewed shows when it is renewed for the last time.
    let _ = renew_all(a, held).await;
    now
}

async fn renew_all(a: &Actor, held: &[(ElectionName, Grant)]) -> Vec<Outcome<Grant>> {
    let sent = a.clock.boot();
    join_all(held.iter().map(|(on, grant)| a.backend.renew(on, grant, sent))).await
}

async fn odd_names(stage: Stage) -> Ran {
    let connection = stage.candidate("anybody").await?;
    let other = stage.candidate("other").await?;
    let mut leaders = Vec::new();
    for (number, name) in names(&stage.nonce()).into_iter().enumerate() {
        let on = ElectionName::new(&name).map_err(|bad| Stop::failed(bad.to_string()))?;
        let id = format!("leader-{number}");
        let mut actor =
            stage.actor(&id, connection.backend.clone(), connection.clock.clone()).in_election(&on);
        actor.bid.ttl = stage.long_ttl();
        // A name as short as `*` is shared with earlier runs, which may have left it held.
        let (grant, _) = actor.lead_by(actor.clock.boot() + actor.bid.ttl + stage.slack).await?;
        leaders.push((actor, grant));
    }
    for (leader, grant) in &leaders {
        // Perhaps longer ago than a ttl, so the record counts and not what has become of it.
        let seen = other.in_election(&leader.on).observe().await?;
        ensure!(
            seen.holder.as_ref().is_none_or(|holder| holder.id == leader.bid.who.id),
            "{:?} is held by {:?} instead of {}",
            leader.on,
            seen.holder,
            leader.bid.who.id
        );
        leader.keep(grant).await?;
    }
    if stage.can.lists {
        let all: BTreeSet<_> = other.backend.elections().await?.into_iter().collect();
        for (leader, _) in &leaders {
            ensure!(all.contains(&leader.on), "{:?} is not listed under its own name", leader.on);
        }
    }
    for (leader, grant) in &leaders {
        leader.release_done(grant).await?;
        let seen = other.in_election(&leader.on).observe().await?;
        ensure!(seen.leader().is_none(), "{:?} is still led after its release", leader.on);
    }
    Ok(())
}

/// All legal, all different, and each alike to another in some store's eyes.
fn names(nonce: &str) -> Vec<String> {
    let mut all: Vec<String> =
        [".", "..", "*", ">", "-", "~", "$", "\\", "/", " ", "con"].map(str::to_owned).into();
    let variants = [
        "a b", "a_b", "a-b", "a+b", "a%20b", "a/b", "a//b", "a\\b", "a%2Fb", "a.b", "a.b.", ".a.b", "a..b",
        "A.B", "../a", "a/../b", "a:b", "a*b", "a>b", "'a'", "\"a\"", "a;b", "№1", "a ", " a", "{a}", "--a",
        "a?b", "a#b", "a@b", "a=b",
    ];
    let unicode = ["a\u{e9}", "ae\u{301}", "\u{1F411}", "a\u{202e}b"];
    all.extend(variants.iter().chain(&unicode).map(|variant| format!("{nonce}{variant}")));
    // The longest there are, differing in the last byte only.
    for last in ["x", "y", "X"] {
        let filler = "n".repeat(NAME_MAX_BYTES - nonce.len() - last.len());
        all.push(format!("{nonce}{filler}{last}"));
    }
    let wide = "\u{1F411}".repeat((NAME_MAX_BYTES - nonce.len()) / 4);
    all.push(format!("{nonce}{wide}"));
    all
}
