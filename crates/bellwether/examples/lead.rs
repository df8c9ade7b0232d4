//! Leading: work that is dropped the moment the leadership ends, and that fences what it writes with the epoch.
//!
//! `cargo run -p bellwether --example lead -- DIR`, in several terminals with the same DIR.

use std::time::Duration;

use bellwether::{Election, Epoch, Error};

/// Stands for whatever the work writes to. It refuses writers whose time is over.
#[derive(Default)]
struct Ledger {
    highest: Epoch,
    lines: Vec<String>,
}

impl Ledger {
    fn write(&mut self, epoch: Epoch, line: String) -> Result<(), String> {
        if epoch < self.highest {
            return Err(format!("epoch {epoch} is over, {} has written", self.highest));
        }
        self.highest = epoch;
        self.lines.push(line);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "demo-elections".to_owned());
    let election = Election::builder("lead-demo")
        .backend(bellwether::file(directory)?)
        .id(format!("lead-{}", std::process::id()))
        .ttl(Duration::from_secs(3))
        .start()
        .await?;

    // Runs once per leadership, until it has run to its end.
    let ledger = election
        .lead(|leadership| async move {
            let mut ledger = Ledger::default();
            for step in 1..=3 {
                if let Err(refused) = ledger.write(leadership.epoch(), format!("step {step}")) {
                    println!("{refused}");
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            ledger
        })
        .await?;
    println!("wrote {:?} under epoch {}", ledger.lines, ledger.highest);
    election.stop().await
}
