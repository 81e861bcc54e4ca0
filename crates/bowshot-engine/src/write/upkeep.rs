//! `OPTIMIZE [TABLE] t` and `VACUUM [TABLE] t [RETAIN n HOURS|DAYS]`, which the parser does not know in this form, with the
//! options of PostgreSQL's VACUUM, and the statements about models and secrets, which it does not know at all.

use crate::catalog::names::Names;
use crate::write::ddl::Ddl;
use crate::write::{models, secrets};
use bowshot_api::{Error, ErrorKind, Result};
use chrono::Duration;
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// How long versions are kept that VACUUM does not name: as Delta's own default.
const RETAIN: Duration = Duration::days(7);

/// The statement, if the text is one of these.
///
/// # Errors
/// `Syntax` for one that is not complete; `NotFound` without the table.
pub(crate) fn recognise(sql: &str, dialect: &dyn Dialect, names: &Names) -> Result<Option<Ddl>> {
    let [first, _] = bowshot_sql::first_words(sql);
    let optimize = first == "optimize";
    if (!optimize && first != "vacuum") || !bowshot_sql::begins_with(sql, &first, dialect) {
        return match secrets::recognise(sql, dialect, names)? {
            None => models::recognise(sql, dialect, names),
            secret => Ok(secret),
        };
    }
    let (name, retain) = parse(sql, dialect).map_err(|error| {
        let form = if optimize { "OPTIMIZE table" } else { "VACUUM table [RETAIN n HOURS]" };
        Error::new(ErrorKind::Syntax, format!("syntax error: {error}")).with_hint(format!("write `{form}`"))
    })?;
    // Without a table it is all of them, whose old versions go by themselves.
    let Some(name) = name else { return Ok(None) };
    let (name, _) = names.writable(&name)?;
    Ok(Some(match (optimize, retain) {
        (true, None) => Ddl::Optimize { name },
        (true, Some(_)) => {
            return Err(Error::new(ErrorKind::Syntax, "OPTIMIZE has no RETAIN").with_hint("use VACUUM"));
        }
        (false, retain) => Ddl::Vacuum { name, retain: retain.unwrap_or(RETAIN) },
    }))
}

fn parse(sql: &str, dialect: &dyn Dialect) -> Result<(Option<ObjectName>, Option<Duration>), ParserError> {
    let mut parser = Parser::new(dialect).try_with_sql(sql)?;
    if is_word(&mut parser, "vacuum") {
        options(&mut parser);
        let _ = parser.consume_token(&Token::SemiColon);
        if parser.peek_token_ref().token == Token::EOF {
            return Ok((None, None));
        }
    } else {
        parser.next_token();
    }
    let _ = parser.parse_keyword(Keyword::TABLE);
    let name = parser.parse_object_name(false)?;
    let retain = if is_word(&mut parser, "retain") { Some(retention(&mut parser)?) } else { None };
    let _ = parser.consume_token(&Token::SemiColon);
    match parser.next_token().token {
        Token::EOF => Ok((Some(name), retain)),
        other => Err(ParserError::ParserError(format!("`{other}` was not expected"))),
    }
}

/// `FULL FREEZE VERBOSE ANALYZE`, or a list of them: statistics are kept with the rows, and the rest is how PostgreSQL stores them.
fn options(parser: &mut Parser<'_>) {
    if parser.consume_token(&Token::LParen) {
        while !matches!(parser.next_token().token, Token::RParen | Token::EOF) {}
        return;
    }
    while ["full", "freeze", "verbose", "analyze", "analyse"].iter().any(|word| is_word(parser, word)) {}
}

fn retention(parser: &mut Parser<'_>) -> Result<Duration, ParserError> {
    let count = parser.parse_literal_uint()?;
    let count = i64::try_from(count).map_err(|error| ParserError::ParserError(error.to_string()))?;
    let duration = match count {
        _ if is_word(parser, "hours") || is_word(parser, "hour") => Duration::try_hours(count),
        _ if is_word(parser, "days") || is_word(parser, "day") => Duration::try_days(count),
        _ => return Err(ParserError::ParserError("RETAIN needs HOURS or DAYS".to_owned())),
    };
    // Longer than this no clock goes back.
    let longest = Duration::days(365_000);
    Ok(duration.filter(|duration| *duration < longest).unwrap_or(longest))
}

fn is_word(parser: &mut Parser<'_>, word: &str) -> bool {
    let there =
        matches!(&parser.peek_token().token, Token::Word(found) if found.value.eq_ignore_ascii_case(word));
    if there {
        parser.next_token();
    }
    there
}
