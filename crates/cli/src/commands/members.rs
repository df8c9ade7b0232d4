//! `bellwether members`: who is in a Raft cluster, and changes of that.

use std::time::Duration;

use bellwether::cluster::{
    AdminClient, ClientConfig, ClusterError, ClusterView, ErrorKind, MemberView, NodeView,
};
use serde_json::{Value, json};

use crate::args::{Format, Global, MembersCommand};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

const HEADING: [&str; 7] = ["NAME", "NODE", "ADDRESS", "ROLE", "LEADS", "LAG", "HEARD"];

const NODES_HEADING: [&str; 6] = ["ADDRESS", "NAME", "READY", "LEADER", "APPLIED", "CLUSTER"];

/// Asks the cluster, and prints what it says.
pub(crate) async fn members(global: &Global, command: &MembersCommand) -> Result<Exit, Failure> {
    let client = client(global)?;
    let done = match command {
        MembersCommand::List => return list(global, &client).await,
        MembersCommand::Nodes => return nodes(global, &client).await,
        MembersCommand::Add { address } => client.add(address.clone()).await,
        MembersCommand::Promote { member } => client.promote(member.clone()).await,
        MembersCommand::Remove { member } => client.remove(member.clone()).await,
        MembersCommand::Transfer { member } => client.transfer(member.clone()).await,
    };
    let sentence = explained(&client, done).await?;
    match global.output {
        Format::Json => output::line(&json!({ "done": sentence }).to_string()),
        Format::Table => output::line(&sentence),
    }?;
    Ok(Exit::Clean)
}

fn client(global: &Global) -> Result<AdminClient, Failure> {
    let url = backend::url(global)?;
    let config = ClientConfig::from_url(&url).map_err(|error| Failure::from(error).about_backend())?;
    Ok(AdminClient::new(config.addresses, config.security)?)
}

async fn list(global: &Global, client: &AdminClient) -> Result<Exit, Failure> {
    let mut view = explained(client, client.members().await).await?;
    // Those who look for a member know its name.
    view.members.sort_by(|one, other| one.member.name.cmp(&other.member.name));
    match global.output {
        Format::Json => output::line(&json_of(&view).to_string()),
        Format::Table => {
            let rows: Vec<Vec<String>> = view.members.iter().map(row).collect();
            let mut lines = output::table(&HEADING, &rows);
            lines.push(format!(
                "cluster {}, term {}, committed up to entry {}",
                view.cluster, view.term, view.committed_index
            ));
            output::lines(&lines)
        }
    }?;
    Ok(Exit::Clean)
}

/// What each node says of itself. For probes: nobody else is asked.
async fn nodes(global: &Global, client: &AdminClient) -> Result<Exit, Failure> {
    let views = client.nodes().await;
    let are_ready = views.iter().all(|(_, view)| view.as_ref().is_ok_and(|view| view.is_ready));
    match global.output {
        Format::Json => {
            let all: Vec<Value> = views.iter().map(|(address, view)| node_json(address, view)).collect();
            output::line(&Value::Array(all).to_string())
        }
        Format::Table => {
            let rows: Vec<Vec<String>> =
                views.iter().map(|(address, view)| node_row(address, view)).collect();
            output::lines(&output::table(&NODES_HEADING, &rows))
        }
    }?;
    Ok(if are_ready { Exit::Clean } else { Exit::None })
}

fn node_row(address: &str, view: &Result<NodeView, ClusterError>) -> Vec<String> {
    let dash = || "-".to_owned();
    match view {
        Ok(view) => vec![
            address.to_owned(),
            view.name.to_string(),
            if view.is_ready { "yes".to_owned() } else { "no".to_owned() },
            view.leader.as_ref().map_or_else(dash, ToString::to_string),
            view.applied_index.to_string(),
            view.cluster.map_or_else(dash, |cluster| cluster.to_string()),
        ],
        Err(error) => vec![address.to_owned(), dash(), "no".to_owned(), dash(), dash(), error.to_string()],
    }
}

fn node_json(address: &str, view: &Result<NodeView, ClusterError>) -> Value {
    match view {
        Ok(view) => json!({
            "address": address,
            "name": view.name.as_str(),
            "node": view.node.to_string(),
            "cluster": view.cluster.map(|cluster| cluster.to_string()),
            "leader": view.leader.as_ref().map(|leader| leader.as_str()),
            "applied": view.applied_index,
            "ready": view.is_ready,
            "error": null,
        }),
        Err(error) => json!({ "address": address, "ready": false, "error": error.to_string() }),
    }
}

fn row(view: &MemberView) -> Vec<String> {
    let dash = || "-".to_owned();
    let heard = match view.heard_ms_ago {
        _ if view.is_leader => dash(),
        Some(ago) => format!("{} ago", output::span(Duration::from_millis(ago))),
        None => "never".to_owned(),
    };
    vec![
        view.member.name.to_string(),
        view.member.node.to_string(),
        view.member.address.clone(),
        view.role.as_str().to_owned(),
        if view.is_leader { "yes".to_owned() } else { dash() },
        view.lag.map_or_else(dash, |lag| lag.to_string()),
        heard,
    ]
}

fn json_of(view: &ClusterView) -> Value {
    let member = |one: &MemberView| {
        json!({
            "name": one.member.name.as_str(),
            "node": one.member.node.to_string(),
            "address": one.member.address,
            "role": one.role.as_str(),
            "leader": one.is_leader,
            "lag": one.lag,
            "heard_ms_ago": one.heard_ms_ago,
        })
    };
    json!({
        "cluster": view.cluster.to_string(),
        "term": view.term,
        "committed": view.committed_index,
        "members": view.members.iter().map(member).collect::<Vec<_>>(),
    })
}

/// Where nobody leads, what each node says of itself is what helps.
async fn explained<T>(client: &AdminClient, result: Result<T, ClusterError>) -> Result<T, Failure> {
    let error = match result {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::NotLeader | ErrorKind::SeedUnavailable | ErrorKind::PermissionDenied => {}
        // The cluster is fine; it does not do what was asked.
        ErrorKind::Refused => return Err(Failure::new(Exit::Unavailable, error.to_string())),
        _ => return Err(error.into()),
    }
    let mut sentence = error.to_string();
    for (address, view) in client.nodes().await {
        let said = match view {
            Ok(view) => {
                let cluster =
                    view.cluster.map_or("in no cluster".to_owned(), |id| format!("in cluster {id}"));
                let leader =
                    view.leader.map_or("knows no leader".to_owned(), |leader| format!("follows {leader}"));
                format!("{} ({address}) is {cluster} and {leader}", view.name)
            }
            Err(error) => error.to_string(),
        };
        if said != sentence {
            sentence.push_str("; ");
            sentence.push_str(&said);
        }
    }
    Err(Failure::new(Failure::from(error).exit(), sentence))
}
