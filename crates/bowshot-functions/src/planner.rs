//! Syntax that stands for functions: EXTRACT, operators on JSON, and aggregates that one name has several of.

use crate::aggregate::AggregateForms;
use crate::date::date_part;
use crate::json::JsonOperators;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use std::sync::Arc;

/// What must be asked before DataFusion's own planners.
pub fn planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(OwnFunctions), Arc::new(JsonOperators), Arc::new(AggregateForms)]
}

#[derive(Debug)]
struct OwnFunctions;

impl ExprPlanner for OwnFunctions {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(date_part().call(args)))
    }
}
