//! Statements about the caches: `CALL result_cache_clear()`, `CALL join_cache_warm('SELECT …')`, `CALL join_cache_pin(id)`,
//! `CALL join_cache_unpin(id)`, `CALL join_cache_drop(id)`, `CALL join_cache_clear()`.

use crate::statement_tokens::{StatementTokens, expect_end};
use crate::syntax_error::syntax_error;
use bowshot_api::Result;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A statement about the caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheStatement {
    /// Has the joins of a query computed, whatever the history says.
    Warm(String),
    /// Keeps a join whatever it is worth.
    Pin(u64),
    /// Ends that.
    Unpin(u64),
    /// Forgets a join.
    Drop(u64),
    /// Forgets all joins and the history.
    Clear,
    /// Forgets all results.
    ClearResults,
}

/// Whether what is called is about the caches.
pub(crate) fn begins(name: &str) -> bool {
    name.starts_with("join_cache_") || name.starts_with("result_cache_")
}

/// Reads a statement that [begins](begins) so.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<CacheStatement> {
    parse(&mut words.parser).map_err(|error| {
        syntax_error(&error).with_hint(
            "write `CALL join_cache_warm('SELECT …')`, `join_cache_pin(id)`, `join_cache_unpin(id)`, \
             `join_cache_drop(id)`, `join_cache_clear()` or `result_cache_clear()`; ids are in `system.join_cache`",
        )
    })
}

fn parse(parser: &mut Parser<'_>) -> std::result::Result<CacheStatement, ParserError> {
    parser.next_token();
    let name = parser.parse_identifier()?.value.to_ascii_lowercase();
    parser.expect_token(&Token::LParen)?;
    let statement = match name.as_str() {
        "join_cache_warm" => CacheStatement::Warm(parser.parse_literal_string()?),
        "join_cache_pin" => CacheStatement::Pin(parser.parse_literal_uint()?),
        "join_cache_unpin" => CacheStatement::Unpin(parser.parse_literal_uint()?),
        "join_cache_drop" => CacheStatement::Drop(parser.parse_literal_uint()?),
        "join_cache_clear" => CacheStatement::Clear,
        "result_cache_clear" => CacheStatement::ClearResults,
        other => return Err(ParserError::ParserError(format!("`{other}` is not known"))),
    };
    parser.expect_token(&Token::RParen)?;
    expect_end(parser).map(|()| statement)
}
