//! Polling: a loop that works only while it leads.
//!
//! `cargo run -p bellwether --example poll -- DIR`, in several terminals with the same DIR.

use std::time::Duration;

use bellwether::{Election, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "demo-elections".to_owned());
    let election = Election::builder("poll-demo")
        .backend(bellwether::file(directory)?)
        .id(format!("poll-{}", std::process::id()))
        .ttl(Duration::from_secs(3))
        .start()
        .await?;

    let mut done = 0;
    while done < 3 {
        // One clock read and one atomic load; false from the deadline on, whatever else happens.
        if election.is_leader() {
            done += 1;
            println!("leading: step {done}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    election.stop().await
}
