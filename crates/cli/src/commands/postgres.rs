//! `bellwether postgres`: the tables that elections on PostgreSQL may have.

use bellwether::postgres::{Config, DEFAULT_SCHEMA, Environment, Schema, init};

use crate::args::{Global, PostgresCommand, PostgresInit};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

pub(crate) async fn postgres(global: &Global, command: &PostgresCommand) -> Result<Exit, Failure> {
    let PostgresCommand::Init(flags) = command;
    make(global, flags).await
}

/// Prints or runs what makes the tables.
async fn make(global: &Global, flags: &PostgresInit) -> Result<Exit, Failure> {
    let url = backend::url(global)?;
    let config = match url.split_once(':') {
        Some(("postgres" | "postgresql", _)) => Some(Config::from_url_in(&url, &Environment::from_env())?),
        _ if flags.print => None,
        _ => {
            let sentence =
                "name the server: --backend postgres://USER@HOST:PORT/DATABASE, or --print the SQL";
            return Err(Failure::new(Exit::Usage, sentence));
        }
    };
    let named = config.as_ref().and_then(Config::schema_used).map(Schema::name);
    let schema = Schema::new(flags.schema.as_deref().or(named).unwrap_or(DEFAULT_SCHEMA))?;
    match config.filter(|_| !flags.print) {
        None => output::line(schema.sql(&flags.grant)?.trim_end())?,
        Some(config) => {
            init(&config, &schema, &flags.grant).await?;
            let name = schema.name();
            output::line(&format!(
                "the tables are in schema {name}; use them with postgres://…?schema={name}"
            ))?
        }
    };
    Ok(Exit::Clean)
}
