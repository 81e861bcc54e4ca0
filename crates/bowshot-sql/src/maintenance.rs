//! `OPTIMIZE [TABLE] t`, `VACUUM [TABLE] t [RETAIN n HOURS|DAYS]` with the options of PostgreSQL's VACUUM,
//! `[EXPLAIN] REFRESH MATERIALIZED VIEW v`, `ALTER MATERIALIZED VIEW v SET REFRESH …`, and what [`iceberg_alter_table`] reads.

use crate::iceberg_alter_table::{self, LayoutStatement};
use crate::intervals::{Interval, read_interval};
use crate::statement_tokens::{StatementTokens, expect_end, is_word, take_word};
use crate::syntax_error::syntax_error;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::ObjectName;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::time::Duration;

/// OPTIMIZE, VACUUM, or a statement that refreshes materialized views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaintenanceStatement {
    /// Writes small files of a table together.
    Optimize(ObjectName),
    /// Removes old versions of a table.
    Vacuum {
        table: ObjectName,
        /// How long versions are kept; `None` for the default.
        retain: Option<Duration>,
    },
    /// Of all tables: their old versions are removed in the background.
    VacuumAll,
    /// Computes a materialized view again.
    Refresh(ObjectName),
    /// Says how that would be done.
    ExplainRefresh(ObjectName),
    /// Sets when the server does so by itself.
    SetRefresh { view: ObjectName, mode: RefreshMode },
    /// Changes how rows of a table in a lake are partitioned, or what states of it are called.
    Layout(LayoutStatement),
}

/// When a materialized view is refreshed without a statement that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefreshMode {
    #[default]
    Manual,
    /// `EVERY '5 minutes'`: by the server.
    Every(Duration),
    /// `ON COMMIT`: by the commits that change its tables.
    OnCommit,
}

/// The server looks no more often for views to refresh, and files to load.
const SHORTEST: Duration = Duration::from_secs(1);
/// Names of a view have at most three parts, with points between them, behind IF EXISTS.
const LONGEST_NAME: usize = 7;

/// Longer than this no clock goes back.
const LONGEST: Duration = Duration::from_secs(365_000 * 24 * 60 * 60);

/// Whether one of these statements stands here.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    let refreshes = |at: usize| words.is_at(at, "refresh") && words.is_at(at + 1, "materialized");
    words.is_at(0, "optimize")
        || words.is_at(0, "vacuum")
        || refreshes(0)
        || words.is_at(0, "explain") && refreshes(1)
        || sets_refresh(words)
        || iceberg_alter_table::begins(words)
}

fn sets_refresh(words: &StatementTokens<'_>) -> bool {
    let is_set = |at: usize| words.is_at(at, "set") && words.is_at(at + 1, "refresh");
    words.is_at(0, "alter") && words.is_at(1, "materialized") && (4..4 + LONGEST_NAME).any(is_set)
}

/// Reads a statement that [begins](begins) so.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<MaintenanceStatement> {
    if sets_refresh(&words) {
        return set_refresh(words);
    }
    if iceberg_alter_table::begins(&words) {
        return iceberg_alter_table::read(words).map(MaintenanceStatement::Layout);
    }
    let parser = &mut words.parser;
    let (read, form) = if take_word(parser, "refresh") {
        (refresh(parser).map(MaintenanceStatement::Refresh), "REFRESH MATERIALIZED VIEW view")
    } else if take_word(parser, "explain") {
        parser.advance_token();
        (refresh(parser).map(MaintenanceStatement::ExplainRefresh), "EXPLAIN REFRESH MATERIALIZED VIEW view")
    } else if take_word(parser, "optimize") {
        (optimize(parser), "OPTIMIZE table")
    } else {
        parser.advance_token();
        (vacuum(parser), "VACUUM table [RETAIN n HOURS]")
    };
    if matches!(read, Ok(MaintenanceStatement::Optimize(_))) && is_word(parser, "retain") {
        return Err(Error::new(ErrorKind::Syntax, "OPTIMIZE has no RETAIN").with_hint("use VACUUM"));
    }
    let read = read.and_then(|statement| expect_end(parser).map(|()| statement));
    read.map_err(|error| syntax_error(&error).with_hint(format!("write `{form}`")))
}

type Parsed<T> = std::result::Result<T, ParserError>;

/// `ALTER MATERIALIZED VIEW v SET REFRESH …`
fn set_refresh(mut words: StatementTokens<'_>) -> Result<MaintenanceStatement> {
    words.take_all(&["alter", "materialized", "view"]);
    let view = words.name()?;
    if !words.take_all(&["set", "refresh"]) {
        return Err(words.unexpected().with_hint("write `ALTER MATERIALIZED VIEW view SET REFRESH …`"));
    }
    let mode = if words.take("manual") {
        RefreshMode::Manual
    } else if words.take("every") {
        let text = words.string().ok_or_else(|| words.unexpected().with_hint(REFRESHED))?;
        RefreshMode::Every(refresh_interval(&text)?)
    } else if words.take_all(&["on", "commit"]) {
        RefreshMode::OnCommit
    } else {
        return Err(words.unexpected().with_hint(REFRESHED));
    };
    words.end()?;
    Ok(MaintenanceStatement::SetRefresh { view, mode })
}

const REFRESHED: &str = "write `REFRESH EVERY '5 minutes'`, `REFRESH ON COMMIT` or `REFRESH MANUAL`";

/// When `CREATE MATERIALIZED VIEW … REFRESH …` says that the view is refreshed; the text is in small letters.
pub fn refresh_mode(text: &str) -> Result<RefreshMode> {
    match text {
        "manual" => Ok(RefreshMode::Manual),
        "on commit" => Ok(RefreshMode::OnCommit),
        text => match text.strip_prefix("every ") {
            Some(interval) => refresh_interval(interval).map(RefreshMode::Every),
            None => Err(Error::invalid("invalid REFRESH").with_hint(REFRESHED)),
        },
    }
}

/// A day has 24 hours; of months nobody knows how long they are.
pub(crate) fn refresh_interval(text: &str) -> Result<Duration> {
    let Interval { months, days, nanoseconds } = read_interval(text)?;
    let days = u64::try_from(days).ok().map(|days| Duration::from_secs(days.saturating_mul(24 * 60 * 60)));
    let rest = u64::try_from(nanoseconds).ok().map(Duration::from_nanos);
    let every = days.zip(rest).map(|(days, rest)| days + rest);
    every.filter(|every| months == 0 && (SHORTEST..=LONGEST).contains(every)).ok_or_else(|| {
        Error::invalid(format!("invalid interval `{text}`: the shortest is a second"))
            .with_hint("give a time in seconds, minutes, hours or days, such as '5 minutes'")
    })
}

/// `MATERIALIZED VIEW v`
fn refresh(parser: &mut Parser<'_>) -> Parsed<ObjectName> {
    parser.expect_keywords(&[Keyword::MATERIALIZED, Keyword::VIEW])?;
    let _ = take_word(parser, "concurrently");
    let name = parser.parse_object_name(false)?;
    let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
    Ok(name)
}

fn optimize(parser: &mut Parser<'_>) -> Parsed<MaintenanceStatement> {
    let _ = parser.parse_keyword(Keyword::TABLE);
    parser.parse_object_name(false).map(MaintenanceStatement::Optimize)
}

fn vacuum(parser: &mut Parser<'_>) -> Parsed<MaintenanceStatement> {
    options(parser);
    if expect_end(parser).is_ok() {
        return Ok(MaintenanceStatement::VacuumAll);
    }
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = parser.parse_object_name(false)?;
    let retain = if take_word(parser, "retain") { Some(retention(parser)?) } else { None };
    Ok(MaintenanceStatement::Vacuum { table, retain })
}

/// `FULL FREEZE VERBOSE ANALYZE`, or a list of them: statistics are kept with the rows, and the rest is how PostgreSQL stores them.
fn options(parser: &mut Parser<'_>) {
    if parser.consume_token(&Token::LParen) {
        while !matches!(parser.next_token().token, Token::RParen | Token::EOF) {}
        return;
    }
    while ["full", "freeze", "verbose", "analyze", "analyse"].iter().any(|word| take_word(parser, word)) {}
}

fn retention(parser: &mut Parser<'_>) -> Parsed<Duration> {
    let count = parser.parse_literal_uint()?;
    let hours = match count {
        _ if take_word(parser, "hours") || take_word(parser, "hour") => 1,
        _ if take_word(parser, "days") || take_word(parser, "day") => 24,
        _ => return Err(ParserError::ParserError("RETAIN needs HOURS or DAYS".to_owned())),
    };
    Ok(Duration::from_secs(count.saturating_mul(hours * 60 * 60)).min(LONGEST))
}
