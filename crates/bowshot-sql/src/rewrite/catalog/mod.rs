//! What the clients of PostgreSQL say about its catalog: names with the schema `pg_catalog`, casts to `regclass` and its kind,
//! arrays as texts. All of it comes before the other changes, which know plain names alone.

mod arrays;
mod members;
mod objects;
mod operators;
mod tableoid;
mod tables;
mod types;
mod vectors;

pub use arrays::{elements as array_elements, parts as array_parts};

use crate::dialect::DialectName;
use crate::literal::text;
use crate::walk::{Tree, flow, replace};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, ObjectName, Query, Select, SelectItem,
    SetExpr, TableFactor, Value, VisitorMut,
};
use std::ops::ControlFlow;

pub(super) fn rewrite(statement: &mut impl Tree, dialect: DialectName) -> Result<()> {
    if dialect == DialectName::MySql {
        return Ok(());
    }
    statement.try_walk(&mut Catalog(dialect))
}

struct Catalog(DialectName);

impl VisitorMut for Catalog {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        members::first_term(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        tableoid::rewrite(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        vectors::places_in_from(factor);
        flow(tables::rewrite(factor, self.0))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        replace(expr, |expr| self.changed(expr))
    }
}

impl Catalog {
    fn changed(&self, expr: &mut Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::Function(function) => {
                unqualified(&mut function.name);
                let rows = tables::in_a_list(function);
                if let Some(places) = vectors::places(function) {
                    return Ok(Some(places));
                }
                if rows.is_some() { Ok(rows) } else { arrays::of_query(function) }
            }
            Expr::Cast { data_type, .. } => {
                types::rename(data_type);
                Ok(objects::cast(expr).or_else(|| arrays::cast(expr)))
            }
            Expr::BinaryOp { left, op, right } => {
                operators::named(op);
                objects::compared(left, op, right);
                arrays::compared(left, op, right);
                Ok(None)
            }
            Expr::InList { expr, list, .. } => {
                list.iter_mut().for_each(|item| objects::alike(expr, item));
                Ok(None)
            }
            // In MySQL and DuckDB a text behind ANY means something else, or nothing.
            Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right }
                if self.0 == DialectName::Postgres =>
            {
                operators::named(compare_op);
                arrays::quantified(left, right);
                Ok(None)
            }
            Expr::Case { conditions, .. } => {
                conditions.iter_mut().for_each(|when| without_such_types(&when.condition, &mut when.result));
                Ok(None)
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                vectors::subscript(root, access_chain);
                Ok(tables::field(root, access_chain).or_else(|| tables::letter(root, access_chain)))
            }
            _ => Ok(None),
        }
    }
}

/// There are no domains and no composite types, so what a client asks about one need not be planned: `CASE WHEN typtype = 'd'
/// THEN (WITH RECURSIVE …)` would be a recursion within a subquery, and asyncpg, which asks about types, knows arrays of texts but
/// not those of numbers before it has asked.
fn without_such_types(condition: &Expr, result: &mut Expr) {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return };
    let Expr::Subquery(query) = &*result else { return };
    if column(left).as_deref() != Some("typtype") {
        return;
    }
    let gathers = || matches!(query.body.as_ref(), SetExpr::Select(select) if gathers(&select.projection));
    let data_type = match text(right) {
        Some("d") if query.with.is_some() => DataType::BigInt(None),
        Some("c") if gathers() => {
            DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None))
        }
        _ => return,
    };
    *result = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::Null)),
        data_type,
        array: false,
        format: None,
    };
}

/// Whether all that is selected is an array of rows.
fn gathers(projection: &[SelectItem]) -> bool {
    let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] = projection else {
        return false;
    };
    matches!(expr, Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("array_agg"))
}

/// `pg_catalog.version` is `version`, in whose place a name of one part is expected.
fn unqualified(name: &mut ObjectName) {
    let schema = name.0.first().and_then(|part| part.as_ident());
    let is = |wanted: &str| schema.is_some_and(|schema| schema.value.eq_ignore_ascii_case(wanted));
    if name.0.len() == 2 && (is("pg_catalog") || is("information_schema")) {
        name.0.remove(0);
    }
}

/// The name of a column without that of its table, in lower case.
fn column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.to_ascii_lowercase()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.to_ascii_lowercase()),
        Expr::Nested(inner) => column(inner),
        _ => None,
    }
}
