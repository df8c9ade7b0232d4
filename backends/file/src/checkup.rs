//! Whether a directory is fit for elections: there, writable, local, durable, watched, with room, and quick to sync.
//!
//! Looking writes nothing and makes no directory: rights are asked of the kernel, which knows about read-only mounts too.
//! Only the time of a sync takes writing, of temporary files in the store's directory that are gone afterwards. A directory
//! that is not there yet is judged by the nearest one above it, in which the first claim will make it.

use std::path::Path;
use std::time::Duration;

use bellwether_backend::Finding;
use bellwether_core::{Clock, ElectionName, ErrorKind};
use rustix::fs::{Access, StatVfs};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::errors::meaning;
use crate::local::{boot_id, trusted};
use crate::notify::queue;

/// A claim writes a handful of blocks and removes as many.
const LEAST_FREE_BYTES: u64 = 32 * 1024;
/// Below this, whatever else fills the disk is about to end elections.
const LOW_FREE_BYTES: u64 = 16 * 1024 * 1024;
const LEAST_FREE_FILES: u64 = 16;
const SYNCS: usize = 10;
/// A renewal waits for two syncs.
const SLOW_SYNC: Duration = Duration::from_millis(500);
/// Some bytes, as many as a record has.
const SAMPLE: [u8; 512] = [b'x'; 512];

pub(crate) fn checkup(root: &Path, may_write: bool, clock: &dyn Clock) -> Vec<Finding> {
    let (there, existing) = match nearest(root) {
        Ok(found) => found,
        Err(finding) => return vec![finding],
    };
    let mut findings = rights(root, there, existing);
    let opened = match Directory::open(existing) {
        Ok(opened) => opened,
        Err(errno) => {
            findings.push(Finding::failed("directory", &meaning("read", existing, errno)));
            return findings;
        }
    };
    findings.extend(file_system(&opened, existing));
    findings.push(notification(existing));
    findings.extend(rustix::fs::fstatvfs(opened.fd()).ok().map(|room| free_space(existing, &room)));
    if there && may_write {
        findings.extend(sync_time(&opened, clock));
    }
    findings
}

/// The store's directory, or the nearest above it that exists.
fn nearest(root: &Path) -> Result<(bool, &Path), Finding> {
    for (above, dir) in root.ancestors().enumerate() {
        match rustix::fs::stat(dir) {
            Ok(stat) if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() => {
                return Ok((above == 0, dir));
            }
            Ok(_) => return Err(Finding::failed("directory", &meaning("use", dir, Errno::NOTDIR))),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(Finding::failed("directory", &meaning("look at", dir, errno))),
        }
    }
    Ok((false, root))
}

fn rights(root: &Path, there: bool, existing: &Path) -> Vec<Finding> {
    let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    // In a directory above, making another is all that is needed.
    let needed = if there { all } else { Access::WRITE_OK | Access::EXEC_OK };
    let place = if there {
        Finding::good("directory", format!("{} is there", root.display()))
    } else {
        Finding::good("directory", format!("{} is not there yet: the first claim makes it", root.display()))
    };
    if let Err(errno) = rustix::fs::access(existing, needed) {
        return vec![place, Finding::failed("permission", &meaning("write to", existing, errno))];
    }
    let closed = if there { closed_elections(root, all) } else { Vec::new() };
    let permission = match closed.as_slice() {
        [] => Finding::good("permission", format!("this user may write in {}", existing.display())),
        [first, rest @ ..] => Finding::warning(
            "permission",
            format!(
                "this user cannot take part in {first}{}: another user made it; give both one group with write \
                 permission on the directory",
                if rest.is_empty() { String::new() } else { format!(" and {} others", rest.len()) }
            ),
        ),
    };
    vec![place, permission]
}

/// Elections whose directories are others'.
fn closed_elections(root: &Path, needed: Access) -> Vec<String> {
    let names = Directory::open(root).and_then(|root| root.names()).unwrap_or_default();
    let elections = names.into_iter().filter(|name| !name.starts_with('.') && root.join(name).is_dir());
    elections.filter(|name| rustix::fs::access(root.join(name), needed).is_err()).collect()
}

fn file_system(dir: &Directory, path: &Path) -> Vec<Finding> {
    let path = path.display();
    let name = trusted(dir).ok().flatten();
    let proof = match (name, boot_id()) {
        (Some(name), Some(_)) => Finding::good(
            "crash proof",
            format!("{path} is on {name}, of this machine: a leader that is killed is replaced at once"),
        ),
        (Some(_), None) => Finding::warning(
            "crash proof",
            "this machine's boot has no name (is /proc mounted?): a leader that is killed is replaced after its ttl",
        ),
        (None, _) => Finding::warning(
            "crash proof",
            format!(
                "locks on the file system of {path} prove no death: a leader that is killed is replaced after its ttl, and \
                 not at once; choose a directory on a disk of this machine"
            ),
        ),
    };
    let durability = match name {
        Some(name @ ("tmpfs" | "ramfs")) => Finding::warning(
            "durability",
            format!(
                "{path} is on {name}, in memory: after a restart of the machine epochs begin anew, and fencing by epoch \
                 no longer holds; choose a directory on a disk"
            ),
        ),
        Some("overlayfs") => Finding::warning(
            "durability",
            format!(
                "{path} is on overlayfs, as a container's own files are: epochs begin anew with a new container, and other \
                 containers do not see it; mount a volume there"
            ),
        ),
        _ => Finding::good("durability", format!("records and epochs in {path} outlive a restart")),
    };
    vec![proof, durability]
}

fn notification(dir: &Path) -> Finding {
    const WHAT: &str = "notification";
    let queue = match queue::KernelQueue::new() {
        Ok(queue) => queue,
        Err(error) => {
            let advice = if cfg!(target_os = "linux") { "; raise fs.inotify.max_user_instances" } else { "" };
            return Finding::warning(WHAT, format!("followers look every second instead: {error}{advice}"));
        }
    };
    let any = ElectionName::new("checkup").expect("a name");
    match queue.watch(&any, dir) {
        Ok(true) => Finding::good(WHAT, "the kernel tells followers of changes at once"),
        Ok(false) => Finding::warning(
            WHAT,
            "the kernel's limit of watches is reached, so followers look every second: raise \
             fs.inotify.max_user_watches",
        ),
        Err(error) => Finding::warning(WHAT, format!("followers look every second instead: {error}")),
    }
}

fn free_space(dir: &Path, room: &StatVfs) -> Finding {
    const WHAT: &str = "free space";
    let bytes = room.f_bavail.saturating_mul(room.f_frsize);
    let free = if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) };
    let dir = dir.display();
    // Some file systems have no limit on files, and say that they have none.
    if room.f_files > 0 && room.f_favail < LEAST_FREE_FILES {
        let sentence = format!("the file system of {dir} has no room for more files: remove some");
        return Finding::bad(WHAT, ErrorKind::Exhausted, sentence);
    }
    if bytes < LEAST_FREE_BYTES {
        let sentence = format!("only {free} are left for {dir}, too little to renew a lease: make room");
        return Finding::bad(WHAT, ErrorKind::Exhausted, sentence);
    }
    if bytes < LOW_FREE_BYTES {
        return Finding::warning(
            WHAT,
            format!("only {free} are left for {dir}: on a full disk leaders lose; make room"),
        );
    }
    Finding::good(WHAT, format!("{free} are left for {dir}"))
}

/// The directory's rights have been judged: what cannot be written for want of them is not said twice.
fn sync_time(dir: &Directory, clock: &dyn Clock) -> Option<Finding> {
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let before = clock.boot();
        dir.temporary(&SAMPLE).ok()?;
        times.push(clock.boot().since(before));
    }
    times.sort();
    let (middle, longest) = (times[SYNCS / 2], times[SYNCS - 1]);
    let measured =
        format!("a small file is on disk after {middle:.1?}, {longest:.1?} at the longest of {SYNCS}");
    Some(if longest < SLOW_SYNC {
        Finding::good("sync", measured)
    } else {
        let advice = "a renewal waits for two such syncs; choose a quieter disk, or a longer ttl";
        Finding::warning("sync", format!("{measured}: {advice}"))
    })
}
