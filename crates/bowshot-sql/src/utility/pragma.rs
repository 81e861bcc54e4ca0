//! `PRAGMA …`: the ones of SQLite and DuckDB that ask about tables.

use super::Utility;
use super::show::{RowFilter, Show, Shown};
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use bowshot_api::{Error, Result};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::tokenizer::Token;

/// A supported PRAGMA. Those that SHOW answers too come as that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pragma {
    /// `PRAGMA version`
    Version,
    /// `PRAGMA table_info('t')`
    TableInfo(ObjectName),
    /// `PRAGMA database_list`
    DatabaseList,
}

/// Reads a statement that begins with PRAGMA.
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("pragma");
    let Some(name) = words.word() else { return Err(words.unexpected()) };
    let statement = match name.as_str() {
        "table_info" | "table_xinfo" => {
            return table_info(words)
                .map(|table| Statement::Utility(Utility::Pragma(Pragma::TableInfo(table))));
        }
        "version" => Statement::Utility(Utility::Pragma(Pragma::Version)),
        "database_list" => Statement::Utility(Utility::Pragma(Pragma::DatabaseList)),
        "show_tables" => Show::all(Shown::Tables { full: false }, RowFilter::All).into(),
        "show_tables_expanded" => Show::all(Shown::AllTables, RowFilter::All).into(),
        name => {
            return Err(Error::unsupported(format!("PRAGMA {name} is not supported")).with_hint(
                "`SHOW ALL` lists the settings of a session; change them with `SET name = value`",
            ));
        }
    };
    if words.take_token(&Token::LParen) && !words.take_token(&Token::RParen) {
        return Err(words.unexpected());
    }
    words.end().map(|()| statement)
}

fn table_info(mut words: StatementTokens<'_>) -> Result<ObjectName> {
    let in_parentheses = words.take_token(&Token::LParen);
    if !in_parentheses && !words.take_token(&Token::Eq) {
        return Err(words.unexpected().with_hint("write `PRAGMA table_info('table')`"));
    }
    let name = match words.string() {
        Some(text) => ObjectName::from(text.split('.').map(Ident::new).collect::<Vec<_>>()),
        None => words.name()?,
    };
    if in_parentheses && !words.take_token(&Token::RParen) {
        return Err(words.unexpected());
    }
    words.end().map(|()| name)
}
