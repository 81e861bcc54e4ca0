//! Lists of columns that only the columns themselves can settle: `COLUMNS('a.*')`, `* RENAME (a AS b)`, `* ILIKE '%a'`.
//! `* LIKE 'a%'` comes as [`COLUMNS_LIKE`].
//!
//! [`probe`] gives a query whose columns are those that a list is made of, and [`expand`] puts the list in once they are known.

use super::MARK;
use crate::template::{self, meaning, quoted};
use crate::tokens::COLUMNS_LIKE;
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, RenameSelectItem,
    Select, SelectItem, SetExpr, Value, VisitorMut, WildcardAdditionalOptions, With,
};
use std::ops::ControlFlow;

/// A column by the name of its table, if it has one, and its own.
pub type Named = (Option<String>, String);

/// `SELECT *` of what the first SELECT with such a list reads; `None` if there is none.
pub fn probe(statement: &mut impl Tree) -> Option<Box<Query>> {
    statement.walk(&mut Find { with: Vec::new() }).break_value()
}

/// Puts the columns into the first SELECT with such a list.
///
/// # Errors
/// `Invalid` if none of the columns fits.
pub fn expand(statement: &mut impl Tree, columns: &[Named]) -> Result<()> {
    match statement.walk(&mut Expand(columns)) {
        ControlFlow::Break(result) => result,
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Find {
    with: Vec<Option<With>>,
}

impl VisitorMut for Find {
    type Break = Box<Query>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.with.push(query.with.clone());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.with.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if !select.projection.iter().any(is_wanted) {
            return ControlFlow::Continue(());
        }
        let Ok(mut query) = template::query("SELECT * FROM t", &[]) else { return ControlFlow::Continue(()) };
        if let SetExpr::Select(all) = query.body.as_mut() {
            all.from = select.from.clone();
        }
        for with in self.with.iter().flatten() {
            match &mut query.with {
                Some(there) => there.cte_tables.extend(with.cte_tables.iter().cloned()),
                None => query.with = Some(with.clone()),
            }
        }
        ControlFlow::Break(query)
    }
}

struct Expand<'a>(&'a [Named]);

impl VisitorMut for Expand<'_> {
    type Break = Result<()>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if !select.projection.iter().any(is_wanted) {
            return ControlFlow::Continue(());
        }
        let mut items = Vec::new();
        for item in std::mem::take(&mut select.projection) {
            match self.items(item) {
                Ok(list) => items.extend(list),
                Err(error) => return ControlFlow::Break(Err(error)),
            }
        }
        select.projection = items;
        ControlFlow::Break(Ok(()))
    }
}

fn is_wanted(item: &SelectItem) -> bool {
    match item {
        SelectItem::Wildcard(options) => options.opt_rename.is_some() || options.opt_ilike.is_some(),
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_list(expr),
        _ => false,
    }
}

impl Expand<'_> {
    fn items(&self, item: SelectItem) -> Result<Vec<SelectItem>> {
        let items = match item {
            SelectItem::Wildcard(options) if options.opt_rename.is_some() || options.opt_ilike.is_some() => {
                self.renamed(&options)
            }
            SelectItem::UnnamedExpr(expr) if has_list(&expr) => self.each(&expr, None)?,
            SelectItem::ExprWithAlias { expr, alias } if has_list(&expr) => self.each(&expr, Some(&alias))?,
            other => return Ok(vec![other]),
        };
        if items.is_empty() {
            return Err(Error::invalid("no column matches the list of columns"));
        }
        Ok(items)
    }

    fn renamed(&self, options: &WildcardAdditionalOptions) -> Vec<SelectItem> {
        let excluded = excluded(options);
        let like = options.opt_ilike.as_ref().map(|like| like.pattern.to_lowercase());
        let kept = self.0.iter().filter(|(_, name)| {
            !excluded.contains(name)
                && like.as_ref().is_none_or(|pattern| is_like(&name.to_lowercase(), pattern))
        });
        kept.map(|column| {
            let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
            let replaced = replaced.into_iter().find(|item| meaning(&item.column_name) == column.1);
            let expr = replaced.map_or_else(|| reference(column), |item| item.expr.clone());
            SelectItem::ExprWithAlias { expr, alias: quoted(&new_name(options, &column.1)) }
        })
        .collect()
    }

    /// The expression once for each column. An alias is that of all of them.
    fn each(&self, expr: &Expr, named: Option<&Ident>) -> Result<Vec<SelectItem>> {
        let Some(pattern) = pattern_in(expr) else { return Ok(Vec::new()) };
        let mut items: Vec<SelectItem> = Vec::new();
        for column in self.0.iter().filter(|(_, name)| pattern.fits(name)) {
            let mut expr = expr.clone();
            expr.change_expressions(|expr| {
                if columns_call(expr).is_some() {
                    *expr = reference(column);
                }
            });
            let mut shown = expr.clone();
            // Names without their tables and quotes, for the name of a column.
            shown.change_expressions(|expr| {
                if let Expr::CompoundIdentifier(names) = expr
                    && let Some(last) = names.last()
                {
                    *expr = Expr::Identifier(Ident::new(last.value.clone()));
                }
            });
            let alias = match (named, &expr) {
                (Some(alias), _) if items.is_empty() => alias.clone(),
                (Some(alias), _) => quoted(&format!("{}{MARK}{}", meaning(alias), items.len())),
                (None, Expr::CompoundIdentifier(_) | Expr::Identifier(_)) => quoted(&column.1),
                (None, _) => quoted(&shown.to_string()),
            };
            items.push(SelectItem::ExprWithAlias { expr, alias });
        }
        Ok(items)
    }
}

fn reference((table, name): &Named) -> Expr {
    match table {
        Some(table) => Expr::CompoundIdentifier(vec![quoted(table), quoted(name)]),
        None => Expr::Identifier(quoted(name)),
    }
}

fn excluded(options: &WildcardAdditionalOptions) -> Vec<String> {
    let mut names = Vec::new();
    let last =
        |name: &sqlparser::ast::ObjectName| name.0.last().and_then(|part| part.as_ident()).map(meaning);
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => names.extend(last(name)),
        Some(ExcludeSelectItem::Multiple(list)) => names.extend(list.iter().filter_map(last)),
        None => {}
    }
    if let Some(except) = &options.opt_except {
        names.push(meaning(&except.first_element));
        names.extend(except.additional_elements.iter().map(meaning));
    }
    names
}

fn new_name(options: &WildcardAdditionalOptions, name: &str) -> String {
    let renamed = match &options.opt_rename {
        Some(RenameSelectItem::Single(one)) => std::slice::from_ref(one),
        Some(RenameSelectItem::Multiple(list)) => list.as_slice(),
        None => &[],
    };
    let renamed = renamed.iter().find(|renamed| meaning(&renamed.ident) == name);
    renamed.map_or_else(|| name.to_owned(), |renamed| meaning(&renamed.alias))
}

/// What `COLUMNS(…)` asks for.
enum Pattern {
    All,
    Matching(String),
    Like(String),
    Names(Vec<String>),
    Except(Vec<String>),
}

impl Pattern {
    fn fits(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Matching(pattern) => matches_regular(name, pattern),
            Self::Like(pattern) => is_like(name, pattern),
            Self::Names(names) => names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name)),
            Self::Except(names) => !names.iter().any(|left_out| left_out.eq_ignore_ascii_case(name)),
        }
    }
}

/// Whether an expression stands for several columns.
pub(super) fn has_list(expr: &Expr) -> bool {
    pattern_in(expr).is_some()
}

/// The `COLUMNS(…)` in an expression, if there is one.
fn pattern_in(expr: &Expr) -> Option<Pattern> {
    expr.find_expression(columns_call)
}

fn columns_call(expr: &Expr) -> Option<Pattern> {
    let Expr::Function(function) = expr else { return None };
    let name = function.name.to_string();
    let like = name.eq_ignore_ascii_case(COLUMNS_LIKE);
    if !like && !name.eq_ignore_ascii_case("columns") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => Some(Pattern::All),
        [FunctionArg::Unnamed(FunctionArgExpr::WildcardWithOptions(options))] => {
            Some(Pattern::Except(excluded(options)))
        }
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] => match &value.value {
            Value::SingleQuotedString(pattern) if like => Some(Pattern::Like(pattern.clone())),
            Value::SingleQuotedString(pattern) => Some(Pattern::Matching(pattern.clone())),
            _ => None,
        },
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(array)))] => {
            let names = array.elem.iter().filter_map(|name| match name {
                Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(name) => Some(name.clone()),
                    _ => None,
                },
                Expr::Identifier(name) => Some(meaning(name)),
                _ => None,
            });
            Some(Pattern::Names(names.collect()))
        }
        _ => None,
    }
}

/// SQL's LIKE over the whole name. A `%` that took too little takes one more, the last one first, so that the time is the
/// product of both lengths at most.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut of, mut again) = (0, 0, None);
    while at < name.len() {
        match pattern.get(of) {
            Some('%') => {
                again = Some((at, of));
                of += 1;
            }
            Some(wanted) if *wanted == '_' || name.get(at) == Some(wanted) => (at, of) = (at + 1, of + 1),
            _ => match again {
                Some((from, percent)) => {
                    again = Some((from + 1, percent));
                    (at, of) = (from + 1, percent + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(of).all(|rest| *rest == '%')
}

/// The regular expressions that people write for names of columns: `.`, `.*`, `^`, `$` and `|`; all else is itself.
fn matches_regular(name: &str, pattern: &str) -> bool {
    pattern.split('|').any(|one| {
        let (start, one) = (one.starts_with('^'), one.trim_start_matches('^'));
        let (end, one) = (one.ends_with('$'), one.trim_end_matches('$'));
        let like = one.replace(".*", "\u{0}").replace('.', "_").replace('\u{0}', "%");
        let like = format!("{}{like}{}", if start { "" } else { "%" }, if end { "" } else { "%" });
        is_like(name, &like)
    })
}
