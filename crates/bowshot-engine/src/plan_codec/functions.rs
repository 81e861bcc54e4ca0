//! Functions by name, where the name says everything.

use super::stays;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::{SessionStateDefaults, TaskContext};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, Volatility, WindowUDF};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// In the place of a name that is found among the session's functions: one that rules put into plans.
const OF_RULES: u8 = 1;
/// `min` and `max` of floating-point numbers in order.
const LEAST: u8 = 2;
const GREATEST: u8 = 3;
/// One of DataFusion's own that the session has another one in the place of, and DataFusion's planner still takes.
const BUILT_IN: u8 = 4;

static BUILT_IN_SCALAR: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let functions = SessionStateDefaults::default_scalar_functions();
    functions.into_iter().map(|function| (function.name().to_owned(), function)).collect()
});
static BUILT_IN_AGGREGATE: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
    let functions = SessionStateDefaults::default_aggregate_functions();
    functions.into_iter().map(|function| (function.name().to_owned(), function)).collect()
});
static BUILT_IN_WINDOW: LazyLock<HashMap<String, Arc<WindowUDF>>> = LazyLock::new(|| {
    let functions = SessionStateDefaults::default_window_functions();
    functions.into_iter().map(|function| (function.name().to_owned(), function)).collect()
});

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
        // Such as the next number of a table, which this node alone counts.
        if function.signature().volatility == Volatility::Volatile {
            return Err(stays(format!("the function `{}`", function.name())));
        }
        if self.scalar.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            return Ok(());
        }
        if of_rules(function.name()).is_some_and(|own| own.as_ref() == function) {
            into.push(OF_RULES);
            return Ok(());
        }
        if BUILT_IN_SCALAR.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            into.push(BUILT_IN);
            return Ok(());
        }
        Err(stays(format!("the function `{}`", function.name())))
    }

    /// The function that was written with these bytes.
    pub(super) fn read_scalar(name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        let function = match bytes {
            [OF_RULES] => of_rules(name),
            [BUILT_IN] => BUILT_IN_SCALAR.get(name).cloned(),
            _ => None,
        };
        function.ok_or_else(|| internal_datafusion_err!("there is no function `{name}`"))
    }

    pub(super) fn write_aggregate(&self, function: &AggregateUDF, into: &mut Vec<u8>) -> Result<()> {
        if self.aggregate.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            return Ok(());
        }
        if BUILT_IN_AGGREGATE.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            into.push(BUILT_IN);
            return Ok(());
        }
        match bowshot_optimizer::extreme(function) {
            Some(greatest) => into.push(if greatest { GREATEST } else { LEAST }),
            None => return Err(stays(format!("the aggregate `{}`", function.name()))),
        }
        Ok(())
    }

    pub(super) fn read_aggregate(name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        match bytes {
            [LEAST] => Ok(bowshot_optimizer::extreme_of(false)),
            [GREATEST] => Ok(bowshot_optimizer::extreme_of(true)),
            [BUILT_IN] if BUILT_IN_AGGREGATE.contains_key(name) => Ok(Arc::clone(&BUILT_IN_AGGREGATE[name])),
            _ => internal_err!("there is no aggregate `{name}`"),
        }
    }

    pub(super) fn write_window(&self, function: &WindowUDF, into: &mut Vec<u8>) -> Result<()> {
        if self.window.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            return Ok(());
        }
        if BUILT_IN_WINDOW.get(function.name()).is_some_and(|own| own.as_ref() == function) {
            into.push(BUILT_IN);
            return Ok(());
        }
        Err(stays(format!("the window function `{}`", function.name())))
    }

    pub(super) fn read_window(name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        match (bytes, BUILT_IN_WINDOW.get(name)) {
            ([BUILT_IN], Some(function)) => Ok(Arc::clone(function)),
            _ => internal_err!("there is no window function `{name}`"),
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
    let one_row = bowshot_optimizer::one_row_function();
    (one_row.name() == name).then(|| Arc::clone(one_row))
}
