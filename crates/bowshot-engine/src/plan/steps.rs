//! The plans of one statement whose WITH changes rows, as one plan: its parameters are bound and its nodes are checked together. It is
//! taken apart before it runs.

use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use std::fmt;
use std::sync::Arc;

/// The plans of one statement whose WITH changes rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct Steps {
    before: Vec<LogicalPlan>,
    last: LogicalPlan,
}

impl Steps {
    /// The plans as one.
    pub(crate) fn plan(before: Vec<LogicalPlan>, last: LogicalPlan) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Self { before, last }) })
    }

    /// The plans in the order in which they run; none of any other plan.
    pub(crate) fn of(plan: &LogicalPlan) -> Vec<&LogicalPlan> {
        match plan {
            LogicalPlan::Extension(extension) if extension.node.as_any().is::<Self>() => {
                extension.node.inputs()
            }
            _ => Vec::new(),
        }
    }
}

impl UserDefinedLogicalNodeCore for Steps {
    fn name(&self) -> &'static str {
        "Steps"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.before.iter().chain(std::iter::once(&self.last)).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        self.last.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps")
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match inputs.pop() {
            Some(last) => Ok(Self { before: inputs, last }),
            None => internal_err!("a statement has at least one step"),
        }
    }
}
