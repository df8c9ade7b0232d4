//! The command on NATS servers: elections of its own, and those of the profiles `cluster` and `leader`, which other programs share.

mod cluster;
mod leader;
mod native;
