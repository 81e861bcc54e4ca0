//! `USE schema`, `USE catalog`, `USE catalog.schema`.

use super::Expanded;
use super::asked::Asked;
use super::parse::Words;
use crate::statement::session::SessionStatement;
use bowshot_api::Result;

/// The statement with its first word taken.
pub(super) fn recognise(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Expanded> {
    // A word before the name, unless it is the name.
    if words.peek_nth(1).is_some() {
        let _ = words.take_any(&["catalog", "database", "schema"]);
    }
    let name = words.name()?;
    words.end()?;
    let (catalog, schema) = asked.schema(&name)?;
    Ok(Expanded::Act(SessionStatement::Use { catalog, schema }))
}
