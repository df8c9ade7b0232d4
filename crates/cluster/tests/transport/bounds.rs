//! How many connections there may be, and from where.

use bellwether_cluster::transport::{
    CallError, DialCause, Hello, Limits, Listener, Purpose, Refused, Security, Welcome,
};
use futures_util::future::join_all;

use crate::raw::play;
use crate::support::{NODE, Node, Served, client, dialler, name, secret, serve_with, soon};

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.connections = 4;
    limits.client_connections = 2;
    limits
}

async fn serve() -> Served {
    serve_with(Node::default(), Security::LoopbackOnly, limits()).await
}

fn too_many() -> DialCause {
    DialCause::Refused(Refused::TooManyConnections)
}

#[tokio::test]
async fn clients_beyond_the_bound_are_refused_and_leave_room_for_nodes() {
    let served = serve().await;
    let dialler = dialler();
    let admin = Hello { purpose: Purpose::Admin, ..client() };
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(soon(dialler.connect(&served.address, &client())).await.unwrap());
    }
    let third = soon(dialler.connect(&served.address, &client())).await;
    assert_eq!(third.unwrap_err().cause, too_many());
    let _admin = soon(dialler.connect(&served.address, &admin)).await.unwrap();
    // A client that goes makes room for another; the node needs a moment to notice.
    drop(clients.pop());
    soon(async {
        while dialler.connect(&served.address, &client()).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn connections_beyond_the_bound_are_told_so() {
    let served = serve().await;
    let dialler = dialler();
    let admin = Hello { purpose: Purpose::Admin, ..client() };
    let open = join_all((0..4).map(|_| dialler.connect(&served.address, &admin)));
    let open: Vec<_> = soon(open).await.into_iter().map(Result::unwrap).collect();
    for _ in 0..3 {
        assert_eq!(soon(dialler.connect(&served.address, &admin)).await.unwrap_err().cause, too_many());
    }
    drop(open);
}

#[tokio::test]
async fn strangers_who_say_nothing_take_places_only_until_the_handshake_is_due() {
    let mut limits = limits();
    limits.handshake = std::time::Duration::from_millis(300);
    let served = serve_with(Node::default(), Security::LoopbackOnly, limits).await;
    let strangers: Vec<_> = join_all((0..100).map(|_| tokio::net::TcpStream::connect(&served.address))).await;
    assert!(soon(dialler().connect(&served.address, &client())).await.is_err());
    soon(async {
        while dialler().connect(&served.address, &client()).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(strangers);
}

#[tokio::test]
async fn a_node_without_protection_listens_on_loopback_only() {
    let bind = |address: &'static str, security: Security| {
        Listener::bind(address, security, std::sync::Arc::new(Node::default()))
    };
    for address in ["0.0.0.0:0", "[::]:0"] {
        let error = soon(bind(address, Security::LoopbackOnly)).await.unwrap_err().to_string();
        assert!(error.contains("--secret-file") && error.contains("127.0.0.1"), "{error}");
    }
    for address in ["127.0.0.1:0", "localhost:0"] {
        assert!(
            soon(bind(address, Security::LoopbackOnly)).await.unwrap().local_address().ip().is_loopback()
        );
    }
    soon(bind("0.0.0.0:0", secret("0123456789abcdef"))).await.unwrap();
    let taken = soon(bind("127.0.0.1:0", Security::LoopbackOnly)).await.unwrap();
    let address: &'static str = taken.local_address().to_string().leak();
    let error = soon(bind(address, Security::LoopbackOnly)).await.unwrap_err().to_string();
    assert!(error.contains(address), "{error}");
}

/// A peer that is stopped takes nothing off its connection. Callers give up and try again, and what they gave up is still to be written.
#[tokio::test]
async fn requests_that_were_given_up_count_until_they_are_written() {
    const REQUEST_BYTES: usize = 1 << 20;
    /// The most that a connection has in flight, and more than the kernel takes for both sides.
    const MOST: usize = 32 + 32;
    let welcome = Welcome { node: NODE, name: name("a"), cluster: None };
    let (address, accepted) = play(&welcome).await;
    let (dialler, hello) = (dialler(), client());
    let (connection, _stopped) =
        soon(async { tokio::join!(dialler.connect(&address, &hello), accepted) }).await;
    let connection = connection.unwrap();
    let limit = std::time::Duration::from_millis(20);
    let mut sent = 0;
    for _ in 0..2 * MOST {
        match connection.call(vec![0; REQUEST_BYTES], limit).await {
            Err(CallError::Unknown(_)) => sent += 1,
            Err(CallError::NotSent(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(sent <= MOST, "{sent} requests of a megabyte wait to be written");
}
