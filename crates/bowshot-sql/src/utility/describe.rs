//! `DESCRIBE t`, `DESCRIBE query`, `SUMMARIZE t` and `SUMMARIZE query`.

use super::Utility;
use super::show::{RowFilter, Show, Shown};
use crate::sqlparser_statement::sql_statement;
use crate::statement::{self, Statement};
use crate::statement_tokens::StatementTokens;
use crate::tokens::word;
use bowshot_api::Result;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Reads a statement that begins with DESCRIBE or DESC.
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.token();
    read_behind(words)
}

/// The same behind its first word.
pub(crate) fn read_behind(mut words: StatementTokens<'_>) -> Result<Statement> {
    if is_query(&words) {
        let (tokens, text) = words.into_rest();
        return statement::read(tokens, text).map(described);
    }
    if words.at_end() {
        // DuckDB's DESCRIBE of everything.
        return Ok(Show::all(Shown::AllTables, RowFilter::All).into());
    }
    let _ = words.take_any(&["table", "extended", "formatted", "view"]);
    let begin = words.index();
    // Files have no name but their path.
    if words.string().is_some() {
        words.end()?;
        return all_rows(words, begin).map(described);
    }
    let table = words.name()?;
    let mut column = words.string();
    if column.is_none() && !words.at_end() {
        column = Some(words.single()?);
    }
    words.end()?;
    Ok(Statement::Utility(Utility::DescribeTable { table, column }))
}

fn described(query: Statement) -> Statement {
    Statement::Utility(Utility::DescribeQuery(Box::new(query)))
}

/// Reads a statement that begins with SUMMARIZE.
pub(super) fn read_summarize(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("summarize");
    let summarize = |table, query| Statement::Utility(Utility::Summarize { table, query: Box::new(query) });
    if is_query(&words) {
        let (tokens, text) = words.into_rest();
        return statement::read(tokens, text).map(|query| summarize(None, query));
    }
    let _ = words.take("table");
    let begin = words.index();
    let table = if words.string().is_some() { None } else { Some(words.name()?) };
    words.end()?;
    all_rows(words, begin).map(|query| summarize(table, query))
}

/// `SELECT * FROM` what stands from a token on.
fn all_rows(words: StatementTokens<'_>, from: usize) -> Result<Statement> {
    let (rest, text) = words.into_tokens_from(from);
    let select = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM)];
    let tokens = select.map(TokenWithSpan::wrap).into_iter().chain(rest).collect();
    sql_statement(tokens, text).map(Statement::Sql)
}

/// Whether a query follows.
pub(crate) fn is_query(words: &StatementTokens<'_>) -> bool {
    words.is(&Token::LParen)
        || matches!(words.peek().as_deref(), Some("select" | "with" | "values" | "from" | "show"))
}
