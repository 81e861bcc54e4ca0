//! What MySQL's front end must know of a statement before the session plans it: whether it handles the statement itself, and
//! what the statement does to transactions.

mod load;
mod set;
mod text;
mod values;

pub use self::load::LoadStatement;
pub use self::set::{AssignedValue, Assignment};
pub use self::text::{
    default_text, executable, expression_text, quoted_name, quoted_text, unescape_byte, without_raw_bytes,
};
pub use self::values::{ValuePart, ValueSource, counted_conditions, show_without_rows, value_parts};

use crate::dialect::DialectName;
use crate::plain_select;
use crate::source_tokens::{SourceToken, SourceTokens, verb};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::tokenizer::Token;

/// How a statement is handled.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// `BEGIN`, `START TRANSACTION`
    Begin {
        /// Whether it may change nothing.
        read_only: bool,
    },
    Commit {
        /// Whether another transaction begins.
        chain: bool,
    },
    Rollback {
        /// Whether another transaction begins.
        chain: bool,
    },
    /// `SET` of variables
    Set(Vec<Assignment>),
    /// `SET STATEMENT max_statement_time = … FOR …` of MariaDB
    Bounded {
        /// The time limit.
        milliseconds: u64,
        /// Where the statement begins.
        from: usize,
    },
    /// `USE name`
    Use(String),
    /// `SHOW CREATE TABLE`, with the parts of the name
    ShowCreate(Vec<String>),
    /// `SHOW WARNINGS`, `SHOW ERRORS`
    ShowConditions(ConditionSelection),
    /// `KILL` and the number of a connection
    Kill(Kill, u64),
    /// `LOAD DATA LOCAL INFILE`
    Load(Box<LoadStatement>),
    /// `DO expression, …`, whose result is discarded
    Do {
        /// Where the expressions begin.
        from: usize,
    },
    /// `LOCK TABLES`, which commits: transactions have snapshots, and tables need no locks.
    LockTables,
    /// `UNLOCK TABLES`, `FLUSH` and `ALTER TABLE t DISABLE KEYS`, which have no effect: there are no locks and no indexes,
    /// and committed changes are durable.
    Nothing,
    /// Any other one, which goes to the session.
    Plain(Effect),
}

/// The effect of a statement on transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It reads rows: with autocommit off it begins a transaction.
    Reads,
    /// It changes rows, and begins a transaction too.
    Writes,
    /// It changes tables, for which the open transaction is committed (MySQL manual, "Statements That Cause an Implicit
    /// Commit").
    Defines,
    None,
}

/// What KILL ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// The statement that runs.
    Statement,
    Connection,
}

/// Which conditions of the last statement `SHOW WARNINGS` or `SHOW ERRORS` lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionSelection {
    /// Whether errors alone.
    pub errors_only: bool,
    /// How many are left out at the beginning.
    pub skip: usize,
    /// The most that are listed.
    pub most: usize,
}

/// A statement as far as the front end must know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// How it is handled.
    pub kind: StatementKind,
    /// Whether `sql_select_limit` applies to it.
    pub is_select: bool,
    /// Whether it is an UPDATE or DELETE of all rows, which `sql_safe_updates` refuses (MySQL manual, "Using Safe-Updates
    /// Mode").
    pub changes_all_rows: bool,
    /// Whether it asks about the conditions of the last statement, which must be kept for it.
    pub asks_conditions: bool,
}

fn tokens(sql: &str) -> SourceTokens<'_> {
    SourceTokens::new(sql, DialectName::MySql)
}

fn syntax(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Syntax, message)
}

impl Statement {
    /// The statement of a text, which has one at most.
    pub fn parse(sql: &str) -> Result<Self> {
        if plain_select::place(sql).is_some() {
            let kind = StatementKind::Plain(Effect::Reads);
            return Ok(Self { kind, is_select: true, changes_all_rows: false, asks_conditions: false });
        }
        let verb = verb(tokens(sql));
        Ok(Self {
            kind: kind(sql, &verb)?,
            is_select: matches!(verb.as_str(), "SELECT" | "VALUES" | "TABLE"),
            changes_all_rows: matches!(verb.as_str(), "UPDATE" | "DELETE") && !has_condition(sql),
            asks_conditions: asks_conditions(sql, &verb),
        })
    }
}

fn kind(sql: &str, verb: &str) -> Result<StatementKind> {
    // As many as the longest of them has, and one more.
    let first: Vec<SourceToken<'_>> = tokens(sql).take(7).collect();
    let is = |at: usize, word: &str| first.get(at).is_some_and(|token| token.is(word));
    let plain = StatementKind::Plain(Effect::None);
    let Some(head) = first.first() else { return Ok(plain) };
    let behind = if is(1, "WORK") { 2 } else { 1 };
    let chain = is(behind, "AND") && is(behind + 1, "CHAIN");
    let is_unchained = is(behind, "AND") && is(behind + 1, "NO") && is(behind + 2, "CHAIN");
    let words = match (chain, is_unchained) {
        (true, _) => behind + 2,
        (false, true) => behind + 3,
        (false, false) => behind,
    };
    let ends = first.len() == words;
    Ok(match head.text.to_ascii_uppercase().as_str() {
        "BEGIN" => StatementKind::Begin { read_only: false },
        "START" if is(1, "TRANSACTION") => StatementKind::Begin { read_only: reads_only(sql) },
        "COMMIT" if ends => StatementKind::Commit { chain },
        "ROLLBACK" if ends => StatementKind::Rollback { chain },
        "COMMIT" | "ROLLBACK" if is(behind, "AND") || is(behind, "RELEASE") || is(behind, "NO") => {
            return Err(Error::unsupported("RELEASE is not supported").with_hint("close the connection"));
        }
        "SET" if is(1, "STATEMENT") => bounded(sql)?,
        "SET" => StatementKind::Set(set::parse(sql)?),
        "USE" => match first.as_slice() {
            [_, name] => name.name().map_or(plain, StatementKind::Use),
            _ => plain,
        },
        "SHOW" if is(1, "CREATE") && is(2, "TABLE") => {
            table_name(sql).map_or(plain, StatementKind::ShowCreate)
        }
        "SHOW" if is(1, "WARNINGS") || is(1, "ERRORS") => {
            conditions(&first).map_or(plain, StatementKind::ShowConditions)
        }
        "KILL" => kill(&first).unwrap_or(plain),
        "DO" => first.get(1).map_or(plain, |first| StatementKind::Do { from: first.range().start }),
        "LOCK" if is(1, "TABLES") || is(1, "TABLE") => StatementKind::LockTables,
        "UNLOCK" if is(1, "TABLES") || is(1, "TABLE") => StatementKind::Nothing,
        "FLUSH" => StatementKind::Nothing,
        "ALTER" if is(1, "TABLE") && switches_keys(sql) => StatementKind::Nothing,
        "LOAD" if is(1, "DATA") => StatementKind::Load(Box::new(LoadStatement::parse(sql)?)),
        "LOAD" if is(1, "XML") => {
            return Err(Error::unsupported("LOAD XML is not supported")
                .with_hint("send the rows as CSV with LOAD DATA, or use Arrow Flight SQL"));
        }
        _ => StatementKind::Plain(effect(sql, verb)),
    })
}

/// The parts of the name in `SHOW CREATE TABLE`, if nothing else follows.
fn table_name(sql: &str) -> Option<Vec<String>> {
    let mut words = tokens(sql).skip(3);
    let mut parts = vec![words.next()?.name()?];
    while let Some(point) = words.next() {
        if point.token != Token::Period || parts.len() == 3 {
            return None;
        }
        parts.push(words.next()?.name()?);
    }
    Some(parts)
}

/// `SHOW WARNINGS|ERRORS [LIMIT [offset,] count]`
fn conditions(statement: &[SourceToken<'_>]) -> Option<ConditionSelection> {
    let [_, what, rest @ ..] = statement else { return None };
    let number = |token: &SourceToken<'_>| token.text.parse::<usize>().ok();
    let (skip, most) = match rest {
        [] => (0, usize::MAX),
        [limit, count] if limit.is("limit") => (0, number(count)?),
        [limit, skip, comma, count] if limit.is("limit") && comma.token == Token::Comma => {
            (number(skip)?, number(count)?)
        }
        _ => return None,
    };
    Some(ConditionSelection { errors_only: what.is("errors"), skip, most })
}

fn asks_conditions(sql: &str, verb: &str) -> bool {
    let is_count = |token: SourceToken<'_>| {
        let name = token.text.to_ascii_lowercase();
        token.is_variable() && (name.ends_with("warning_count") || name.ends_with("error_count"))
    };
    match verb {
        "SHOW" => {
            let what = tokens(sql).nth(1);
            what.is_some_and(|word| ["warnings", "errors", "count"].iter().any(|name| word.is(name)))
        }
        "SELECT" => sql.contains("@@") && tokens(sql).any(is_count),
        _ => false,
    }
}

/// Whether a statement ends in `DISABLE KEYS` or `ENABLE KEYS`, as in dumps.
fn switches_keys(sql: &str) -> bool {
    let words: Vec<SourceToken<'_>> = tokens(sql).collect();
    matches!(words.as_slice(), [.., what, keys] if keys.is("keys") && (what.is("disable") || what.is("enable")))
}

fn reads_only(sql: &str) -> bool {
    let words: Vec<SourceToken<'_>> = tokens(sql).collect();
    words.windows(2).any(|pair| matches!(pair, [read, only] if read.is("read") && only.is("only")))
}

fn bounded(sql: &str) -> Result<StatementKind> {
    let words: Vec<SourceToken<'_>> = tokens(sql).skip(2).take(5).collect();
    let [name, equals, value, then, rest @ ..] = words.as_slice() else {
        return Err(syntax("syntax error: SET STATEMENT takes a variable, a value, FOR and a statement"));
    };
    let seconds = value.text.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
    match (seconds, rest) {
        (Some(seconds), [begin])
            if name.is("max_statement_time") && equals.token == Token::Eq && then.is("for") =>
        {
            Ok(StatementKind::Bounded {
                milliseconds: (seconds * 1_000.0).ceil() as u64,
                from: begin.range().start,
            })
        }
        _ => Err(Error::unsupported("SET STATEMENT takes nothing but `max_statement_time = seconds`")),
    }
}

/// `KILL [QUERY | CONNECTION] number`; strings are identifiers of sessions, which the engine handles.
fn kill(statement: &[SourceToken<'_>]) -> Option<StatementKind> {
    let (what, id) = match statement {
        [_, id] => (Kill::Connection, id),
        [_, what, id] if what.is("query") => (Kill::Statement, id),
        [_, what, id] if what.is("connection") => (Kill::Connection, id),
        _ => return None,
    };
    Some(StatementKind::Kill(what, id.text.parse().ok()?))
}

fn effect(sql: &str, verb: &str) -> Effect {
    let is_temporary = || tokens(sql).skip(1).take(3).any(|word| word.is("temporary") || word.is("temp"));
    match verb {
        // Without a table it needs no snapshot.
        "SELECT" if !tokens(sql).any(|token| token.is("from") || token.is("table")) => Effect::None,
        "SELECT" | "TABLE" | "EXECUTE" | "SAVEPOINT" | "DECLARE" => Effect::Reads,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" | "COPY" => Effect::Writes,
        "CREATE" | "DROP" if is_temporary() => Effect::Writes,
        "CREATE" | "DROP" | "ALTER" | "TRUNCATE" | "RENAME" => Effect::Defines,
        _ => Effect::None,
    }
}

/// Whether an UPDATE or DELETE has a WHERE or LIMIT that is not of a subquery.
fn has_condition(sql: &str) -> bool {
    let mut depth = 0_i64;
    tokens(sql).any(|token| {
        depth += token.depth();
        depth == 0 && (token.is("where") || token.is("limit"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_sorted_by_their_words() {
        let selection = |errors_only, skip, most| {
            StatementKind::ShowConditions(ConditionSelection { errors_only, skip, most })
        };
        for (sql, expected) in [
            ("begin", StatementKind::Begin { read_only: false }),
            ("START TRANSACTION", StatementKind::Begin { read_only: false }),
            (
                "start transaction with consistent snapshot, READ ONLY",
                StatementKind::Begin { read_only: true },
            ),
            ("COMMIT work", StatementKind::Commit { chain: false }),
            ("commit and chain", StatementKind::Commit { chain: true }),
            ("rollback", StatementKind::Rollback { chain: false }),
            ("ROLLBACK WORK AND NO CHAIN", StatementKind::Rollback { chain: false }),
            ("ROLLBACK TO SAVEPOINT `a`", StatementKind::Plain(Effect::None)),
            ("use `a b`", StatementKind::Use("a b".to_owned())),
            ("KILL 5", StatementKind::Kill(Kill::Connection, 5)),
            ("kill query 6", StatementKind::Kill(Kill::Statement, 6)),
            ("kill query 'x'", StatementKind::Plain(Effect::None)),
            ("select 1", StatementKind::Plain(Effect::None)),
            ("(select a from t)", StatementKind::Plain(Effect::Reads)),
            ("select a from t where id = 5", StatementKind::Plain(Effect::Reads)),
            ("with a as (select 1) delete from t", StatementKind::Plain(Effect::Writes)),
            ("create table t (a int)", StatementKind::Plain(Effect::Defines)),
            ("create temporary table t (a int)", StatementKind::Plain(Effect::Writes)),
            ("show tables", StatementKind::Plain(Effect::None)),
            ("SHOW CREATE TABLE `d`.`t`", StatementKind::ShowCreate(vec!["d".to_owned(), "t".to_owned()])),
            ("show create table t u", StatementKind::Plain(Effect::None)),
            ("show create view v", StatementKind::Plain(Effect::None)),
            ("SHOW WARNINGS", selection(false, 0, usize::MAX)),
            ("show errors limit 2", selection(true, 0, 2)),
            ("SHOW WARNINGS LIMIT 1, 3", selection(false, 1, 3)),
            ("SHOW WARNINGS LIMIT 1, 3, 5", StatementKind::Plain(Effect::None)),
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
            assert_eq!(Statement::parse(sql).unwrap().kind, expected, "{sql}");
        }
    }

    #[test]
    fn what_is_not_done_is_said() {
        for (sql, kind) in [
            ("commit and chain release", ErrorKind::Unsupported),
            ("LOAD DATA INFILE 'a' INTO TABLE t", ErrorKind::Unsupported),
            ("SET STATEMENT x=1 FOR select 1", ErrorKind::Unsupported),
            ("SET STATEMENT", ErrorKind::Syntax),
        ] {
            assert_eq!(Statement::parse(sql).unwrap_err().kind(), kind, "{sql}");
        }
    }
}
