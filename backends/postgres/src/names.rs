//! `application_name`: what a session is for, and all that other sessions can read of a holder.
//!
//! `bellwether/<id> <role>`, where the session of the locks adds the ttl once it has taken one: `bellwether/<id> lock <ttl>ms`. In at most
//! 63 bytes of printable ASCII, since the server cuts and replaces the rest. Other bytes of the id are written as `%XX`. An id that
//! does not fit, and one of several that the session serves, is written as `~`: what cannot be told is left out, not guessed. A
//! ttl among several is the longest of them, with a `~` before it. Until somebody has claimed anything, it is `bellwether <role>`.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use bellwether_backend::lock;
use bellwether_backend::url::unescape;
use bellwether_core::CandidateId;

/// The server's limit (`NAMEDATALEN` − 1).
const NAME_MAX_BYTES: usize = 63;
const PROGRAM: &str = "bellwether/";
const UNTOLD: &str = "~";

/// The role of session A.
pub(crate) const LOCK: &str = "lock";
/// The role of session B.
pub(crate) const PRESENCE: &str = "presence";
/// The role of session C.
pub(crate) const WATCH: &str = "watch";
/// The role of session D.
pub(crate) const RECORD: &str = "record";

/// The ttls that a session serves: the longest, and whether it is the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionTtl {
    pub(crate) ttl: Duration,
    pub(crate) is_only: bool,
}

/// The candidates that have used the sessions of a process, and their ttls: what the sessions are called by.
#[derive(Default)]
pub(crate) struct SessionNames(Mutex<SessionUsers>);

#[derive(Default)]
struct SessionUsers {
    /// Two are as untold as many, so no more are kept.
    ids: BTreeSet<CandidateId>,
    lease: Option<SessionTtl>,
    /// What the lock session was called last.
    last: String,
}

impl SessionNames {
    /// Remembers that this id and ttl use the sessions, and says which do: the id where there is only one, and the longest ttl.
    pub(crate) fn used_by(
        &self,
        id: &CandidateId,
        ttl: Duration,
    ) -> (Option<CandidateId>, Option<SessionTtl>) {
        let mut users = lock(&self.0);
        if users.ids.len() < 2 {
            users.ids.insert(id.clone());
        }
        let known = users.lease.unwrap_or(SessionTtl { ttl, is_only: true });
        let is_only = known.is_only && known.ttl == ttl;
        users.lease = Some(SessionTtl { ttl: known.ttl.max(ttl), is_only });
        ((users.ids.len() == 1).then(|| id.clone()), users.lease)
    }

    /// What the lock session is to be called from now on, if that is something else.
    pub(crate) fn changed_by(&self, id: &CandidateId, ttl: Duration) -> Option<String> {
        let (id, lease) = self.used_by(id, ttl);
        let name = write(id.as_ref(), lease);
        let before = std::mem::replace(&mut lock(&self.0).last, name.clone());
        (before != name).then_some(name)
    }

    /// What a session of this role is called.
    pub(crate) fn of(&self, role: &str) -> String {
        let users = lock(&self.0);
        match users.ids.first() {
            None => of_nobody(role),
            id => of(id.filter(|_| users.ids.len() == 1), role),
        }
    }
}

/// What a session is called before anybody has claimed anything.
pub(crate) fn of_nobody(role: &str) -> String {
    format!("bellwether {role}")
}

/// What a session is called that serves this candidate, or several.
fn of(id: Option<&CandidateId>, role: &str) -> String {
    let told = |id: &str| format!("{PROGRAM}{id} {role}");
    let name = id.map(|id| told(&escape(id.as_str())));
    name.filter(|name| name.len() <= NAME_MAX_BYTES).unwrap_or_else(|| told(UNTOLD))
}

/// What the session of the locks is called.
pub(crate) fn write(id: Option<&CandidateId>, lease: Option<SessionTtl>) -> String {
    let lease = lease.map_or_else(String::new, |lease| {
        let among_several = if lease.is_only { "" } else { UNTOLD };
        format!(" {among_several}{}ms", millis(lease.ttl))
    });
    of(id, &format!("{LOCK}{lease}"))
}

/// Who holds a session of this name, as far as that is told, and its ttl.
pub(crate) fn read(name: &str) -> (Option<CandidateId>, Option<SessionTtl>) {
    let Some((id, role)) = name.strip_prefix(PROGRAM).and_then(|rest| rest.split_once(' ')) else {
        return (None, None);
    };
    let id = if id == UNTOLD { None } else { unescape(id).and_then(|id| CandidateId::new(id).ok()) };
    let millis = role.rsplit(' ').next().and_then(|last| last.strip_suffix("ms"));
    let lease = millis.and_then(|millis| {
        let longest = millis.strip_prefix(UNTOLD);
        let ttl = longest.unwrap_or(millis).parse().ok().map(Duration::from_millis)?;
        Some(SessionTtl { ttl, is_only: longest.is_none() })
    });
    (id, lease)
}

/// Whether a session of this name is a candidate's of ours.
pub(crate) fn is_ours(name: &str) -> bool {
    name.starts_with(PROGRAM)
}

/// Whole milliseconds, rounded up: a lease that the server ends early would be worse than one it ends late.
pub(crate) fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

pub(crate) fn escape(id: &str) -> String {
    let mut text = String::new();
    for byte in id.bytes() {
        match byte {
            0x21..=0x7e if !b"%~'\\".contains(&byte) => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_were_or_not_at_all() {
        let lease = SessionTtl { ttl: Duration::from_millis(1500), is_only: true };
        for (id, told) in
            [("host-1", true), ("a b/c%~'", true), ("\u{1F411}", true), (&*"x".repeat(60), false)]
        {
            let id = CandidateId::new(id).unwrap();
            let name = write(Some(&id), Some(lease));
            assert!(name.len() <= NAME_MAX_BYTES && name.is_ascii(), "{name}");
            assert_eq!(read(&name), (told.then_some(id), Some(lease)), "{name}");
        }
        let longest = SessionTtl { is_only: false, ..lease };
        assert_eq!(write(None, Some(longest)), "bellwether/~ lock ~1500ms");
        assert_eq!(read(&write(None, Some(longest))), (None, Some(longest)));
        assert_eq!(read(&write(None, None)), (None, None));
    }

    #[test]
    fn every_role_fits_and_tells_no_ttl() {
        let id = CandidateId::new("x".repeat(40)).unwrap();
        for role in [LOCK, PRESENCE, WATCH, RECORD] {
            let name = of(Some(&id), role);
            assert!(name.len() <= NAME_MAX_BYTES && name.ends_with(role), "{name}");
            assert_eq!(read(&name), (Some(id.clone()), None));
            assert_eq!(read(&of_nobody(role)), (None, None));
        }
    }

    #[test]
    fn what_others_call_themselves_is_nobody_s_id() {
        for name in ["", "psql", "bellwether/", "bellwether/% 1ms", "bellwether/%zz 1ms"] {
            assert_eq!(read(name).0, None, "{name}");
        }
    }
}
