//! Aggregates of a query that stand in a subquery of it: `… GROUP BY g HAVING EXISTS (SELECT 1 FROM b WHERE b.y > max(a.x))`.
//!
//! An aggregate whose columns are all those of a query around belongs to that query, which the planner does not know. So the
//! groups become a table of their own, with their keys and aggregates as columns, and what was said of them is said of it.
//! Columns without a table could be anyone's, so that an aggregate of them stays where it is.

use super::scopes::{Known, dotted, tables};
use crate::template::{self, meaning, quoted};
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins, Value, Visitor, VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The names of the aggregates.
const AGGREGATES: &[&str] = bowshot_api::words! {
    any_value approx_count_distinct approx_distinct approx_median approx_percentile approx_percentile_cont
    approx_quantile arbitrary arg_max arg_max_n arg_min arg_min_n argmax argmin array_agg array_unique_agg
    avg avg_if bit_and bit_or bit_xor bool_and bool_or bool_xor collect_list collect_set corr count
    count_if countif covar_pop covar_samp entropy every favg first first_value fsum geomean geometric_mean
    group_array group_concat histogram hll json_agg json_array_agg json_arrayagg json_group_array
    json_group_object json_object_agg json_objectagg jsonb_agg jsonb_object_agg kahan_sum kurtosis
    kurtosis_pop last last_value list listagg logical_and logical_or mad map_agg max max_by max_if max_n
    mean median min min_by min_if min_n mode ndv nth_value percentile percentile_approx percentile_cont
    percentile_disc product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness std stddev stddev_pop
    stddev_samp string_agg sum sum_if sumif sumkahan uniq var var_pop var_samp variance
};

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    let mut lift = Lift(0);
    statement.try_change_queries(|query| {
        let mut none = Vec::new();
        let order = match query.order_by.as_mut().map(|order| &mut order.kind) {
            Some(OrderByKind::Expressions(keys)) => keys,
            _ => &mut none,
        };
        lift.body(&mut query.body, order)
    })
}

/// How many queries have been changed.
struct Lift(usize);

impl Lift {
    fn body(&mut self, body: &mut SetExpr, order: &mut [OrderByExpr]) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select, order),
            // Its ORDER BY knows the columns of the result alone.
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, &mut [])?;
                self.body(right, &mut [])
            }
            _ => Ok(()),
        }
    }

    fn select(&mut self, select: &mut Select, order: &mut [OrderByExpr]) -> Result<()> {
        if !has_outer_aggregate(select, order) || select.projection.iter().any(is_wildcard) {
            return Ok(());
        }
        let Some(keys) = keys(select) else { return Ok(()) };
        self.0 += 1;
        let groups = quoted(&format!("__groups_{}", self.0));
        let mut inner = select.clone();
        let levels = Levels(vec![tables(&select.from)]);
        let mut lifting = Lifting { levels, groups: groups.clone(), keys, aggregates: Vec::new() };
        lifting.in_query(select, order);
        inner.projection = lifting.columns();
        inner.group_by =
            GroupByExpr::Expressions(lifting.keys.into_iter().map(|key| key.expr).collect(), Vec::new());
        (inner.distinct, inner.having, inner.qualify) = (None, None, None);
        inner.named_window.clear();
        // Else this would not end.
        if has_outer_aggregate(&inner, &[]) {
            return Err(Error::invalid("an aggregate stands within another one of the same query")
                .with_hint("compute the inner one in a subquery in FROM"));
        }
        let mut query = template::query("SELECT 1", &[])?;
        *query.body = SetExpr::Select(Box::new(inner));
        let alias = TableAlias { explicit: true, name: groups, columns: Vec::new(), at: None };
        let relation =
            TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
        select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
        select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
        select.selection = select.having.take();
        Ok(())
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

fn has_outer_aggregate(select: &Select, order: &[OrderByExpr]) -> bool {
    let mut find = Find(Levels(vec![tables(&select.from)]));
    select.projection.iter().any(|item| item.look(&mut find).is_break())
        || select.having.look(&mut find).is_break()
        || select.qualify.look(&mut find).is_break()
        || order.iter().any(|key| key.look(&mut find).is_break())
}

/// The tables of the query in question, and of the queries inside of it down to a place.
struct Levels(Vec<Vec<Known>>);

impl Levels {
    fn enter(&mut self, query: &Query) {
        // ORDER BY belongs to the query, and sees the tables of its SELECT.
        self.0.push(match query.body.as_ref() {
            SetExpr::Select(select) => tables(&select.from),
            _ => Vec::new(),
        });
    }

    fn is_inside(&self) -> bool {
        self.0.len() > 1
    }

    /// The innermost query that has the table of a name; 0 is the query in question.
    fn of(&self, names: &[Ident]) -> Option<usize> {
        let names: Vec<String> = names.iter().map(meaning).collect();
        let names_one = |known: &Known| {
            (1..names.len().min(4)).any(|end| known.parts.ends_with(names.get(..end).unwrap_or_default()))
        };
        self.0.iter().rposition(|tables| tables.iter().any(names_one))
    }

    /// Whether an aggregate inside belongs to the query in question.
    fn owns(&self, aggregate: &Expr) -> bool {
        let mut some = false;
        let others = aggregate.has_expression(|expr| match dotted(expr) {
            Some((names, _)) if self.of(&names) == Some(0) => {
                some = true;
                false
            }
            column => column.is_some() || matches!(expr, Expr::Identifier(_)),
        });
        some && !others
    }
}

/// Breaks at an aggregate of the query in question that stands inside of another one.
struct Find(Levels);

impl Visitor for Find {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.0.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.0.0.push(tables(&select.from));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.0.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let outer = self.0.is_inside() && is_aggregate(expr) && self.0.owns(expr);
        if outer { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Whether it is a call of an aggregate, and not over a window.
pub(crate) fn is_aggregate(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let named = match function.name.0.as_slice() {
        [part] => part.as_ident().map(meaning),
        _ => None,
    };
    let known = named.is_some_and(|name| AGGREGATES.binary_search(&name.as_str()).is_ok());
    function.over.is_none() && (known || !function.within_group.is_empty())
}

/// One of the expressions that a query groups by.
struct GroupKey {
    expr: Expr,
    /// What its column is called.
    name: String,
}

/// `None` for groups that are more than their keys.
fn keys(select: &Select) -> Option<Vec<GroupKey>> {
    let GroupByExpr::Expressions(exprs, modifiers) = &select.group_by else { return None };
    if !modifiers.is_empty() {
        return None;
    }
    let mut keys: Vec<GroupKey> = Vec::with_capacity(exprs.len());
    for expr in exprs {
        let expr = meant(expr, &select.projection)?;
        let name = names(&expr).and_then(|names| names.last().map(meaning));
        let name = name.filter(|name| !keys.iter().any(|key| key.name == *name));
        let name = name.unwrap_or_else(|| format!("__key_{}", keys.len()));
        keys.push(GroupKey { expr, name });
    }
    Some(keys)
}

/// A key itself where it is written as the number or the name of a column of the result.
fn meant(key: &Expr, items: &[SelectItem]) -> Option<Expr> {
    match key {
        Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) | Expr::Tuple(_) => None,
        Expr::Value(value) => {
            let Value::Number(number, _) = &value.value else { return Some(key.clone()) };
            let at = number.to_string().parse::<usize>().ok()?.checked_sub(1)?;
            match items.get(at)? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
                _ => None,
            }
        }
        Expr::Identifier(name) => {
            let named = |item: &SelectItem| match item {
                SelectItem::ExprWithAlias { expr, alias } if meaning(alias) == meaning(name) => {
                    names(expr).is_none().then(|| expr.clone())
                }
                _ => None,
            };
            Some(items.iter().find_map(named).unwrap_or_else(|| key.clone()))
        }
        _ => Some(key.clone()),
    }
}

/// The names of a column.
fn names(expr: &Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::Identifier(name) => Some(vec![name.clone()]),
        Expr::CompoundIdentifier(names) => Some(names.clone()),
        _ => None,
    }
}

/// Puts columns of the groups in the place of keys and aggregates.
struct Lifting {
    levels: Levels,
    groups: Ident,
    keys: Vec<GroupKey>,
    aggregates: Vec<Expr>,
}

impl Lifting {
    fn in_query(&mut self, select: &mut Select, order: &mut [OrderByExpr]) {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(name) = names(expr).and_then(|names| names.last().map(meaning))
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(&name) };
            }
            let ControlFlow::Continue(()) = item.walk(self);
        }
        let ControlFlow::Continue(()) = select.having.walk(self);
        let ControlFlow::Continue(()) = select.qualify.walk(self);
        let of_result = |expr: &Expr| {
            let Expr::Identifier(name) = expr else { return false };
            let is_it = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if meaning(alias) == meaning(name));
            select.projection.iter().any(is_it)
        };
        for key in order.iter_mut().filter(|key| !of_result(&key.expr)) {
            let ControlFlow::Continue(()) = key.walk(self);
        }
    }

    /// The columns of the groups.
    fn columns(&self) -> Vec<SelectItem> {
        let column =
            |expr: &Expr, name: &str| SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(name) };
        let keys = self.keys.iter().map(|key| column(&key.expr, &key.name));
        let aggregates = self.aggregates.iter().enumerate().map(|(at, expr)| column(expr, &aggregate(at)));
        keys.chain(aggregates).collect()
    }

    /// The name of the column that an expression is, if it is one of the groups.
    fn column(&mut self, expr: &Expr) -> Option<String> {
        if is_aggregate(expr) && (!self.levels.is_inside() || self.levels.owns(expr)) {
            let known = self.aggregates.iter().position(|known| known.to_string() == expr.to_string());
            let at = known.unwrap_or_else(|| {
                self.aggregates.push(expr.clone());
                self.aggregates.len() - 1
            });
            return Some(aggregate(at));
        }
        self.keys.iter().find(|key| self.is_key(&key.expr, expr)).map(|key| key.name.clone())
    }

    fn is_key(&self, key: &Expr, expr: &Expr) -> bool {
        let inside = self.levels.is_inside();
        let (Some(key_names), Some(names)) = (names(key), names(expr)) else {
            return !inside && key.to_string() == expr.to_string();
        };
        let reversed = |names: &[Ident]| names.iter().rev().map(meaning).collect::<Vec<_>>();
        let same = reversed(&key_names).iter().zip(reversed(&names)).all(|(key, name)| *key == name);
        let ours = if names.len() > 1 { self.levels.of(&names) == Some(0) } else { !inside };
        same && ours
    }
}

fn aggregate(at: usize) -> String {
    format!("__aggregate_{at}")
}

impl VisitorMut for Lifting {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.levels.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.levels.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        self.levels.0.push(tables(&select.from));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Infallible> {
        self.levels.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(name) = self.column(expr) {
            *expr = Expr::CompoundIdentifier(vec![self.groups.clone(), quoted(&name)]);
        }
        ControlFlow::Continue(())
    }
}
