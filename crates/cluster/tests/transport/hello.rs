//! Who may talk to whom.

use bellwether_cluster::transport::{
    CallError, DialCause, DialError, Hello, Intended, Limits, Purpose, Refused, Security, Welcome,
};
use bellwether_cluster::{ClusterId, Lane, NodeId};

use crate::raw::{self, HELLO, REFUSED, frame, hello_body, play, receive, send, until_closed};
use crate::support::{CLUSTER, NODE, Node, client, dialler, is_well, name, serve, serve_with, soon};

async fn dial(address: &str, hello: &Hello) -> DialError {
    soon(dialler().connect(address, hello)).await.expect_err("a refusal")
}

fn peer(cluster: ClusterId, intended: Intended) -> Hello {
    let from = Some((NodeId::from_random(0xb), name("b")));
    Hello { purpose: Purpose::Raft(Lane::Heartbeat), cluster: Some(cluster), from, intended }
}

#[tokio::test]
async fn a_node_of_another_cluster_is_told_both_ids() {
    let served = serve().await;
    let other = ClusterId::from_random(0xc2);
    let error = dial(&served.address, &peer(other, Intended::Anyone)).await;
    let refused = Refused::WrongCluster { listener: CLUSTER, dialler: other };
    assert_eq!(error.cause, DialCause::Refused(refused.clone()));
    let text = error.to_string();
    assert!(text.contains(&CLUSTER.to_string()) && text.contains(&other.to_string()), "{text}");
    assert!(text.contains("check the address"), "{text}");
    assert_eq!(CallError::from(error), CallError::Refused(refused));
    is_well(&served).await;
}

#[tokio::test]
async fn a_hello_for_another_node_or_name_is_refused_and_says_who_lives_there() {
    let served = serve().await;
    let elsewhere = NodeId::from_random(0xdead);
    let here = DialCause::Refused(Refused::AnotherNode { node: NODE, name: name("a") });
    // The same name with another id: its disk was replaced.
    assert_eq!(dial(&served.address, &peer(CLUSTER, Intended::Node(elsewhere, name("a")))).await.cause, here);
    assert_eq!(dial(&served.address, &peer(CLUSTER, Intended::Name(name("b")))).await.cause, here);
    for right in [Intended::Node(NODE, name("a")), Intended::Name(name("a"))] {
        soon(dialler().connect(&served.address, &peer(CLUSTER, right))).await.unwrap();
    }
}

#[tokio::test]
async fn a_listener_does_not_leave_the_check_to_the_dialler() {
    let served = serve().await;
    for hello in [
        peer(ClusterId::from_random(0xc2), Intended::Anyone),
        peer(CLUSTER, Intended::Node(NodeId::from_random(0xdead), name("a"))),
    ] {
        let mut socket = send(&served.address, &frame(HELLO, 0, &hello_body(1, &hello))).await;
        assert_eq!(until_closed(&mut socket).await, [REFUSED]);
    }
}

#[tokio::test]
async fn a_host_refuses_for_reasons_of_its_own() {
    for refused in [Refused::NoConsent, Refused::ShuttingDown] {
        let node = Node { refuses: Some(refused.clone()), ..Node::default() };
        let served = serve_with(node, Security::LoopbackOnly, Limits::default()).await;
        assert_eq!(dial(&served.address, &client()).await.cause, DialCause::Refused(refused));
    }
}

#[tokio::test]
async fn a_dialler_does_not_believe_a_welcome_of_another_node_or_cluster() {
    let welcome = |node, cluster| Welcome { node: NodeId::from_random(node), name: name("a"), cluster };
    for (welcome, hello) in [
        (welcome(1, Some(CLUSTER)), peer(CLUSTER, Intended::Node(NODE, name("a")))),
        (welcome(0xa, Some(ClusterId::from_random(1))), peer(CLUSTER, Intended::Node(NODE, name("a")))),
    ] {
        let (address, accepted) = play(&welcome).await;
        let (error, _) = tokio::join!(dial(&address, &hello), accepted);
        assert!(matches!(error.cause, DialCause::Refused(_)), "{error:?}");
    }
}

#[tokio::test]
async fn another_version_is_refused_with_both_versions() {
    let served = serve().await;
    // What comes after the version is not read: another version may say anything.
    let opening = [&b"BLWR"[..], &7_u16.to_be_bytes(), b"whatever version 7 says"].concat();
    let mut socket = send(&served.address, &frame(HELLO, 0, &opening)).await;
    let (kind, _, body) = receive(&mut socket).await.unwrap();
    assert_eq!(kind, REFUSED);
    let refused: Refused = postcard::from_bytes(&body).unwrap();
    assert_eq!(refused, Refused::WrongVersion { listener: 1, dialler: 7 });
    // In every version.
    assert_eq!(body, [0, 1, 7]);
    assert!(until_closed(&mut socket).await.is_empty());
    assert_eq!(served.node.greeted.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_dialler_is_told_that_the_node_speaks_another_version() {
    let served = serve().await;
    let on_the_way = raw::OnTheWay::to(&served.address, |_, mut frame| {
        if frame[4] == HELLO {
            frame[4 + 9 + 5] = 9;
        }
        vec![frame]
    })
    .await;
    let error = dial(&on_the_way.address, &client()).await;
    assert_eq!(error.cause, DialCause::Refused(Refused::WrongVersion { listener: 1, dialler: 9 }));
    assert!(error.to_string().contains("version 1") && error.to_string().contains("version 9"));
}

#[tokio::test]
async fn another_protocol_is_closed_without_a_word() {
    let served = serve().await;
    let mut body = hello_body(1, &client());
    body[0] = b'X';
    let longer = [hello_body(1, &client()), vec![0]].concat();
    for bytes in
        [frame(HELLO, 0, &body), frame(HELLO, 0, &longer), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()]
    {
        assert!(until_closed(&mut send(&served.address, &bytes).await).await.is_empty());
    }
    is_well(&served).await;
}

#[tokio::test]
async fn nobody_at_the_address_is_an_error_that_names_it() {
    let served = serve().await;
    soon(served.listener.shutdown()).await;
    let error = dial(&served.address, &client()).await;
    assert!(matches!(error.cause, DialCause::Unreachable(_)), "{error:?}");
    assert_eq!(error.to_string().matches(&served.address).count(), 1, "{error}");
    assert!(CallError::from(error).is_certainly_not_sent());
    let error = dial("no-port-here", &client()).await;
    assert!(matches!(error.cause, DialCause::Unresolved(_)), "{error:?}");
}
