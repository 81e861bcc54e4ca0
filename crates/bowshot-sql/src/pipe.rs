//! Statements about files that are loaded as they come:
//!
//! ```text
//! CREATE PIPE [IF NOT EXISTS] p [EVERY '10 seconds'] AS COPY INTO t FROM 'in/*.csv' [FORMAT csv] [[WITH] (HEADER, …)]
//! ALTER PIPE [IF EXISTS] p PAUSE | RESUME | RETRY | REFRESH | SET PIPE_EXECUTION_PAUSED = true | false
//! DROP PIPE [IF EXISTS] p
//! ```

use crate::copy;
use crate::maintenance::refresh_interval;
use crate::statement_tokens::StatementTokens;
use crate::syntax_error::syntax_error;
use bowshot_api::Result;
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;
use std::time::Duration;

/// CREATE, ALTER or DROP PIPE. Names are as written where they are quoted, else in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipeStatement {
    Create { name: String, if_not_exists: bool, copy: PipeCopy },
    Alter { name: String, if_exists: bool, change: PipeChange },
    Drop { name: String, if_exists: bool },
}

/// What a pipe does with each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipeCopy {
    pub table: ObjectName,
    /// A path, a pattern or an address.
    pub location: String,
    /// Those of COPY, in lower case. A name alone has no value.
    pub options: Vec<(String, Option<String>)>,
    /// How often it looks for files; `None` for the default.
    pub every: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeChange {
    Pause,
    Resume,
    /// Files that could not be loaded are tried again.
    Retry,
    /// Loads what was found: the statement of the server itself.
    Refresh,
}

const CREATED: &str = "write `CREATE PIPE name [EVERY '10 seconds'] AS COPY INTO table FROM 'folder/*.csv' [FORMAT csv] [(HEADER, …)]`";
const ALTERED: &str = "write `ALTER PIPE name PAUSE`, RESUME or RETRY";

/// Whether the words up to PIPE stand here.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    ["create", "alter", "drop"].iter().any(|word| words.is_at(0, word)) && words.is_at(1, "pipe")
}

/// Reads a statement that [begins](begins) so.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<PipeStatement> {
    let statement = if words.take_all(&["create", "pipe"]) {
        let if_not_exists = words.take_all(&["if", "not", "exists"]);
        let name = words.single()?;
        PipeStatement::Create { name, if_not_exists, copy: pipe_copy(&mut words)? }
    } else {
        let drops = words.take("drop");
        words.take_all(&["alter"]);
        words.take_all(&["pipe"]);
        let if_exists = words.take_all(&["if", "exists"]);
        let name = words.single()?;
        match drops {
            true => PipeStatement::Drop { name, if_exists },
            false => PipeStatement::Alter { name, if_exists, change: change(&mut words)? },
        }
    };
    words.end()?;
    Ok(statement)
}

fn pipe_copy(words: &mut StatementTokens<'_>) -> Result<PipeCopy> {
    let unexpected = |words: &StatementTokens<'_>| words.unexpected().with_hint(CREATED);
    let every = match words.take("every") {
        true => Some(refresh_interval(&words.string().ok_or_else(|| unexpected(words))?)?),
        false => None,
    };
    if !words.take_all(&["as", "copy", "into"]) {
        return Err(unexpected(words));
    }
    let table = words.name()?;
    if !words.take("from") {
        return Err(unexpected(words));
    }
    let location = words.string().ok_or_else(|| unexpected(words))?;
    let mut options = Vec::new();
    if words.take("format") {
        let format = words.word().or_else(|| words.string()).ok_or_else(|| unexpected(words))?;
        options.push(("format".to_owned(), Some(format)));
    }
    if words.take("with") || words.is(&Token::LParen) {
        let listed = copy::options(&mut words.parser);
        options.extend(listed.map_err(|error| syntax_error(&error).with_hint(CREATED))?);
    }
    Ok(PipeCopy { table, location, options, every })
}

fn change(words: &mut StatementTokens<'_>) -> Result<PipeChange> {
    let named = [
        ("pause", PipeChange::Pause),
        ("resume", PipeChange::Resume),
        ("retry", PipeChange::Retry),
        ("refresh", PipeChange::Refresh),
    ];
    if let Some((_, change)) = named.into_iter().find(|(word, _)| words.take(word)) {
        return Ok(change);
    }
    if words.take_all(&["set", "pipe_execution_paused"]) {
        words.take_token(&Token::Eq);
        if words.take("true") {
            return Ok(PipeChange::Pause);
        }
        if words.take("false") {
            return Ok(PipeChange::Resume);
        }
    }
    Err(words.unexpected().with_hint(ALTERED))
}
