//! The kernel's deadline strikes the process that set it, so each test starts a victim: this test program again, with one
//! test and a plan in its environment.

use super::*;
use crate::boot_now;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PLAN: &str = "DEADMAN_VICTIM";
const SOON: Duration = Duration::from_millis(100);
/// Longer than any test waits, so that a victim that is not killed ends by itself.
const LATE: Duration = Duration::from_secs(20);

/// Not a test of its own: what a victim does.
#[test]
fn victim() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let mut deadline = KernelDeadline::new().unwrap();
    match plan.as_str() {
        "soon" => deadline.arm(boot_now() + SOON),
        "past" => deadline.arm(Boot::from_nanos(0)),
        "moved" => {
            deadline.arm(boot_now() + SOON);
            deadline.arm(boot_now() + LATE);
        }
        "called off" => {
            deadline.arm(boot_now() + SOON);
            deadline.disarm();
        }
        "dropped" => {
            deadline.arm(boot_now() + SOON);
            drop(deadline);
        }
        other => panic!("no such plan: {other}"),
    }
    println!("\narmed");
    let long_enough = if plan == "soon" || plan == "past" { LATE } else { SOON * 3 };
    std::thread::sleep(long_enough);
    std::process::exit(0);
}

fn start(plan: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "deadline::tests::victim", "--nocapture"])
        .env(PLAN, plan)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until_armed(victim: &mut Child) {
    let lines = BufReader::new(victim.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "armed"));
}

fn signal_that_ended(mut victim: Child) -> Option<i32> {
    victim.wait().unwrap().signal()
}

#[test]
fn a_process_is_killed_at_its_deadline() {
    let began = boot_now();
    assert_eq!(signal_that_ended(start("soon")), Some(9));
    let took = boot_now().since(began);
    assert!(took >= SOON && took < LATE, "{took:?}");
}

#[test]
fn a_stopped_process_is_killed_too() {
    let mut victim = start("soon");
    wait_until_armed(&mut victim);
    kill_process(Pid::from_child(&victim), Signal::STOP).unwrap();
    assert_eq!(signal_that_ended(victim), Some(9));
}

#[test]
fn a_deadline_in_the_past_strikes_at_once() {
    assert_eq!(signal_that_ended(start("past")), Some(9));
}

#[test]
fn a_deadline_that_is_moved_called_off_or_dropped_does_not_strike() {
    for plan in ["moved", "called off", "dropped"] {
        assert_eq!(signal_that_ended(start(plan)), None, "{plan}");
    }
}
