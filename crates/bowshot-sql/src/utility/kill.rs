//! `KILL [QUERY | CONNECTION | SESSION] id`: ends what a user runs.

use super::session;
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use crate::utility::session::{Killed, SessionStatement};
use bowshot_api::Result;
use sqlparser::tokenizer::Token;

/// Reads a statement that begins with KILL.
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("kill");
    let _ = words.take_any(&["hard", "soft"]);
    let is_query = words.take("query");
    let is_session = !is_query && words.take_any(&["connection", "session"]);
    let hint = "write `KILL QUERY 'id'` or `KILL SESSION 'id'` with ids of `system.queries`";
    let (id, is_text) = match words.string() {
        Some(text) => (text, true),
        None => match words.token() {
            Token::Number(number, _) => (number, false),
            _ => return Err(words.unexpected().with_hint(hint)),
        },
    };
    words.end().map_err(|error| error.with_hint(hint))?;
    // A text that says no more is the id of a query; a number is that of a session.
    let killed = if is_session || (!is_query && !is_text) { Killed::Session(id) } else { Killed::Query(id) };
    Ok(session(SessionStatement::Kill(killed)))
}
