//! A supervisor with an election in its own memory; takes wishes on its standard input, a line each.

use crate::say;
use bellwether_backend::MemoryStore;
use bellwether_core::Options;
use bellwether_deadman::{SystemClock, boot_now};
use bellwether_election::Election;
use bellwether_supervise::{Child, CommandSpec, Signal, Supervisor};
use std::fs::File;
use std::io::BufRead;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

struct Plan {
    ttl: Duration,
    grace: Duration,
    proof: Option<String>,
    rounds: usize,
    without: Option<String>,
    sweep: bool,
    mute: bool,
    pause: bool,
    beside: Option<String>,
    command: Vec<String>,
}

pub(crate) fn run(args: &[String]) {
    let plan = read(args);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(lead(plan));
}

fn read(args: &[String]) -> Plan {
    let mut plan = Plan {
        ttl: Duration::from_secs(2),
        grace: Duration::from_millis(200),
        proof: None,
        rounds: 1,
        without: None,
        sweep: false,
        mute: false,
        pause: false,
        beside: None,
        command: Vec::new(),
    };
    let mut args = args.iter();
    for arg in args.by_ref() {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        match name {
            "ttl" => plan.ttl = Duration::from_millis(value.parse().unwrap()),
            "grace" => plan.grace = Duration::from_millis(value.parse().unwrap()),
            "proof" => plan.proof = Some(value.to_owned()),
            "rounds" => plan.rounds = value.parse().unwrap(),
            "without" => plan.without = Some(value.to_owned()),
            "pause" => plan.pause = true,
            "mute" => plan.mute = true,
            "sweep" => plan.sweep = true,
            "beside" => plan.beside = Some(value.to_owned()),
            "user" => become_user(value.parse().unwrap()),
            "--" => break,
            other => panic!("no such option: {other}"),
        }
    }
    plan.command = args.cloned().collect();
    plan
}

/// Starts a process that has nothing to do with the command.
fn beside(seconds: &str) {
    let mut sleep = std::process::Command::new("sleep");
    let started = bellwether_supervise::start_beside(|| sleep.arg(seconds).spawn(), |child| Some(child.id()));
    say(&format!("beside {}", started.unwrap().id()));
}

/// There is one thread yet, so the thread's identity is the process's.
fn become_user(number: u32) {
    rustix::thread::set_thread_groups(&[]).unwrap();
    rustix::thread::set_thread_gid(rustix::process::Gid::from_raw(number)).unwrap();
    rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(number)).unwrap();
}

async fn lead(plan: Plan) {
    let mut options = Options::default();
    (options.timing.ttl, options.timing.work_grace) = (plan.ttl, plan.grace);
    let store = MemoryStore::default();
    let election = Election::builder("reports")
        .backend(store.connect(Arc::new(SystemClock)))
        .id("a")
        .options(options)
        .start()
        .await
        .unwrap();
    let began = boot_now();
    let mut spec = CommandSpec::new(&plan.command[0], &plan.command).grace(plan.grace);
    if let Some(name) = &plan.without {
        spec = spec.without_env(name);
    }
    if plan.sweep {
        spec = spec.without_namespace();
    }
    let supervisor = Supervisor::new(spec).unwrap();
    plan.beside.as_deref().into_iter().for_each(beside);
    let mut wishes = listen(plan.mute);
    let proof = plan.proof.as_ref().map(|path| {
        let file = File::create(path).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .expect("the proof is free");
        file
    });
    if plan.pause {
        say(&format!("idle {}", supervisor.guard_pid().unwrap_or(0)));
        wishes.recv().await;
    }
    for _ in 0..plan.rounds {
        let leadership = election.wait_for_leadership().await.unwrap();
        say(&format!("guard {}", supervisor.guard_pid().unwrap_or(0)));
        let proofs = proof.iter().map(|file| OwnedFd::from(file.try_clone().unwrap())).collect();
        let ordered = boot_now();
        let mut child = match supervisor.start(&leadership, proofs).await {
            Ok(child) => child,
            Err(error) => {
                say(&format!("failed {error}"));
                continue;
            }
        };
        let now = boot_now();
        say(&format!("took {} {}", now.since(began).as_micros(), now.since(ordered).as_micros()));
        say(&format!("started {} {:?}", child.pid(), child.containment()));
        let Some(ended) = attend(&mut child, &mut wishes, &election).await else { continue };
        say(&format!("ended {:?} {:?} left={}", ended.exit, ended.why, leadership.remaining().as_millis()));
    }
    election.stop().await.unwrap();
    say("released");
}

async fn attend(
    child: &mut Child,
    wishes: &mut mpsc::UnboundedReceiver<String>,
    election: &Election,
) -> Option<bellwether_supervise::CommandEnd> {
    loop {
        tokio::select! {
            ended = child.wait() => return Some(ended),
            Some(wish) = wishes.recv() => match wish.as_str() {
                "term" => child.stop(Signal::TERM),
                "int" => child.stop(Signal::INT),
                "kill" => child.kill(),
                "drop" => return None,
                "hup" => child.signal(Signal::HUP),
                "step down" => {
                    let election = election.clone();
                    tokio::spawn(async move { election.step_down().await });
                }
                other => panic!("no such wish: {other}"),
            },
        }
    }
}

/// Lines of the standard input; nothing more comes when it ends.
fn listen(not: bool) -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        if !not {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        }
        // Kept, so that the receiver does not end.
        loop {
            std::thread::park();
        }
    });
    receiver
}
