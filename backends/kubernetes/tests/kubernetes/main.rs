//! Elections on a real API server. Most tests share one, each in a namespace of its own; those that stop it have their own.

mod announcing;
mod client_go;
mod conformance;
mod connections;
mod foreign;
mod losing;
mod outages;
mod rights;
mod stage;
mod watching;
