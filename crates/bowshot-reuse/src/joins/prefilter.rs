//! A first look at a plan: the joins of which tables it has, and what they compare. It takes microseconds, and rules most plans out.

use super::substitute::address;
use crate::cache::{ColumnNames, identity_digest};
use crate::keys;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::collections::HashMap;

/// What is known of a node and all below it at the first look.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JoinSide {
    /// A digest of the tables that it joins, whatever their versions.
    pub(super) tables: u64,
    /// Columns of these that its conditions may compare.
    pub(super) compared: ColumnNames,
}

/// The nodes that are, with all below them, of the kinds that a cached join is made of, by their addresses.
pub(super) fn parts(plan: &LogicalPlan) -> HashMap<usize, JoinSide> {
    let (mut nodes, mut at) = (vec![plan], 0);
    while let Some(node) = nodes.get(at) {
        nodes.extend(node.inputs());
        at += 1;
    }
    let mut parts: HashMap<usize, JoinSide> = HashMap::new();
    // Inputs come before what they are inputs of.
    for node in nodes.into_iter().rev() {
        let below = match node {
            LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)
                .ok()
                .and_then(|provider| keys::identity(&provider))
                .map(|identity| JoinSide { tables: identity_digest(&identity), ..JoinSide::default() }),
            LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_) => combined(node, &parts),
            _ => None,
        };
        if let Some(part) = below {
            parts.insert(address(node), JoinSide { compared: compared(node, part.compared), ..part });
        }
    }
    parts
}

/// What the inputs of a node have together.
fn combined(node: &LogicalPlan, parts: &HashMap<usize, JoinSide>) -> Option<JoinSide> {
    let inputs = node.inputs().into_iter().map(|input| parts.get(&address(input)).copied());
    let all = inputs.reduce(|one, other| {
        let (one, other) = (one?, other?);
        let tables = one.tables.wrapping_add(other.tables);
        Some(JoinSide { tables, compared: one.compared.with(other.compared) })
    });
    all.flatten()
}

/// The columns of tables that conditions of a node, or of others above it, may compare: names that it computes stand for
/// the columns that it computes them of.
fn compared(node: &LogicalPlan, below: ColumnNames) -> ColumnNames {
    let mut names = below;
    let mut add = |expr: &Expr| {
        // Cannot fail: the closure does not.
        let _ = expr.apply(|expr| {
            if let Expr::Column(column) = expr {
                names.add(&column.name);
            }
            Ok(TreeNodeRecursion::Continue)
        });
    };
    match node {
        LogicalPlan::TableScan(scan) => scan.filters.iter().for_each(add),
        LogicalPlan::Filter(filter) => add(&filter.predicate),
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().filter(|expr| !matches!(expr, Expr::Column(_))).for_each(add);
        }
        LogicalPlan::Join(join) => {
            join.on.iter().flat_map(|(left, right)| [left, right]).chain(&join.filter).for_each(add);
        }
        _ => {}
    }
    names
}
