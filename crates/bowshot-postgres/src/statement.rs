//! The kinds of statements that the front end handles itself: transactions, its own prepared statements, and COPY over the
//! connection. All others go to the session as they are.

use crate::copy::CopyStatement;
use crate::status::Failure;
use crate::tokens::{Kind, Token, tokens};

/// How a statement is handled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StatementKind {
    Empty,
    Begin,
    Commit,
    Rollback,
    RollbackTo,
    Copy(Box<CopyStatement>),
    /// `SET TRANSACTION` with its modes
    SetTransaction(String),
    /// `DEALLOCATE name`
    Deallocate(String),
    /// `DEALLOCATE ALL`, `DISCARD ALL`
    CloseAll,
    Plain,
}

impl StatementKind {
    /// The kind of a statement.
    ///
    /// # Errors
    /// For a COPY over the connection that is not valid.
    pub(crate) fn parse(sql: &str) -> Result<Self, Failure> {
        let mut words = tokens(sql);
        let first = [words.next(), words.next(), words.next(), words.next()];
        let is = |at: usize, word: &str| {
            first.get(at).is_some_and(|token| token.is_some_and(|token| token.is(word)))
        };
        let [Some(head), ..] = first else { return Ok(Self::Empty) };
        Ok(match head.text.to_ascii_uppercase().as_str() {
            "BEGIN" => Self::Begin,
            "START" if is(1, "TRANSACTION") => Self::Begin,
            "COMMIT" | "END" if !is(1, "PREPARED") => Self::Commit,
            "ROLLBACK" | "ABORT" if is(1, "PREPARED") => Self::Plain,
            "ROLLBACK" | "ABORT" => {
                let next = if is(1, "WORK") || is(1, "TRANSACTION") { 2 } else { 1 };
                if is(next, "TO") { Self::RollbackTo } else { Self::Rollback }
            }
            "COPY" => CopyStatement::parse(sql)?.map_or(Self::Plain, |copy| Self::Copy(Box::new(copy))),
            "DEALLOCATE" => {
                let next = if is(1, "PREPARE") { 2 } else { 1 };
                match first.get(next) {
                    Some(Some(token)) if token.is("ALL") => Self::CloseAll,
                    Some(Some(token)) => token.name().map_or(Self::Plain, Self::Deallocate),
                    _ => Self::Plain,
                }
            }
            "SET" if is(1, "TRANSACTION") => {
                let modes = first.get(2).copied().flatten().and_then(|mode| sql.get(mode.range().start..));
                modes.map_or(Self::Plain, |modes| Self::SetTransaction(modes.to_owned()))
            }
            "DISCARD" if is(1, "ALL") => Self::CloseAll,
            _ => Self::Plain,
        })
    }

    /// Whether it belongs to the implicit transaction of its text, or of the statements up to the next Sync.
    pub(crate) fn joins_transaction(&self) -> bool {
        matches!(self, Self::Plain | Self::Copy(_))
    }

    /// Whether it may run in a transaction that has failed.
    pub(crate) fn ends_failure(&self) -> bool {
        matches!(self, Self::Commit | Self::Rollback | Self::RollbackTo)
    }
}

/// The parameters, counted from zero, that a statement casts to `oid`, and whether to an array of it: the plan has only
/// `bigint`, which clients would look up.
pub(crate) fn oids(sql: &str) -> Vec<(usize, bool)> {
    let words: Vec<Token<'_>> = tokens(sql).collect();
    let is = |at: usize, symbol: char| words.get(at).is_some_and(|token| token.kind == Kind::Symbol(symbol));
    let word = |at: usize, word: &str| words.get(at).is_some_and(|token| token.is(word));
    let mut found = Vec::new();
    for at in 0..words.len() {
        if !(is(at, '$') && is(at + 2, ':') && is(at + 3, ':')) {
            continue;
        }
        let named = if word(at + 4, "pg_catalog") && is(at + 5, '.') { at + 6 } else { at + 4 };
        let number = words.get(at + 1).and_then(|number| number.text.parse::<usize>().ok()?.checked_sub(1));
        if let Some(number) = number.filter(|_| word(named, "oid")) {
            found.push((number, is(named + 1, '[') && is(named + 2, ']')));
        }
    }
    found
}

/// The keyword that says what a statement does, behind its common table expressions.
pub(crate) fn verb(sql: &str) -> String {
    let mut depth = 0_usize;
    let mut with = false;
    for (index, token) in tokens(sql).enumerate() {
        match token.kind {
            Kind::Symbol('(') if index == 0 => return "SELECT".to_owned(),
            Kind::Symbol('(') => depth += 1,
            Kind::Symbol(')') => depth = depth.saturating_sub(1),
            _ if index == 0 && token.is("WITH") => with = true,
            _ if index == 0 => return token.text.to_ascii_uppercase(),
            Kind::Word if with && depth == 0 && is_main(&token) => return token.text.to_ascii_uppercase(),
            _ => {}
        }
    }
    "SELECT".to_owned()
}

fn is_main(token: &Token<'_>) -> bool {
    ["SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "TABLE", "FROM"]
        .iter()
        .any(|word| token.is(word))
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
            ("end", StatementKind::Commit),
            ("abort", StatementKind::Rollback),
            ("ROLLBACK WORK", StatementKind::Rollback),
            ("rollback work to savepoint a", StatementKind::RollbackTo),
            ("ROLLBACK TO a", StatementKind::RollbackTo),
            ("DEALLOCATE ALL", StatementKind::CloseAll),
            ("DISCARD ALL", StatementKind::CloseAll),
            ("deallocate prepare \"_pg3_0\"", StatementKind::Deallocate("_pg3_0".to_owned())),
            ("select 1", StatementKind::Plain),
            ("start", StatementKind::Plain),
        ] {
            assert_eq!(StatementKind::parse(sql).unwrap(), expected, "{sql}");
        }
    }

    #[test]
    fn parameters_are_cast_to_oids() {
        let sql = "select $1::oid, $2 :: pg_catalog.oid[], $3::text, '$4::oid', $10::OID[]";
        assert_eq!(oids(sql), [(0, false), (1, true), (9, true)]);
        assert_eq!(oids("select $0::oid"), []);
    }

    #[test]
    fn verbs_stand_behind_common_table_expressions() {
        for (sql, expected) in [
            ("select 1", "SELECT"),
            ("(select 1)", "SELECT"),
            ("with a as (select 1) insert into t select * from a", "INSERT"),
            ("with recursive a(b) as (delete from t) select 1", "SELECT"),
            ("Create Table t()", "CREATE"),
        ] {
            assert_eq!(verb(sql), expected, "{sql}");
        }
    }
}
