//! Statements that are accepted because there is nothing to do.

use super::{Utility, session};
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use crate::utility::session::SessionStatement;
use bowshot_api::Result;
use sqlparser::tokenizer::Token;

/// `ANALYZE [t]`, `CHECKPOINT`: statistics are kept with the rows, and what is committed is written.
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.token();
    let _ = words.take("verbose");
    let _ = words.take("table");
    if words.at_end() {
        return Ok(session(SessionStatement::Nothing));
    }
    // Columns and options after the name say what is done anyway.
    Ok(Statement::Utility(Utility::Analyze(words.name()?)))
}

/// `CHECK TABLE t, …` of MySQL.
pub(super) fn read_check(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take_all(&["check", "table"]);
    let mut tables = vec![words.name()?];
    while words.take_token(&Token::Comma) {
        tables.push(words.name()?);
    }
    Ok(Statement::Utility(Utility::CheckTables(tables)))
}

/// `CREATE INDEX [CONCURRENTLY] [IF NOT EXISTS] [i] ON t …`, which migrations send. There are no indexes, since scans skip what the
/// statistics rule out. One that is UNIQUE is a promise, and does not come here.
pub(super) fn read_create_index(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take_all(&["create", "index"]);
    let _ = words.take("concurrently");
    let _ = words.take_all(&["if", "not", "exists"]);
    if words.peek().as_deref() != Some("on") {
        words.name()?;
    }
    if !words.take("on") {
        return Err(words.unexpected());
    }
    let _ = words.take("only");
    // The columns and the kind of the index say nothing here.
    Ok(Statement::Utility(Utility::CreateIndex(words.name()?)))
}

/// `DROP INDEX i`
pub(super) fn read_drop_index(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take_all(&["drop", "index"]);
    let _ = words.take("concurrently");
    let _ = words.take_all(&["if", "exists"]);
    words.name()?;
    Ok(session(SessionStatement::Nothing))
}
