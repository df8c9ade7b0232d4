//! One suite for all Raft engines: what a [`RaftAdapter`](bellwether_cluster::RaftAdapter) has to do, on three nodes of one process with a
//! network that can cut, delay and lose.

mod cluster;
mod full_disk;
mod machine;
mod network;
mod openraft;
mod recovery;
mod suite;
