//! Every bound of the state machine, with its reason. All nodes must have the same, since they decide what a command does: a release that
//! changes one raises [`VERSION`](crate::command::VERSION).

use std::time::Duration;

/// Sessions at a time. One process has one for each ttl that it uses, so this is the number of processes.
pub const SESSIONS_MAX: usize = 10_000;
/// Elections that the store remembers. Epochs have to be remembered for good, so elections only go by
/// [`DangerDiscard`](crate::command::Command::DangerDiscard).
pub const ELECTIONS_MAX: usize = 20_000;
/// Candidates that wait in one election. The state machine walks the whole queue to find a place.
pub const QUEUE_MAX: usize = 1_000;
/// Candidates that wait in all elections together.
pub const WAITING_MAX: usize = 50_000;
/// Cooldowns in one election: ids that stepped down and have to stay away for a moment.
pub const COOLDOWNS_MAX: usize = 100;
/// Past leaderships in all elections together; in one, [`HISTORY_MAX`](bellwether_backend::HISTORY_MAX).
pub const HISTORY_TOTAL_MAX: usize = 200_000;
/// Longest word for the end of a leadership, in bytes.
pub const ENDED_MAX_BYTES: usize = 64;
/// Create-once notes: at their largest ([`ONCE_MAX_BYTES`](bellwether_backend::ONCE_MAX_BYTES)) they come to 16 MiB.
pub const NOTES_MAX: usize = 1_024;
/// Longest label of a session, in bytes: a host name and a process id.
pub const LABEL_MAX_BYTES: usize = 320;
/// Events that are kept for watchers that come a little late; one that is later lists everything again.
pub const EVENTS_MAX: usize = 4_096;
/// Commands of one session that may be in flight: the state machine remembers that many answers. A client that wants more waits.
pub const IN_FLIGHT_MAX: u64 = 64;
/// Shortest and longest ttl of a session. Below, expiry would compete with the election of a Raft leader; above, nobody waits for it.
pub const SESSION_TTL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(24 * 60 * 60));
/// Longest reservation: it keeps everybody else out.
pub const RESERVATION_MAX: Duration = Duration::from_secs(60);
/// Longest cooldown.
pub const COOLDOWN_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Longest command, in bytes: a note at its largest, with room for names.
pub const COMMAND_MAX_BYTES: usize = 32 * 1024;
