//! DuckDB's statements `PIVOT t ON c IN (…) USING f(v) GROUP BY g` and `UNPIVOT t ON a, b INTO NAME n VALUE v`, as queries with
//! the clauses of the same names, and GROUP BY within such a clause.

use crate::Dialect;
use crate::tokens::{is_blank, last_words};
use crate::walk::Tree;
use sqlparser::ast::{Expr, Ident, Statement};
use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::ops::Range;

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

/// Such statements in brackets of one text: each is read by itself.
const MOST: usize = 100;

/// `FROM (PIVOT t ON …)`: the same in brackets, where a query begins.
pub(crate) fn within(tokens: &mut Vec<TokenWithSpan>, dialect: Dialect) {
    let (mut at, mut tried) = (tokens.len(), 0);
    // From the end, so that the places before stay what they are and inner ones come first.
    while at > 0 && tried < MOST {
        at -= 1;
        let begins = tokens.get(at).is_some_and(|token| {
            matches!(&token.token, Token::Word(word) if word.quote_style.is_none()
                && ["PIVOT", "UNPIVOT"].iter().any(|name| word.value.eq_ignore_ascii_case(name)))
        });
        let bracket = || last_words(tokens.get(..at).unwrap_or_default()).next();
        let opened = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::LParen);
        if !begins {
            continue;
        }
        tried += 1;
        if !bracket().is_some_and(opened) {
            if let Some((place, table)) = grouped(tokens, at, dialect) {
                at = place.start;
                tokens.splice(place, table);
            }
            continue;
        }
        if let Some(end) = closing(tokens, at)
            && let Some(query) = query_of(tokens.get(at..end).unwrap_or_default(), dialect)
        {
            tokens.splice(at..end, query);
        }
    }
}

/// The place of the bracket that closes the one around a place.
fn closing(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in from..tokens.len() {
        match tokens.get(at)?.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(at),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The tokens of the query that such a statement is; `None` for something else.
fn query_of(tokens: &[TokenWithSpan], dialect: Dialect) -> Option<Vec<TokenWithSpan>> {
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens.to_vec());
    let query = parse(&mut parser)?.ok()?;
    parser.expect_token(&Token::EOF).ok()?;
    let mut query = Tokenizer::new(&GenericDialect {}, &query.to_string()).tokenize_with_location().ok()?;
    // They stand where the statement stood.
    let span = tokens.first()?.span;
    query.iter_mut().for_each(|token| token.span = span);
    Some(query)
}

/// `t PIVOT (f(v) FOR c IN (…) GROUP BY g)`, whose PIVOT is at a place: the same over those columns of the table alone. With the
/// place of the table and its clause.
fn grouped(
    tokens: &[TokenWithSpan],
    at: usize,
    dialect: Dialect,
) -> Option<(Range<usize>, Vec<TokenWithSpan>)> {
    let open =
        (at + 1..tokens.len()).find(|at| tokens.get(*at).is_some_and(|token| !is_blank(&token.token)))?;
    if tokens.get(open)?.token != Token::LParen {
        return None;
    }
    let end = closing(tokens, open + 1)?;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens.get(open + 1..end)?.to_vec());
    let aggregates = parser.parse_comma_separated(with_alias).ok()?;
    parser.expect_keyword_is(Keyword::FOR).ok()?;
    let column = parser.parse_identifier().ok()?;
    parser.expect_keyword_is(Keyword::IN).ok()?;
    let values = parser.parse_parenthesized(|parser| parser.parse_comma_separated(with_alias)).ok()?;
    if !parser.parse_keywords(&[Keyword::GROUP, Keyword::BY]) {
        return None;
    }
    let groups = parser.parse_comma_separated(Parser::parse_expr).ok()?;
    parser.expect_token(&Token::EOF).ok()?;
    let begin = table_before(tokens, at)?;
    let span = tokens.get(at)?.span;
    let read = |text: &str| {
        let mut read = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().ok()?;
        read.iter_mut().for_each(|token| token.span = span);
        Some(read)
    };
    let mut table = read(&format!("(SELECT {} FROM ", kept(&groups, &column, &aggregates)))?;
    table.extend_from_slice(tokens.get(begin..at)?);
    table.extend(read(&format!(") PIVOT ({} FOR {column} IN ({}))", list(&aggregates), list(&values)))?);
    Some((begin..end + 1, table))
}

/// Where the table begins that ends before a place: a name with its schema, or something in brackets.
fn table_before(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    let mut words = last_words(tokens.get(..at)?);
    let mut begin = words.next()?;
    if token(begin) == Some(&Token::RParen) {
        let mut depth = 1_usize;
        while depth > 0 {
            begin = words.next()?;
            match token(begin) {
                Some(Token::RParen) => depth += 1,
                Some(Token::LParen) => depth -= 1,
                _ => {}
            }
        }
        return Some(begin);
    }
    while matches!(token(begin), Some(Token::Word(_))) {
        if words.next().and_then(token) != Some(&Token::Period) {
            return Some(begin);
        }
        begin = words.next()?;
    }
    None
}

/// The columns that a PIVOT with GROUP BY reads.
fn kept(groups: &[Expr], column: &Ident, aggregates: &[(Expr, Option<String>)]) -> String {
    let mut kept: Vec<String> = groups.iter().map(ToString::to_string).collect();
    kept.push(column.to_string());
    aggregates.iter().for_each(|(aggregate, _)| columns_of(aggregate, &mut kept));
    kept.join(", ")
}

fn list(items: &[(Expr, Option<String>)]) -> String {
    let shown = items.iter().map(|(expr, alias)| match alias {
        Some(alias) => format!("{expr} AS {alias}"),
        None => expr.to_string(),
    });
    shown.collect::<Vec<_>>().join(", ")
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
        format!("(SELECT {} FROM {table})", kept(&groups, &column, &aggregates))
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
    expr.each_expression(|part| {
        if matches!(part, Expr::Identifier(_)) && !found.contains(&part.to_string()) {
            found.push(part.to_string());
        }
    });
}

fn query(text: &str) -> Result<Statement, ParserError> {
    let mut parsed = Parser::parse_sql(&GenericDialect {}, text)?;
    parsed.pop().ok_or_else(|| ParserError::ParserError("PIVOT gives no query".to_owned()))
}
