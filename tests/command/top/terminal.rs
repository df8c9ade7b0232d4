//! A terminal of our own that a command runs on.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use bellwether_deadman::boot_now;
use bellwether_tests::{PATIENCE, exit_of};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// A pseudo-terminal and the command on it, which is killed when this is dropped.
pub(crate) struct Terminal {
    child: Child,
    ours: File,
    /// Kept open, so that what was written last can be read after the command's end.
    theirs: File,
    before: Termios,
    output: Receiver<Vec<u8>>,
    /// Everything that was written so far.
    drawn: String,
}

impl Terminal {
    pub(crate) fn run(mut command: Command) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&ours).expect("our own");
        unlockpt(&ours).expect("our own");
        let name = ptsname(&ours, Vec::new()).expect("its name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = File::from(rustix::fs::open(name, flags, Mode::empty()).expect("the other end"));
        let ours = File::from(ours);
        tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 })
            .expect("a size");
        let before = tcgetattr(&theirs).expect("a terminal");
        let end = || theirs.try_clone().expect("a descriptor");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("the command starts");
        let mut reader = ours.try_clone().expect("a descriptor");
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, ours, theirs, before, output, drawn: String::new() }
    }

    /// Waits until this is drawn, and returns what was drawn since the last call.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let deadline = boot_now() + PATIENCE;
        let mut bytes = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if text.contains(part) {
                self.drawn.push_str(&text);
                return text;
            }
            match self.output.recv_timeout(deadline.since(boot_now())) {
                Ok(more) => bytes.extend(more),
                Err(_) => panic!("no {part:?} in {text:?}"),
            }
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).expect("our own terminal");
    }

    /// The kernel sends WINCH to a terminal's foreground group; the command has no such terminal, so we send it.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.theirs, size).expect("a size");
        self.signal(Signal::WINCH);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("our own child");
    }

    /// Waits for the command's end; its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        exit_of(&mut self.child).code()
    }

    /// The screen, the cursor and the keyboard are as they were.
    #[track_caller]
    pub(crate) fn is_as_before(&mut self) {
        self.wait_for("\x1b[?1049l");
        for (on, off) in
            [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h"), ("\x1b[?7l", "\x1b[?7h")]
        {
            assert!(self.drawn.rfind(on) < self.drawn.rfind(off), "{:?}", self.drawn);
        }
        let now = tcgetattr(&self.theirs).expect("a terminal");
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(format!("{:?}", now.special_codes), format!("{:?}", self.before.special_codes));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
