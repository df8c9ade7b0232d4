//! Hooks and callbacks: code that is called when leadership comes and goes.
//!
//! `cargo run -p bellwether --example hooks -- DIR`, in several terminals with the same DIR.

use std::time::Duration;

use bellwether::{CandidateId, Election, Error, HookError, Hooks, Leadership};

struct Service;

impl Hooks for Service {
    async fn on_become_leader(&self, leadership: Leadership) -> Result<(), HookError> {
        println!("hook: leading under epoch {}", leadership.epoch());
        Ok(())
    }

    async fn on_lose_leadership(&self, leadership: Leadership) -> Result<(), HookError> {
        // The lead is given away only when this has ended.
        println!("hook: epoch {} is over", leadership.epoch());
        Ok(())
    }

    async fn on_leader_change(&self, leader: Option<CandidateId>) -> Result<(), HookError> {
        match leader {
            Some(id) => println!("hook: {id} leads"),
            None => println!("hook: nobody leads"),
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "demo-elections".to_owned());
    let election = Election::builder("hooks-demo")
        .backend(bellwether::file(directory)?)
        .id(format!("hooks-{}", std::process::id()))
        .ttl(Duration::from_secs(3))
        .hooks(Service)
        .on_acquired(|event| println!("callback: acquired {:?}", event.epoch))
        .on_error(|event| println!("callback: {:?}", event.what))
        .start()
        .await?;

    let leadership = election.wait_for_leadership().await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    election.stop().await?;
    println!("over: {}", leadership.lost().await);
    Ok(())
}
