//! Fencing: the database itself refuses the writes of a leader that was replaced and does not know it yet.
//!
//! `bellwether --backend postgres://USER@HOST/DATABASE postgres init` once, then
//! `cargo run -p bellwether --features postgres --example fence -- 'postgres://USER@HOST/DATABASE'`, in several terminals.

use std::time::Duration;

use bellwether::postgres::FENCED;
use bellwether::{Election, Epoch};
use tokio_postgres::{Client, NoTls};

const ELECTION: &str = "fence-demo";

/// One transaction of the leader's work. The call of `fence` makes it this epoch's: it fails if the epoch leads no more, and
/// until it has ended nobody else begins to lead.
async fn write(client: &mut Client, epoch: Epoch, line: &str) -> Result<(), tokio_postgres::Error> {
    let number = i64::try_from(epoch.get()).expect("an epoch is below 2^53");
    let transaction = client.transaction().await?;
    transaction.execute("SELECT bellwether.fence($1, $2)", &[&ELECTION, &number]).await?;
    transaction.execute("INSERT INTO fence_demo (epoch, line) VALUES ($1, $2)", &[&number, &line]).await?;
    transaction.commit().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: fence postgres://USER@HOST/DATABASE")?;
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE IF NOT EXISTS fence_demo (epoch int8, line text)").await?;

    let election = Election::builder(ELECTION)
        .backend(bellwether::open(&format!("{url}?schema=bellwether"))?)
        .id(format!("fence-{}", std::process::id()))
        .ttl(Duration::from_secs(3))
        .start()
        .await?;
    let leadership = election.wait_for_leadership().await?;
    let epoch = leadership.epoch();
    for step in 1..=3 {
        write(&mut client, epoch, &format!("step {step}")).await?;
        println!("step {step} written under epoch {epoch}");
    }
    election.stop().await?;

    // As somebody would who was paused, and woke up believing.
    match write(&mut client, epoch, "too late").await {
        Err(error) if error.code().is_some_and(|code| code.code() == FENCED) => {
            println!("too late, refused: {}", error.as_db_error().map_or("", |said| said.message()));
            Ok(())
        }
        Err(error) => Err(error.into()),
        Ok(()) => Err("a stale write was let through".into()),
    }
}
