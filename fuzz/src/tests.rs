//! The whole corpus without a fuzzer, and what can be made of it by cutting, damaging and repeating.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{TARGETS, Target};

/// Set, it has the test write the examples instead of comparing them.
const WRITE: &str = "BELLWETHER_WRITE_EXAMPLES";
/// A corpus is a few well-chosen files, which are small.
const FILE_MAX_BYTES: usize = 4 * 1024;
const FILES_MAX: usize = 40;
/// As long as an input gets here; what takes the square of its length takes minutes for it.
const LONG_BYTES: usize = 128 * 1024;
/// For one long input. Milliseconds are enough where time is linear, in a build without optimisation.
const LONG_LIMIT: Duration = Duration::from_secs(2);

/// What stands in the way of parsers, repeated: depth, lists, keys that are equal, escapes, digits, lines, letters that are none.
const PATTERNS: &[&[u8]] = &[
    b"[",
    b"{\"a\":",
    b"1,",
    b"\"a\":1,",
    b"%41",
    b"9",
    b"1h",
    b"=",
    b"&a=1",
    b",",
    b"\n",
    b"\\\"",
    b" ",
    b"\xff",
    b"\0",
    "é".as_bytes(),
];

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = folder("corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let path = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().path();
    let mut files: Vec<PathBuf> = entries.map(path).collect();
    files.sort();
    files.iter().map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

/// Runs the body on an input that breaks no promise; else says which does.
fn run(target: &Target, what: &str, bytes: &[u8]) -> Result<(), String> {
    let shown =
        || format!("{}: {what}: {:?}", target.name, String::from_utf8_lossy(&bytes[..bytes.len().min(512)]));
    catch_unwind(|| (target.body)(bytes)).map_err(|_| shown())
}

fn whole_cut_off_and_damaged(target: &Target) -> Result<(), String> {
    let files = corpus(target);
    assert!((4..=FILES_MAX).contains(&files.len()), "{} has {} files", target.name, files.len());
    for (path, bytes) in &files {
        assert!(bytes.len() <= FILE_MAX_BYTES, "{path} has {} bytes", bytes.len());
        run(target, path, bytes)?;
        for length in 0..bytes.len() {
            run(target, &format!("the first {length} bytes of {path}"), &bytes[..length])?;
        }
        let mut damaged = bytes.clone();
        for at in 0..bytes.len() {
            damaged[at] ^= 1 << (at % 8);
            run(target, &format!("{path} with another byte {at}"), &damaged)?;
            damaged[at] = bytes[at];
        }
    }
    Ok(())
}

#[test]
fn every_file_of_the_corpus_keeps_the_promises_whole_cut_off_and_damaged() {
    let broken: Vec<String> =
        TARGETS.iter().filter_map(|target| whole_cut_off_and_damaged(target).err()).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn long_inputs_take_no_longer_than_they_are() {
    for target in TARGETS {
        let patterns = PATTERNS
            .iter()
            .map(|pattern| (format!("{:?}", String::from_utf8_lossy(pattern)), pattern.to_vec()));
        for (what, pattern) in patterns.chain(corpus(target)).filter(|(_, pattern)| !pattern.is_empty()) {
            let long: Vec<u8> = pattern.iter().copied().cycle().take(LONG_BYTES).collect();
            #[expect(clippy::disallowed_methods, reason = "a bound on a computation, which no clock decides")]
            let started = Instant::now();
            run(target, &format!("many of {what}"), &long).unwrap();
            let took = started.elapsed();
            assert!(took < LONG_LIMIT, "{}: {took:?} for many of {what}", target.name);
        }
    }
}

#[test]
fn examples_are_in_the_corpus_as_they_are_made_now() {
    for target in TARGETS {
        for (number, bytes) in
            target.examples.map(|examples| examples()).unwrap_or_default().iter().enumerate()
        {
            let path = folder("corpus").join(target.name).join(format!("example-{number:02}"));
            if std::env::var_os(WRITE).is_some() {
                fs::write(&path, bytes).unwrap();
            }
            let kept = fs::read(&path).unwrap_or_default();
            assert!(
                kept == *bytes,
                "{}: it differs; if its format may change, set {WRITE}=1",
                path.display()
            );
        }
    }
}

#[test]
fn every_target_has_its_program_and_nothing_else_has_one() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let listed = |of: &str| -> BTreeSet<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        fs::read_dir(folder(of)).unwrap().map(name).collect()
    };
    let with =
        |suffix: &str| -> BTreeSet<String> { names.iter().map(|name| format!("{name}{suffix}")).collect() };
    assert_eq!(listed("corpus"), names);
    assert_eq!(listed("fuzz_targets"), with(".rs"));
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for name in &names {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"\ntest = false\n")),
            "[[bin]] of {name}"
        );
        let program = fs::read_to_string(folder("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(program.contains(&format!("bellwether_fuzz::{name}(bytes)")), "{name} fuzzes itself");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), names.len());
}
