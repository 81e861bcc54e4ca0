//! Parameter metadata: what the parameters of a statement are beyond their Arrow types, as the columns of a result have it. A text
//! that is compared with a UUID is one, and drivers that encode parameters by their types send it so.

use crate::authorize::{Action, AuthorizedPlan};
use crate::plan::parameter_types::QUANTIFIED;
use crate::write::{Affected, Write};
use bowshot_tables::Entry;
use bowshot_types::result_metadata::{InputColumns, Kind, is_text, marked};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Between, InList, Placeholder};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use std::collections::HashMap;
use std::sync::Arc;

/// Operators whose sides have one type.
const COMPARING: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// What the parameters of a statement are: `None` for those about which it says several things.
type Wanted = HashMap<String, Option<Kind>>;

/// The parameters of a statement as clients are described of them.
pub(crate) fn parameters(plan: &AuthorizedPlan) -> SchemaRef {
    let (planned, schema) = (plan.planned().form(), plan.planned().parameters());
    let may_be_marked = |data_type: &DataType| match data_type {
        DataType::List(item) => is_text(item.data_type()),
        other => is_text(other),
    };
    if !schema.fields().iter().any(|field| may_be_marked(field.data_type())) {
        return Arc::clone(schema);
    }
    let mut wanted = Wanted::new();
    // No node fails.
    _ = planned.apply_with_subqueries(|node| {
        of_node(node, &mut wanted);
        Ok(TreeNodeRecursion::Continue)
    });
    if let Action::Write(change) = plan.action()
        && let Write::Insert(Affected { name, .. }) | Write::Overwrite(name) = change.write.as_ref()
        && let Some(Entry::Table(table)) = plan.pinned().entry(name)
    {
        for (at, column) in table.definition().columns.iter().enumerate() {
            if let Some(kind) = Kind::of(&column.field) {
                given(planned, at, kind, &mut wanted);
            }
        }
    }
    let kinds = schema.fields().iter().map(|field| wanted.get(field.name()).copied().flatten());
    marked(schema, &kinds.collect::<Vec<_>>())
}

fn note(expr: &Expr, kind: Option<Kind>, wanted: &mut Wanted) {
    // Texts are compared as such, whatever PostgreSQL calls a column of them.
    let kind = kind.filter(|kind| *kind != Kind::Varchar);
    let (Expr::Placeholder(Placeholder { id, .. }), Some(kind)) = (expr, kind) else { return };
    let there = wanted.entry(id.clone()).or_insert(Some(kind));
    if *there != Some(kind) {
        *there = None;
    }
}

/// What is compared with such a column, is cast to such a type, or was planned as one.
fn of_node(node: &LogicalPlan, wanted: &mut Wanted) {
    let mut seen = None;
    let inputs = node.inputs();
    let only = if let [only] = inputs.as_slice() { Some(*only) } else { None };
    let mut compared = |value: &Expr, with: &Expr, wanted: &mut Wanted| {
        if let (Expr::Placeholder(_), Some(input)) = (with, only) {
            let described = seen.get_or_insert_with(|| InputColumns::by(input, 0)).of(value);
            note(with, described.and_then(|described| described.kind()), wanted);
        }
    };
    // No expression fails.
    _ = node.apply_expressions(|expr| {
        expr.apply(|expr| {
            match expr {
                Expr::BinaryExpr(BinaryExpr { left, op, right }) if COMPARING.contains(op) => {
                    compared(left, right, wanted);
                    compared(right, left, wanted);
                }
                Expr::InList(InList { expr, list, .. }) => {
                    list.iter().for_each(|with| compared(expr, with, wanted));
                }
                Expr::Between(Between { expr, low, high, .. }) => {
                    compared(expr, low, wanted);
                    compared(expr, high, wanted);
                }
                // `a = ANY ($1)` wants a list of what `a` is.
                Expr::ScalarFunction(call) if QUANTIFIED.contains(&call.name()) => {
                    if let [_, value, list] = call.args.as_slice() {
                        compared(value, list, wanted);
                    }
                }
                Expr::Cast(cast) => note(&cast.expr, Kind::of(&cast.field), wanted),
                Expr::Placeholder(Placeholder { field: Some(field), .. }) => {
                    note(expr, Kind::of(field), wanted);
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })
    });
}

/// The parameters that one column of the rows of an INSERT is given.
fn given(rows: &LogicalPlan, at: usize, kind: Kind, wanted: &mut Wanted) {
    match rows {
        LogicalPlan::Projection(projection) => match projection.expr.get(at).map(bare) {
            Some(Expr::Column(column)) => {
                if let Some(at) = projection.input.schema().maybe_index_of_column(column) {
                    given(&projection.input, at, kind, wanted);
                }
            }
            Some(expr) => note(expr, Some(kind), wanted),
            None => {}
        },
        LogicalPlan::Values(values) => {
            let column = values.values.iter().filter_map(|row| row.get(at));
            column.for_each(|value| note(bare(value), Some(kind), wanted));
        }
        LogicalPlan::SubqueryAlias(alias) => given(&alias.input, at, kind, wanted),
        LogicalPlan::Union(union) => {
            union.inputs.iter().for_each(|input| given(input, at, kind, wanted));
        }
        _ => {}
    }
}

/// The expression below its name and what makes the type of the column of it.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        Expr::Cast(cast) => bare(&cast.expr),
        Expr::TryCast(cast) => bare(&cast.expr),
        Expr::ScalarFunction(call) if call.name().starts_with("cast_as_") => {
            if let [value] = call.args.as_slice() { bare(value) } else { expr }
        }
        _ => expr,
    }
}
