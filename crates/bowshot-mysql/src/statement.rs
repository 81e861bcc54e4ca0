//! The kinds of statements that the front end handles itself: transactions, variables, KILL, LOAD DATA and the like. All
//! others go to the session.

use crate::cancel::Kill;
use crate::load::Load;
use crate::set_statement::{Assignment, parse};
use crate::status::Failure;
use crate::tokens::{Kind, Token, tokens};

/// How a statement is handled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StatementKind {
    Begin {
        read_only: bool,
    },
    Commit,
    Rollback,
    Set(Vec<Assignment>),
    /// `SET STATEMENT max_statement_time = … FOR …` of MariaDB: the time limit, and where the statement begins.
    Bounded {
        milliseconds: u64,
        from: usize,
    },
    Use(String),
    /// `SHOW CREATE TABLE`, with the parts of the name.
    ShowCreate(Vec<String>),
    Kill(Kill, u64),
    /// `LOAD DATA LOCAL INFILE`
    Load(Box<Load>),
    /// `DO expression, …`, whose result is discarded: where the expressions begin.
    Do {
        from: usize,
    },
    /// `LOCK TABLES`, which commits: transactions have snapshots, and tables need no locks.
    LockTables,
    /// `UNLOCK TABLES`, `FLUSH` and `ALTER TABLE t DISABLE KEYS`, which have no effect: there are no locks and no indexes,
    /// and committed changes are durable.
    Nothing,
    Plain(Effect),
}

/// The effect of a statement on transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It reads rows: with autocommit off it begins a transaction.
    Reads,
    /// It changes rows, and begins a transaction too.
    Writes,
    /// It changes tables, for which the open transaction is committed (MySQL manual, "Statements That Cause an Implicit
    /// Commit").
    Defines,
    None,
}

impl StatementKind {
    /// The kind of a statement.
    ///
    /// # Errors
    /// For an invalid statement that the front end handles.
    pub(crate) fn parse(sql: &str) -> Result<Self, Failure> {
        let mut words = tokens(sql);
        let first = [words.next(), words.next(), words.next(), words.next()];
        let is = |at: usize, word: &str| {
            first.get(at).is_some_and(|token| token.is_some_and(|token| token.is(word)))
        };
        let [Some(head), second, third, fourth] = first else { return Ok(Self::Plain(Effect::None)) };
        let ends_at = |at: usize| first.get(at).is_none_or(Option::is_none);
        Ok(match head.text.to_ascii_uppercase().as_str() {
            "BEGIN" => Self::Begin { read_only: false },
            "START" if is(1, "TRANSACTION") => Self::Begin { read_only: reads_only(sql) },
            "COMMIT" if ends_at(1) || is(1, "WORK") && ends_at(2) => Self::Commit,
            "ROLLBACK" if ends_at(1) || is(1, "WORK") && ends_at(2) => Self::Rollback,
            "COMMIT" | "ROLLBACK" if is(1, "AND") || is(1, "RELEASE") => {
                return Err(Failure::unsupported("CHAIN and RELEASE are not supported")
                    .with_hint("begin the next transaction with BEGIN"));
            }
            "SET" if is(1, "STATEMENT") => bounded(sql)?,
            "SET" => Self::Set(parse(sql)?),
            "USE" => match (second.and_then(|token| token.name()), third) {
                (Some(name), None) => Self::Use(name),
                _ => Self::Plain(Effect::None),
            },
            "SHOW" if is(1, "CREATE") && is(2, "TABLE") => {
                table_name(sql).map_or(Self::Plain(Effect::None), Self::ShowCreate)
            }
            "KILL" => kill(&[second, third, fourth]).unwrap_or(Self::Plain(Effect::None)),
            "DO" => match second {
                Some(first) => Self::Do { from: first.range().start },
                None => Self::Plain(Effect::None),
            },
            "LOCK" if is(1, "TABLES") || is(1, "TABLE") => Self::LockTables,
            "UNLOCK" if is(1, "TABLES") || is(1, "TABLE") => Self::Nothing,
            "FLUSH" => Self::Nothing,
            "ALTER" if is(1, "TABLE") && switches_keys(sql) => Self::Nothing,
            "LOAD" if is(1, "DATA") => Self::Load(Box::new(Load::parse(sql)?)),
            "LOAD" if is(1, "XML") => {
                return Err(Failure::unsupported("LOAD XML is not supported")
                    .with_hint("send the rows as CSV with LOAD DATA, or use Arrow Flight SQL"));
            }
            _ => Self::Plain(effect(sql)),
        })
    }
}

/// The parts of the name in `SHOW CREATE TABLE`, if nothing else follows.
fn table_name(sql: &str) -> Option<Vec<String>> {
    let mut words = tokens(sql).skip(3);
    let mut parts = vec![words.next()?.name()?];
    while let Some(point) = words.next() {
        if !point.is_symbol('.') || parts.len() == 3 {
            return None;
        }
        parts.push(words.next()?.name()?);
    }
    Some(parts)
}

/// Whether a statement ends in `DISABLE KEYS` or `ENABLE KEYS`, as in dumps.
fn switches_keys(sql: &str) -> bool {
    let words: Vec<Token<'_>> = tokens(sql).collect();
    matches!(words.as_slice(), [.., what, keys] if keys.is("keys") && (what.is("disable") || what.is("enable")))
}

fn reads_only(sql: &str) -> bool {
    let words: Vec<Token<'_>> = tokens(sql).collect();
    words.windows(2).any(|pair| matches!(pair, [read, only] if read.is("read") && only.is("only")))
}

fn bounded(sql: &str) -> Result<StatementKind, Failure> {
    let mut words = tokens(sql).skip(2);
    let (name, equals, value, then) = (words.next(), words.next(), words.next(), words.next());
    let (Some(name), Some(equals), Some(value), Some(then)) = (name, equals, value, then) else {
        return Err(Failure::syntax(
            "syntax error: SET STATEMENT takes a variable, a value, FOR and a statement",
        ));
    };
    let seconds = value.text.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
    match (seconds, words.next()) {
        (Some(seconds), Some(begin))
            if name.is("max_statement_time") && equals.is_symbol('=') && then.is("for") =>
        {
            Ok(StatementKind::Bounded {
                milliseconds: (seconds * 1_000.0).ceil() as u64,
                from: begin.range().start,
            })
        }
        _ => Err(Failure::unsupported("SET STATEMENT takes nothing but `max_statement_time = seconds`")),
    }
}

/// `KILL [QUERY | CONNECTION] number`; strings are identifiers of sessions, which the engine handles.
fn kill(rest: &[Option<Token<'_>>]) -> Option<StatementKind> {
    let mut words = rest.iter().copied();
    let mut next = words.next()??;
    let mut what = Kill::Connection;
    if next.is("query") || next.is("connection") {
        if next.is("query") {
            what = Kill::Statement;
        }
        next = words.next()??;
    }
    let id = (next.kind == Kind::Number).then(|| next.text.parse().ok()).flatten()?;
    words.next().flatten().is_none().then_some(StatementKind::Kill(what, id))
}

fn effect(sql: &str) -> Effect {
    match verb(sql).as_str() {
        // Without a table it needs no snapshot.
        "SELECT" if !tokens(sql).any(|token| token.is("from") || token.is("table")) => Effect::None,
        "SELECT" | "TABLE" | "EXECUTE" | "SAVEPOINT" | "DECLARE" => Effect::Reads,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" | "COPY" => Effect::Writes,
        "CREATE" | "DROP" if is_temporary(sql) => Effect::Writes,
        "CREATE" | "DROP" | "ALTER" | "TRUNCATE" | "RENAME" => Effect::Defines,
        _ => Effect::None,
    }
}

/// Whether `sql_select_limit` applies to a statement.
pub(crate) fn is_select(sql: &str) -> bool {
    matches!(verb(sql).as_str(), "SELECT" | "VALUES" | "TABLE")
}

/// Refuses an UPDATE or DELETE of all rows, as `sql_safe_updates` asks for (MySQL manual, "Using Safe-Updates Mode").
pub(crate) fn check_condition(sql: &str) -> Result<(), Failure> {
    if !matches!(verb(sql).as_str(), "UPDATE" | "DELETE") {
        return Ok(());
    }
    let mut depth = 0_i64;
    let is_limited = tokens(sql).any(|token| {
        depth += i64::from(token.is_symbol('(')) - i64::from(token.is_symbol(')'));
        // Not the WHERE of a subquery.
        depth == 0 && (token.is("where") || token.is("limit"))
    });
    if is_limited {
        return Ok(());
    }
    let message = "safe updates are on, and the statement has neither WHERE nor LIMIT";
    Err(Failure::new(1175, "HY000", message)
        .with_hint("name the rows with WHERE, or `SET sql_safe_updates = 0`"))
}

fn is_temporary(sql: &str) -> bool {
    tokens(sql).skip(1).take(3).any(|word| word.is("temporary") || word.is("temp"))
}

/// The keyword that says what a statement does, behind its common table expressions.
fn verb(sql: &str) -> String {
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
    ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "VALUES", "TABLE"]
        .iter()
        .any(|word| token.is(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_sorted_by_their_words() {
        for (sql, expected) in [
            ("begin", StatementKind::Begin { read_only: false }),
            ("START TRANSACTION", StatementKind::Begin { read_only: false }),
            (
                "start transaction with consistent snapshot, READ ONLY",
                StatementKind::Begin { read_only: true },
            ),
            ("COMMIT work", StatementKind::Commit),
            ("rollback", StatementKind::Rollback),
            ("ROLLBACK TO SAVEPOINT `a`", StatementKind::Plain(Effect::None)),
            ("use `a b`", StatementKind::Use("a b".to_owned())),
            ("KILL 5", StatementKind::Kill(Kill::Connection, 5)),
            ("kill query 6", StatementKind::Kill(Kill::Statement, 6)),
            ("kill query 'x'", StatementKind::Plain(Effect::None)),
            ("select 1", StatementKind::Plain(Effect::None)),
            ("(select a from t)", StatementKind::Plain(Effect::Reads)),
            ("with a as (select 1) delete from t", StatementKind::Plain(Effect::Writes)),
            ("create table t (a int)", StatementKind::Plain(Effect::Defines)),
            ("create temporary table t (a int)", StatementKind::Plain(Effect::Writes)),
            ("show tables", StatementKind::Plain(Effect::None)),
            ("SHOW CREATE TABLE `d`.`t`", StatementKind::ShowCreate(vec!["d".to_owned(), "t".to_owned()])),
            ("show create table t u", StatementKind::Plain(Effect::None)),
            ("show create view v", StatementKind::Plain(Effect::None)),
            ("do 1, f(2)", StatementKind::Do { from: 3 }),
            ("LOCK TABLES `t` READ /*!32311 LOCAL */", StatementKind::LockTables),
            ("unlock tables", StatementKind::Nothing),
            ("FLUSH TABLES WITH READ LOCK", StatementKind::Nothing),
            ("ALTER TABLE `a`.`b` DISABLE KEYS", StatementKind::Nothing),
            ("alter table t add keys int", StatementKind::Plain(Effect::Defines)),
            (
                "SET STATEMENT max_statement_time=0.5 FOR select 1",
                StatementKind::Bounded { milliseconds: 500, from: 41 },
            ),
        ] {
            assert_eq!(StatementKind::parse(sql).unwrap(), expected, "{sql}");
        }
    }

    #[test]
    fn changes_of_all_rows_are_seen() {
        for (sql, is_refused) in [
            ("update t set a = 1", true),
            ("delete from t", true),
            ("update t set a = 1 where b = 2", false),
            ("update t set a = (select b from u where c limit 1)", true),
            ("with u as (select 1 where true) delete from t", true),
            ("delete from t where a in (1, 2)", false),
            ("delete from t limit 3", false),
            ("insert into t values (1)", false),
        ] {
            assert_eq!(check_condition(sql).is_err(), is_refused, "{sql}");
        }
    }

    #[test]
    fn what_is_not_done_is_said() {
        for (sql, code) in [
            ("commit and chain", 1235),
            ("LOAD DATA INFILE 'a' INTO TABLE t", 1235),
            ("SET STATEMENT x=1 FOR select 1", 1235),
            ("SET STATEMENT", 1064),
        ] {
            assert_eq!(StatementKind::parse(sql).unwrap_err().code.0, code, "{sql}");
        }
    }
}
