//! A secret without certificates.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bellwether_cluster::transport::{
    CallError, Connection, DialCause, DialError, Dialler, Limits, Refused, Secret, Security,
};
use tokio::io::AsyncWriteExt;

use crate::raw::{
    ANSWER, CHALLENGE, HELLO, OnTheWay, REFUSED, REQUEST, WELCOME, Way, frame, play, receive, send,
    until_closed, welcomed,
};
use crate::support::{
    CLUSTER, NODE, Node, Served, ask, client, dialler, name, secret, serve, serve_with, soon,
};

const RIGHT: &str = "correct horse battery staple";

async fn serve_secretly() -> Served {
    serve_with(Node::default(), secret(RIGHT), Limits::default()).await
}

async fn connect(address: &str, text: &str) -> Result<Connection, DialError> {
    soon(Dialler::new(secret(text)).unwrap().connect(address, &client())).await
}

fn refused() -> DialCause {
    DialCause::Refused(Refused::NotAuthenticated)
}

#[tokio::test]
async fn those_who_know_the_secret_talk() {
    let served = serve_secretly().await;
    let connection = connect(&served.address, RIGHT).await.unwrap();
    for request in ["one", "two", "three"] {
        assert_eq!(soon(ask(&connection, request)).await, Ok(request.to_owned()));
    }
    let longest = vec![1; 8 << 20];
    assert_eq!(soon(connection.call(longest.clone(), crate::support::PATIENCE)).await, Ok(longest));
}

#[tokio::test]
async fn a_wrong_secret_or_none_is_refused_before_the_host_hears_of_it() {
    let served = serve_secretly().await;
    let wrong = connect(&served.address, "correct horse battery stable").await.unwrap_err();
    assert_eq!(wrong.cause, refused());
    assert!(wrong.to_string().contains("give both the same secret file"), "{wrong}");
    assert_eq!(soon(dialler().connect(&served.address, &client())).await.unwrap_err().cause, refused());
    assert_eq!(served.node.greeted.load(Ordering::SeqCst), 0);
    connect(&served.address, RIGHT).await.unwrap();
}

#[tokio::test]
async fn a_node_without_the_secret_is_not_believed() {
    let served = serve().await;
    assert_eq!(connect(&served.address, RIGHT).await.unwrap_err().cause, refused());
    let welcome =
        bellwether_cluster::transport::Welcome { node: NODE, name: name("a"), cluster: Some(CLUSTER) };
    let (address, accepted) = play(&welcome).await;
    let (error, _) = tokio::join!(connect(&address, RIGHT), accepted);
    assert!(matches!(error.unwrap_err().cause, DialCause::Untrusted(_)));
}

#[tokio::test]
async fn an_impostor_cannot_send_the_dialler_its_own_proof() {
    let served = serve_secretly().await;
    // Takes the dialler's proof, and answers with it in place of the listener's.
    let proof = Arc::new(Mutex::new(None));
    let on_the_way = OnTheWay::to(&served.address, move |way, frame| {
        const PROOF: u8 = 3;
        let mut proof = proof.lock().unwrap();
        match (way, frame[4]) {
            (Way::ToListener, PROOF) => *proof = Some(frame.clone()),
            (Way::ToDialler, PROOF) => return vec![proof.clone().unwrap()],
            _ => {}
        }
        vec![frame]
    })
    .await;
    let error = connect(&on_the_way.address, RIGHT).await.unwrap_err();
    assert!(matches!(error.cause, DialCause::Untrusted(_)), "{error:?}");
}

#[tokio::test]
async fn a_hello_that_was_changed_on_the_way_is_refused() {
    let served = serve_secretly().await;
    let on_the_way = OnTheWay::to(&served.address, |_, mut frame| {
        if frame[4] == HELLO {
            // The purpose: an operator in place of a client.
            let purpose = 4 + 9 + 6 + 33;
            assert_eq!(frame[purpose], 3);
            frame[purpose] = 2;
        }
        vec![frame]
    })
    .await;
    assert_eq!(connect(&on_the_way.address, RIGHT).await.unwrap_err().cause, refused());
}

#[tokio::test]
async fn a_refusal_that_only_a_proven_node_may_give_is_not_believed_from_anybody() {
    let served = serve_secretly().await;
    let on_the_way = OnTheWay::to(&served.address, |_, original| match original[4] {
        CHALLENGE => vec![frame(REFUSED, 0, &postcard::to_stdvec(&Refused::NoConsent).unwrap())],
        _ => vec![original],
    })
    .await;
    let error = connect(&on_the_way.address, RIGHT).await.unwrap_err();
    assert!(matches!(error.cause, DialCause::Failed(_)), "{error:?}");
}

/// What somebody on the way does to the requests, which are `one` and `two` with the ids 1 and 2.
async fn tampered(
    edit: impl FnMut(Vec<u8>, &mut Vec<Vec<u8>>) -> Vec<Vec<u8>> + Send + 'static,
) -> Vec<String> {
    let served = serve_secretly().await;
    let mut edit = edit;
    let mut seen = Vec::new();
    let on_the_way = OnTheWay::to(&served.address, move |way, frame| {
        if way == Way::ToListener && frame[4] == REQUEST { edit(frame, &mut seen) } else { vec![frame] }
    })
    .await;
    let connection = connect(&on_the_way.address, RIGHT).await.unwrap();
    let both = soon(async { tokio::join!(ask(&connection, "one"), ask(&connection, "two")) }).await;
    soon(connection.closed()).await;
    let mut answered = Vec::new();
    for answer in [both.0, both.1] {
        match answer {
            Ok(text) => answered.push(text),
            Err(CallError::Unknown(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(connect(&served.address, RIGHT).await.is_ok());
    answered
}

#[tokio::test]
async fn an_altered_frame_ends_the_connection_whatever_byte_it_is() {
    // Kind, id, body and MAC; the length is in the way of reading on.
    for position in [4, 12, 13, 15, 16, 47] {
        let answered = tampered(move |mut frame, _| {
            frame[position] ^= 1;
            vec![frame]
        })
        .await;
        assert!(answered.is_empty(), "{position}: {answered:?}");
    }
}

#[tokio::test]
async fn a_repeated_frame_ends_the_connection() {
    let answered = tampered(|frame, _| vec![frame.clone(), frame]).await;
    assert!(answered.len() <= 1, "{answered:?}");
}

#[tokio::test]
async fn frames_in_another_order_end_the_connection() {
    let answered = tampered(|frame, seen| {
        seen.push(frame);
        if seen.len() == 2 { seen.drain(..).rev().collect() } else { Vec::new() }
    })
    .await;
    assert!(answered.is_empty(), "{answered:?}");
}

#[tokio::test]
async fn a_frame_that_is_left_out_ends_the_connection_at_the_next() {
    let answered = tampered(|frame, seen| {
        seen.push(Vec::new());
        if seen.len() == 1 { Vec::new() } else { vec![frame] }
    })
    .await;
    assert!(answered.is_empty(), "{answered:?}");
}

#[tokio::test]
async fn a_frame_without_a_mac_cannot_be_inserted() {
    let answered = tampered(|original, _| vec![frame(REQUEST, 1, b"inserted"), original]).await;
    assert!(answered.is_empty(), "{answered:?}");
}

#[tokio::test]
async fn frames_of_one_connection_are_of_no_use_on_another() {
    let served = serve_secretly().await;
    let first = Arc::new(Mutex::new(None));
    let recorded = Arc::clone(&first);
    let on_the_way = OnTheWay::to(&served.address, move |way, frame| {
        if way == Way::ToListener && frame[4] == REQUEST {
            return vec![recorded.lock().unwrap().get_or_insert(frame).clone()];
        }
        vec![frame]
    })
    .await;
    let one = connect(&on_the_way.address, RIGHT).await.unwrap();
    assert_eq!(soon(ask(&one, "one")).await, Ok("one".to_owned()));
    let other = connect(&on_the_way.address, RIGHT).await.unwrap();
    assert!(matches!(soon(ask(&other, "two")).await, Err(CallError::Unknown(_))));
    assert_eq!(served.node.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_whole_connection_cannot_be_played_to_the_listener_again() {
    let served = serve_secretly().await;
    let said = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&said);
    let on_the_way = OnTheWay::to(&served.address, move |way, frame| {
        if way == Way::ToListener {
            recorded.lock().unwrap().extend_from_slice(&frame);
        }
        vec![frame]
    })
    .await;
    let connection = connect(&on_the_way.address, RIGHT).await.unwrap();
    assert_eq!(soon(ask(&connection, "x")).await, Ok("x".to_owned()));
    let said = said.lock().unwrap().clone();
    let mut again = send(&served.address, &said).await;
    let (kind, _, _) = receive(&mut again).await.expect("a challenge");
    assert_eq!(kind, CHALLENGE);
    // A refusal, which a reset of the connection may overtake; never a welcome.
    assert!([&[][..], &[REFUSED]].contains(&&until_closed(&mut again).await[..]));
    assert_eq!(served.node.greeted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_whole_connection_cannot_be_played_to_the_dialler_again() {
    let served = serve_secretly().await;
    let first: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let recorded = Arc::clone(&first);
    let mut hellos = 0;
    let mut played = 0;
    let on_the_way = OnTheWay::to(&served.address, move |way, frame| {
        let mut recorded = recorded.lock().unwrap();
        match way {
            Way::ToListener => {
                hellos += usize::from(frame[4] == HELLO);
                vec![frame]
            }
            Way::ToDialler if hellos == 1 => {
                recorded.push(frame.clone());
                vec![frame]
            }
            Way::ToDialler => {
                // Whatever the listener says the second time, the dialler hears what it said the first time.
                let rest = recorded[played..].to_vec();
                played = recorded.len();
                rest
            }
        }
    })
    .await;
    drop(connect(&on_the_way.address, RIGHT).await.unwrap());
    assert_eq!(first.lock().unwrap().len(), 3);
    let error = connect(&on_the_way.address, RIGHT).await.unwrap_err();
    assert!(matches!(error.cause, DialCause::Untrusted(_)), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_was_changed_is_not_believed() {
    let served = serve_secretly().await;
    let on_the_way = OnTheWay::to(&served.address, |_, mut frame| {
        if frame[4] == ANSWER {
            frame[13] ^= 1;
        }
        vec![frame]
    })
    .await;
    let connection = connect(&on_the_way.address, RIGHT).await.unwrap();
    let answer = soon(ask(&connection, "x")).await;
    assert!(matches!(&answer, Err(CallError::Unknown(why)) if why.contains("MAC")), "{answer:?}");
}

#[tokio::test]
async fn a_dialler_does_not_take_its_own_frames_for_the_listeners() {
    let served = serve_secretly().await;
    // The second request has the number that the dialler expects next: the welcome had the one before it. The first waits for the second,
    // so that the second is known when the answer to the first passes by.
    let mut requests = Vec::new();
    let on_the_way = OnTheWay::to(&served.address, move |_, frame| match frame[4] {
        REQUEST => {
            requests.push(frame);
            if requests.len() == 2 { requests.clone() } else { Vec::new() }
        }
        ANSWER => vec![requests[1].clone()],
        _ => vec![frame],
    })
    .await;
    let connection = connect(&on_the_way.address, RIGHT).await.unwrap();
    let both = soon(async { tokio::join!(ask(&connection, "one"), ask(&connection, "two")) }).await;
    assert!(matches!(&both.0, Err(CallError::Unknown(why)) if why.contains("MAC")), "{both:?}");
}

#[tokio::test]
async fn frames_without_macs_still_reach_a_node_without_a_secret() {
    // The reverse of the cases above: what is refused there is refused for the MAC, and for nothing else.
    let served = serve().await;
    let mut socket = welcomed(&served.address, &client()).await;
    socket.write_all(&frame(REQUEST, 1, b"x")).await.unwrap();
    assert_eq!(receive(&mut socket).await, Some((ANSWER, 1, b"x".to_vec())));
    socket.write_all(&frame(WELCOME, 0, b"")).await.unwrap();
    assert!(until_closed(&mut socket).await.is_empty());
}

#[test]
fn a_secret_file_is_for_its_owner_and_long_enough() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    let write = |text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Secret::from_file(&path)
    };
    assert!(write("0123456789abcdef\n", 0o600).is_ok());
    // As Kubernetes mounts it for a group.
    assert!(write("0123456789abcdef", 0o440).is_ok());
    for mode in [0o604, 0o644, 0o602] {
        let error = write("0123456789abcdef", mode).unwrap_err().to_string();
        assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
    }
    // The line end does not count.
    let error = write("0123456789abcde\n", 0o600).unwrap_err().to_string();
    assert!(error.contains("15 bytes") && !error.contains("abcde"), "{error}");
    assert!(write(&"x".repeat(5000), 0o600).unwrap_err().to_string().contains("4096"));
    assert!(Secret::from_file(&directory.path().join("none")).unwrap_err().to_string().contains("none"));
}

#[test]
fn a_secret_is_never_printed() {
    let security = Security::Secret(Secret::new(b"correct horse battery staple").unwrap());
    assert_eq!(format!("{security:?}"), "Secret(Secret(..))");
}
