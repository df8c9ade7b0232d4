//! Real servers, one a test program or test, gone with it.

pub mod postgres;
