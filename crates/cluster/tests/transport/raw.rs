//! Frames made and read by hand, to say what the transport itself never would; and somebody on the way who changes them.

use std::sync::{Arc, Mutex};

use bellwether_cluster::transport::Hello;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::soon;

pub(crate) const HELLO: u8 = 1;
pub(crate) const CHALLENGE: u8 = 2;
pub(crate) const WELCOME: u8 = 4;
pub(crate) const REFUSED: u8 = 5;
pub(crate) const REQUEST: u8 = 16;
pub(crate) const SUBSCRIBE: u8 = 17;
pub(crate) const CREDIT: u8 = 19;
pub(crate) const PART: u8 = 20;
pub(crate) const ANSWER: u8 = 21;
pub(crate) const PING: u8 = 23;

/// A frame without a MAC.
pub(crate) fn frame(kind: u8, id: u64, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(9 + body.len()).unwrap();
    [&length.to_be_bytes()[..], &[kind], &id.to_be_bytes(), body].concat()
}

/// The body of a hello in this version of the protocol.
pub(crate) fn hello_body(version: u16, hello: &Hello) -> Vec<u8> {
    let rest = postcard::to_stdvec(&(None::<[u8; 32]>, hello)).unwrap();
    [b"BLWR", &version.to_be_bytes()[..], &rest].concat()
}

/// Sends these bytes on a new connection.
pub(crate) async fn send(address: &str, bytes: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // The node may close before it has read all of it.
    let _ = socket.write_all(bytes).await;
    socket
}

/// A connection that has said hello and was welcomed.
pub(crate) async fn welcomed(address: &str, hello: &Hello) -> TcpStream {
    let mut socket = send(address, &frame(HELLO, 0, &hello_body(1, hello))).await;
    let (kind, _, _) = receive(&mut socket).await.expect("a welcome");
    assert_eq!(kind, WELCOME);
    socket
}

/// The next frame, or `None` at the end.
pub(crate) async fn receive(socket: &mut (impl AsyncReadExt + Unpin)) -> Option<(u8, u64, Vec<u8>)> {
    soon(async {
        let mut length = [0; 4];
        socket.read_exact(&mut length).await.ok()?;
        let mut rest = vec![0; u32::from_be_bytes(length) as usize];
        socket.read_exact(&mut rest).await.ok()?;
        let id = u64::from_be_bytes(rest[1..9].try_into().unwrap());
        Some((rest[0], id, rest[9..].to_vec()))
    })
    .await
}

/// Waits until the node closes the connection, and returns what it said before, pings left out.
pub(crate) async fn until_closed(socket: &mut TcpStream) -> Vec<u8> {
    soon(async {
        let mut kinds = Vec::new();
        while let Some((kind, _, _)) = receive(socket).await {
            if kind != PING {
                kinds.push(kind);
            }
        }
        kinds
    })
    .await
}

/// A listener that lets a test play the node: it answers the hello with this welcome.
pub(crate) async fn play(
    welcome: &bellwether_cluster::transport::Welcome,
) -> (String, impl Future<Output = TcpStream> + use<>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let welcome = frame(WELCOME, 0, &postcard::to_stdvec(welcome).unwrap());
    let accepted = async move {
        let (mut socket, _) = soon(listener.accept()).await.unwrap();
        assert_eq!(receive(&mut socket).await.expect("a hello").0, HELLO);
        socket.write_all(&welcome).await.unwrap();
        socket
    };
    (address, accepted)
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToListener,
    ToDialler,
}

/// What is passed on in place of a frame: whole frames, length included.
type Edit = dyn FnMut(Way, Vec<u8>) -> Vec<Vec<u8>> + Send;

/// Somebody on the way who reads every frame and passes on what they like.
pub(crate) struct OnTheWay {
    pub(crate) address: String,
    _tasks: JoinSet<()>,
}

impl OnTheWay {
    pub(crate) async fn to(
        target: &str,
        edit: impl FnMut(Way, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
    ) -> OnTheWay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let edit: Arc<Mutex<Edit>> = Arc::new(Mutex::new(edit));
        let target = target.to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut passing = JoinSet::new();
            while let Ok((dialler, _)) = listener.accept().await {
                let Ok(node) = TcpStream::connect(&target).await else { continue };
                let (from_dialler, to_dialler) = dialler.into_split();
                let (from_node, to_node) = node.into_split();
                passing.spawn(pass(Way::ToListener, from_dialler, to_node, Arc::clone(&edit)));
                passing.spawn(pass(Way::ToDialler, from_node, to_dialler, Arc::clone(&edit)));
            }
        });
        OnTheWay { address, _tasks: tasks }
    }
}

async fn pass(way: Way, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, edit: Arc<Mutex<Edit>>) {
    loop {
        let mut whole = vec![0; 4];
        if from.read_exact(&mut whole).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes(whole[..4].try_into().unwrap()) as usize;
        whole.resize(4 + length, 0);
        if from.read_exact(&mut whole[4..]).await.is_err() {
            return;
        }
        let instead = (edit.lock().unwrap())(way, whole);
        for frame in instead {
            if to.write_all(&frame).await.is_err() {
                return;
            }
        }
    }
}
