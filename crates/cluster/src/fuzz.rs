//! What fuzzing asks of the parsers of this crate. Each function takes any bytes, and panics where a promise is broken; `fuzz` has the list.
//! Those with a sibling `…_examples` read bytes that nobody writes by hand.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::formation::{Formed, Invitation, InviteAnswer, Phase, Voter};
use crate::member::{Member, Role};
use crate::names::{ClusterId, NodeId, NodeName};
use crate::protocol::{
    AdminAnswer, AdminCommand, AdminRequest, ClusterView, FormationAnswer, FormationRequest, JoinAnswer,
    MemberView, Named, decode, encode,
};
use crate::{Identity, client_url, directory, ledger, resolver};

#[cfg(feature = "openraft")]
pub use crate::engine::fuzz::{
    engine_message, engine_message_examples, engine_snapshot, engine_snapshot_examples,
};
#[cfg(feature = "kubernetes-any-version")]
pub use crate::resolver::kubernetes::fuzz::kubernetes_peers;
pub use crate::transport::fuzz::{
    cluster_frames, cluster_frames_examples, cluster_hello, cluster_hello_examples,
};

/// What nodes and operators say to each other. The first byte chooses who says it.
pub fn cluster_message(bytes: &[u8]) {
    let Some((who, message)) = bytes.split_first() else { return };
    match who % 4 {
        0 => reread::<FormationRequest>(message),
        1 => reread::<FormationAnswer>(message),
        2 => reread::<AdminRequest>(message),
        _ => reread::<AdminAnswer>(message),
    }
}

/// A message of every kind.
pub fn cluster_message_examples() -> Vec<Vec<u8>> {
    let (cluster, node) = (ClusterId::from_random(7), NodeId::from_random(9));
    let member = Member { node, name: named("app-0"), address: "app-0.app:7117".to_owned() };
    let view = MemberView {
        member: member.clone(),
        role: Role::Voter,
        is_leader: true,
        lag: Some(0),
        heard_ms_ago: None,
    };
    let members = ClusterView { cluster, term: 3, committed_index: 70, members: vec![view] };
    let invitation = Invitation { round: 2, cluster };
    let of = |who: u8, message: Vec<u8>| [vec![who], message].concat();
    vec![
        of(0, encode(&FormationRequest::Invite(invitation))),
        of(0, encode(&FormationRequest::Join { member, only: Some(cluster) })),
        of(0, encode(&FormationRequest::Come(cluster, "app-1.app:7117".to_owned()))),
        of(1, encode(&FormationAnswer::Invited { node, answer: InviteAnswer::Higher(5) })),
        of(1, encode(&FormationAnswer::Join(JoinAnswer::AskLeader(cluster, None)))),
        of(2, encode(&AdminRequest { what: AdminCommand::Remove(Named::Id(node)), is_forwarded: true })),
        of(2, encode(&AdminRequest { what: AdminCommand::Propose(vec![1, 2, 3]), is_forwarded: false })),
        of(3, encode(&AdminAnswer::Members(members))),
    ]
}

/// What can be read can be written, and is read the same again.
fn reread<T: DeserializeOwned + Serialize + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = decode::<T>(bytes) else { return };
    let written = encode(&message);
    assert!(written.len() <= bytes.len(), "{} bytes became {}", bytes.len(), written.len());
    let again = decode::<T>(&written).expect("what was written");
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
}

/// IDENTITY.json. Nobody's is taken for a node's: a change of any byte that means something is noticed.
pub fn cluster_identity(bytes: &[u8]) {
    let Ok(identity) = directory::parse(bytes) else { return };
    let printed = directory::print(&identity).expect("what was read can be written");
    assert_eq!(directory::parse(&printed).as_ref(), Ok(&identity));
    let text = String::from_utf8(printed).expect("JSON is text");
    let id = identity.node.to_string();
    let other = NodeId::from_random(identity.node.number() ^ 1).to_string();
    assert!(directory::parse(text.replacen(&id, &other, 1).as_bytes()).is_err(), "another node: {text}");
}

/// Identities in every phase.
pub fn cluster_identity_examples() -> Vec<Vec<u8>> {
    let cluster = ClusterId::from_random(7);
    let consent = Some(Invitation { round: 2, cluster });
    let initial = Some(vec![Voter { node: NodeId::from_random(9), name: named("app-0") }]);
    let phases = [
        Phase::FRESH,
        Phase::Unbound { consent },
        Phase::Bound { cluster, initial },
        Phase::Removed { cluster },
    ];
    let print = |phase| {
        let mut identity = Identity::new(NodeId::from_random(9), named("app-0"));
        identity.phase = phase;
        directory::print(&identity).expect("it can be written")
    };
    phases.map(print).to_vec()
}

/// The record of the bootstrap ledger.
pub fn bootstrap_ledger(bytes: &[u8]) {
    let Ok(formed) = ledger::parse_formed(bytes) else { return };
    assert!(!formed.voters.is_empty());
    assert_eq!(ledger::parse_formed(&ledger::print_formed(&formed)).as_ref(), Ok::<&Formed, _>(&formed));
}

/// `raft://HOST:PORT…?…`, but for the files that it names, and `HOST:PORT`.
pub fn raft_url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (hosts, query) = text.split_once('?').unwrap_or((text, ""));
    for host in hosts.split(',') {
        if let Ok(address) = client_url::node_address(host) {
            assert_eq!(resolver::address::wrong(&address), None, "{address}");
            assert_eq!(client_url::node_address(&address).as_ref(), Ok(&address));
        }
    }
    for value in client_url::options(query).unwrap_or_default().values() {
        assert!(!value.is_empty() && value.len() <= query.len());
    }
    if let Ok(name) = NodeName::new(text) {
        assert!(!name.as_str().contains('/') && !name.as_str().starts_with('.'));
    }
}

fn named(text: &str) -> NodeName {
    NodeName::new(text).expect("a name")
}
