//! The command on PostgreSQL servers.

mod connecting;
mod followers;
mod step_down;
