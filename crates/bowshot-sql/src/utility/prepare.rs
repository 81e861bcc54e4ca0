//! `PREPARE name AS …`, `EXECUTE name(…)`, `DEALLOCATE name`, `DISCARD …`. A named statement is kept as its text.

use super::{Utility, session};
use crate::redaction::holds_secrets;
use crate::source_tokens::first_word;
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use crate::utility::session::{Discarded, SessionStatement};
use crate::{Dialect, DialectName};
use bowshot_api::{Error, Result};
use sqlparser::tokenizer::Token;

/// `PREPARE name [(types)] AS statement`, `PREPARE name FROM 'statement'`
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("prepare");
    if words.peek().as_deref() == Some("transaction") {
        return Err(Error::unsupported("two-phase commit is not supported").with_hint("use COMMIT"));
    }
    let name = words.single()?;
    let mut types = Vec::new();
    if words.take_token(&Token::LParen) {
        loop {
            types.push(words.data_type()?);
            if words.take_token(&Token::RParen) {
                break;
            }
            if !words.take_token(&Token::Comma) {
                return Err(words.unexpected());
            }
        }
    }
    let sql = if words.take("from") {
        let text = words.string().ok_or_else(|| words.unexpected())?;
        words.end()?;
        text
    } else if words.take("as") {
        words.rest().to_owned()
    } else {
        return Err(words.unexpected().with_hint("write `PREPARE name AS statement`"));
    };
    let first = first_word(&sql);
    if ["prepare", "execute", "deallocate", "discard", ""].contains(&first.as_str())
        && !sql.trim_start().starts_with('(')
    {
        return Err(Error::unsupported("only a query or a change of rows can be prepared"));
    }
    if ["create", "alter", "attach", "grant", "set"].contains(&first.as_str())
        && holds_secrets(&sql, Dialect::new(DialectName::Ansi))
    {
        return Err(Error::unsupported("a statement about secrets is not prepared by name")
            .with_hint("send `CREATE SECRET name (…)` by itself"));
    }
    Ok(session(SessionStatement::Prepare { name, sql, types }))
}

/// `EXECUTE name [(values)]`, `EXECUTE name USING values`
pub(super) fn read_execute(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("execute");
    let name = words.single()?;
    let mut values = Vec::new();
    let in_parentheses = words.take_token(&Token::LParen);
    if in_parentheses && words.take_token(&Token::RParen) {
        words.end()?;
    } else if in_parentheses || words.take("using") {
        loop {
            values.push(words.expression()?);
            if !words.take_token(&Token::Comma) {
                break;
            }
        }
        if in_parentheses && !words.take_token(&Token::RParen) {
            return Err(words.unexpected());
        }
    }
    words.end()?;
    Ok(Statement::Utility(Utility::Execute { name, values }))
}

/// `DEALLOCATE [PREPARE] name`, `DROP PREPARE name`
pub(super) fn read_deallocate(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.token();
    let _ = words.take("prepare");
    let all = words.peek().as_deref() == Some("all");
    let name = words.single()?;
    words.end()?;
    Ok(session(SessionStatement::Deallocate((!all).then_some(name))))
}

/// `DISCARD ALL`, `DISCARD TEMP`, `DISCARD PLANS`
pub(super) fn read_discard(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("discard");
    let what = match words.word().as_deref() {
        Some("all") => Discarded::All,
        Some("temp" | "temporary") => Discarded::Temporary,
        Some("plans" | "sequences") => Discarded::Plans,
        _ => return Err(words.unexpected().with_hint("write `DISCARD ALL`, `TEMP` or `PLANS`")),
    };
    words.end()?;
    Ok(session(SessionStatement::Discard(what)))
}
