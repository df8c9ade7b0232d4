//! A state machine whose state a test can read.

use std::sync::{Arc, Mutex};

use bellwether_cluster::{At, CorruptSnapshot, StateMachine};

/// The commands that were applied, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands(Arc<Mutex<Vec<String>>>);

impl Commands {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl StateMachine for Commands {
    /// Answers with how many there are now.
    fn apply(&mut self, at: At, command: &[u8]) -> Vec<u8> {
        let mut commands = self.0.lock().unwrap();
        let command = String::from_utf8(command.to_vec()).unwrap();
        commands.push(match at.generation {
            0 => command,
            generation => format!("{command} in generation {generation}"),
        });
        commands.len().to_string().into_bytes()
    }

    fn snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(&self.all()).unwrap()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), CorruptSnapshot> {
        let commands =
            serde_json::from_slice(snapshot).map_err(|error| CorruptSnapshot(error.to_string()))?;
        *self.0.lock().unwrap() = commands;
        Ok(())
    }
}
