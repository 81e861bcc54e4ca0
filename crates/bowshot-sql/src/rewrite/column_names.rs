//! What the columns of a result are called: an expression by its own text, as it was written; two columns by the same name, if
//! they were written so. A cast with `::` leaves a column its name.
//!
//! The planner wants names that differ, so a name that was there before gets a number behind a [`MARK`], which [`shown`]
//! takes off again where the schema of a result is made.

use super::Source;
use crate::dialect::{Dialect, DialectName};
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use bowshot_api::Result;
use sqlparser::ast::{
    AccessExpr, CastKind, DataType, Expr, Ident, JsonPathElem, OrderBy, OrderByKind, Query, Select,
    SelectItem, SetExpr, Statement, VisitorMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Before the number of a name that was there before.
pub const MARK: char = bowshot_api::SAME_NAME_MARK;

/// A name without its mark.
pub fn shown(name: &str) -> &str {
    bowshot_api::display_name(name)
}

pub(super) fn name(statement: &mut impl Tree, source: Source<'_>) -> Result<()> {
    let mut names = Names { source, tokens: None, sorted: Vec::new() };
    let ControlFlow::Continue(()) = statement.walk(&mut names);
    Ok(())
}

struct Names<'text> {
    source: Source<'text>,
    tokens: Option<Vec<TokenWithSpan>>,
    /// Of each query around: names that its ORDER BY computes with, if they may be those of casts.
    sorted: Vec<HashSet<String>>,
}

impl VisitorMut for Names<'_> {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Infallible> {
        let returned = match statement {
            Statement::Insert(insert) => insert.returning.as_mut(),
            Statement::Update(update) => update.returning.as_mut(),
            Statement::Delete(delete) => delete.returning.as_mut(),
            _ => None,
        };
        if let Some(items) = returned {
            self.name_items(items, None);
            number_same(items, &[], &HashSet::new());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let mut said = Said::default();
        if let SetExpr::Select(select) = query.body.as_ref()
            && select.projection.iter().any(|item| self.is_unnamed_cast(item))
            && let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &query.order_by
        {
            // A name alone is that of a column of the result.
            keys.iter().filter(|key| !is_column(&key.expr)).for_each(|key| said.add(&key.expr));
        }
        self.sorted.push(said.0);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.sorted.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut said = Said(self.sorted.last_mut().map(std::mem::take).unwrap_or_default());
        let casts: Vec<bool> = select.projection.iter().map(|item| self.is_unnamed_cast(item)).collect();
        if casts.contains(&true) {
            [&select.having, &select.qualify].into_iter().flatten().for_each(|expr| said.add(expr));
        }
        self.name_expressions(select);
        number_same(&mut select.projection, &casts, &said.0);
        ControlFlow::Continue(())
    }
}

impl Names<'_> {
    /// Whether it is a cast that is called as its column.
    fn is_unnamed_cast(&self, item: &SelectItem) -> bool {
        let short = self.source.dialect != DialectName::Postgres;
        matches!(item, SelectItem::UnnamedExpr(expr) if is_cast_column(expr, short))
    }

    fn name_expressions(&mut self, select: &mut Select) {
        let wanted = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(expr) if !is_column(expr));
        if !select.projection.iter().any(wanted) {
            return;
        }
        let texts = match self.source.dialect {
            DialectName::Postgres => None,
            _ => self.texts(select.select_token.0.span.start, select.projection.len()),
        };
        self.name_items(&mut select.projection, texts.as_deref());
    }

    /// `texts` are those of the items as they were written, where they are known.
    fn name_items(&self, items: &mut [SelectItem], texts: Option<&[String]>) {
        for (at, item) in items.iter_mut().enumerate() {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if is_column(expr) || super::wildcards::has_list(expr) {
                continue;
            }
            let name = match (texts, self.source.dialect) {
                (_, DialectName::Postgres) => postgres_name(expr),
                _ if is_cast_column(expr, true) => postgres_name(expr),
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
    for token in tokens.iter().skip(without_distinct(tokens)) {
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
                let within = matches!(
                    (last, word.keyword),
                    (Keyword::DISTINCT, Keyword::FROM) | (Keyword::WITHIN, Keyword::GROUP)
                );
                if ends_list(word.keyword) && !within {
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

/// A column under casts, with `::` alone if so asked.
fn is_cast_column(expr: &Expr, short: bool) -> bool {
    match expr {
        Expr::Cast { kind, expr, .. } if !short || *kind == CastKind::DoubleColon => {
            is_column(expr) || is_cast_column(expr, short)
        }
        _ => false,
    }
}

/// Names that are said of columns of the tables, where the planner would take those of the result first.
#[derive(Default)]
struct Said(HashSet<String>);

impl Said {
    fn add(&mut self, expr: &Expr) {
        expr.each_expression(|part| {
            if let Expr::Identifier(name) = part {
                self.0.insert(meaning(name));
            }
        });
    }
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
            figured(expr).filter(|_| !is_weak(expr)).or_else(|| Some(internal_name(data_type)))
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figured(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(field) => figured(field),
                AccessExpr::Subscript(_) => None,
            });
            field.or_else(|| figured(root))
        }
        Expr::JsonAccess { value, path } => {
            let member = path.path.iter().rev().find_map(|step| match step {
                JsonPathElem::Dot { key, .. } => Some(key.clone()),
                JsonPathElem::Bracket { .. } | JsonPathElem::ColonBracket { .. } => None,
            });
            member.or_else(|| figured(value))
        }
        Expr::Case { else_result, .. } => {
            let result = else_result.as_ref().filter(|result| !is_weak(result));
            result.and_then(|result| figured(result)).or_else(|| Some("case".to_owned()))
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

/// Whether its name is that of a type or of CASE, which another one around it takes the place of.
fn is_weak(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { expr, .. } => is_weak(expr) || figured(expr).is_none(),
        Expr::Case { else_result, .. } => {
            else_result.as_ref().is_none_or(|result| is_weak(result) || figured(result).is_none())
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => is_weak(inner),
        _ => false,
    }
}

/// What PostgreSQL calls a type inside.
fn internal_name(data_type: &DataType) -> String {
    let name = data_type.to_string().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name).trim_end_matches("[]").replace('"', "");
    let plain = name.split('(').next().unwrap_or_default().trim_end();
    // What stands behind a length in brackets belongs to the name: `timestamp(3) with time zone`.
    let behind = name.rsplit_once(')').map_or("", |(_, behind)| behind);
    match format!("{plain}{behind}").as_str() {
        "bigint" => "int8",
        "int" | "integer" => "int4",
        "smallint" => "int2",
        "double precision" | "double" | "float" => "float8",
        "real" => "float4",
        "boolean" => "bool",
        "decimal" | "dec" => "numeric",
        "character varying" | "char varying" => "varchar",
        "character" | "char" => "bpchar",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        other => return other.to_owned(),
    }
    .to_owned()
}

/// Gives a number to names that came before, to columns that `*` may give too, and to casts that would hide what is said of
/// the columns under them.
fn number_same(items: &mut [SelectItem], casts: &[bool], said: &HashSet<String>) {
    let all =
        items.iter().any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let is_cast = |at: usize| casts.get(at) == Some(&true);
    let mut seen = HashSet::new();
    for (at, item) in items.iter_mut().enumerate() {
        let (expr, name, written) = match &*item {
            SelectItem::UnnamedExpr(expr @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
                match figured(expr) {
                    Some(name) => (expr.clone(), name, false),
                    None => continue,
                }
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), meaning(alias), !is_cast(at)),
            _ => continue,
        };
        let twice = !seen.insert(name.clone());
        if twice || all && !written || is_cast(at) && said.contains(&name) {
            let alias = Ident::with_quote('"', format!("{name}{MARK}{at}"));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}
