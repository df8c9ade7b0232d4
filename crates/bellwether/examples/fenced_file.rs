//! Fencing a file: the write of a leader that was replaced and does not know it yet is refused.
//!
//! `cargo run -p bellwether --example fenced_file -- DIR`, in several terminals with the same DIR.

use std::path::Path;
use std::time::Duration;

use bellwether::fence::FenceError;
use bellwether::fence::file::FencedFile;
use bellwether::{Election, Epoch};

const ELECTION: &str = "fenced-file-demo";

/// One leadership: first everything before it is fenced off, and only then is the content read, changed and written.
async fn lead(directory: &Path, routes: &FencedFile) -> Result<Epoch, Box<dyn std::error::Error>> {
    let election = Election::builder(ELECTION)
        .backend(bellwether::file(directory.join("elections"))?)
        .id(format!("fenced-file-{}", std::process::id()))
        .ttl(Duration::from_secs(3))
        .start()
        .await?;
    let leadership = election.wait_for_leadership().await?;
    let epoch = leadership.epoch();
    let found = routes.raise(epoch)?.unwrap_or_default();
    println!("epoch {epoch} found {} lines", String::from_utf8(found)?.lines().count());
    for step in 1..=3 {
        routes.update(epoch, |before| {
            let mut content = before.unwrap_or_default();
            content.extend_from_slice(format!("step {step} of epoch {epoch}\n").as_bytes());
            content
        })?;
    }
    election.stop().await?;
    Ok(epoch)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "demo-fenced-file".to_owned());
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    let routes = FencedFile::new(directory.join("routes"), ELECTION.parse::<bellwether::ElectionName>()?);

    let first = lead(directory, &routes).await?;
    let second = lead(directory, &routes).await?;
    println!("led under the epochs {first} and {second}");

    // As the first leader would who was paused, and woke up believing.
    match routes.write(first, b"everything by me alone") {
        Err(FenceError::Fenced(fenced)) => println!("too late, refused: {fenced}"),
        Err(other) => return Err(other.into()),
        Ok(()) => return Err("a stale write was let through".into()),
    }
    println!("{}", String::from_utf8(routes.read()?.content.unwrap_or_default())?);
    Ok(())
}
