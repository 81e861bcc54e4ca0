//! Text → statements. The text is split into tokens once; a few forms that the parser does not know get tokens that it does;
//! then it is parsed.

use crate::dialect::{Dialect, DialectName};
use crate::joins::{self, Joins};
use crate::tokens::{self, is_blank, keyword, word};
use crate::walk::Tree;
use crate::{do_nothing, exclusions, mysql_tokens, numbers, pivot, recursion_clauses};
use bowshot_api::{Error, ErrorKind, Position, Reason, Result};
use sqlparser::ast::{Expr, Statement, UnaryOperator, Value, VisitorMut};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::vec::IntoIter;

/// A statement as it was written, but for [`crate::rewrite`].
#[derive(Debug, Clone)]
pub enum Parsed {
    /// All that the parser knows.
    Statement(Box<Statement>),
    /// `EXPLAIN` of a statement.
    Explain(Explain),
}

/// What is to be told about a statement.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Whether it runs, and is told with what it took.
    pub analyze: bool,
    /// Whether all is told.
    pub verbose: bool,
    /// `indent`, `tree`, `pgjson`, `graphviz`, in lower case.
    pub format: Option<String>,
    /// The statement.
    pub statement: Box<Statement>,
}

/// The statements of a text, none for one that is empty.
///
/// # Errors
/// `Syntax`, with the place.
pub fn parse(sql: &str, dialect: Dialect, recursion_limit: usize) -> Result<Vec<Parsed>> {
    let (tokens, versions) = understood(sql, dialect)?;
    let dialect = if versions { dialect.with_versions() } else { dialect };
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(recursion_limit).with_tokens_with_locations(tokens);
    let mut parsed = statements(&mut parser).map_err(|error| syntax(&error))?;
    for one in &mut parsed {
        let (Parsed::Statement(statement) | Parsed::Explain(Explain { statement, .. })) = one;
        if let ControlFlow::Break(error) = statement.walk(&mut AsRead { internals: false }) {
            return Err(error);
        }
    }
    Ok(parsed)
}

/// An expression by itself, such as a default. It may use functions that statements cannot name.
///
/// # Errors
/// `Syntax` for a text that is none.
pub fn parse_expression(sql: &str, dialect: Dialect) -> Result<Expr> {
    let (tokens, _) = understood(sql, dialect)?;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let mut expr = parser.parse_expr().map_err(|error| syntax(&error))?;
    parser.expect_token(&Token::EOF).map_err(|error| syntax(&error))?;
    match expr.walk(&mut AsRead { internals: true }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(expr),
    }
}

/// What begins the names of functions that stand for our own needs, such as the counters of identity columns.
const INTERNAL: &str = "__bowshot";

/// `- -a` as `-(-a)`: the tree is written `--a`, which begins a comment where it is read again. Functions for our own needs
/// are not there for who writes a statement.
struct AsRead {
    internals: bool,
}

impl AsRead {
    fn refused(&self, expr: &Expr) -> Option<Error> {
        let Expr::Function(function) = expr else { return None };
        let name = function.name.0.last()?.as_ident()?;
        let internal = name.value.get(..INTERNAL.len())?.eq_ignore_ascii_case(INTERNAL);
        (internal && !self.internals).then(|| {
            let told = format!("function `{}` does not exist", name.value);
            Error::new(ErrorKind::Invalid, told).with_reason(Reason::UndefinedFunction)
        })
    }
}

impl VisitorMut for AsRead {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Some(error) = self.refused(expr) {
            return ControlFlow::Break(error);
        }
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
            && matches!(inner.as_ref(), Expr::UnaryOp { op: UnaryOperator::Minus, .. })
        {
            let signed = std::mem::replace(inner.as_mut(), Expr::value(Value::Null));
            **inner = Expr::Nested(Box::new(signed));
        }
        ControlFlow::Continue(())
    }
}

fn statements(parser: &mut Parser<'_>) -> std::result::Result<Vec<Parsed>, ParserError> {
    let mut parsed = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        if parser.peek_token_ref().token == Token::EOF {
            return Ok(parsed);
        }
        parsed.push(statement(parser)?);
        match &parser.peek_token_ref().token {
            Token::SemiColon | Token::EOF => {}
            _ => return parser.expected("the end of the statement", parser.peek_token()),
        }
    }
}

fn statement(parser: &mut Parser<'_>) -> std::result::Result<Parsed, ParserError> {
    if !parser.parse_keyword(Keyword::EXPLAIN) {
        return Ok(Parsed::Statement(Box::new(parser.parse_statement()?)));
    }
    let mut explain =
        Explain { analyze: false, verbose: false, format: None, statement: Box::new(nothing()) };
    if parser.peek_token_ref().token == Token::LParen && !is_query_in_brackets(parser) {
        parser.advance_token();
        loop {
            option(parser, &mut explain)?;
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    } else {
        while is_option(parser) {
            option(parser, &mut explain)?;
        }
    }
    explain.statement = Box::new(parser.parse_statement()?);
    Ok(Parsed::Explain(explain))
}

fn is_query_in_brackets(parser: &Parser<'_>) -> bool {
    matches!(&parser.peek_nth_token_ref(1).token, Token::LParen)
        || matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word)
            if matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM))
}

fn is_option(parser: &Parser<'_>) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(word)
        if matches!(word.keyword, Keyword::ANALYZE | Keyword::VERBOSE | Keyword::FORMAT))
}

/// `ANALYZE [on|off]`, `VERBOSE`, `FORMAT [=] name`, and options of PostgreSQL without effect here.
fn option(parser: &mut Parser<'_>, explain: &mut Explain) -> std::result::Result<(), ParserError> {
    let name = parser.parse_identifier()?.value.to_ascii_lowercase();
    match name.as_str() {
        "analyze" => explain.analyze = is_on(parser),
        "verbose" => explain.verbose = is_on(parser),
        "format" => {
            let _ = parser.consume_token(&Token::Eq);
            let format = parser.parse_identifier()?.value.to_ascii_lowercase();
            explain.format = match format.as_str() {
                "text" | "traditional" | "indent" => None,
                "json" => Some("pgjson".to_owned()),
                _ => Some(format),
            };
        }
        "costs" | "buffers" | "timing" | "summary" | "settings" | "wal" | "generic_plan" | "memory" => {
            is_on(parser);
        }
        other => return Err(ParserError::ParserError(format!("`{other}` is no option of EXPLAIN"))),
    }
    Ok(())
}

fn is_on(parser: &mut Parser<'_>) -> bool {
    let value = match &parser.peek_token_ref().token {
        Token::Word(word) if matches!(word.keyword, Keyword::TRUE | Keyword::ON) => true,
        Token::Word(word) if matches!(word.keyword, Keyword::FALSE | Keyword::OFF) => false,
        _ => return true,
    };
    parser.advance_token();
    value
}

fn nothing() -> Statement {
    Statement::Commit { chain: false, end: false, modifier: None }
}

/// The tokens in forms that the parser knows, and whether they ask for an earlier state of a table.
///
/// `FOR VERSION AS OF` and `FOR TIMESTAMP AS OF` lose their FOR; `WITH x AS MATERIALIZED (…)` loses the hint: what may differ
/// from one time to the next is computed once in any case (`rewrite/shared_queries.rs`). Joins, numbers and EXCLUDE of frames
/// have files of their own.
fn understood(sql: &str, dialect: Dialect) -> Result<(Vec<TokenWithSpan>, bool)> {
    let tokens = Tokenizer::new(&dialect, sql)
        .tokenize_with_location()
        .map_err(|error| syntax(&ParserError::from(error)))?;
    let tokens = tokens::known(tokens::signs_apart(tokens, dialect));
    let tokens = numbers::in_digits(tokens, dialect.name())?;
    let tokens = if dialect.name() == DialectName::MySql { mysql_tokens::known(tokens)? } else { tokens };
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut versions = false;
    let mut joins = Joins::new(dialect.name());
    let mut rest = tokens.into_iter().peekable();
    while let Some(mut token) = rest.next() {
        if keyword(&token.token) == Keyword::OF {
            versions |= drop_for(&mut kept);
        } else if keyword(&token.token) == Keyword::MATERIALIZED && is_hint(&mut kept, rest.peek())
            || joins.take(&mut kept, &mut token)
            || ends_percentage(&token.token, &mut rest) && percentage(&mut kept)
        {
            continue;
        }
        kept.push(token);
    }
    joins::in_brackets(&mut kept);
    do_nothing::put(&mut kept);
    recursion_clauses::carry(&mut kept);
    pivot::within(&mut kept, dialect);
    columns_called_top(&mut kept);
    exclusions::mark(&mut kept);
    drop_deferrable(&mut kept);
    Ok((kept, versions))
}

/// `BEGIN READ ONLY, DEFERRABLE`: no transaction waits for others to begin, and the parser does not know the word there.
fn drop_deferrable(kept: &mut Vec<TokenWithSpan>) {
    if !kept.iter().any(|token| keyword(&token.token) == Keyword::DEFERRABLE) {
        return;
    }
    let (mut at_start, mut begins) = (true, false);
    for token in std::mem::take(kept) {
        let word = keyword(&token.token);
        if token.token == Token::SemiColon {
            (at_start, begins) = (true, false);
        } else if at_start && !is_blank(&token.token) {
            (at_start, begins) = (false, matches!(word, Keyword::BEGIN | Keyword::START));
        }
        if begins && word == Keyword::DEFERRABLE {
            take_back(kept, |token| keyword(token) == Keyword::NOT);
            take_back(kept, |token| *token == Token::Comma);
        } else {
            kept.push(token);
        }
    }
}

/// Takes away the last token, blanks aside, if it is one that is wanted.
fn take_back(kept: &mut Vec<TokenWithSpan>, is_wanted: impl Fn(&Token) -> bool) {
    while kept.last().is_some_and(|token| is_blank(&token.token)) {
        kept.pop();
    }
    if kept.last().is_some_and(|token| is_wanted(&token.token)) {
        kept.pop();
    }
}

/// `SELECT top FROM t`: TOP is a name, unless a number of rows stands behind it.
fn columns_called_top(kept: &mut [TokenWithSpan]) {
    for at in 0..kept.len() {
        let mut words = kept.iter().skip(at).map(|token| &token.token).filter(|token| !is_blank(token));
        if words.next().is_none_or(|token| keyword(token) != Keyword::TOP)
            || matches!(words.next(), Some(Token::Number(..) | Token::LParen))
        {
            continue;
        }
        if let Some(TokenWithSpan { token: Token::Word(word), .. }) = kept.get_mut(at) {
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// The function that stands around the number of `LIMIT 50%`.
pub(crate) const PERCENT: &str = "__percent";

/// Whether it is `%` or PERCENT, and no operator.
fn ends_percentage(token: &Token, rest: &mut Peekable<IntoIter<TokenWithSpan>>) -> bool {
    if *token != Token::Mod {
        return keyword(token) == Keyword::PERCENT;
    }
    while rest.next_if(|next| is_blank(&next.token)).is_some() {}
    let next = rest.peek().map(|next| &next.token);
    !matches!(next, Some(Token::Number(..) | Token::LParen | Token::Placeholder(_)))
}

/// `LIMIT 50` before it as `LIMIT __percent(50)`; whether that is what stands there.
fn percentage(kept: &mut Vec<TokenWithSpan>) -> bool {
    let words: Vec<usize> = last_words(kept).take(2).collect();
    let [number, limit] = words.as_slice() else { return false };
    let is_limit = kept.get(*limit).is_some_and(|token| keyword(&token.token) == Keyword::LIMIT);
    let Some(TokenWithSpan { token: Token::Number(..), span }) = kept.get(*number) else { return false };
    let span = *span;
    if is_limit {
        let begin = [word(PERCENT, Keyword::NoKeyword), Token::LParen];
        kept.push(TokenWithSpan { token: Token::RParen, span });
        kept.splice(*number..*number, begin.map(|token| TokenWithSpan { token, span }));
    }
    is_limit
}

/// Places of the last words before the end, the last one first; blanks are left out.
pub(crate) fn last_words(kept: &[TokenWithSpan]) -> impl Iterator<Item = usize> + '_ {
    (0..kept.len()).rev().filter(|at| kept.get(*at).is_some_and(|token| !is_blank(&token.token)))
}

/// Before OF: whether `VERSION AS` or `TIMESTAMP AS` stands there; a FOR before it goes.
fn drop_for(kept: &mut Vec<TokenWithSpan>) -> bool {
    let words: Vec<usize> = last_words(kept).take(3).collect();
    let is = |at: usize| words.get(at).and_then(|at| kept.get(*at)).map(|token| keyword(&token.token));
    if is(0) != Some(Keyword::AS) || !matches!(is(1), Some(Keyword::VERSION | Keyword::TIMESTAMP)) {
        return false;
    }
    if is(2) == Some(Keyword::FOR)
        && let Some(at) = words.get(2)
    {
        kept.remove(*at);
    }
    true
}

/// `AS [NOT] MATERIALIZED (`: a hint that is not needed here. A NOT before it goes.
fn is_hint(kept: &mut Vec<TokenWithSpan>, next: Option<&TokenWithSpan>) -> bool {
    if !next.is_some_and(|next| is_blank(&next.token) || next.token == Token::LParen) {
        return false;
    }
    let words: Vec<usize> = last_words(kept).take(2).collect();
    let is = |at: usize| words.get(at).and_then(|at| kept.get(*at)).map(|token| keyword(&token.token));
    match (is(0), is(1), words.first().copied()) {
        (Some(Keyword::AS), ..) => true,
        (Some(Keyword::NOT), Some(Keyword::AS), Some(at)) => {
            kept.remove(at);
            true
        }
        _ => false,
    }
}

/// What the parser says, in our words.
pub(crate) fn syntax(error: &ParserError) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => Error::new(
            ErrorKind::LimitReached,
            "the statement nests deeper than the parser's recursion limit allows",
        )
        .with_reason(Reason::TooComplex)
        .with_hint("take inner queries apart with WITH"),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            let (what, position) = placed(text);
            let what = misplaced_action(what).unwrap_or_else(|| lower_first(what));
            let told = Error::new(ErrorKind::Syntax, format!("syntax error: {what}"));
            match position {
                Some(position) => told.with_position(position),
                None => told,
            }
        }
    }
}

/// The parser's `… at Line: 1, Column: 8` as what it says and the place.
fn placed(text: &str) -> (&str, Option<Position>) {
    let apart = || {
        let (what, place) = text.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((what, Position { line: line.parse().ok()?, column: column.trim_end().parse().ok()? }))
    };
    match apart() {
        Some((what, position)) => (what, Some(position)),
        None => (text, None),
    }
}

/// `INSERT is not allowed in a NOT MATCHED BY SOURCE merge clause`
fn misplaced_action(text: &str) -> Option<String> {
    let (action, clause) = text.strip_suffix(" merge clause")?.split_once(" is not allowed in a ")?;
    Some(format!("{action} is not possible for WHEN {clause}"))
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_ascii_lowercase() => {
            first.to_ascii_lowercase().to_string() + characters.as_str()
        }
        _ => text.to_owned(),
    }
}
