//! What the columns of a result are called: an expression by its own text, as it was written; two columns by the same name, if
//! they were written so.
//!
//! The planner wants names that differ, so a name that was there before gets a number behind a [`MARK`], which [`shown`]
//! takes off again where the schema of a result is made.

use super::Source;
use crate::dialect::{Dialect, DialectName};
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use bowshot_api::Result;
use sqlparser::ast::{Expr, Ident, Select, SelectItem, SetExpr, VisitorMut};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Before the number of a name that was there before.
pub const MARK: char = bowshot_api::SAME_NAME_MARK;

/// A name without its mark.
pub fn shown(name: &str) -> &str {
    bowshot_api::shown_name(name)
}

pub(super) fn name(statement: &mut impl Tree, source: Source<'_>) -> Result<()> {
    let mut names = Names { source, tokens: None };
    let ControlFlow::Continue(()) = statement.walk(&mut names);
    Ok(())
}

struct Names<'text> {
    source: Source<'text>,
    tokens: Option<Vec<TokenWithSpan>>,
}

impl VisitorMut for Names<'_> {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        self.name_expressions(select);
        number_same(&mut select.projection);
        ControlFlow::Continue(())
    }
}

impl Names<'_> {
    fn name_expressions(&mut self, select: &mut Select) {
        let wanted = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(expr) if !is_column(expr));
        if !select.projection.iter().any(wanted) {
            return;
        }
        let texts = match self.source.dialect {
            DialectName::Postgres => None,
            _ => self.texts(select.select_token.0.span.start, select.projection.len()),
        };
        for (at, item) in select.projection.iter_mut().enumerate() {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if is_column(expr) || is_columns(expr) {
                continue;
            }
            let name = match (&texts, self.source.dialect) {
                (_, DialectName::Postgres) => postgres_name(expr),
                (Some(texts), _) => texts.get(at).cloned().unwrap_or_else(|| expr.to_string()),
                (None, _) => expr.to_string(),
            };
            let alias = quoted(&name);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }

    /// The texts of the items of the SELECT that stands at a place; `None` if they are not as many as there should be.
    fn texts(&mut self, place: Location, count: usize) -> Option<Vec<String>> {
        let source = self.source;
        let tokens = self.tokens.get_or_insert_with(|| {
            let dialect = Dialect::new(source.dialect);
            Tokenizer::new(&dialect, source.text).tokenize_with_location().unwrap_or_default()
        });
        let start = tokens.iter().position(|token| token.span.start == place)?;
        let items = items(tokens.get(start + 1..)?);
        (items.len() == count).then_some(items)
    }
}

/// The texts between the commas up to the end of a list of columns.
fn items(tokens: &[TokenWithSpan]) -> Vec<String> {
    let (mut items, mut text) = (Vec::new(), String::new());
    let (mut depth, mut last) = (0_usize, Keyword::SELECT);
    let mut rest = tokens.iter().skip(without_distinct(tokens)).peekable();
    while let Some(token) = rest.next() {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace if depth == 0 => break,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            Token::SemiColon | Token::EOF => break,
            Token::Comma if depth == 0 => {
                items.push(std::mem::take(&mut text).trim().to_owned());
                continue;
            }
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => {
                if ends_list(word.keyword) && !(word.keyword == Keyword::FROM && last == Keyword::DISTINCT) {
                    break;
                }
                last = word.keyword;
            }
            _ => {}
        }
        match &token.token {
            Token::Whitespace(_) if text.ends_with(' ') => {}
            Token::Whitespace(_) => text.push(' '),
            token => text.push_str(&token.to_string()),
        }
    }
    items.push(text.trim().to_owned());
    items
}

/// How many tokens `DISTINCT`, `DISTINCT ON (…)` or `ALL` take.
fn without_distinct(tokens: &[TokenWithSpan]) -> usize {
    let words: Vec<usize> = (0..tokens.len())
        .filter(|at| tokens.get(*at).is_some_and(|token| !matches!(token.token, Token::Whitespace(_))))
        .take(3)
        .collect();
    let keyword = |at: usize| match words.get(at).and_then(|at| tokens.get(*at)).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match (keyword(0), keyword(1), words.as_slice()) {
        (Keyword::DISTINCT, Keyword::ON, [_, _, open]) => after_bracket(tokens, *open),
        (Keyword::DISTINCT | Keyword::ALL, _, [first, ..]) => first + 1,
        _ => 0,
    }
}

fn after_bracket(tokens: &[TokenWithSpan], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => return at + 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

fn ends_list(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::FROM
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::QUALIFY
            | Keyword::WINDOW
            | Keyword::INTO
    )
}

/// Whether the planner names it by the column's own name.
fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// `COLUMNS(…)` is a list of columns.
fn is_columns(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function)
        if function.name.to_string().eq_ignore_ascii_case("columns"))
}

/// What PostgreSQL calls a column (its manual, "SELECT", output names; `FigureColname` in its parser).
fn postgres_name(expr: &Expr) -> String {
    figured(expr).unwrap_or_else(|| "?column?".to_owned())
}

fn figured(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(meaning(name)),
        Expr::CompoundIdentifier(names) => names.last().map(meaning),
        Expr::Function(function) => function.name.0.last()?.as_ident().map(meaning),
        Expr::Cast { expr, data_type, .. } => {
            figured(expr).or_else(|| Some(data_type.to_string().to_lowercase()))
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figured(inner),
        Expr::Case { else_result, .. } => {
            else_result.as_ref().and_then(|result| figured(result)).or_else(|| Some("case".to_owned()))
        }
        Expr::Extract { .. } => Some("extract".to_owned()),
        Expr::Substring { .. } => Some("substring".to_owned()),
        Expr::Position { .. } => Some("position".to_owned()),
        Expr::Overlay { .. } => Some("overlay".to_owned()),
        Expr::Trim { .. } => Some("btrim".to_owned()),
        Expr::Ceil { .. } => Some("ceil".to_owned()),
        Expr::Floor { .. } => Some("floor".to_owned()),
        Expr::Exists { .. } => Some("exists".to_owned()),
        Expr::Array(_) => Some("array".to_owned()),
        Expr::Tuple(_) => Some("row".to_owned()),
        Expr::Interval(_) => Some("interval".to_owned()),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::ExprWithAlias { alias, .. }] => Some(meaning(alias)),
                [SelectItem::UnnamedExpr(expr)] => figured(expr),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Gives a number to names that came before, and to columns that `*` may give too.
fn number_same(items: &mut [SelectItem]) {
    let all =
        items.iter().any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut seen = HashSet::new();
    for (at, item) in items.iter_mut().enumerate() {
        let (expr, name, written) = match &*item {
            SelectItem::UnnamedExpr(expr @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
                match figured(expr) {
                    Some(name) => (expr.clone(), name, false),
                    None => continue,
                }
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), meaning(alias), true),
            _ => continue,
        };
        let twice = !seen.insert(name.clone());
        if twice || all && !written {
            let alias = Ident::with_quote('"', format!("{name}{MARK}{at}"));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

#[cfg(test)]
mod tests;
