//! What fuzzing asks of what the kernel prints about processes, whose names are theirs to choose. The function takes any bytes, and panics
//! where a promise is broken; `fuzz` has the list.

/// A line of `/proc/PID/stat`.
#[cfg(target_os = "linux")]
pub fn proc_stat(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(stat) = crate::process::ProcStat::parse(text) else { return };
    // Whatever its name is, a process says the same of itself.
    let (front, rest) = text.rsplit_once(')').expect("a name ends");
    let renamed = format!("{front}) Z 1 1 (x){rest}");
    let again = crate::process::ProcStat::parse(&renamed).expect("the same line");
    assert_eq!((again.ended, again.parent, again.began), (stat.ended, stat.parent, stat.began));
}
