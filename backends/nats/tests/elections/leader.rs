//! The profile `leader`: the testing matrix of its description, row by row, and candidates of others on the same key.

mod foreign;
mod matrix;
mod network;
mod stepping_down;
mod time;
