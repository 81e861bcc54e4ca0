//! Text → logical plan. One statement at a time; `?` placeholders become `$1`, `$2`, … in the order of the text.

use crate::error::classify;
use crate::write::copy::{self, parse::CopyStatement};
use crate::{as_of, complexity, current_user, enforce, parameters};
use bowshot_api::{Error, ErrorKind, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::config::{self, ConfigOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer, Word};
use std::borrow::Cow;
use std::sync::Arc;

/// The parser's dialect for one of ours. `ansi` is the widest one: standard SQL with everybody's harmless extensions.
pub fn parser_dialect(name: &str) -> Option<config::Dialect> {
    match name.to_ascii_lowercase().as_str() {
        "ansi" => Some(config::Dialect::Generic),
        "postgres" | "postgresql" => Some(config::Dialect::PostgreSQL),
        "mysql" => Some(config::Dialect::MySQL),
        _ => None,
    }
}

/// A text that is kept, such as a view's, in the form that the parser of this state takes.
pub(crate) fn kept<'sql>(sql: &'sql str, state: &SessionState) -> datafusion::error::Result<Cow<'sql, str>> {
    let dialect =
        dialect(state.config_options()).map_err(|error| DataFusionError::External(Box::new(error)))?;
    Ok(current_user::spelled(sql, dialect.as_ref()))
}

/// A planned statement with the parameters that it wants.
#[derive(Debug, Clone)]
pub struct Planned {
    plan: Arc<LogicalPlan>,
    parameters: SchemaRef,
    ordered: bool,
}

impl Planned {
    pub(crate) fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// One nullable field for each parameter, in the order of binding.
    pub fn parameters(&self) -> &SchemaRef {
        &self.parameters
    }

    /// Whether the statement asks for an order of its rows.
    pub fn ordered(&self) -> bool {
        self.ordered
    }

    pub(crate) fn with_plan(&self, plan: LogicalPlan) -> Self {
        Self { plan: Arc::new(plan), parameters: Arc::clone(&self.parameters), ordered: self.ordered }
    }
}

/// Plans one parsed statement.
pub(crate) async fn plan(state: &SessionState, statement: Statement) -> Result<Planned> {
    planned(state.statement_to_plan(statement).await.map_err(classify)?)
}

/// A plan with the parameters that it wants.
///
/// # Errors
/// `LimitReached` for one that is too large.
pub(crate) fn planned(plan: LogicalPlan) -> Result<Planned> {
    enforce::check_size(&plan)?;
    let (plan, parameters) = parameters::declared(plan)?;
    let ordered = asks_for_order(&plan);
    Ok(Planned { plan: Arc::new(plan), parameters, ordered })
}

/// The dialect of the session.
pub(crate) fn dialect(options: &ConfigOptions) -> Result<Box<dyn Dialect>> {
    let name = options.sql_parser.dialect;
    dialect_from_str(name).ok_or_else(|| Error::invalid(format!("dialect `{name}` is not known")))
}

/// A statement as the parser gives it, or as it is read here.
pub(crate) enum Parsed {
    Sql(Statement),
    Copy(CopyStatement),
}

/// Parses one statement in the dialect of the session.
pub(crate) fn parse(options: &ConfigOptions, sql: &str) -> Result<Parsed> {
    let dialect = dialect(options)?;
    let sql = as_of::rewrite(sql, dialect.as_ref())?;
    let sql = current_user::spelled(sql.as_ref(), dialect.as_ref());
    let sql = number_placeholders(sql.as_ref(), dialect.as_ref())?;
    // The text that the parser gets, whatever became of it on the way.
    complexity::check(sql.as_ref(), dialect.as_ref())?;
    let limit = options.sql_parser.recursion_limit.get();
    let copy = copy::parse::parse(sql.as_ref(), dialect.as_ref(), limit);
    if let Some(copy) = copy.map_err(|error| classify(DataFusionError::SQL(Box::new(error), None)))? {
        return Ok(Parsed::Copy(copy));
    }
    let mut statements = DFParserBuilder::new(sql.as_ref())
        .with_dialect(dialect.as_ref())
        .with_recursion_limit(limit)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(classify)?;
    match (statements.pop_front(), statements.is_empty()) {
        (None, _) => {
            Err(Error::new(ErrorKind::Syntax, "the statement is empty").with_hint("send one SQL statement"))
        }
        (Some(_), false) => {
            Err(Error::new(ErrorKind::Syntax, "there is more than one statement in the text")
                .with_hint("send one statement at a time"))
        }
        (Some(statement), true) => Ok(Parsed::Sql(statement)),
    }
}

/// The first two words of a statement in lower case, whatever space and comments stand before and between them; empty where
/// there is no word.
pub(crate) fn first_words(sql: &str) -> [String; 2] {
    let (first, rest) = first_word(sql);
    let (second, _) = first_word(rest);
    [first, second].map(str::to_ascii_lowercase)
}

/// Whether the parser finds that word first too: dialects differ in what a comment is.
pub(crate) fn begins_with(sql: &str, word: &str, dialect: &dyn Dialect) -> bool {
    let parser = Parser::new(dialect).try_with_sql(sql);
    parser.is_ok_and(|parser| match &parser.peek_token_ref().token {
        Token::Word(first) => first.quote_style.is_none() && first.value.eq_ignore_ascii_case(word),
        _ => false,
    })
}

fn first_word(sql: &str) -> (&str, &str) {
    let start = without_comments(sql);
    start.split_at(start.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(start.len()))
}

fn without_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let after = match rest.get(..2) {
            Some("--") => rest.split_once('\n').map(|(_, after)| after),
            Some("/*") => after_comment(rest),
            _ => return rest,
        };
        let Some(after) = after else { return "" };
        rest = after.trim_start();
    }
}

/// What follows a comment, which may hold others.
fn after_comment(sql: &str) -> Option<&str> {
    let (mut depth, mut rest) = (0_usize, sql);
    while let Some(place) = rest.find(['/', '*']) {
        rest = &rest[place..];
        let step = match rest.get(..2) {
            Some("/*") => {
                depth += 1;
                2
            }
            Some("*/") => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        rest = rest.get(step..)?;
        if depth == 0 {
            return Some(rest);
        }
    }
    None
}

/// Replaces `?` by `$n`; the engine knows numbered placeholders only.
fn number_placeholders<'sql>(sql: &'sql str, dialect: &dyn Dialect) -> Result<Cow<'sql, str>> {
    if !sql.contains('?') {
        return Ok(Cow::Borrowed(sql));
    }
    let tokens = Tokenizer::new(dialect, sql)
        .tokenize_with_location()
        .map_err(|error| Error::new(ErrorKind::Syntax, format!("syntax error: {error}")))?;
    let mut offsets = Offsets::new(sql);
    let mut text = String::with_capacity(sql.len() + 16);
    let (mut number, mut copied) = (0, 0);
    for token in tokens {
        let Token::Placeholder(name) = &token.token else { continue };
        let Some(index) = name.strip_prefix('?') else { continue };
        let Some(start) = offsets.of(token.span.start).filter(|at| stands_at(sql, *at, &token.token)) else {
            continue;
        };
        number += 1;
        text.push_str(sql.get(copied..start).unwrap_or_default());
        // `?1` is SQLite's numbered form.
        text.push_str(&if index.is_empty() { format!("${number}") } else { format!("${index}") });
        copied = start + name.len();
    }
    text.push_str(sql.get(copied..).unwrap_or_default());
    Ok(Cow::Owned(text))
}

/// Byte offsets of places that the tokenizer gives as line and column, both from 1, columns in characters. The text is walked
/// once, so the places have to come in their order.
pub(crate) struct Offsets<'sql> {
    rest: &'sql str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'sql> Offsets<'sql> {
    pub(crate) fn new(sql: &'sql str) -> Self {
        Self { rest: sql, at: 0, line: 1, column: 1 }
    }

    /// `None` for a place that is not in the text, or before one that was asked for.
    pub(crate) fn of(&mut self, place: Location) -> Option<usize> {
        while (self.line, self.column) < (place.line, place.column) {
            let mut characters = self.rest.chars();
            let next = characters.next()?;
            self.rest = characters.as_str();
            self.at += next.len_utf8();
            (self.line, self.column) =
                if next == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        ((self.line, self.column) == (place.line, place.column)).then_some(self.at)
    }
}

/// Whether a token stands at a byte of the text: within `/*! … */` the tokenizer tells other places.
pub(crate) fn stands_at(sql: &str, at: usize, token: &Token) -> bool {
    let shown = match token {
        Token::Word(Word { value, quote_style: Some(quote @ ('"' | '`')), .. }) => {
            let doubled = value.replace(*quote, &format!("{quote}{quote}"));
            format!("{quote}{doubled}{quote}")
        }
        other => other.to_string(),
    };
    sql.get(at..at + shown.len()).is_some_and(|there| there.eq_ignore_ascii_case(&shown))
}

/// Whether a sort decides the order of the rows: one at the top, under nodes that keep order.
fn asks_for_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(node) => asks_for_order(&node.input),
        LogicalPlan::SubqueryAlias(node) => asks_for_order(&node.input),
        LogicalPlan::Limit(node) => asks_for_order(&node.input),
        // Their rows are lines of a text.
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{first_words, number_placeholders};
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    #[test]
    fn words_are_found_behind_space_and_comments() {
        for (sql, expected) in [
            ("VACUUM t", ["vacuum", "t"]),
            (" \n\tCall\tjoin_cache_clear()", ["call", "join_cache_clear"]),
            ("-- why\n/* and */ Optimize -- this\n\"T\"", ["optimize", ""]),
            ("OPTIMIZE", ["optimize", ""]),
            ("-- nothing", ["", ""]),
            ("/* open", ["", ""]),
            ("/* /* */ vacuum */ SELECT t", ["select", "t"]),
            ("/* /**/ /***/ */ VACUUM /*/ t */ t", ["vacuum", "t"]),
            ("(SELECT 1)", ["", ""]),
            ("größe x", ["größe", "x"]),
        ] {
            assert_eq!(first_words(sql), expected, "{sql}");
        }
    }

    #[test]
    fn question_marks_become_numbers_in_text_order() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT ? + ?", "SELECT $1 + $2"),
            ("SELECT '?' , \"a?\", ? -- ?\n", "SELECT '?' , \"a?\", $1 -- ?\n"),
            ("SELECT 'it''s ?', ?", "SELECT 'it''s ?', $1"),
            ("SELECT /* ? */ ?", "SELECT /* ? */ $1"),
            ("SELECT $1", "SELECT $1"),
            ("SELECT E'it\\'s', ?,\n 'größe', ?", "SELECT E'it\\'s', $1,\n 'größe', $2"),
        ] {
            let numbered = number_placeholders(sql, &GenericDialect {}).expect("tokenizes");
            assert_eq!(numbered, expected);
        }
    }
}
