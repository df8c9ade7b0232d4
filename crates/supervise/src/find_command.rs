//! Finding the command before competing: a node that cannot run it must not win.

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where to look when there is no PATH, as the C library does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A command that cannot be run, with the exit code that shells give for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRunnable {
    code: u8,
    sentence: String,
}

impl NotRunnable {
    pub(crate) fn new(code: u8, sentence: String) -> NotRunnable {
        NotRunnable { code, sentence }
    }

    /// What the kernel's refusal to run `program` means.
    pub(crate) fn from_errno(program: &Path, errno: i32) -> NotRunnable {
        let shown = program.display();
        let (code, sentence) = match Errno::from_raw_os_error(errno) {
            Errno::NOENT | Errno::NOTDIR if program.exists() => {
                (127, format!("{shown} cannot be run: the interpreter that it names does not exist"))
            }
            Errno::NOENT | Errno::NOTDIR => (127, format!("{shown} does not exist")),
            Errno::ACCESS | Errno::PERM => (
                126,
                format!("{shown} may not be run: permission denied; check its mode and its file system"),
            ),
            Errno::NOEXEC => (
                126,
                format!(
                    "{shown} is not a program: if it is a script, begin it with a `#!` line, since no shell is used"
                ),
            ),
            other => (126, format!("{shown} cannot be run: {other}")),
        };
        NotRunnable { code, sentence }
    }

    /// 126 if it exists but cannot be run, 127 if it does not exist.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for NotRunnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for NotRunnable {}

/// Finds the file that `name` means: itself, if it has a slash in it, else the first program of that name in `path`, the
/// value of `PATH`.
///
/// # Errors
/// With a sentence and exit code: there is none (127), or there is one that may not be run (126).
pub fn find_command(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, NotRunnable> {
    if name.is_empty() {
        return Err(NotRunnable::new(127, "the command's name is empty".to_owned()));
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return check(&path).map(|()| path).map_err(|errno| refusal(Path::new(name), errno));
    }
    let mut refused = None;
    for dir in path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes().split(|byte| *byte == b':') {
        // An empty element is the working directory, and it must not become a search of its own.
        let dir = if dir.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(dir)) };
        let candidate = dir.join(name);
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            // There, but not to be run: a later one may do.
            Err(Errno::ACCESS | Errno::ISDIR) if candidate.is_file() => {
                refused.get_or_insert(candidate);
            }
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(path) => refusal(&path, Errno::ACCESS),
        None => NotRunnable::new(127, format!("{} was not found in PATH", Path::new(name).display())),
    })
}

fn check(path: &Path) -> Result<(), Errno> {
    if rustix::fs::stat(path).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode))?.is_dir() {
        return Err(Errno::ISDIR);
    }
    // By the rights that the program will run with, not those of whoever started us.
    rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
}

fn refusal(path: &Path, errno: Errno) -> NotRunnable {
    match errno {
        Errno::ISDIR => NotRunnable::new(126, format!("{} is a directory", path.display())),
        errno => NotRunnable::from_errno(path, errno.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str, path: &str) -> Result<PathBuf, u8> {
        find_command(OsStr::new(name), Some(OsStr::new(path))).map_err(|error| error.code())
    }

    #[test]
    fn programs_are_found_as_a_shell_would() {
        assert_eq!(find("sh", "/nowhere:/bin"), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(find("/bin/sh", ""), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(find_command(OsStr::new("sh"), None), Ok(PathBuf::from("/bin/sh")));
    }

    #[test]
    fn what_is_missing_is_127_and_what_may_not_be_run_is_126() {
        assert_eq!(find("sh-that-is-not", "/bin:/usr/bin"), Err(127));
        assert_eq!(find("/bin/sh-that-is-not", ""), Err(127));
        assert_eq!(find("/bin/sh/of", ""), Err(127));
        assert_eq!(find("", "/bin"), Err(127));
        assert_eq!(find("/etc/passwd", ""), Err(126));
        assert_eq!(find("passwd", "/etc"), Err(126));
        assert_eq!(find("/etc", ""), Err(126));
        assert_eq!(find("etc", "/"), Err(127), "directories in PATH are no programs");
    }
}
