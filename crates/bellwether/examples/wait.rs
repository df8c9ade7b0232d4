//! Waiting: block until this process leads, then work until it does not.
//!
//! `cargo run -p bellwether --example wait -- DIR`, in several terminals with the same DIR.

use std::time::Duration;

use bellwether::{Election, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "demo-elections".to_owned());
    let election = Election::builder("wait-demo")
        .backend(bellwether::file(directory)?)
        .id(format!("wait-{}", std::process::id()))
        .ttl(Duration::from_secs(3))
        .start()
        .await?;

    let leadership = election.wait_for_leadership().await?;
    println!("leading under epoch {}, for at least {:?}", leadership.epoch(), leadership.remaining());
    for step in 1..=3 {
        if !leadership.is_valid() {
            println!("no longer leading");
            break;
        }
        println!("step {step}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    // Hand over, rather than let the others wait for the lease to run out.
    election.step_down().await?;
    println!("stepped down");
    election.stop().await
}
