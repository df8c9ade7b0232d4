//! What clients cannot show: single messages to single nodes, on a cluster of three.

use std::time::Duration;

use bellwether_cluster::transport::{Dialler, Hello, Intended, Purpose, Security};
use bellwether_cluster::{AdminClient, Cluster, ErrorKind};
use bellwether_core::{Candidate, CandidateId, Epoch, Incarnation, Wall};

use crate::answer::{Answer, Refusal};
use crate::command::{Act, Campaign, Command, Sequence, SessionId};
use crate::protocol::{ClientRequest, Finding, Query, Question, Reply, decode, encode};
use crate::stage::{Stage, election, until};

const LIMIT: Duration = Duration::from_secs(5);

async fn ask_as(node: &Cluster, what: Question, is_forwarded: bool) -> Reply {
    let dialler = Dialler::new(Security::LoopbackOnly).unwrap();
    let hello = Hello { purpose: Purpose::Client, cluster: None, from: None, intended: Intended::Anyone };
    let connection = dialler.connect(&node.local_address().to_string(), &hello).await.unwrap();
    let request = ClientRequest { is_forwarded, ..ClientRequest::new(what, LIMIT) };
    decode(&connection.call(encode(&request), LIMIT).await.unwrap()).unwrap()
}

async fn ask(node: &Cluster, what: Question) -> Reply {
    ask_as(node, what, false).await
}

async fn propose(node: &Cluster, command: &Command) -> Answer {
    match ask(node, Question::Propose(command.encode())).await {
        Reply::Applied(answer) => Answer::decode(&answer).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn open(node: &Cluster, ttl: Duration) -> SessionId {
    let open = Command::OpenSession { nonce: 7, ttl, label: "test".to_owned() };
    match propose(node, &open).await {
        Answer::Opened(session) => session,
        other => panic!("{other:?}"),
    }
}

fn campaign(session: SessionId, sequence: u64, name: &str) -> Command {
    let who = Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(1) };
    let campaign = Campaign {
        on: election(name),
        who,
        floor: Epoch::ZERO,
        priority: 0,
        metadata: Default::default(),
        cooldown: None,
        danger_reclaim: false,
        wall: Wall::from_unix_nanos(0),
    };
    let sequence = Sequence(sequence);
    let act = Act::Campaign(campaign);
    Command::InSession { session, sequence, answered_below: Sequence(1), act }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_sent_again_to_any_node_is_applied_once() {
    let stage = Stage::start().await;
    let session = open(stage.node(0), Duration::from_secs(30)).await;
    let command = campaign(session, 1, "once");
    let mut answers = Vec::new();
    for number in [0, 1, 2, 1, 0] {
        answers.push(propose(stage.node(number), &command).await);
    }
    assert!(matches!(answers[0], Answer::Granted { .. }), "{:?}", answers[0]);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    // Another number is another claim: it is granted anew, under another epoch.
    let again = propose(stage.node(2), &campaign(session, 2, "once")).await;
    assert!(matches!(again, Answer::Granted { .. }) && again != answers[0], "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_passed_on_once_and_then_answered_with_a_hint() {
    let stage = Stage::start().await;
    let leader = stage.leader().await;
    let follower = stage.node((leader + 1) % 3);
    let read = || Question::Read(Query::Elections);
    let passed_on = ask_as(follower, read(), false).await;
    assert!(matches!(passed_on, Reply::Read(Finding::Elections(_))), "{passed_on:?}");
    let hint = match ask_as(follower, read(), true).await {
        Reply::NotLeader { leader } => leader,
        other => panic!("it was passed on twice: {other:?}"),
    };
    assert_eq!(hint, Some(stage.node(leader).local_address().to_string()));
    let here = ask(follower, Question::ReadHere(Query::Elections)).await;
    assert!(matches!(here, Reply::ReadHere { age_millis: Some(_), .. }), "{here:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_of_the_leaders_clock_are_not_taken_from_clients() {
    let stage = Stage::start().await;
    let session = open(stage.node(0), Duration::from_secs(30)).await;
    for term in 0..4 {
        let expire = Command::ExpireSession { session, term };
        let refused = ask(stage.node(1), Question::Propose(expire.encode())).await;
        assert!(matches!(refused, Reply::Refused { .. }), "{refused:?}");
    }
    let kept = ask(stage.node(2), Question::KeepAlive(session)).await;
    assert!(matches!(&kept, Reply::Kept { led } if led.is_empty()), "{kept:?}");
}

/// What only the leader's own clock may decide, for this session.
fn decisions(session: SessionId) -> Vec<Command> {
    let (on, id) = (election("decided"), CandidateId::new("a").unwrap());
    let expire = |term| Command::ExpireSession { session, term };
    let mut decisions: Vec<Command> = (0..8).map(expire).collect();
    decisions.push(Command::EndReservation { on: on.clone(), since: 1 });
    decisions.push(Command::EndCooldown { on, id, since: 1 });
    decisions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_of_the_leaders_clock_are_not_taken_from_operators_or_from_the_program_around_a_node() {
    let stage = Stage::start().await;
    let session = open(stage.node(0), Duration::from_secs(30)).await;
    let leader = stage.leader().await;
    for (place, command) in decisions(session).into_iter().enumerate() {
        // At the leader, and at nodes that pass it on.
        let node = stage.node((leader + place) % 3);
        let operator = admin(node).propose(command.encode()).await.unwrap_err();
        assert_eq!(operator.kind(), ErrorKind::Refused, "{operator}");
        assert!(operator.to_string().contains("by its own clock"), "{operator}");
        let program = node.propose(command.encode()).await.unwrap_err();
        assert_eq!(program.kind(), ErrorKind::Refused, "{program}");
    }
    let kept = ask(stage.node(2), Question::KeepAlive(session)).await;
    assert!(matches!(&kept, Reply::Kept { .. }), "{kept:?}");
    let senseless = admin(stage.node(0)).propose(b"no command".to_vec()).await.unwrap_err();
    assert_eq!(senseless.kind(), ErrorKind::Refused, "{senseless}");
}

/// A grant lasts from when its campaign was sent, so the campaign has to put off the expiry, whoever proposes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_campaign_that_an_operator_proposes_counts_as_a_sign_of_life() {
    let stage = Stage::start().await;
    let ttl = Duration::from_secs(2);
    let session = open(stage.node(0), ttl).await;
    let operator = admin(stage.node(1));
    for sequence in 1..=8 {
        tokio::time::sleep(ttl / 4).await;
        let campaign = campaign(session, sequence, "proposed");
        let (_, answer) = operator.propose(campaign.encode()).await.unwrap();
        let answer = Answer::decode(&answer).unwrap();
        assert!(matches!(answer, Answer::Granted { .. }), "{answer:?}");
    }
}

fn admin(node: &Cluster) -> AdminClient {
    AdminClient::new([node.local_address().to_string()], Security::LoopbackOnly).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_keepalives_expires_and_one_with_them_does_not() {
    let stage = Stage::start().await;
    let ttl = Duration::from_secs(2);
    let session = open(stage.node(0), ttl).await;
    for _ in 0..8 {
        tokio::time::sleep(ttl / 4).await;
        let kept = ask(stage.node(1), Question::KeepAlive(session)).await;
        assert!(matches!(kept, Reply::Kept { .. }), "{kept:?}");
    }
    // No sign of life: it is answered in the session all the same.
    let resign = |sequence| {
        let act =
            Act::Retire { on: election("expires"), incarnation: Incarnation::from_bits(1), cancels: vec![] };
        let sequence = Sequence(sequence);
        Command::InSession { session, sequence, answered_below: sequence, act }
    };
    let mut sequence = 0;
    until("the session expires", || {
        sequence += 1;
        let command = resign(sequence);
        let node = stage.node(2);
        async move { propose(node, &command).await == Answer::Refused(Refusal::NoSuchSession) }
    })
    .await;
    assert!(matches!(ask(stage.node(0), Question::KeepAlive(session)).await, Reply::Ended));
}

/// Cut off from the others, a leader still believes that it leads for a moment. What it says then must not be taken for true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_without_a_majority_acknowledges_no_keepalive_and_answers_no_read() {
    let mut stage = Stage::start().await;
    let session = open(stage.node(0), Duration::from_secs(30)).await;
    let leader = stage.leader().await;
    stage.kill((leader + 1) % 3).await;
    stage.kill((leader + 2) % 3).await;
    let kept = ask_as(stage.node(leader), Question::KeepAlive(session), true).await;
    assert!(!matches!(kept, Reply::Kept { .. }), "a keepalive was acknowledged by one node of three");
    let read = ask_as(stage.node(leader), Question::Read(Query::Elections), true).await;
    assert!(!matches!(read, Reply::Read(_)), "a read was answered by one node of three");
}
