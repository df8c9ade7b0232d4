//! Notes that are created once and then stay.

use bellwether_core::{ReleaseOptions, Wall};
use futures_util::future::join_all;

use super::case::{Case, Ran, Stop, case, ensure, needs};
use super::stage::{Actor, Stage, held};
use crate::faults::{Fault, Op};
use crate::{Creation, ONCE_MAX_BYTES, Past};

pub(super) const CASES: &[Case] = &[
    case!("a note is created once among many writers", many_writers),
    case!("a created note outlives the connection", reopened),
    case!("elections leave a created note alone", beside_an_election),
    case!("a creation whose answer was lost is found", lost_creation),
    case!("a note that cannot be read is not taken for missing", unreadable),
    case!("a note that does not fit is refused", does_not_fit),
];

/// As many as meet when a cluster of common size starts at once.
const WRITERS: usize = 8;

async fn many_writers(stage: Stage) -> Ran {
    needs!(stage.can.create_once, "the store keeps no create-once notes");
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        writers.push((stage.candidate("writer").await?, format!("written by {number}").into_bytes()));
    }
    for (writer, _) in &writers {
        ensure!(read(writer).await?.is_none(), "there is a note before anybody created one");
    }
    let creations =
        join_all(writers.iter().map(|(writer, bytes)| writer.backend.create_once(&writer.on, bytes))).await;
    let created = creations.iter().filter(|creation| matches!(creation, Creation::Created)).count();
    ensure!(created == 1, "{created} writers created the one note: {creations:?}");
    let first = creations.iter().position(|creation| matches!(creation, Creation::Created));
    let content = &writers[first.expect("counted")].1;
    for creation in &creations {
        let agrees = match creation {
            Creation::Created => true,
            Creation::Exists(bytes) => bytes == content,
            Creation::Unknown(_) | Creation::Refused(_) => false,
        };
        ensure!(agrees, "{creation:?} while the note is {:?}", String::from_utf8_lossy(content));
    }
    for (writer, bytes) in &writers {
        unchanged(writer, content).await?;
        exists(writer, bytes, content).await?;
    }
    Ok(())
}

async fn reopened(stage: Stage) -> Ran {
    needs!(stage.can.create_once, "the store keeps no create-once notes");
    // Longer than any record, in more than one line, and not only ASCII.
    let content = format!("{{\n\"räksmörgås\": \"{}\"}}\n", "x".repeat(ONCE_MAX_BYTES / 2)).into_bytes();
    let first = stage.candidate("a").await?;
    create(&first, &content).await?;
    drop(first);
    let again = stage.candidate("a").await?;
    unchanged(&again, &content).await?;
    exists(&again, b"other", &content).await?;
    let other = again.in_election(&stage.election("other"));
    ensure!(read(&other).await?.is_none(), "another name has the same note");
    Ok(())
}

async fn beside_an_election(stage: Stage) -> Ran {
    needs!(stage.can.create_once, "the store keeps no create-once notes");
    let (a, b) = (stage.candidate("a").await?, stage.candidate("b").await?);
    create(&a, b"stays").await?;
    if stage.can.lists {
        let all = b.backend.elections().await?;
        ensure!(!all.contains(&a.on), "a note is listed as an election");
    }
    let grant = a.lead().await?;
    let grant = a.keep(&grant).await?;
    let (id, since) = (a.bid.who.id.clone(), Wall::from_unix_nanos(1_700_000_000_000_000_000));
    let incarnation = Some(a.bid.who.incarnation);
    let past = Past { epoch: grant.epoch, id, incarnation, since, until: None, ended: None };
    a.backend.remember(&a.on, &past).await?;
    unchanged(&b, b"stays").await?;
    let cooldown = Some(std::time::Duration::from_millis(1));
    held("the release", a.release_as(&grant, &ReleaseOptions { reserve_for: None, cooldown }).await)?;
    b.lead_once().await?;
    unchanged(&a, b"stays").await?;
    let _left = a.backend.danger_discard(&a.on).await?;
    unchanged(&a, b"stays").await?;
    // An election that was there first is in nobody's way either.
    let later = b.in_election(&stage.election("later"));
    let grant = later.lead().await?;
    create(&later, b"beside").await?;
    let grant = later.keep(&grant).await?;
    later.release_done(&grant).await?;
    unchanged(&later, b"beside").await?;
    if stage.harness.delete(&later.on).await? {
        unchanged(&later, b"beside").await?;
    }
    Ok(())
}

async fn lost_creation(stage: Stage) -> Ran {
    needs!(stage.can.create_once, "the store keeps no create-once notes");
    let (a, faults) = stage.faulty("a").await?;
    faults.next(Op::Note, Fault::LosesAnswer);
    match a.backend.create_once(&a.on, b"mine").await {
        Creation::Unknown(_) => {}
        other => return Err(Stop::failed(format!("a creation whose answer is lost: {other:?}"))),
    }
    exists(&a, b"mine", b"mine").await?;
    exists(&stage.candidate("b").await?, b"other", b"mine").await
}

async fn unreadable(stage: Stage) -> Ran {
    needs!(stage.can.create_once, "the store keeps no create-once notes");
    let (a, faults) = stage.faulty("a").await?;
    create(&a, b"there").await?;
    for kind in [bellwether_core::ErrorKind::TimedOut, bellwether_core::ErrorKind::PermissionDenied] {
        faults.next(Op::Note, Fault::Fails(kind));
        let found = a.backend.read_once(&a.on).await;
        ensure!(found.as_ref().is_err_and(|error| error.kind() == kind), "a read that failed says {found:?}");
    }
    unchanged(&a, b"there").await
}

async fn does_not_fit(stage: Stage) -> Ran {
    needs!(stage.can.create_once, "the store keeps no create-once notes");
    let a = stage.candidate("a").await?;
    for bytes in [vec![b'x'; ONCE_MAX_BYTES + 1], vec![0xff, 0xfe], b"a\0b".to_vec()] {
        let creation = a.backend.create_once(&a.on, &bytes).await;
        let refused = matches!(creation, Creation::Refused(_));
        ensure!(refused, "{} bytes that do not fit: {creation:?}", bytes.len());
    }
    ensure!(read(&a).await?.is_none(), "what was refused is there");
    create(&a, &vec![b'x'; ONCE_MAX_BYTES]).await
}

async fn read(actor: &Actor) -> Result<Option<Vec<u8>>, Stop> {
    Ok(actor.backend.read_once(&actor.on).await?)
}

async fn create(actor: &Actor, bytes: &[u8]) -> Ran {
    match actor.backend.create_once(&actor.on, bytes).await {
        Creation::Created => Ok(()),
        other => Err(Stop::failed(format!("was to be created: {other:?}"))),
    }
}

/// Creating it anew finds what is there.
async fn exists(actor: &Actor, bytes: &[u8], content: &[u8]) -> Ran {
    match actor.backend.create_once(&actor.on, bytes).await {
        Creation::Exists(found) if found == content => Ok(()),
        other => Err(Stop::failed(format!("was to find {:?}: {other:?}", String::from_utf8_lossy(content)))),
    }
}

async fn unchanged(actor: &Actor, content: &[u8]) -> Ran {
    let found = read(actor).await?;
    let same = found.as_deref() == Some(content);
    ensure!(
        same,
        "the note is {:?} instead of {:?}",
        found.map(|found| String::from_utf8_lossy(&found).into_owned()),
        String::from_utf8_lossy(content)
    );
    Ok(())
}
