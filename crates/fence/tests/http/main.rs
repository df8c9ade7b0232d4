//! The layer on a real server, asked over sockets.

mod answers;
mod order;
mod restarts;
mod stage;
