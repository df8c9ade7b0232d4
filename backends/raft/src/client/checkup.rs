//! Whether a cluster is fit for elections: reachable, with all members up and caught up, an odd number of voters, nodes of one release,
//! connections that are protected, and quick.
//!
//! Looking writes nothing. Writes are timed with a command that changes nothing and passes through the log as any other does.

use std::time::Duration;

use bellwether_backend::{Finding, Probing};
use bellwether_cluster::transport::{Hello, Intended, Purpose, Security};
use bellwether_cluster::{ClusterView, MemberView, Role};
use bellwether_core::{ErrorKind, StoreError};

use super::Shared;
use crate::command::{Command, SessionId};
use crate::errors::{BACKEND, senseless, unavailable};
use crate::protocol::{ClientRequest, Query, Question, Reply, decode, encode};

const CALL_LIMIT: Duration = Duration::from_secs(5);
const SAMPLES: usize = 100;
/// A call that takes longer than this at the median costs handovers more than the election itself does.
const SLOW: Duration = Duration::from_millis(100);
/// A member that has not answered for this long is down, or cut off.
const UP: Duration = Duration::from_secs(5);
/// Entries that a member may lack on a busy cluster.
const LAG_MAX: u64 = 1_000;

pub(super) async fn checkup(shared: &Shared, probing: Probing<'_>) -> Vec<Finding> {
    let mut findings = nodes(shared).await;
    match members(shared).await {
        Ok(view) => {
            findings.extend(membership(&view));
            findings.push(timed(shared, "reads", &Question::Read(Query::Elections)).await);
            if probing == Probing::Write {
                // There never is a session 0.
                let nothing = Command::CloseSession(SessionId(0)).encode();
                findings.push(timed(shared, "writes", &Question::Propose(nothing)).await);
            }
        }
        Err(error) => findings.push(Finding::failed("cluster", &error)),
    }
    findings.push(protection(&shared.security));
    findings
}

async fn members(shared: &Shared) -> Result<ClusterView, StoreError> {
    match shared.link.ask(&Question::Members, CALL_LIMIT).await?.1 {
        Reply::Members(view) => Ok(view),
        _ => Err(senseless()),
    }
}

/// What each node that the URL names says of itself.
async fn nodes(shared: &Shared) -> Vec<Finding> {
    let mut releases = Vec::new();
    let mut findings = Vec::new();
    let mut last = None;
    for address in shared.link.addresses() {
        match node(shared, address).await {
            Ok((name, version)) => {
                findings.push(Finding::good("node", format!("{name} at {address} runs release {version}")));
                releases.push(version);
            }
            Err(error) => {
                findings.push(Finding::warning("node", format!("{address} does not answer: {error}")));
                last = Some(error);
            }
        }
    }
    if let (true, Some(error)) = (releases.is_empty(), &last) {
        return vec![Finding::failed("node", error)];
    }
    releases.sort();
    releases.dedup();
    if releases.len() > 1 {
        let sentence = format!("the nodes run releases {}: upgrade the older ones", releases.join(" and "));
        findings.push(Finding::warning("release", sentence));
    }
    findings
}

async fn node(shared: &Shared, address: &str) -> Result<(String, String), StoreError> {
    let hello = Hello { purpose: Purpose::Client, cluster: None, from: None, intended: Intended::Anyone };
    let connection = shared.link.dial(address, &hello).await?;
    let request = ClientRequest::new(Question::Node, CALL_LIMIT);
    let answer = connection.call(encode(&request), CALL_LIMIT).await;
    match decode(&answer.map_err(|error| unavailable(error.to_string()))?) {
        Ok(Reply::Node { name, version }) => Ok((name, version)),
        Ok(_) => Err(senseless()),
        Err(why) => Err(StoreError::new(ErrorKind::Misconfigured, BACKEND, why)),
    }
}

fn membership(view: &ClusterView) -> Vec<Finding> {
    let voters: Vec<&MemberView> = view.members.iter().filter(|member| member.role == Role::Voter).collect();
    let names = |members: &[&MemberView]| {
        members.iter().map(|member| member.member.name.to_string()).collect::<Vec<_>>().join(", ")
    };
    let is_up = |member: &&MemberView| {
        member.is_leader || member.heard_ms_ago.is_some_and(|ago| Duration::from_millis(ago) < UP)
    };
    let down: Vec<&MemberView> = view.members.iter().filter(|member| !is_up(member)).collect();
    let leader = view.members.iter().find(|member| member.is_leader);
    let leader = leader.map_or_else(|| "nobody".to_owned(), |member| member.member.name.to_string());
    let mut findings = vec![match down.is_empty() {
        true => Finding::good(
            "members",
            format!("{leader} leads the cluster, and all {} members are up", view.members.len()),
        ),
        false => Finding::warning(
            "members",
            format!("{leader} leads the cluster; {} did not answer it lately: bring it up", names(&down)),
        ),
    }];
    findings.push(match voters.len() {
        1 => Finding::warning(
            "voters",
            "one node votes: its loss stops every election, and the loss of its disk loses the epochs; add two more",
        ),
        even if even % 2 == 0 => {
            let sentence = format!("{even} nodes vote, and {} would survive as many losses: add one, or remove one", even - 1);
            Finding::warning("voters", sentence)
        }
        odd => Finding::good("voters", format!("{odd} nodes vote: the loss of {} costs nothing", odd / 2)),
    });
    let behind: Vec<&MemberView> =
        view.members.iter().filter(|member| member.lag.is_some_and(|lag| lag > LAG_MAX)).collect();
    if !behind.is_empty() {
        let sentence = format!("{} lack entries of the log: check their disks and network", names(&behind));
        findings.push(Finding::warning("lag", sentence));
    }
    findings
}

async fn timed(shared: &Shared, what: &'static str, question: &Question) -> Finding {
    let mut taken = Vec::new();
    for _ in 0..SAMPLES {
        let begin = shared.link.clock().boot();
        if let Err(error) = shared.link.ask(question, CALL_LIMIT).await {
            return Finding::failed(what, &error);
        }
        taken.push(shared.link.clock().boot().since(begin));
    }
    taken.sort();
    let (median, slowest) = (taken[SAMPLES / 2], taken[SAMPLES * 99 / 100]);
    let sentence = format!(
        "{what} take {median:.1?} at the median and {slowest:.1?} at the 99th percentile of {SAMPLES}, each confirmed by a majority"
    );
    if median > SLOW {
        return Finding::warning(
            what,
            format!("{sentence}: check the disks of the nodes and the way to them"),
        );
    }
    Finding::good(what, sentence)
}

fn protection(security: &Security) -> Finding {
    const WHAT: &str = "protection";
    match security {
        Security::LoopbackOnly => Finding::warning(
            WHAT,
            "nodes and clients trust everybody on this machine, and nobody else: for other machines, use secret-file or certificates",
        ),
        Security::Secret(_) => Finding::warning(
            WHAT,
            "a shared secret protects against changes and strangers, but nothing is encrypted: certificates do both",
        ),
        _ => Finding::good(WHAT, "connections are encrypted, with certificates on both sides"),
    }
}
