//! One file a subcommand.

mod acquire;
mod audit;
mod doctor;
mod explain;
mod history;
mod manual;
#[cfg(feature = "node")]
mod members;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "node")]
mod node;
mod pause;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "node")]
mod recover;
mod run;
mod signals;
mod status;
mod step_down;
mod tables;
mod top;
#[cfg(all(feature = "torture", target_os = "linux"))]
mod torture;
mod watch;

use bellwether::{CandidateId, Election, ElectionName, Store};
use tokio::task::JoinHandle;

use crate::args::{Args, Command};
use crate::exit::{Exit, Failure};

/// Starts what a candidate also does on some stores, until it is aborted. It may hold the election.
type Companion = Box<dyn FnOnce(&Election) -> JoinHandle<()> + Send>;

/// What a candidate also does on this store.
fn companion(store: &Store, on: &ElectionName, id: &CandidateId) -> Result<Option<Companion>, Failure> {
    #[cfg(feature = "nats")]
    return nats::answers(store, on, id);
    #[cfg(not(feature = "nats"))]
    {
        let _ = (store, on, id);
        Ok(None)
    }
}

/// Does what was asked.
pub(crate) async fn run(args: Args) -> Result<Exit, Failure> {
    let global = &args.global;
    match &args.command {
        Command::Run(run) => run::run(global, run, args.has_live_screen()).await,
        Command::Acquire(acquire) => acquire::acquire(global, acquire).await,
        Command::Status(status) => status::status(global, status).await,
        Command::Watch { election } => watch::watch(global, election.as_ref()).await,
        Command::StepDown(step_down) => step_down::step_down(global, step_down).await,
        Command::Pause(pause) => pause::pause(global, pause).await,
        Command::Unpause { election } => pause::unpause(global, election.as_ref()).await,
        Command::History { election } => history::history(global, election.as_ref()).await,
        Command::Audit(flags) => audit::audit(global, flags),
        #[cfg(all(feature = "torture", target_os = "linux"))]
        Command::Torture(flags) => torture::torture(global, flags).await,
        #[cfg(all(feature = "torture", not(target_os = "linux")))]
        Command::Torture(_) => {
            let sentence = "torture needs Linux, where a process can be held while it is stopped and killed";
            Err(Failure::new(crate::exit::Exit::Unavailable, sentence))
        }
        Command::Doctor(doctor) => doctor::doctor(global, doctor).await,
        Command::Top(top) => top::top(global, top).await,
        #[cfg(feature = "postgres")]
        Command::Postgres(command) => postgres::postgres(global, command).await,
        #[cfg(feature = "nats")]
        Command::Nats(command) => nats::nats(global, command).await,
        #[cfg(feature = "node")]
        Command::Node(flags) => node::node(global, flags).await,
        #[cfg(feature = "node")]
        Command::Members(command) => members::members(global, command).await,
        #[cfg(feature = "node")]
        Command::Recover(flags) => recover::recover(global, flags).await,
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man => manual::man(),
        Command::Tables { table } => tables::tables(*table),
        Command::Explain(explain) => explain::explain(global, explain),
    }
}
