//! `DECLARE c CURSOR FOR query`, `FETCH`, `MOVE` and `CLOSE` (PostgreSQL manual, "DECLARE"). A cursor is read while its rows come, and
//! so goes forward alone.

use super::{Utility, describe};
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use crate::utility::session::CursorStatement;
use bowshot_api::{Error, Reason, Result};
use sqlparser::tokenizer::Token;

/// Directions of which a cursor that is read once has none.
const BACKWARD: &[&str] = &["prior", "first", "last", "absolute", "relative", "backward"];

/// Reads a statement that begins with DECLARE, FETCH, MOVE or CLOSE.
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    let first = words.word().unwrap_or_default();
    let statement = match first.as_str() {
        "declare" => declare(words)?,
        "close" => {
            let name = if words.take("all") { None } else { Some(words.single()?) };
            words.end()?;
            CursorStatement::Close(name)
        }
        _ => {
            let rows = rows(&mut words)?;
            let _ = words.take_any(&["from", "in"]);
            let name = words.single()?;
            words.end()?;
            if first == "move" {
                CursorStatement::Move { name, rows }
            } else {
                CursorStatement::Fetch { name, rows }
            }
        }
    };
    Ok(Statement::Utility(Utility::Cursor(statement)))
}

fn declare(mut words: StatementTokens<'_>) -> Result<CursorStatement> {
    let name = words.single()?;
    while !words.take("cursor") {
        if words.take("scroll") {
            return Err(Error::unsupported("cursors that scroll are not supported")
                .with_hint("leave SCROLL out, and declare it once more to read it again"));
        }
        if words.take("binary") {
            return Err(Error::unsupported("binary cursors are not supported").with_hint("leave BINARY out"));
        }
        if !words.take_all(&["no", "scroll"]) && !words.take_any(&["asensitive", "insensitive"]) {
            return Err(words.unexpected().with_hint("write `DECLARE name CURSOR FOR query`"));
        }
    }
    let is_held = words.take_all(&["with", "hold"]);
    if !is_held {
        let _ = words.take_all(&["without", "hold"]);
    }
    // Another DECLARE would be planned within this one, and so on as deep as the text is long.
    if !words.take("for") || !is_query(&words) {
        return Err(words.unexpected().with_hint("DECLARE takes a query behind FOR"));
    }
    Ok(CursorStatement::Declare { name, is_held, sql: words.rest_in_place() })
}

fn is_query(words: &StatementTokens<'_>) -> bool {
    let others = ["table", "pivot", "unpivot", "insert", "update", "delete", "merge", "call"];
    words.peek().as_deref() != Some("show")
        && (describe::is_query(words) || words.peek().is_some_and(|word| others.contains(&word.as_str())))
}

/// How many rows a direction means; `None` for all that are left.
fn rows(words: &mut StatementTokens<'_>) -> Result<Option<u64>> {
    let is_forward = words.take("forward");
    if words.take("all") {
        return Ok(None);
    }
    if words.is(&Token::Minus) || (!is_forward && words.take_any(BACKWARD)) {
        return Err(Error::unsupported("cursor can only scan forward")
            .with_reason(Reason::WrongState)
            .with_hint("declare it once more to read it again"));
    }
    if !is_forward && words.take("next") {
        return Ok(Some(1));
    }
    Ok(Some(words.number().unwrap_or(1)))
}
