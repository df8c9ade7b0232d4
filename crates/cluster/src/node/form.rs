//! From an empty directory to a cluster: proposing, waiting to be invited, asking to join.
//!
//! A loop of rounds. Each round looks at what the disk, the resolver and the ledger say, decides anew, and asks those who have not
//! answered. It ends when this node is bound, by whatever way. No round concludes anything from silence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::ask::Ask;
use super::shared::Shared;
use crate::directory::Identity;
use crate::error::{ClusterError, ErrorKind};
use crate::formation::{
    Binding, Decision, Formed, InviteAnswer, Ledger, Phase, Progress, Proposal, Voter, decide,
};
use crate::ledger::{BootstrapLedger, Recording};
use crate::names::{ClusterId, NodeId, NodeName};
use crate::node::StartMode;
use crate::peer::Peer;
use crate::protocol::{FormationAnswer, FormationRequest, JoinAnswer};

/// The first pause between two rounds; it doubles up to the retry interval of the settings.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

const SENSELESS: &str = "its answer makes no sense";

pub(super) struct Forming {
    pub(super) shared: Arc<Shared>,
    pub(super) ask: Arc<dyn Ask>,
    pub(super) ledger: Option<Arc<dyn BootstrapLedger>>,
    proposal: Option<Proposal>,
    /// The highest round that was heard of.
    highest: u64,
    /// Some peer is in this cluster already.
    elsewhere: Option<ClusterId>,
}

impl Forming {
    pub(super) fn new(
        shared: Arc<Shared>,
        ask: Arc<dyn Ask>,
        ledger: Option<Arc<dyn BootstrapLedger>>,
    ) -> Forming {
        Forming { shared, ask, ledger, proposal: None, highest: 0, elsewhere: None }
    }

    /// Until this node is bound.
    pub(super) async fn run(&mut self) -> Result<StartMode, ClusterError> {
        let mut phases = self.shared.phases();
        let mut invited_by = self.shared.invited_by.subscribe();
        let mut pause = FIRST_PAUSE;
        loop {
            phases.borrow_and_update();
            invited_by.borrow_and_update();
            if let Some(mode) = self.round().await? {
                return Ok(mode);
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = phases.changed() => {}
                _ = invited_by.changed() => {}
            }
            pause = (pause * 2).min(self.shared.config.bootstrap.join_retry);
        }
    }

    async fn round(&mut self) -> Result<Option<StartMode>, ClusterError> {
        if let Some(error) = self.shared.unbindable() {
            return Err(error.clone());
        }
        let known = self.shared.known();
        if let Phase::Bound { initial, .. } = &known.phase {
            // By a frame or by an answer, since the last round.
            return Ok(Some(if initial.is_some() { StartMode::Bootstrap } else { StartMode::Join }));
        }
        let peers = self.peers().await;
        let expected = self.shared.config.bootstrap.expected;
        let is_seed = self.is_seed(&peers)?;
        let ledger = match self.read_ledger().await {
            Err(error) if error.kind() == ErrorKind::SeedUnavailable => {
                self.shared.waiting.now_for(error.to_string());
                return Ok(None);
            }
            ledger => ledger?,
        };
        match decide(known.node, &known.phase, is_seed, expected, &ledger) {
            Decision::Restart(_) => Ok(None),
            Decision::Propose => self.propose(&known.phase, &peers, &ledger).await,
            Decision::AwaitInvite => self.join(&peers, None, None).await,
            Decision::Join(cluster) => {
                let formed = if let Ledger::Formed(formed) = &ledger { Some(formed) } else { None };
                self.join(&peers, Some(cluster), formed).await
            }
            Decision::Refuse(refusal) => Err(ClusterError::new(ErrorKind::Refused, refusal.to_string())),
        }
    }

    /// All names but this node's own.
    async fn peers(&mut self) -> Vec<Peer> {
        let mut peers = match self.shared.resolver.resolve().await {
            Ok(peers) => peers,
            Err(error) => {
                if error.is_permanent() {
                    tracing::warn!(%error, "peers cannot be found");
                }
                self.shared.waiting.now_for(format!("peers cannot be found: {error}"));
                return Vec::new();
            }
        };
        self.shared.book.learn(&peers);
        peers.retain(|peer| peer.id != *self.shared.name());
        peers
    }

    /// A node is the seed among all that are expected, or not at all: proposals to different sets of nodes would not exclude each other.
    fn is_seed(&mut self, peers: &[Peer]) -> Result<bool, ClusterError> {
        let bootstrap = &self.shared.config.bootstrap;
        let is_seed = bootstrap.strategy.is_seed(self.shared.name(), peers);
        let is_seed = is_seed.map_err(|error| ClusterError::invalid(error.to_string()))?;
        let (known, expected) = (peers.len() + 1, bootstrap.expected);
        if is_seed && known != expected && self.ledger.is_none() {
            return Ok(false);
        }
        Ok(is_seed)
    }

    async fn read_ledger(&self) -> Result<Ledger, ClusterError> {
        match &self.ledger {
            None => Ok(Ledger::Unused),
            Some(ledger) => Ok(ledger.read().await?.map_or(Ledger::Empty, Ledger::Formed)),
        }
    }

    async fn propose(
        &mut self,
        phase: &Phase,
        peers: &[Peer],
        ledger: &Ledger,
    ) -> Result<Option<StartMode>, ClusterError> {
        if let Some(recorder) = self.ledger.clone() {
            return self.propose_alone(phase, ledger, &*recorder).await;
        }
        if let Some(cluster) = self.elsewhere {
            return self.join(peers, Some(cluster), None).await;
        }
        let Some(mut proposal) = self.current_proposal(phase, peers).await? else { return Ok(None) };
        let asked = proposal.invitation();
        let answers = match proposal.progress() {
            Progress::Waiting(waiting) => self.invite(&waiting, peers, &proposal).await,
            _ => Vec::new(),
        };
        let mut progress = proposal.progress();
        let mut unanswered = BTreeMap::new();
        for (name, answered) in answers {
            let (node, answer) = match answered {
                Ok(answered) => answered,
                Err(why) => {
                    unanswered.insert(name, why);
                    continue;
                }
            };
            if let InviteAnswer::AlreadyIn(cluster) = answer {
                self.shared.counters.seen(&name, cluster);
            }
            progress = proposal.answered(asked, &name, node, answer);
            if matches!(progress, Progress::Superseded(_) | Progress::AlreadyIn(_)) {
                break;
            }
        }
        match progress {
            Progress::Complete(_) => return self.begin(&proposal).await,
            Progress::Waiting(waiting) => {
                let why = |name| unanswered.get(name).map(|why| format!(" ({why})")).unwrap_or_default();
                let names: Vec<String> = waiting.iter().map(|name| format!("{name}{}", why(name))).collect();
                let names = names.join(", ");
                self.shared.waiting.now_for(format!("these have not consented to form a cluster: {names}"));
                self.proposal = Some(proposal);
            }
            Progress::Superseded(round) => {
                self.highest = self.highest.max(round);
                self.proposal = None;
            }
            Progress::AlreadyIn(cluster) => {
                tracing::info!(%cluster, "a peer is in a cluster already; joining that");
                self.elsewhere = Some(cluster);
                self.proposal = None;
                self.shared.start_over(Phase::dropped).await?;
            }
        }
        Ok(None)
    }

    async fn current_proposal(
        &mut self,
        phase: &Phase,
        peers: &[Peer],
    ) -> Result<Option<Proposal>, ClusterError> {
        let current = self.proposal.take();
        let is_own = |proposal: &Proposal| *phase == Phase::Unbound { consent: Some(proposal.invitation()) };
        match current.filter(is_own) {
            Some(proposal) => Ok(Some(proposal)),
            None => {
                let others = peers.iter().map(|peer| peer.id.clone()).collect();
                self.shared.propose_to(others, self.highest).await
            }
        }
    }

    async fn invite(
        &self,
        waiting: &[NodeName],
        peers: &[Peer],
        proposal: &Proposal,
    ) -> Vec<(NodeName, Result<(NodeId, InviteAnswer), String>)> {
        let asked = peers.iter().filter(|peer| waiting.contains(&peer.id)).map(|peer| async {
            self.shared.counters.attempt();
            let request = FormationRequest::Invite(proposal.invitation());
            let asked = self.ask.formation(peer.address.clone(), Some(peer.id.clone()), request).await;
            let answered = match asked {
                Ok(FormationAnswer::Invited { node, answer }) => Ok((node, answer)),
                Ok(_) => Err(SENSELESS.to_owned()),
                Err(failure) => {
                    self.shared.counters.failure();
                    tracing::debug!(peer = %peer.id, %failure, "an invitation had no answer");
                    Err(failure.message)
                }
            };
            (peer.id.clone(), answered)
        });
        join_all(asked).await
    }

    async fn begin(&mut self, proposal: &Proposal) -> Result<Option<StartMode>, ClusterError> {
        let bound = proposal.clone();
        // Not bound where this node itself has consented to a higher invitation meanwhile.
        self.shared.bind(move |own| Ok(bound.bound(&own.phase))).await?;
        Ok(self.shared.engine().is_some().then_some(StartMode::Bootstrap))
    }

    /// At the seed, which is bound: binds all other voters, and then lets Raft begin. A seed that stopped in the middle does it again.
    pub(super) async fn bind_voters(&mut self) -> Result<(), ClusterError> {
        let known = self.shared.known();
        let Some(mut binding) = Binding::new(known.node, &known.phase) else { return Ok(()) };
        let engine = self.shared.bound_engine()?;
        if engine.has_existing_state().await? {
            return Ok(());
        }
        let mut pause = FIRST_PAUSE;
        loop {
            let waiting: Vec<Voter> = binding.waiting().cloned().collect();
            let asked = waiting.iter().map(|voter| self.bind_voter(binding.cluster(), voter));
            for (voter, answer) in waiting.iter().zip(join_all(asked).await) {
                match answer {
                    Ok(node) => binding.is_bound(node),
                    Err(why) => {
                        let name = &voter.name;
                        self.shared.waiting.now_for(format!("{name} is not bound to the cluster yet: {why}"));
                    }
                }
            }
            if let Some(voters) = binding.complete() {
                return self.shared.begin_raft(voters).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.shared.config.bootstrap.join_retry);
            self.peers().await;
        }
    }

    async fn bind_voter(&self, cluster: ClusterId, voter: &Voter) -> Result<NodeId, String> {
        let address = self.shared.book.of(&voter.name).ok_or("its address is not known")?;
        let request = FormationRequest::Bind(cluster, voter.node);
        match self.ask.formation(address, Some(voter.name.clone()), request).await {
            Ok(FormationAnswer::Bound(answer)) => answer,
            Ok(_) => Err(SENSELESS.to_owned()),
            Err(failure) => Err(failure.message),
        }
    }

    /// With a ledger, the seed begins alone: whoever writes the record first has formed the cluster, and all others join that.
    async fn propose_alone(
        &mut self,
        phase: &Phase,
        ledger: &Ledger,
        recorder: &dyn BootstrapLedger,
    ) -> Result<Option<StartMode>, ClusterError> {
        if let Ledger::Formed(_) = ledger {
            // Its own record: this node stopped before it bound itself.
            let Some(proposal) = Proposal::recorded(phase, self.shared.voter()) else { return Ok(None) };
            return self.begin(&proposal).await;
        }
        let Some(proposal) = self.shared.propose_to(Vec::new(), 0).await? else { return Ok(None) };
        let formed = Formed {
            cluster: proposal.invitation().cluster,
            voters: vec![self.shared.voter()],
            time: bellwether_core::Clock::wall(&bellwether_deadman::SystemClock).to_string(),
        };
        match recorder.create(&formed).await {
            Recording::Recorded => self.begin(&proposal).await,
            Recording::Exists(_) => Ok(None),
            // If it was recorded, the next round finds its own record.
            Recording::Unknown(error) => {
                self.shared.waiting.now_for(error.to_string());
                Ok(None)
            }
            Recording::Refused(error) => Err(error),
        }
    }

    /// Asks everybody whether this node may join; `only` that cluster, where it belongs to one or the ledger names one.
    async fn join(
        &mut self,
        peers: &[Peer],
        only: Option<ClusterId>,
        formed: Option<&Formed>,
    ) -> Result<Option<StartMode>, ClusterError> {
        let invited_by = self.shared.invited_by.borrow().clone();
        let (invited_to, address) = invited_by.unzip();
        let only = only.or(invited_to);
        let mut addresses: Vec<String> = peers.iter().map(|peer| peer.address.clone()).collect();
        addresses.extend(address);
        let request = || FormationRequest::Join { member: self.shared.member(), only };
        let answers =
            join_all(addresses.into_iter().map(|address| self.ask_to_join(address, request()))).await;
        self.shared.waiting.now_for(self.not_invited(&answers, only));
        let mut without_cluster = 0;
        for answer in answers.into_iter().flatten() {
            match answer {
                JoinAnswer::Member(cluster) if only.is_none_or(|only| only == cluster) => {
                    let joined = move |own: &Identity| {
                        let refused = |error: crate::formation::NotInCluster| {
                            ClusterError::new(ErrorKind::Refused, error.to_string())
                        };
                        own.phase.joined(cluster).map_err(refused)
                    };
                    self.shared.bind(joined).await?;
                    return Ok(Some(StartMode::Join));
                }
                JoinAnswer::Member(_) | JoinAnswer::AskLeader(..) => {}
                JoinAnswer::NoCluster => without_cluster += 1,
                JoinAnswer::Refused(why) => {
                    self.shared.waiting.now_for(format!("a node of the cluster refused: {why}"))
                }
            }
        }
        let expected = self.shared.config.bootstrap.expected;
        // A node without others has nobody to ask.
        let is_everybody = without_cluster + 1 >= expected && (without_cluster > 0 || expected == 1);
        match formed {
            Some(formed) if is_everybody => Err(lost_all(formed)),
            _ => Ok(None),
        }
    }

    /// What a node waits for that may not propose a cluster itself.
    fn not_invited(&self, answers: &[Result<JoinAnswer, String>], only: Option<ClusterId>) -> String {
        let bootstrap = &self.shared.config.bootstrap;
        let (asked, answered) = (answers.len(), answers.iter().flatten().count());
        let why = answers.iter().find_map(|answer| Some(format!(" ({})", answer.as_ref().err()?)));
        let heard = format!("{answered} of {asked} other nodes answered{}", why.unwrap_or_default());
        match only {
            Some(cluster) => format!("{heard}, and none has let this node into cluster {cluster} yet"),
            None if asked + 1 != bootstrap.expected => format!(
                "{} of {} expected nodes are known by name; {heard}, and none is in a cluster",
                asked + 1,
                bootstrap.expected
            ),
            None => {
                format!("{heard}, and none is in a cluster: the seed ({}) invites all", bootstrap.strategy)
            }
        }
    }

    /// Follows one hint to the leader.
    async fn ask_to_join(&self, address: String, request: FormationRequest) -> Result<JoinAnswer, String> {
        let first = self.ask_once(address, request.clone()).await?;
        match first {
            JoinAnswer::AskLeader(_, Some(leader)) => self.ask_once(leader, request).await,
            other => Ok(other),
        }
    }

    async fn ask_once(&self, address: String, request: FormationRequest) -> Result<JoinAnswer, String> {
        self.shared.counters.attempt();
        match self.ask.formation(address, None, request).await {
            Ok(FormationAnswer::Join(answer)) => Ok(answer),
            Ok(_) => Err(SENSELESS.to_owned()),
            Err(failure) => {
                self.shared.counters.failure();
                tracing::debug!(%failure, "a request to join had no answer");
                Err(failure.message)
            }
        }
    }
}

fn lost_all(formed: &Formed) -> ClusterError {
    ClusterError::new(
        ErrorKind::Refused,
        format!(
            "cluster {} was formed on {}, and every node that answers has an empty directory: restore one and use `bellwether recover`, or \
             start a new cluster with --force-new-cluster {}, which gives up everything that the old one held",
            formed.cluster, formed.time, formed.cluster
        ),
    )
}
