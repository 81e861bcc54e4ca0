//! Fields of structs read straight from Parquet: the format has no values below a NULL, and DataFusion reads a single field only
//! where its own function asks for it.

use super::function::NullsFirst;
use crate::node_rule::{Replacement, change_projection};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use std::sync::Arc;

/// Must run before the rules that push projections into files.
pub(crate) fn fields_in_files(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    Ok(node.downcast_ref::<ProjectionExec>().map(above_file).transpose()?.flatten())
}

fn above_file(projection: &ProjectionExec) -> Replacement {
    let file = projection.input().downcast_ref::<DataSourceExec>();
    if file.and_then(DataSourceExec::downcast_to_file_source::<ParquetSource>).is_none() {
        return Ok(None);
    }
    let changed = change_projection(projection, |expr, _| {
        expr.transform_up(|part| {
            Ok(stock(&part).map_or_else(|| Transformed::no(part), |stock| Transformed::yes(stock as _)))
        })
    })?;
    Ok(changed.map(|new| Arc::new(new) as Arc<_>))
}

/// DataFusion's function of a column and of all steps from it, if that is what is asked for.
fn stock(expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<ScalarFunctionExpr>> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let function =
        call.fun().inner().downcast_ref::<NullsFirst>().filter(|function| function.gives_field())?;
    let (of, names) = call.args().split_first()?;
    let mut args = match of.downcast_ref::<ScalarFunctionExpr>() {
        Some(inner) if inner.fun() == function.stock().as_ref() => inner.args().to_vec(),
        _ if of.downcast_ref::<Column>().is_some() => vec![Arc::clone(of)],
        _ => return None,
    };
    args.extend(names.iter().map(Arc::clone));
    let field =
        Arc::new(call.return_field(&datafusion::arrow::datatypes::Schema::empty()).ok()?.as_ref().clone());
    let options = Arc::new(call.config_options().clone());
    Some(Arc::new(ScalarFunctionExpr::new(call.name(), Arc::clone(function.stock()), args, field, options)))
}
