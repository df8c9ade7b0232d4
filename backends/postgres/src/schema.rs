//! The tables of an election, for those who want them: `bellwether postgres init`.
//!
//! The advisory lock decides who leads, with tables or without. They add what locks cannot show or keep: epochs that a user's
//! own transaction can check, metadata, history, cooldowns and a list of elections. Heartbeats never write to them.

use bellwether_core::{Error, ErrorKind};

use crate::errors::BACKEND;

/// Of the tables; written by `init`, and compared when connecting.
pub(crate) const VERSION: i32 = 1;

/// The schema that is used where none is named.
pub const DEFAULT_SCHEMA: &str = "bellwether";

/// The SQLSTATE with which `fence` refuses a transaction.
pub const FENCED: &str = "BW001";

/// The schema that the tables are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema(String);

impl Schema {
    /// By its name: letters, digits, `_`, `-` and `$`, 63 at the most, as it is and not folded to small letters.
    ///
    /// # Errors
    /// When that is no such name.
    pub fn new(name: impl Into<String>) -> Result<Schema, Error> {
        let name = name.into();
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-$".contains(letter);
        if name.is_empty() || name.len() > 63 || !name.chars().all(fits) || name.starts_with("pg_") {
            let sentence = format!(
                "{name:?} cannot be the schema of elections: use letters, digits, _, - and $, 63 at the most, and not pg_ in front"
            );
            return Err(Error::new(ErrorKind::InvalidInput, BACKEND, sentence));
        }
        Ok(Schema(name))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// A statement with this schema in the place of `{schema}`.
    pub(crate) fn statement(&self, text: &str) -> String {
        text.replace("{schema}", &format!("\"{}\"", self.0))
    }

    /// What makes the tables, as one transaction that may be run any number of times, and lets these roles take part.
    ///
    /// # Errors
    /// When a role's name has a zero byte in it.
    pub fn sql(&self, roles: &[String]) -> Result<String, Error> {
        let mut text = self.statement(TABLES).replace("{version}", &VERSION.to_string());
        for role in roles {
            if role.is_empty() || role.contains('\0') {
                let sentence = format!("{role:?} is not the name of a role");
                return Err(Error::new(ErrorKind::InvalidInput, BACKEND, sentence));
            }
            let role = format!("\"{}\"", role.replace('"', "\"\""));
            text.push_str(&self.statement(GRANTS).replace("{role}", &role));
        }
        Ok(format!("BEGIN;\n{text}COMMIT;\n"))
    }
}

/// `fence` locks the election's row against a change of its epoch until the user's transaction has ended. Those who claim
/// meanwhile cannot write the row, and nobody leads before it is written. What they mean to write stands in `intents`, so
/// that no further transaction of the old leader gets in before them.
const TABLES: &str = r#"SELECT pg_advisory_xact_lock(hashtextextended('bellwether postgres init', 0));
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.version (version int4 PRIMARY KEY);
DO $do$ BEGIN
  IF EXISTS (SELECT FROM {schema}.version WHERE version <> {version}) THEN
    RAISE EXCEPTION 'the tables in this schema are of another version of Bellwether'
      USING ERRCODE = 'object_not_in_prerequisite_state',
      HINT = 'use that version, or another schema';
  END IF;
END $do$;
INSERT INTO {schema}.version VALUES ({version}) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS {schema}.elections (
  name text PRIMARY KEY,
  key1 int4 NOT NULL,
  key2 int4 NOT NULL,
  epoch int8 NOT NULL CHECK (epoch BETWEEN 1 AND 9007199254740991),
  holder text,
  incarnation text,
  session int4,
  ttl_ms int8 NOT NULL,
  priority int4 NOT NULL,
  metadata jsonb NOT NULL,
  acquired timestamptz NOT NULL,
  released timestamptz
);
CREATE TABLE IF NOT EXISTS {schema}.intents (
  name text PRIMARY KEY,
  epoch int8 NOT NULL
);
CREATE TABLE IF NOT EXISTS {schema}.history (
  election text,
  epoch int8,
  id text NOT NULL,
  incarnation text,
  since timestamptz NOT NULL,
  until timestamptz,
  ended text,
  PRIMARY KEY (election, epoch)
);
CREATE TABLE IF NOT EXISTS {schema}.cooldowns (
  election text,
  id text,
  until timestamptz NOT NULL,
  PRIMARY KEY (election, id)
);
CREATE OR REPLACE FUNCTION {schema}.fence(election text, epoch int8) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fence$
DECLARE
  stored int8;
  held boolean;
BEGIN
  SELECT e.epoch, e.holder IS NOT NULL INTO stored, held
    FROM {schema}.elections e WHERE e.name = fence.election FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'nobody has ever led "%"', fence.election USING ERRCODE = 'BW001';
  ELSIF stored <> fence.epoch OR NOT held OR EXISTS (
    SELECT FROM {schema}.intents i WHERE i.name = fence.election AND i.epoch > fence.epoch) THEN
    RAISE EXCEPTION 'epoch % does not lead "%" any more', fence.epoch, fence.election
      USING ERRCODE = 'BW001', DETAIL = format('The latest epoch is %s.', stored);
  END IF;
END $fence$;
"#;

/// For whoever stands. Whoever only works under somebody's epoch needs `USAGE` of the schema and nothing else.
const GRANTS: &str = "GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON {schema}.version TO {role};
GRANT SELECT, INSERT, UPDATE ON {schema}.elections, {schema}.intents TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.history, {schema}.cooldowns TO {role};
";

/// What a connection asks first.
pub(crate) const WHICH_VERSION: &str = "SELECT version FROM {schema}.version ORDER BY version DESC LIMIT 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_no_quoting_is_a_schema() {
        for good in ["bellwether", "Team-7_elections", "a$"] {
            assert_eq!(Schema::new(good).unwrap().name(), good);
        }
        let long = "x".repeat(64);
        for bad in ["", "a b", "a\"b", "a.b", "pg_elections", "é", "a;b", &long] {
            assert!(Schema::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn roles_are_quoted() {
        let text = Schema::new("s").unwrap().sql(&["o\"dd".to_owned()]).unwrap();
        assert!(text.contains("TO \"o\"\"dd\";"), "{text}");
        assert!(!text.contains('{'), "{text}");
    }
}
