//! News: followers are told, promptly, and only of what they follow.

use bellwether_core::{ElectionName, Seen, Signal};
use futures_util::StreamExt;

use super::case::{Case, Ran, Stop, case, ensure, needs};
use super::stage::{Actor, Stage};
use crate::Notices;

pub(super) const CASES: &[Case] = &[
    case!("notification on release", on_release),
    case!("notification on claim", on_claim),
    case!("notification on renewal", on_renewal),
    case!("notification on deletion", on_deletion),
    case!("no news of elections that are not followed", not_followed),
];

/// The next change of this election that shows what is waited for.
async fn changed(
    news: &mut Notices,
    on: &ElectionName,
    wanted: impl Fn(&Seen) -> bool,
) -> Result<Seen, Stop> {
    while let Some(notice) = news.next().await {
        match notice.signal {
            Signal::Changed(seen) if notice.election.as_ref() == Some(on) && wanted(&seen) => {
                return Ok(seen);
            }
            _ => {}
        }
    }
    Err(Stop::failed("the stream of news ended"))
}

/// Two candidates, of whom the second hears news.
async fn following(stage: &Stage) -> Result<(Actor, Actor, Notices), Stop> {
    needs!(stage.can.notifies, "followers are not told of changes");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let news = b.backend.signals();
    b.backend.follow(&b.on);
    Ok((a, b, news))
}

async fn on_release(stage: Stage) -> Ran {
    needs!(stage.can.notifies, "followers are not told of changes");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    let grant = a.lead().await?;
    let mut news = b.backend.signals();
    b.backend.follow(&b.on);
    b.denied().await?;
    a.release_done(&grant).await?;
    let told = changed(&mut news, &b.on, |seen| seen.leader().is_none());
    stage.promptly("news of the release", told).await??;
    b.lead().await?;
    Ok(())
}

async fn on_claim(stage: Stage) -> Ran {
    let (a, b, mut news) = following(&stage).await?;
    needs!(!stage.can.session_bound, "a claim on a session changes nothing that is watched");
    b.observe().await?;
    a.lead().await?;
    let told = changed(&mut news, &b.on, |seen| seen.leader() == Some(&a.bid.who.id));
    stage.promptly("news of the claim", told).await??;
    Ok(())
}

async fn on_renewal(stage: Stage) -> Ran {
    let (a, b, mut news) = following(&stage).await?;
    needs!(!stage.can.session_bound, "a session's heartbeat changes nothing that is watched");
    let mut grant = a.lead().await?;
    let told = changed(&mut news, &b.on, |seen| seen.leader().is_some());
    let mut last = stage.promptly("news of the claim", told).await??;
    for _ in 0..3 {
        grant = a.keep(&grant).await?;
        // Where the record says when it was renewed, old news is told from new.
        let told = changed(&mut news, &b.on, |seen| seen.renewed.is_none() || seen.renewed > last.renewed);
        last = stage.promptly("news of the renewal", told).await??;
    }
    Ok(())
}

async fn on_deletion(stage: Stage) -> Ran {
    let (a, b, mut news) = following(&stage).await?;
    a.lead().await?;
    b.denied().await?;
    stage.delete().await?;
    let told = changed(&mut news, &b.on, |seen| seen.leader().is_none());
    stage.promptly("news of the deletion", told).await??;
    Ok(())
}

async fn not_followed(stage: Stage) -> Ran {
    let (a, b, mut news) = following(&stage).await?;
    let (quiet, left) = (stage.election("quiet"), stage.election("left"));
    b.backend.follow(&left);
    b.backend.unfollow(&left);
    let grant = a.lead().await?;
    b.denied().await?;
    for on in [&quiet, &left] {
        let other = a.in_election(on);
        let grant = other.lead().await?;
        other.release_done(&grant).await?;
    }
    a.release_done(&grant).await?;
    // News of what came last is the sign that news of what came before would be here too.
    let told = async {
        while let Some(notice) = news.next().await {
            ensure!(notice.election != Some(quiet.clone()), "news of an election that was never followed");
            ensure!(notice.election != Some(left.clone()), "news of an election that is no longer followed");
            if let (Some(on), Signal::Changed(seen)) = (&notice.election, &notice.signal)
                && *on == b.on
                && seen.leader().is_none()
            {
                return Ok(());
            }
        }
        Err(Stop::failed("the stream of news ended"))
    };
    stage.promptly("news of the release", told).await?
}
