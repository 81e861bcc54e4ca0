//! Functions by their names, where the name says everything.

use super::stays;
use crate::rules;
use crate::types::zone;
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use std::collections::HashMap;
use std::sync::Arc;

/// In the place of a name that is found among the session's functions: one that rules put into plans.
const OF_RULES: u8 = 1;
/// `min` and `max` of floating-point numbers in order.
const LEAST: u8 = 2;
const GREATEST: u8 = 3;

/// The functions of a session.
#[derive(Debug)]
pub(super) struct Functions {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    higher_order: HashMap<String, Arc<HigherOrderUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
    window: HashMap<String, Arc<WindowUDF>>,
}

impl Functions {
    pub(super) fn of(context: &TaskContext) -> Self {
        Self {
            scalar: context.scalar_functions().clone(),
            higher_order: context.higher_order_functions().clone(),
            aggregate: context.aggregate_functions().clone(),
            window: context.window_functions().clone(),
        }
    }

    /// Writes what there is to say of a function beside its name, which is nothing for those of the session.
    pub(super) fn write_scalar(&self, function: &ScalarUDF, into: &mut Vec<u8>) -> Result<()> {
        if self.scalar.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            return Ok(());
        }
        if of_rules(function.name()).is_some_and(|own| own.as_ref() == function) {
            into.push(OF_RULES);
            return Ok(());
        }
        Err(stays(format!("the function `{}`", function.name())))
    }

    /// The function that was written with these bytes.
    pub(super) fn read_scalar(name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        match (bytes, of_rules(name)) {
            ([OF_RULES], Some(function)) => Ok(function),
            _ => internal_err!("no function `{name}` is put into plans by rules"),
        }
    }

    pub(super) fn write_aggregate(&self, function: &AggregateUDF, into: &mut Vec<u8>) -> Result<()> {
        if self.aggregate.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            return Ok(());
        }
        match rules::extreme(function) {
            Some(greatest) => into.push(if greatest { GREATEST } else { LEAST }),
            None => return Err(stays(format!("the aggregate `{}`", function.name()))),
        }
        Ok(())
    }

    pub(super) fn read_aggregate(name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        match bytes {
            [LEAST] => Ok(rules::extreme_of(false)),
            [GREATEST] => Ok(rules::extreme_of(true)),
            _ => internal_err!("no aggregate `{name}` is put into plans by rules"),
        }
    }

    pub(super) fn check_window(&self, function: &WindowUDF) -> Result<()> {
        match self.window.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            true => Ok(()),
            false => Err(stays(format!("the window function `{}`", function.name()))),
        }
    }

    pub(super) fn check_higher_order(&self, function: &HigherOrderUDF) -> Result<()> {
        match self.higher_order.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            true => Ok(()),
            false => Err(stays(format!("the function `{}`", function.name()))),
        }
    }
}

fn of_rules(name: &str) -> Option<Arc<ScalarUDF>> {
    let one_row = rules::one_row_function();
    if one_row.name() == name {
        return Some(Arc::clone(one_row));
    }
    let zone = zone::at_time_zone();
    (zone.name() == name).then(|| Arc::new(zone))
}
