//! Text → statements. The text is split into tokens once; the first words of a statement tell who reads it.

use crate::dialect::Dialect;
#[cfg(test)]
use crate::dialect::DialectName;
use crate::statement::{self, Statement};
use crate::statement_tokens::{SourceText, StatementTokens};
use crate::syntax_error::syntax_error;
use crate::tokens::is_blank;
use crate::{limits, secret};
use bowshot_api::Result;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};

/// The statements of a text, none for one that is empty.
///
/// # Errors
/// `Syntax`, with the place; `LimitReached` for a statement that would take too long to plan.
pub fn parse(sql: &str, dialect: Dialect, recursion_limit: usize) -> Result<Vec<Statement>> {
    let text = SourceText { sql, dialect: &dialect, recursion_limit };
    let mut statements = Vec::new();
    for tokens in tokenized(text)? {
        limits::check(&tokens)?;
        statements.push(statement::read(tokens, text)?);
    }
    Ok(statements)
}

/// The tokens of each statement of a text, with the semicolon that ends it.
fn tokenized(text: SourceText<'_>) -> Result<Vec<Vec<TokenWithSpan>>> {
    let (mut statements, error) = tokens_by_statement(text);
    if let Some(error) = error {
        // What cannot be read may be a value of a secret.
        let last = statements.pop().unwrap_or_default();
        let is_secret = secret::begins(&StatementTokens::new(last, text));
        return Err(if is_secret { secret::unknown() } else { syntax_error(&ParserError::from(error)) });
    }
    statements.retain(|tokens| {
        tokens.iter().any(|token| !is_blank(&token.token) && token.token != Token::SemiColon)
    });
    Ok(statements)
}

/// The same, and what is wrong with the text behind the last of them.
fn tokens_by_statement(text: SourceText<'_>) -> (Vec<Vec<TokenWithSpan>>, Option<TokenizerError>) {
    let mut tokens = Vec::new();
    let read = Tokenizer::new(text.dialect, text.sql).tokenize_with_location_into_buf(&mut tokens);
    let ends = |token: &TokenWithSpan| token.token == Token::SemiColon;
    let statements = match tokens.iter().rev().skip(1).any(ends) {
        true => tokens.split_inclusive(ends).map(<[_]>::to_vec).collect(),
        false => vec![tokens],
    };
    (statements, read.err())
}

/// The first statement of a text, if it is one that is read without `sqlparser`'s statements.
pub(crate) fn read_own(sql: &str, dialect: Dialect) -> Result<Option<Statement>> {
    let text = SourceText { sql, dialect: &dialect, recursion_limit: 50 };
    let Some(tokens) = tokenized(text)?.into_iter().next() else { return Ok(None) };
    let words = StatementTokens::new(tokens, text);
    statement::reader(&words)?.map(|read| read(words)).transpose()
}

/// Whether what is said of a statement never has a value of it: of those about secrets, databases and access.
pub(crate) fn keeps_values(sql: &str, dialect: Dialect) -> bool {
    let text = SourceText { sql, dialect: &dialect, recursion_limit: 50 };
    let first = tokens_by_statement(text).0.into_iter().next().unwrap_or_default();
    let words = StatementTokens::new(first, text);
    secret::begins(&words)
        || words.is_at(0, "attach")
        || words.is_at(0, "detach")
        || matches!(read_own(sql, dialect), Ok(Some(Statement::Access(_))))
}

/// The statement of a text that is one alone and in the dialect `ansi`.
#[cfg(test)]
pub(crate) fn read_one(sql: &str) -> Result<Statement> {
    let mut statements = parse(sql, Dialect::new(DialectName::Ansi), 50)?;
    Ok(statements.remove(0))
}
