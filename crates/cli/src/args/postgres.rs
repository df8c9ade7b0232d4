//! The flags of the PostgreSQL-specific commands.

use clap::{Args as ClapArgs, Subcommand};

/// PostgreSQL-specific commands.
#[derive(Debug, ClapArgs)]
pub(crate) struct Postgres {
    #[command(subcommand)]
    pub(crate) command: PostgresCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PostgresCommand {
    Init(Init),
}

/// Make the tables for epochs that a transaction can check, for history, metadata and cooldowns.
///
/// Elections on PostgreSQL need no tables. With them (postgres://…?schema=NAME) your own transaction can call
/// NAME.fence(ELECTION, EPOCH), which fails once that epoch leads no more. May be run any number of times, which upgrades the tables
/// of an earlier version. The role needs CREATE on the database the first time, and no superuser's rights; a schema of another role is
/// refused.
#[derive(Debug, ClapArgs)]
pub(crate) struct Init {
    /// The schema to put them in. Default: that of the URL, or bellwether.
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,

    /// Let this role stand in elections; may be given several times.
    #[arg(long, value_name = "ROLE")]
    pub(crate) grant: Vec<String>,

    /// Only print the SQL, for whoever may run it. Connects to nothing.
    #[arg(long)]
    pub(crate) print: bool,
}
