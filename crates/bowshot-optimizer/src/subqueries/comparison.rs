//! A comparison with the rows of a subquery.

use datafusion::arrow::datatypes::DataType;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr, lit, not};
use std::sync::Arc;

/// `value op ANY (query)`.
#[derive(Clone)]
pub(super) struct Comparison {
    pub(super) value: Expr,
    pub(super) op: Operator,
    pub(super) query: Arc<LogicalPlan>,
}

impl Comparison {
    fn kind(&self) -> Option<&DataType> {
        self.query.schema().fields().first().map(|field| field.data_type())
    }

    /// Whether it compares rows of several columns with one another.
    pub(super) fn of_rows(&self) -> bool {
        matches!(self.kind(), Some(DataType::Struct(_)))
    }

    /// The comparison with one value. Two rows are equal if all their columns are, unknown if none differs but one is NULL.
    pub(super) fn with(&self, other: Expr) -> Expr {
        match (self.kind(), self.op) {
            (Some(DataType::Struct(fields)), Operator::Eq | Operator::NotEq) => {
                let parts = fields.iter().map(|field| {
                    let name = field.name().as_str();
                    get_field(self.value.clone(), name).eq(get_field(other.clone(), name))
                });
                let equal = conjunction(parts.collect::<Vec<_>>()).unwrap_or_else(|| lit(true));
                if self.op == Operator::Eq { equal } else { not(equal) }
            }
            _ => binary_expr(self.value.clone(), self.op, other),
        }
    }

    /// Whether a few figures about the rows of the subquery tell the answer.
    pub(super) fn summed_up(&self) -> bool {
        let ordering = matches!(
            self.op,
            Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
        );
        !self.of_rows() && (self.op == Operator::Eq || (ordering && self.kind().is_some_and(orderable)))
    }
}

/// Whether values of a type have a least and a greatest one.
fn orderable(kind: &DataType) -> bool {
    kind.is_numeric()
        || kind.is_string()
        || matches!(
            kind,
            DataType::Boolean
                | DataType::Null
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(_, _)
                | DataType::Time32(_)
                | DataType::Time64(_)
        )
}
