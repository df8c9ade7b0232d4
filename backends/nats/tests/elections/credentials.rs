//! Credentials files with signed tokens, against a server in operator mode: let in, kept out, and taken back.

use std::path::Path;

use crate::support::operator::Operator;
use crate::support::{PATIENCE, TTL};
use bellwether_core::{ErrorKind, Outcome, StoreError};
use bellwether_deadman::boot_now;
use bellwether_nats::Nats;
use bellwether_support::Actor;
use bellwether_support::servers::nats::Server;

fn with(server: &Server, file: &Path) -> Actor<Nats> {
    crate::support::actor(&format!("{}?create=yes&creds={}", server.url(), file.display()), "a")
}

fn refused(outcome: Outcome<bellwether_core::Grant>) -> StoreError {
    match outcome {
        Outcome::Refused(error) => error,
        other => panic!("was to be refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_signed_user_leads_and_others_are_kept_out() {
    let (operator, server) = Operator::with_server().await;
    let (file, _) = operator.user("someone", &[]);
    let actor = with(&server, &file);
    let grant = actor.lead().await;
    actor.let_go(&actor.keep(&grant).await).await;
    // Signed by somebody whom the server does not know.
    let (stranger, _elsewhere) = Operator::with_server().await;
    let (file, _) = stranger.user("stranger", &[]);
    assert_eq!(refused(with(&server, &file).claim().await).kind(), ErrorKind::PermissionDenied);
    // Let in, to look only.
    let (file, _) = operator.user("onlooker", &["$JS.API.STREAM.>", "$JS.API.CONSUMER.>"]);
    let onlooker = with(&server, &file);
    assert_eq!(onlooker.seen().await.holder, None);
    let error = refused(onlooker.claim().await);
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("$KV.bellwether.election.reports"), "{error}");
}

#[tokio::test]
async fn a_leader_whose_credentials_are_taken_back_leads_no_longer_than_its_ttl_and_is_told_why() {
    let (operator, server) = Operator::with_server().await;
    let ((file, user), (other, _)) = (operator.user("someone", &[]), operator.user("other", &[]));
    let (a, b) = (with(&server, &file), with(&server, &other));
    let grant = a.lead().await;
    let mut news = b.news();
    news.until_seen(|seen| seen.holder.is_some()).await;
    operator.revoke(&server, &user).await;
    let by = boot_now() + PATIENCE;
    let error = loop {
        match a.renew(&grant).await {
            Outcome::Refused(error) => break error,
            // The server has not closed the connection yet, or may just be away.
            Outcome::Done(_) | Outcome::Unknown(_) => assert!(boot_now() < by, "never told"),
            other @ Outcome::Denied(_) => panic!("{other:?}"),
        }
    };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let (next, _) = b.lead_within(PATIENCE).await;
    assert!(next.epoch > grant.epoch);
    // Later claims too, without waiting for ever.
    let start = boot_now();
    assert_eq!(refused(a.claim().await).kind(), ErrorKind::PermissionDenied);
    assert!(boot_now().since(start) < 10 * TTL);
}
