//! A first look at a plan: the joins of which tables it has. It takes microseconds, and rules most plans out.

use super::substitute::address;
use crate::cache::identity_digest;
use crate::keys;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use std::collections::HashMap;

/// The nodes that are, with all below them, of the kinds that a cached join is made of, by their addresses: a digest of
/// the tables that each joins, as that of [`JoinShape::digest`](crate::cache::JoinShape::digest).
pub(super) fn parts(plan: &LogicalPlan) -> HashMap<usize, u64> {
    let (mut nodes, mut at) = (vec![plan], 0);
    while let Some(node) = nodes.get(at) {
        nodes.extend(node.inputs());
        at += 1;
    }
    let mut parts: HashMap<usize, u64> = HashMap::new();
    // Inputs come before what they are inputs of.
    for node in nodes.into_iter().rev() {
        let tables = match node {
            LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)
                .ok()
                .and_then(|provider| keys::identity(&provider))
                .map(|identity| identity_digest(&identity)),
            LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_) => {
                let inputs = node.inputs().into_iter().map(|input| parts.get(&address(input)).copied());
                inputs.reduce(|one, other| Some(one?.wrapping_add(other?))).flatten()
            }
            _ => None,
        };
        if let Some(tables) = tables {
            parts.insert(address(node), tables);
        }
    }
    parts
}
