//! What PostgreSQL's front end must know of a statement before the session plans it: whether it handles the statement itself,
//! and the command tag (PostgreSQL manual, "Message Formats").

mod copy;

pub use self::copy::{CopyDirection, CopyForm, CopyOptions, CopyStatement, CopyTable};

use crate::dialect::DialectName;
use crate::plain_select;
use crate::source_tokens::{SourceToken, SourceTokens, verb};
use bowshot_api::Result;
use sqlparser::tokenizer::Token;

/// How a statement is handled.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    Empty,
    /// `BEGIN`, `START TRANSACTION`
    Begin,
    /// `COMMIT`, `END`
    Commit {
        /// Whether another transaction begins.
        chain: bool,
    },
    /// `ROLLBACK`, `ABORT`
    Rollback {
        /// Whether another transaction begins.
        chain: bool,
    },
    /// `ROLLBACK TO SAVEPOINT`
    RollbackTo,
    /// COPY over the connection
    Copy(Box<CopyStatement>),
    /// `SET TRANSACTION` with its modes
    SetTransaction(String),
    /// `DEALLOCATE name`
    Deallocate(String),
    /// `DEALLOCATE ALL`, `DISCARD ALL`
    CloseAll,
    /// Any other one, which goes to the session as it is.
    Plain,
}

/// What a statement sets back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reset {
    /// `RESET ALL`, `DISCARD ALL`
    All,
    /// `RESET name`
    Setting(String),
}

/// A statement as far as the front end must know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// How it is handled.
    pub kind: StatementKind,
    /// The tag of its CommandComplete.
    pub tag: CommandTag,
    /// The settings that it sets back.
    pub reset: Option<Reset>,
    /// Whether it may change a setting of the session.
    pub changes_settings: bool,
}

/// The command tag of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTag {
    words: String,
    has_rows: bool,
}

impl CommandTag {
    /// The tag with the number of rows returned or changed.
    pub fn with_rows(&self, rows: u64) -> String {
        if self.has_rows { format!("{} {rows}", self.words) } else { self.words.clone() }
    }

    /// Whether it is that of a FETCH, whose columns depend on the cursor.
    pub fn is_fetch(&self) -> bool {
        self.words == "FETCH"
    }
}

fn tokens(sql: &str) -> SourceTokens<'_> {
    SourceTokens::new(sql, DialectName::Postgres)
}

impl Statement {
    /// The statement of a text, which has one at most.
    pub fn parse(sql: &str) -> Result<Self> {
        const SETTERS: [&str; 7] = ["SET", "RESET", "DISCARD", "COMMIT", "END", "ROLLBACK", "ABORT"];
        if plain_select::place(sql).is_some() {
            let tag = CommandTag { words: "SELECT".to_owned(), has_rows: true };
            return Ok(Self { kind: StatementKind::Plain, tag, reset: None, changes_settings: false });
        }
        let first: Vec<SourceToken<'_>> = tokens(sql).take(4).collect();
        let verb = verb(tokens(sql));
        let sets = || sql.as_bytes().windows(10).any(|part| part.eq_ignore_ascii_case(b"set_config"));
        Ok(Self {
            kind: kind(sql, &first)?,
            reset: reset(&first),
            changes_settings: SETTERS.contains(&verb.as_str()) || sets(),
            tag: tag(sql, verb),
        })
    }
}

impl StatementKind {
    /// Whether it belongs to the implicit transaction of its text, or of the statements up to the next Sync.
    pub fn joins_transaction(&self) -> bool {
        matches!(self, Self::Plain | Self::Copy(_))
    }

    /// Whether it may run in a transaction that has failed.
    pub fn ends_failure(&self) -> bool {
        matches!(self, Self::Commit { .. } | Self::Rollback { .. } | Self::RollbackTo)
    }
}

fn kind(sql: &str, first: &[SourceToken<'_>]) -> Result<StatementKind> {
    let is = |at: usize, word: &str| first.get(at).is_some_and(|token| token.is(word));
    let Some(head) = first.first() else { return Ok(StatementKind::Empty) };
    let next = if is(1, "WORK") || is(1, "TRANSACTION") { 2 } else { 1 };
    let chain = is(next, "AND") && is(next + 1, "CHAIN");
    Ok(match head.text.to_ascii_uppercase().as_str() {
        "BEGIN" => StatementKind::Begin,
        "START" if is(1, "TRANSACTION") => StatementKind::Begin,
        "COMMIT" | "END" if !is(1, "PREPARED") => StatementKind::Commit { chain },
        "ROLLBACK" | "ABORT" if is(1, "PREPARED") => StatementKind::Plain,
        "ROLLBACK" | "ABORT" if is(next, "TO") => StatementKind::RollbackTo,
        "ROLLBACK" | "ABORT" => StatementKind::Rollback { chain },
        "COPY" => CopyStatement::parse(sql)?
            .map_or(StatementKind::Plain, |copy| StatementKind::Copy(Box::new(copy))),
        "DEALLOCATE" => {
            let next = if is(1, "PREPARE") { 2 } else { 1 };
            let name = first.get(next).and_then(lower_name);
            if is(next, "ALL") {
                StatementKind::CloseAll
            } else {
                name.map_or(StatementKind::Plain, StatementKind::Deallocate)
            }
        }
        "SET" if is(1, "TRANSACTION") => {
            let modes = first.get(2).and_then(|mode| sql.get(mode.range().start..));
            modes.map_or(StatementKind::Plain, |modes| StatementKind::SetTransaction(modes.to_owned()))
        }
        "DISCARD" if is(1, "ALL") => StatementKind::CloseAll,
        _ => StatementKind::Plain,
    })
}

fn reset(first: &[SourceToken<'_>]) -> Option<Reset> {
    let [head, what, ..] = first else { return None };
    if what.is("ALL") && (head.is("RESET") || head.is("DISCARD")) {
        return Some(Reset::All);
    }
    head.is("RESET").then(|| Reset::Setting(what.text.to_owned()))
}

/// A name as the engine takes it: without quotes, or in lower case if it had none.
fn lower_name(token: &SourceToken<'_>) -> Option<String> {
    let name = token.name()?;
    Some(if token.is_word() { name.to_lowercase() } else { name })
}

/// Keywords between CREATE and the kind of object.
const BETWEEN: [&str; 9] =
    ["OR", "REPLACE", "TEMP", "TEMPORARY", "GLOBAL", "LOCAL", "UNLOGGED", "UNIQUE", "EXTERNAL"];

fn tag(sql: &str, verb: String) -> CommandTag {
    let (words, has_rows) = match verb.as_str() {
        "SELECT" | "VALUES" | "TABLE" | "FROM" => ("SELECT".to_owned(), true),
        "INSERT" => ("INSERT 0".to_owned(), true),
        "UPDATE" | "DELETE" | "MERGE" | "FETCH" | "MOVE" | "COPY" => (verb, true),
        "TRUNCATE" => ("TRUNCATE TABLE".to_owned(), false),
        "END" => ("COMMIT".to_owned(), false),
        "ABORT" => ("ROLLBACK".to_owned(), false),
        "START" => ("START TRANSACTION".to_owned(), false),
        "DECLARE" => ("DECLARE CURSOR".to_owned(), false),
        "CLOSE" if tokens(sql).nth(1).is_some_and(|word| word.is("ALL")) => {
            ("CLOSE CURSOR ALL".to_owned(), false)
        }
        "CLOSE" => ("CLOSE CURSOR".to_owned(), false),
        "CREATE" if makes_rows(sql) => ("SELECT".to_owned(), true),
        "CREATE" | "DROP" | "ALTER" | "DISCARD" => (two_words(sql, verb), false),
        _ => (verb, false),
    };
    CommandTag { words, has_rows }
}

fn two_words(sql: &str, verb: String) -> String {
    let mut words = tokens(sql).skip(1).filter(|token| !BETWEEN.iter().any(|between| token.is(between)));
    match words.next() {
        Some(word) if word.is("MATERIALIZED") => format!("{verb} MATERIALIZED VIEW"),
        Some(word) if word.is_word() => format!("{verb} {}", word.text.to_ascii_uppercase()),
        _ => verb,
    }
}

/// `CREATE TABLE … AS …`
fn makes_rows(sql: &str) -> bool {
    let mut depth = 0_i64;
    let mut is_table = false;
    for token in tokens(sql).skip(1) {
        depth += token.depth();
        match depth {
            0 if token.is("TABLE") => is_table = true,
            0 if token.is("VIEW") => return false,
            0 if token.is("AS") => return is_table,
            _ => {}
        }
    }
    false
}

/// The parameters, counted from zero, that a statement casts to `oid`, and whether to an array of it: the plan has only
/// `bigint`, which clients would look up.
pub fn oid_parameters(sql: &str) -> Vec<(usize, bool)> {
    if !sql.contains("::") {
        return Vec::new();
    }
    let (mut words, mut found) = (tokens(sql), Vec::new());
    while let Some(token) = words.next() {
        let number =
            token.text.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
        let Some(number) = number.filter(|_| words.take_token(&Token::DoubleColon)) else { continue };
        if words.nth_is(1, &Token::Period) && words.take_word("pg_catalog") {
            words.next();
        }
        if words.take_word("oid") {
            found.push((number, words.nth_is(0, &Token::LBracket) && words.nth_is(1, &Token::RBracket)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_sorted_by_their_words() {
        for (sql, expected) in [
            ("", StatementKind::Empty),
            ("-- nothing", StatementKind::Empty),
            ("begin isolation level read committed", StatementKind::Begin),
            ("START TRANSACTION", StatementKind::Begin),
            ("end", StatementKind::Commit { chain: false }),
            ("abort", StatementKind::Rollback { chain: false }),
            ("ROLLBACK WORK", StatementKind::Rollback { chain: false }),
            ("commit work and chain", StatementKind::Commit { chain: true }),
            ("ROLLBACK AND NO CHAIN", StatementKind::Rollback { chain: false }),
            ("rollback work to savepoint a", StatementKind::RollbackTo),
            ("ROLLBACK TO a", StatementKind::RollbackTo),
            ("DEALLOCATE ALL", StatementKind::CloseAll),
            ("DISCARD ALL", StatementKind::CloseAll),
            ("deallocate prepare \"_pg3_0\"", StatementKind::Deallocate("_pg3_0".to_owned())),
            ("set transaction /* c */ read only", StatementKind::SetTransaction("read only".to_owned())),
            ("select 1", StatementKind::Plain),
            ("start", StatementKind::Plain),
        ] {
            assert_eq!(Statement::parse(sql).unwrap().kind, expected, "{sql}");
        }
    }

    #[test]
    fn settings_are_changed_and_set_back() {
        for (sql, reset, changes) in [
            ("reset all", Some(Reset::All), true),
            ("DISCARD ALL", Some(Reset::All), true),
            ("reset TimeZone", Some(Reset::Setting("TimeZone".to_owned())), true),
            ("deallocate all", None, false),
            ("select Set_Config('a', 'b', false)", None, true),
            ("commit", None, true),
        ] {
            let statement = Statement::parse(sql).unwrap();
            assert_eq!((statement.reset, statement.changes_settings), (reset, changes), "{sql}");
        }
    }

    #[test]
    fn parameters_are_cast_to_oids() {
        let sql = "select $1::oid, $2 :: pg_catalog.oid[], $3::text, '$4::oid', $10::OID[]";
        assert_eq!(oid_parameters(sql), [(0, false), (1, true), (9, true)]);
        assert_eq!(oid_parameters("select $0::oid"), []);
    }

    #[test]
    fn tags_are_those_of_postgresql() {
        for (sql, expected) in [
            ("select 1", "SELECT 7"),
            ("(select 1)", "SELECT 7"),
            ("select a from t where id = 5", "SELECT 7"),
            ("values (1)", "SELECT 7"),
            ("with a as (select 1) update t set b = 1", "UPDATE 7"),
            ("with a as (select 1) insert into t select * from a", "INSERT 0 7"),
            ("with recursive a(b) as (delete from t) select 1", "SELECT 7"),
            ("insert into t values (1)", "INSERT 0 7"),
            ("create or replace temp table t as select 1", "SELECT 7"),
            ("Create Table t (a int)", "CREATE TABLE"),
            ("create or replace view v as select 1", "CREATE VIEW"),
            ("drop schema s", "DROP SCHEMA"),
            ("truncate t", "TRUNCATE TABLE"),
            ("end", "COMMIT"),
            ("discard all", "DISCARD ALL"),
            ("declare c cursor for select 1", "DECLARE CURSOR"),
            ("fetch all from c", "FETCH 7"),
            ("close c", "CLOSE CURSOR"),
            ("close all", "CLOSE CURSOR ALL"),
            ("set a = 1", "SET"),
            ("show a", "SHOW"),
            ("explain select 1", "EXPLAIN"),
        ] {
            assert_eq!(Statement::parse(sql).unwrap().tag.with_rows(7), expected, "{sql}");
        }
    }
}
