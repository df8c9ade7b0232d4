//! The tables of an election, for those who want them: `bellwether postgres init`.
//!
//! The advisory lock decides who leads, with tables or without. They add what locks cannot show or keep: epochs that a user's
//! own transaction can check, metadata, history, cooldowns, create-once notes and a list of elections. Heartbeats never write to them.

use bellwether_core::{ErrorKind, StoreError};

use crate::errors::BACKEND;

/// Of the tables; written by `init`, and compared when connecting. A table that is added later is asked for only when it is needed.
pub(crate) const VERSION: i32 = 1;

/// Of the functions, which `init` replaces; written into a comment. Candidates do without the latest, users' transactions do not.
pub(crate) const FUNCTIONS: i32 = 2;

/// The schema that is used where none is named.
pub const DEFAULT_SCHEMA: &str = "bellwether";

/// The SQLSTATE with which `fence` refuses a transaction.
pub const FENCED: &str = "BW001";

/// The SQLSTATE with which `init` refuses a schema that others have a hand in; its message says whose and what to do.
pub(crate) const NOT_OURS_ALONE: &str = "BW002";

/// The schema that the tables are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema(String);

impl Schema {
    /// By its name: letters, digits, `_`, `-` and `$`, at most 63 characters, used as given and not folded to lower case.
    ///
    /// # Errors
    /// When that is no such name.
    pub fn new(name: impl Into<String>) -> Result<Schema, StoreError> {
        let name = name.into();
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-$".contains(letter);
        if name.is_empty() || name.len() > 63 || !name.chars().all(fits) || name.starts_with("pg_") {
            let sentence = format!(
                "{name:?} cannot be the schema of elections: use letters, digits, _, - and $, at most 63 characters, not starting with pg_"
            );
            return Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence));
        }
        Ok(Schema(name))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// A statement with this schema, quoted, in the place of `{schema}`, and its bare name in that of `{name}`.
    pub(crate) fn statement(&self, text: &str) -> String {
        text.replace("{schema}", &format!("\"{}\"", self.0)).replace("{name}", &self.0)
    }

    /// What makes the tables, as one transaction that may be run any number of times, and lets these roles take part.
    ///
    /// # Errors
    /// When a role's name has a zero byte in it.
    pub fn sql(&self, roles: &[String]) -> Result<String, StoreError> {
        let statements = format!("{OURS_ALONE}{TABLES}{FENCES}");
        let mut text = self.statement(&statements).replace("{version}", &VERSION.to_string());
        text = text.replace("{functions}", &FUNCTIONS.to_string());
        for role in roles {
            if role.is_empty() || role.contains('\0') {
                let sentence = format!("{role:?} is not the name of a role");
                return Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence));
            }
            let role = format!("\"{}\"", role.replace('"', "\"\""));
            text.push_str(&self.statement(GRANTS).replace("{role}", &role));
        }
        Ok(format!("BEGIN;\n{text}COMMIT;\n"))
    }
}

/// Whoever makes the tables runs what is in the schema: triggers, views, defaults. So nothing of anybody else's may be there, and
/// nobody else may put anything there. A superuser has the rights of everybody, hence owners are compared, not rights. The search path
/// is for those who run this by other means: a function of PUBLIC's would fit a call better than the server's own.
const OURS_ALONE: &str = r#"SET LOCAL search_path = pg_catalog, pg_temp;
SELECT pg_advisory_xact_lock(hashtextextended('bellwether postgres init', 0));
DO $do$
DECLARE
  space oid := (SELECT n.oid FROM pg_namespace n WHERE n.nspname = '{name}');
  me oid := (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user);
  stranger text;
BEGIN
  IF space IS NULL THEN
    CREATE SCHEMA {schema};
    RETURN;
  END IF;
  SELECT pg_get_userbyid(n.nspowner) INTO stranger FROM pg_namespace n WHERE n.oid = space AND n.nspowner <> me;
  IF FOUND THEN
    RAISE EXCEPTION 'schema {name} belongs to role %, and this is role %: run this as its owner, or name another schema',
      stranger, current_user USING ERRCODE = 'BW002';
  END IF;
  SELECT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(acl.grantee) END INTO stranger
    FROM pg_namespace n, aclexplode(n.nspacl) acl
    WHERE n.oid = space AND acl.privilege_type = 'CREATE' AND acl.grantee <> me;
  IF FOUND THEN
    RAISE EXCEPTION 'role % may create objects in schema {name}: revoke that right, or name another schema', stranger
      USING ERRCODE = 'BW002';
  END IF;
  SELECT format('%s, which belongs to role %s', what.name, pg_get_userbyid(what.owner)) INTO stranger FROM (
    SELECT c.relname::text, c.relowner FROM pg_class c WHERE c.relnamespace = space
    UNION ALL SELECT p.proname, p.proowner FROM pg_proc p WHERE p.pronamespace = space
    UNION ALL SELECT t.typname, t.typowner FROM pg_type t WHERE t.typnamespace = space
    UNION ALL SELECT o.oprname, o.oprowner FROM pg_operator o WHERE o.oprnamespace = space
    UNION ALL SELECT 'the trigger ' || t.tgname, p.proowner FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
      JOIN pg_proc p ON p.oid = t.tgfoid WHERE c.relnamespace = space AND NOT t.tgisinternal
    ) AS what(name, owner) WHERE what.owner <> me;
  IF FOUND THEN
    RAISE EXCEPTION 'in schema {name} there is %: remove it, or name another schema', stranger USING ERRCODE = 'BW002';
  END IF;
  SELECT c.relname INTO stranger FROM pg_class c WHERE c.relnamespace = space AND c.relkind <> 'r'
    AND c.relname IN ('version', 'elections', 'intents', 'history', 'cooldowns', 'once');
  IF FOUND THEN
    RAISE EXCEPTION 'in schema {name}, % is not a table: remove it, or name another schema', stranger
      USING ERRCODE = 'BW002';
  END IF;
END $do$;
"#;

const TABLES: &str = r#"CREATE TABLE IF NOT EXISTS {schema}.version (version int4 PRIMARY KEY);
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
CREATE TABLE IF NOT EXISTS {schema}.once (
  name text PRIMARY KEY,
  content text NOT NULL,
  created timestamptz NOT NULL DEFAULT clock_timestamp()
);
"#;

/// `fence` locks the election's row against a change of its epoch until the user's transaction has ended. Those who claim
/// meanwhile cannot write the row, and nobody leads before it is written. What they mean to write stands in `intents`, so
/// that no further transaction of the old leader gets in before them. A leader that released, or died, no longer has the lock: whoever
/// gets it, if only shared and until the error is raised, knows that nobody leads, whatever its snapshot shows.
///
/// A rollback to a savepoint before it undoes `fence`: the lock of the row, and the setting that says which epoch was fenced.
/// `require_fence`, as a deferred trigger of a table, finds that out at the end of every transaction that changes that table.
const FENCES: &str = r#"CREATE OR REPLACE FUNCTION {schema}.fence(election text, epoch int8) RETURNS void
LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fence$
DECLARE
  latest record;
BEGIN
  IF fence.election IS NULL OR fence.epoch IS NULL THEN
    RAISE EXCEPTION 'fence needs an election and an epoch, and one of them is NULL' USING ERRCODE = 'BW001';
  END IF;
  SELECT e.epoch, e.holder, e.key1, e.key2 INTO latest
    FROM {schema}.elections e WHERE e.name = fence.election FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'nobody has ever led "%"', fence.election USING ERRCODE = 'BW001';
  ELSIF latest.epoch <> fence.epoch OR latest.holder IS NULL
    OR EXISTS (SELECT FROM {schema}.intents i WHERE i.name = fence.election AND i.epoch > fence.epoch)
    OR pg_try_advisory_xact_lock_shared(latest.key1, latest.key2) THEN
    RAISE EXCEPTION 'epoch % does not lead "%" any more', fence.epoch, fence.election
      USING ERRCODE = 'BW001', DETAIL = format('The latest epoch is %s.', latest.epoch);
  END IF;
  PERFORM set_config('bellwether.fenced', (coalesce(nullif(current_setting('bellwether.fenced', true), ''), '{}')::jsonb
    || jsonb_build_object(fence.election, fence.epoch))::text, true);
END $fence$;
CREATE OR REPLACE FUNCTION {schema}.require_fence() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $require$
DECLARE
  fenced int8 := nullif(current_setting('bellwether.fenced', true), '')::jsonb ->> TG_ARGV[0];
BEGIN
  IF TG_NARGS <> 1 THEN
    RAISE EXCEPTION 'the trigger % needs the name of one election: {schema}.require_fence(''NAME'')', TG_NAME
      USING ERRCODE = 'BW001';
  ELSIF fenced IS NULL THEN
    RAISE EXCEPTION 'table % takes only what is fenced, and this transaction has not called fence for "%", or rolled it back',
      TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'BW001', HINT = 'Call fence first, before any savepoint.';
  END IF;
  PERFORM FROM {schema}.elections e WHERE e.name = TG_ARGV[0] AND e.epoch = fenced FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'epoch % does not lead "%" any more', fenced, TG_ARGV[0] USING ERRCODE = 'BW001';
  END IF;
  RETURN NULL;
END $require$;
COMMENT ON FUNCTION {schema}.fence(text, int8) IS 'Fails unless this epoch leads. Functions of Bellwether, version {functions}.';
"#;

/// For whoever stands. Whoever only works under somebody's epoch needs `USAGE` of the schema and nothing else.
const GRANTS: &str = "GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON {schema}.version TO {role};
GRANT SELECT, INSERT ON {schema}.once TO {role};
GRANT SELECT, INSERT, UPDATE ON {schema}.elections, {schema}.intents TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.history, {schema}.cooldowns TO {role};
";

/// What a connection asks first, since to read is to run what stands in a table's place: whether all are tables, of one owner, and
/// the version of the functions.
pub(crate) const WHAT_IS_THERE: &str = "SELECT (SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = n.oid \
     AND c.relname IN ('version', 'elections', 'intents', 'history', 'cooldowns', 'once') \
     AND (c.relkind <> 'r' OR c.relowner <> n.nspowner) LIMIT 1), \
     (SELECT coalesce(substring(obj_description(p.oid, 'pg_proc') from 'version ([0-9]+)')::int4, 1) FROM pg_proc p \
     WHERE p.pronamespace = n.oid AND p.proname = 'fence' AND p.proowner = n.nspowner LIMIT 1) \
     FROM pg_namespace n WHERE n.nspname = '{name}'";

/// What it asks then.
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
        assert!(!text.replace("'{}'", "").contains('{'), "{text}");
    }
}
