//! Places where a test can stop a reader or writer, to let others go on meanwhile.

use std::fmt;
use std::sync::Mutex;

type Hook = Box<dyn FnMut() + Send>;

/// Runs a closure at one named step, once.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<Option<(&'static str, Hook)>>);

impl Pauses {
    pub(crate) fn once(&self, step: &'static str, hook: impl FnMut() + Send + 'static) {
        *self.0.lock().unwrap() = Some((step, Box::new(hook)));
    }

    pub(crate) fn at(&self, step: &str) {
        let due = self.0.lock().unwrap().take_if(|(wanted, _)| *wanted == step);
        if let Some((_, mut hook)) = due {
            hook();
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }
}

impl fmt::Debug for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pauses")
    }
}
