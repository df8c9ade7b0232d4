//! Nodes as programs embed them: formed, stopped, started again, wiped, added and removed.

mod forming;
mod members;
mod passing_on;
mod recovering;
mod stage;
