//! Statements that `sqlparser` parses. Forms that it does not know get tokens that it does first.

use crate::dialect::{Dialect, DialectName};
use crate::joins::{self, Joins};
use crate::statement_tokens::{SourceText, expect_end};
use crate::syntax_error::syntax_error;
use crate::tokens::{self, is_blank, keyword, last_words, word};
use crate::walk::Tree;
use crate::{
    comment_on, do_nothing, exclusions, fetch_counts, forms, mysql_tokens, numbers, pivot, recursion_clauses,
    row_lock,
};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use sqlparser::ast::{self, Expr, UnaryOperator, Value};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::iter::Peekable;
use std::vec::IntoIter;

/// The statement of tokens, as `sqlparser` reads it.
pub(crate) fn sql_statement(tokens: Vec<TokenWithSpan>, text: SourceText<'_>) -> Result<Box<ast::Statement>> {
    let statement = with_sql_tokens(tokens, text, |parser| {
        let mut statement = match comment_on::read(parser)? {
            Some(comment) => comment,
            None => parser.parse_statement()?,
        };
        forms::take_force(parser, &mut statement);
        expect_end(parser).map(|()| statement)
    })?;
    let mut statement = Box::new(statement);
    check(statement.as_mut())?;
    Ok(statement)
}

/// Parses tokens with `sqlparser`, in forms that it knows.
pub(crate) fn with_sql_tokens<T>(
    tokens: Vec<TokenWithSpan>,
    text: SourceText<'_>,
    read: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> Result<T> {
    forms::check_names(&tokens)?;
    let (tokens, dialect) = understood(tokens, text.sql, *text.dialect)?;
    let parser = Parser::new(&dialect).with_recursion_limit(text.recursion_limit);
    read(&mut parser.with_tokens_with_locations(tokens)).map_err(|error| syntax_error(&error))
}

/// See [`as_read`].
pub(crate) fn check(tree: &mut impl Tree) -> Result<()> {
    as_read(tree, false)
}

/// An expression by itself, such as a default. It may use functions that statements cannot name.
pub fn parse_expression(sql: &str, dialect: Dialect) -> Result<Expr> {
    let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location();
    let tokens = tokens.map_err(|error| syntax_error(&ParserError::from(error)))?;
    let (tokens, dialect) = understood(tokens, sql, dialect)?;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let mut expr = parser.parse_expr().map_err(|error| syntax_error(&error))?;
    parser.expect_token(&Token::EOF).map_err(|error| syntax_error(&error))?;
    as_read(&mut expr, true)?;
    Ok(expr)
}

/// What begins the names of functions that stand for our own needs, such as the counters of identity columns.
const INTERNAL: &str = "__bowshot";

/// `- -a` as `-(-a)`: the tree is written `--a`, which begins a comment where it is read again. Functions for our own needs
/// are not there for who writes a statement.
fn as_read(tree: &mut impl Tree, internals: bool) -> Result<()> {
    tree.try_change_expressions(|expr| {
        if let Some(name) = internal_function(expr).filter(|_| !internals) {
            let told = format!("function `{name}` does not exist");
            return Err(Error::new(ErrorKind::Invalid, told).with_reason(Reason::UndefinedFunction));
        }
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
            && matches!(inner.as_ref(), Expr::UnaryOp { op: UnaryOperator::Minus, .. })
        {
            let signed = std::mem::replace(inner.as_mut(), Expr::value(Value::Null));
            **inner = Expr::Nested(Box::new(signed));
        }
        Ok(())
    })
}

fn internal_function(expr: &Expr) -> Option<&str> {
    let Expr::Function(function) = expr else { return None };
    let name = &function.name.0.last()?.as_ident()?.value;
    name.get(..INTERNAL.len())?.eq_ignore_ascii_case(INTERNAL).then_some(name.as_str())
}

/// The tokens in forms that the parser knows, and its dialect, which knows earlier states of tables where they ask for some.
///
/// `FOR VERSION AS OF` and `FOR TIMESTAMP AS OF` lose their FOR, and a name of a state gets a mark; `WITH x AS MATERIALIZED (…)` loses the hint: what may differ
/// from one time to the next is computed once in any case (`rewrite/shared_queries.rs`). Joins, numbers and EXCLUDE of frames
/// have files of their own.
fn understood(
    tokens: Vec<TokenWithSpan>,
    sql: &str,
    dialect: Dialect,
) -> Result<(Vec<TokenWithSpan>, Dialect)> {
    let tokens = forms::known(tokens, sql);
    let tokens = tokens::known(tokens::signs_apart(tokens, dialect));
    let tokens = numbers::in_digits(tokens, dialect.name())?;
    let tokens = if dialect.name() == DialectName::MySql { mysql_tokens::known(tokens)? } else { tokens };
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut versions = false;
    let mut joins = Joins::new(dialect.name());
    let mut rest = tokens.into_iter().peekable();
    while let Some(mut token) = rest.next() {
        name_state(&mut kept, &mut token);
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
    fetch_counts::put(&mut kept);
    recursion_clauses::carry(&mut kept);
    pivot::within(&mut kept, dialect);
    columns_called_top(&mut kept);
    exclusions::mark(&mut kept);
    drop_deferrable(&mut kept);
    row_lock::drop_key(&mut kept);
    row_lock::join_names(&mut kept);
    Ok((kept, if versions { dialect.with_versions() } else { dialect }))
}

/// `BEGIN READ ONLY, DEFERRABLE`: no transaction waits for others to begin, and the parser does not know the word there.
fn drop_deferrable(kept: &mut Vec<TokenWithSpan>) {
    let first = kept.iter().find(|token| !is_blank(&token.token));
    if !first.is_some_and(|token| matches!(keyword(&token.token), Keyword::BEGIN | Keyword::START)) {
        return;
    }
    for token in std::mem::take(kept) {
        if keyword(&token.token) == Keyword::DEFERRABLE {
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

/// Begins the text of `VERSION AS OF '…'`.
pub(crate) const STATE_NAME: char = '\u{3}';

/// `VERSION AS OF 'v1'` as a time with a mark: the parser takes a number alone behind VERSION.
fn name_state(kept: &mut [TokenWithSpan], token: &mut TokenWithSpan) {
    let Token::SingleQuotedString(text) = &mut token.token else { return };
    let words: Vec<usize> = last_words(kept).take(3).collect();
    let is = |at: usize| words.get(at).and_then(|at| kept.get(*at)).map(|token| keyword(&token.token));
    if text.is_empty() || [is(0), is(1), is(2)] != [Keyword::OF, Keyword::AS, Keyword::VERSION].map(Some) {
        return;
    }
    if let Some(version) = words.get(2).and_then(|at| kept.get_mut(*at)) {
        version.token = word("TIMESTAMP", Keyword::TIMESTAMP);
        text.insert(0, STATE_NAME);
    }
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
