//! `OPTIMIZE [TABLE] t`, `VACUUM [TABLE] t [RETAIN n HOURS|DAYS]` with the options of PostgreSQL's VACUUM, and
//! `REFRESH MATERIALIZED VIEW v`.

use crate::statement_parser::{StatementParser, expect_end, is_word, take_word};
use crate::syntax_error::syntax_error;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::ObjectName;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::time::Duration;

/// See the module.
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
}

/// Longer than this no clock goes back.
const LONGEST: Duration = Duration::from_secs(365_000 * 24 * 60 * 60);

/// Whether OPTIMIZE, VACUUM or REFRESH MATERIALIZED stands here.
pub(crate) fn begins(words: &StatementParser<'_>) -> bool {
    words.is_at(0, "optimize")
        || words.is_at(0, "vacuum")
        || words.is_at(0, "refresh") && words.is_at(1, "materialized")
}

/// Reads a statement that [begins](begins) so.
///
/// # Errors
/// `Syntax` for one that is not complete.
pub(crate) fn read(mut words: StatementParser<'_>) -> Result<MaintenanceStatement> {
    let parser = &mut words.parser;
    let (read, form) = if take_word(parser, "refresh") {
        (refresh(parser), "REFRESH MATERIALIZED VIEW view")
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

fn refresh(parser: &mut Parser<'_>) -> Parsed<MaintenanceStatement> {
    parser.expect_keywords(&[Keyword::MATERIALIZED, Keyword::VIEW])?;
    let _ = take_word(parser, "concurrently");
    let name = parser.parse_object_name(false)?;
    let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
    Ok(MaintenanceStatement::Refresh(name))
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
