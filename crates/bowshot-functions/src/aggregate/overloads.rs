//! Names that mean different aggregates by their arguments.

use super::{arg_min_max, quantiles};
use crate::define::{Body, Function};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr};
use datafusion::logical_expr::{AggregateUDF, Expr};
use std::sync::Arc;

/// `max(x, n)`, `arg_max(x, y, n)`, `percentile_cont` of a list of fractions.
#[derive(Debug)]
pub(crate) struct AggregateForms;

impl ExprPlanner for AggregateForms {
    fn plan_aggregate(&self, call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let name = match (call.func.name(), call.args.as_slice()) {
            ("max", [_, _]) => "max_n",
            ("min", [_, _]) => "min_n",
            ("arg_max", [_, _, _]) => "arg_max_n",
            ("arg_min", [_, _, _]) => "arg_min_n",
            ("percentile_cont", [_, fractions]) if is_list(fractions) => "quantile_cont",
            _ => return Ok(PlannerResult::Original(call)),
        };
        // The next planner may know the function, too: it gets the call as it is now.
        Ok(PlannerResult::Original(RawAggregateExpr {
            func: named(name).unwrap_or_else(|| Arc::clone(&call.func)),
            ..call
        }))
    }
}

fn is_list(argument: &Expr) -> bool {
    match argument {
        Expr::Literal(ScalarValue::List(_), _) => true,
        Expr::ScalarFunction(call) => call.func.name() == "make_array",
        Expr::Cast(cast) => is_list(&cast.expr),
        _ => false,
    }
}

fn named(name: &str) -> Option<Arc<AggregateUDF>> {
    let mut functions = arg_min_max::FUNCTIONS.iter().chain(quantiles::FUNCTIONS);
    functions.find_map(|function: &Function| match function.body {
        Body::Aggregate(make) if function.name == name => Some(make()),
        _ => None,
    })
}
