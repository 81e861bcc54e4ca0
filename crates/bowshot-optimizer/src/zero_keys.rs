//! Joins on floating-point numbers treat both zeros as one key, but pass the keys of one side to the scan of the other as a list
//! that is searched by bits. Adding zero makes every zero positive.

use crate::node_rule::Replacement;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use std::sync::Arc;

/// Must run before the rules that distribute rows by keys.
pub(super) fn one_zero(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    Ok(node.downcast_ref::<HashJoinExec>().map(in_keys).transpose()?.flatten())
}

/// `None` for a join without such keys.
fn in_keys(join: &HashJoinExec) -> Replacement {
    let (left, right) = (join.left().schema(), join.right().schema());
    let mut changed = false;
    let mut on = Vec::with_capacity(join.on().len());
    for (one, other) in join.on() {
        changed |= one.data_type(&left)?.is_floating();
        on.push((with_one_zero(one, &left)?, with_one_zero(other, &right)?));
    }
    if changed { join.builder().with_on(on).build_exec().map(Some) } else { Ok(None) }
}

fn with_one_zero(key: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    let data_type = key.data_type(schema)?;
    if !data_type.is_floating() {
        return Ok(Arc::clone(key));
    }
    let zero = lit(ScalarValue::new_zero(&data_type)?);
    Ok(Arc::new(BinaryExpr::new(Arc::clone(key), Operator::Plus, zero)))
}
