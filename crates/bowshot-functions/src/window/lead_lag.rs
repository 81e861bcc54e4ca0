//! `lead` and `lag`, with IGNORE NULLS computed over the whole partition.
//!
//! DataFusion computes them row by row where it can, and then gives rows that are too near when NULLs follow; over the whole
//! partition it does not.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, ReversedUDWF, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shift {
    of: Arc<WindowUDF>,
    back: bool,
}

pub(super) fn lag() -> Arc<WindowUDF> {
    Arc::new(WindowUDF::from(Shift { of: lag_udwf(), back: true }))
}

pub(super) fn lead() -> Arc<WindowUDF> {
    Arc::new(WindowUDF::from(Shift { of: lead_udwf(), back: false }))
}

impl WindowUDFImpl for Shift {
    crate::stock_methods!(of: name, signature, coerce_types);

    bowshot_api::delegate! { of:
        fn expressions(&self, given: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>>;
        fn field(&self, given: WindowUDFFieldArgs<'_>) -> Result<FieldRef>;
    }

    fn partition_evaluator(&self, given: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores = given.ignore_nulls();
        let inner = self.of.inner().partition_evaluator(given)?;
        Ok(if ignores { Box::new(Whole { inner }) } else { inner })
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::Reversed(if self.back { lead() } else { lag() })
    }

    fn limit_effect(&self, given: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.of.inner().limit_effect(given)
    }
}

/// An evaluator that sees the whole partition.
#[derive(Debug)]
struct Whole {
    inner: Box<dyn PartitionEvaluator>,
}

impl PartitionEvaluator for Whole {
    bowshot_api::delegate! { inner:
        fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef>;
        fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue>;
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}
