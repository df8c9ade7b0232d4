//! One file a subcommand.

mod acquire;
mod doctor;
mod explain;
mod history;
mod manual;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
mod run;
mod signals;
mod status;
mod step_down;
mod tables;
mod top;
mod watch;

pub(crate) use run::restart::Restart;

use bellwether::{CandidateId, Election, ElectionName, Store};
use tokio::task::JoinHandle;

use crate::args::{Args, Command};
use crate::exit::{Exit, Failure};

/// Begins what a candidate does besides on some stores, until it is aborted. It may hold the election.
type Companion = Box<dyn FnOnce(&Election) -> JoinHandle<()> + Send>;

/// What a candidate does besides on this store.
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
        Command::Watch(watch) => watch::watch(global, watch).await,
        Command::StepDown(step_down) => step_down::step_down(global, step_down).await,
        Command::History(history) => history::history(global, history).await,
        Command::Doctor(doctor) => doctor::doctor(global, doctor).await,
        Command::Top(top) => top::top(global, top).await,
        #[cfg(feature = "postgres")]
        Command::Postgres(postgres) => postgres::postgres(global, postgres).await,
        #[cfg(feature = "nats")]
        Command::Nats(nats) => nats::nats(global, nats).await,
        Command::Completions(completions) => manual::completions(completions),
        Command::Man => manual::man(),
        Command::Tables(tables) => tables::tables(tables),
        Command::Explain(explain) => explain::explain(global, explain),
    }
}
