//! `max(a::TEXT), max(a::DOUBLE)`, `GROUP BY a::INT, a::DOUBLE`. The planner leaves casts out of the names of what it computes,
//! so that two groups, aggregates or windows that differ by a cast alone would be one. What is cast gets a function around it
//! that says to what, and is taken away again before anything is computed.

use crate::template;
use crate::walk::Tree;
use bowshot_api::Result;
use sqlparser::ast::{
    CastKind, DataType, Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, SetOperator, UnaryOperator,
    Value, Visitor,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// The function, of a value and the name of a type; it gives the value.
pub const CAST_TO: &str = "__cast_to";

pub(super) fn tell_apart(statement: &mut impl Tree) -> Result<()> {
    if !statement.has_expression(|expr| matches!(expr, Expr::Cast { .. })) {
        return Ok(());
    }
    statement.try_change_queries(in_recursion)?;
    statement.try_change_queries(in_query)
}

fn in_query(query: &mut Query) -> Result<()> {
    type_columns(query);
    let mut found = Casts::default();
    let _ = query.look(&mut found);
    let alike = found.alike();
    if alike.is_empty() {
        return Ok(());
    }
    query.try_change_expressions(|expr| match cast(expr) {
        Some((inner, _)) if alike.contains(&inner.to_string()) => tell(expr),
        _ => Ok(()),
    })
}

/// `VALUES ('{}'::jsonb), ('[]')`, `VALUES (x::float8), (2.5)`: what is written out has the type of the row which tells one, as
/// PostgreSQL has it. The planner wants the types that are texts to it in all rows, and makes decimals of both numbers.
fn type_columns(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        let told = values.rows.iter().find_map(|row| match row.content.get(column) {
            Some(Expr::Cast { data_type, .. }) if tells(data_type) => Some(data_type),
            _ => None,
        });
        let Some(to) = told.cloned() else { continue };
        let double = is_double(&to);
        for value in values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
            if is_untyped(value) || double && is_number(value) {
                *value = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(value.clone()),
                    data_type: to.clone(),
                    array: false,
                    format: None,
                };
            }
        }
    }
}

/// Types that are texts with a mark, as enumerated ones are too, and those that only texts of their own are read as.
fn tells(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::JSON | DataType::JSONB | DataType::Uuid | DataType::Custom(..) | DataType::Array(_)
    ) || is_double(data_type)
}

fn is_double(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float64
    )
}

fn is_untyped(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(
        value.value,
        Value::SingleQuotedString(_) | Value::Null | Value::Placeholder(_)
    ))
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_number(expr),
        _ => false,
    }
}

/// Casts of the columns that a recursion gives: the planner casts these by itself, and may not do so silently.
fn in_recursion(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return Ok(()) };
    for table in &mut with.cte_tables {
        if let SetExpr::SetOperation { op: SetOperator::Union, right, .. } = table.query.body.as_mut() {
            told_of(right)?;
        }
    }
    Ok(())
}

fn told_of(term: &mut SetExpr) -> Result<()> {
    let SetExpr::Select(select) = term else { return Ok(()) };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            tell(expr)?;
        }
    }
    Ok(())
}

/// Puts the function around what is cast.
fn tell(expr: &mut Expr) -> Result<()> {
    let Some((inner, to)) = cast(expr) else { return Ok(()) };
    let to = Expr::value(Value::SingleQuotedString(to));
    let told = template::expression(&format!("{CAST_TO}(x, t)"), &[("x", inner), ("t", &to)])?;
    if let Expr::Cast { expr: inner, .. } = expr {
        **inner = told;
    }
    Ok(())
}

/// What is cast in a query, to which types, and whether some of it is grouped by or an argument of a function.
#[derive(Default)]
struct Casts {
    types: HashMap<String, HashSet<String>>,
    /// What is there without a cast, if it is a name.
    bare: HashMap<String, usize>,
    cast: HashMap<String, usize>,
    named: bool,
}

impl Casts {
    fn alike(self) -> HashSet<String> {
        if !self.named {
            return HashSet::new();
        }
        let Self { types, bare, cast, .. } = self;
        let is_alike = |inner: &String, to: &HashSet<String>| {
            let elsewhere = bare.get(inner).copied().unwrap_or(0) > cast.get(inner).copied().unwrap_or(0);
            to.len() > 1 || elsewhere
        };
        types.iter().filter(|(inner, to)| is_alike(inner, to)).map(|(inner, _)| inner.clone()).collect()
    }

    fn note(&mut self, expr: &Expr) {
        if let Expr::Identifier(_) | Expr::CompoundIdentifier(_) = expr {
            *self.bare.entry(expr.to_string()).or_default() += 1;
        }
        if let Some((inner, to)) = cast(expr) {
            let inner = inner.to_string();
            *self.cast.entry(inner.clone()).or_default() += 1;
            self.types.entry(inner).or_default().insert(to);
        }
    }
}

impl Visitor for Casts {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.named |= matches!(expr, Expr::Function(_));
        self.note(expr);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.named |= match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
        };
        ControlFlow::Continue(())
    }
}

/// What is cast, and to what; `None` for what else there is, and for values that a client sends, whose types casts tell.
fn cast(expr: &Expr) -> Option<(&Expr, String)> {
    let Expr::Cast { expr: inner, data_type, .. } = expr else { return None };
    let of_client = inner.has_expression(
        |part| matches!(part, Expr::Value(value) if matches!(value.value, Value::Placeholder(_))),
    );
    (!of_client).then(|| (inner.as_ref(), data_type.to_string()))
}
