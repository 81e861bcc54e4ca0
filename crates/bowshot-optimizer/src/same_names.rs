//! Filters are matched by column name on their way down. Where two columns have one name, as in `a JOIN b`, a filter on one ends up
//! on the other and rows are lost; likewise where a semi join passes a filter on a key to its other side and another column there
//! has that name. Such operators are hidden while filters are pushed down.

use super::barrier::{Barrier, with_barriers};
use super::node_rule::Rule;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use std::collections::HashSet;
use std::sync::Arc;

/// The rules that push conditions down; the second one those that are known while the plan runs.
const PUSHDOWNS: [&str; 2] = ["FilterPushdown", "FilterPushdown(Post)"];

/// The rules of DataFusion's physical optimiser, in its order; those that push conditions down are kept from operators with two
/// columns of one name.
pub(super) fn physical() -> Vec<Rule> {
    with_barriers(PhysicalOptimizer::new().rules, &PUSHDOWNS, between_names)
}

fn between_names(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    Ok(if has_same_names(node.as_ref()) || leads_astray(node.as_ref()) {
        Transformed::yes(Barrier::before(node))
    } else {
        Transformed::no(node)
    })
}

fn has_same_names(node: &dyn ExecutionPlan) -> bool {
    let schema = node.schema();
    let mut names = HashSet::with_capacity(schema.fields().len());
    !schema.fields().iter().all(|field| names.insert(field.name().as_str()))
}

/// Whether a semi join has a key whose name is that of a column of the other side which is not the key's partner.
fn leads_astray(node: &dyn ExecutionPlan) -> bool {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else { return false };
    let (from_left, other) = match join.join_type() {
        JoinType::LeftSemi => (true, join.right().schema()),
        JoinType::RightSemi => (false, join.left().schema()),
        _ => return false,
    };
    let pairs: Vec<(Option<&Column>, Option<&Column>)> = join
        .on()
        .iter()
        .map(|(left, right)| if from_left { (left, right) } else { (right, left) })
        .map(|(key, partner)| (key.downcast_ref(), partner.downcast_ref()))
        .collect();
    let keys = pairs.iter().filter_map(|(key, _)| *key);
    let mut misled = keys.filter(|key| {
        let Ok(namesake) = other.index_of(key.name()) else { return false };
        let partners = pairs.iter().filter(|(of, _)| *of == Some(*key)).filter_map(|(_, partner)| *partner);
        !partners.into_iter().any(|partner| partner.index() == namesake)
    });
    misled.next().is_some()
}
