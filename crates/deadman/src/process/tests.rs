//! What can be told from within a test program, which has many threads. The rest is told by the tests of `supervise`.

use super::*;

#[test]
fn a_process_with_many_threads_does_not_fork() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || stopped.recv());
    let refused = fork(Namespace::Same, || 0).expect_err("forked with two threads");
    assert!(refused.to_string().contains("one thread"), "{refused}");
    drop(stop);
    let _ = second.join();
}

#[test]
fn a_process_with_many_threads_does_not_become_another() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || stopped.recv());
    let refused = exec(std::path::Path::new("/bin/true"), &[], &[]);
    assert!(refused.to_string().contains("one thread"), "{refused}");
    drop(stop);
    let _ = second.join();
}

#[test]
fn exit_codes_are_those_of_shells() {
    assert_eq!(exit_code(7 << 8), 7);
    assert_eq!(exit_code(9), 128 + 9);
    assert_eq!(exit_code(11 | 0x80), 128 + 11, "a core was dumped");
}

#[test]
fn signals_are_read_when_they_are_blocked() {
    // In a thread of its own: what is blocked is a thread's, and a signal to the process would find another.
    let read = std::thread::spawn(|| {
        block_all_signals();
        let signals = SignalFd::new([libc::SIGUSR1]).unwrap();
        assert_eq!(signals.next(), None);
        // SAFETY: sends a signal that is blocked to this very thread.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1) };
        (signals.next(), signals.next())
    });
    assert_eq!(read.join().unwrap(), (Some(libc::SIGUSR1), None));
}
