//! DuckDB's statements `PIVOT t ON c IN (…) USING f(v) GROUP BY g` and `UNPIVOT t ON a, b INTO NAME n VALUE v`, as queries with
//! the clauses of the same names.

use crate::walk::Tree;
use sqlparser::ast::{Expr, Statement, Visitor};
use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// The statement, if it is one of these.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    match word.value.to_ascii_uppercase().as_str() {
        "PIVOT" => {
            parser.advance_token();
            Some(pivot(parser))
        }
        "UNPIVOT" => {
            parser.advance_token();
            Some(unpivot(parser))
        }
        _ => None,
    }
}

fn pivot(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let table = parser.parse_table_factor()?;
    parser.expect_keyword_is(Keyword::ON)?;
    // Not an expression with IN behind it, which would be a condition.
    let column = parser.parse_identifier()?;
    if !parser.parse_keyword(Keyword::IN) {
        return Err(ParserError::ParserError(format!(
            "PIVOT needs the values of {column}: write `ON {column} IN (…)`"
        )));
    }
    let values = parser.parse_parenthesized(|parser| parser.parse_comma_separated(with_alias))?;
    parser.expect_keyword_is(Keyword::USING)?;
    let aggregates = parser.parse_comma_separated(with_alias)?;
    let groups = if parser.parse_keywords(&[Keyword::GROUP, Keyword::BY]) {
        parser.parse_comma_separated(Parser::parse_expr)?
    } else {
        Vec::new()
    };
    let from = if groups.is_empty() {
        table.to_string()
    } else {
        let mut kept: Vec<String> = groups.iter().map(ToString::to_string).collect();
        kept.push(column.to_string());
        aggregates.iter().for_each(|(aggregate, _)| columns_of(aggregate, &mut kept));
        format!("(SELECT {} FROM {table})", kept.join(", "))
    };
    let list = |items: &[(Expr, Option<String>)]| {
        let shown = items.iter().map(|(expr, alias)| match alias {
            Some(alias) => format!("{expr} AS {alias}"),
            None => expr.to_string(),
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    query(&format!("SELECT * FROM {from} PIVOT ({} FOR {column} IN ({}))", list(&aggregates), list(&values)))
}

fn unpivot(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let table = parser.parse_table_factor()?;
    parser.expect_keyword_is(Keyword::ON)?;
    let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
    let (mut name, mut value) = ("name".to_owned(), "value".to_owned());
    if parser.parse_keyword(Keyword::INTO) {
        parser.expect_keyword_is(Keyword::NAME)?;
        name = parser.parse_identifier()?.to_string();
        parser.expect_keyword_is(Keyword::VALUE)?;
        value = parser.parse_identifier()?.to_string();
    }
    let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
    query(&format!("SELECT * FROM {table} UNPIVOT ({value} FOR {name} IN ({}))", columns.join(", ")))
}

fn with_alias(parser: &mut Parser<'_>) -> Result<(Expr, Option<String>), ParserError> {
    let expr = parser.parse_expr()?;
    let alias = parser.parse_keyword(Keyword::AS).then(|| parser.parse_identifier()).transpose()?;
    Ok((expr, alias.map(|alias| alias.to_string())))
}

fn columns_of(expr: &Expr, found: &mut Vec<String>) {
    struct Collect<'a>(&'a mut Vec<String>);
    impl Visitor for Collect<'_> {
        type Break = std::convert::Infallible;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
            if matches!(expr, Expr::Identifier(_)) && !self.0.contains(&expr.to_string()) {
                self.0.push(expr.to_string());
            }
            ControlFlow::Continue(())
        }
    }
    let ControlFlow::Continue(()) = expr.look(&mut Collect(found));
}

fn query(text: &str) -> Result<Statement, ParserError> {
    let mut parsed = Parser::parse_sql(&GenericDialect {}, text)?;
    parsed.pop().ok_or_else(|| ParserError::ParserError("PIVOT gives no query".to_owned()))
}
