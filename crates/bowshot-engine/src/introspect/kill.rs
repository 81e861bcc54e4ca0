//! `KILL [QUERY | CONNECTION | SESSION] id`: ends what a user runs.

use super::Expanded;
use super::parse::Words;
use crate::statement::session::{Killed, SessionStatement};
use bowshot_api::Result;
use datafusion::sql::sqlparser::tokenizer::Token;

/// The statement with its first word taken.
pub(super) fn recognise(mut words: Words<'_>) -> Result<Expanded> {
    let _ = words.take_any(&["hard", "soft"]);
    let query = words.take("query");
    let session = !query && words.take_any(&["connection", "session"]);
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
    let killed = if session || (!query && !is_text) { Killed::Session(id) } else { Killed::Query(id) };
    Ok(Expanded::Act(SessionStatement::Kill(killed)))
}
