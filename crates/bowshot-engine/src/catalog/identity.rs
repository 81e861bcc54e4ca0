//! The function that gives the next number of an identity column. Statements cannot name it: it stands where the column is
//! not named.

use bowshot_tables::{Identity, Numbering, TableStore};
use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ptr_eq::PtrEq;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use uuid::Uuid;

const NAME: &str = "__bowshot_next_number";

/// The SQL of the next number.
pub(crate) fn call(identity: &Identity, durable: bool) -> String {
    format!("{NAME}('{}', {}, {}, {durable})", identity.id, identity.start, identity.step)
}

/// Whether an expression gives the next number.
pub(crate) fn is_call(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.name() == NAME)
}

/// Whether a query numbers the rows that it gives.
pub(crate) fn numbers_rows(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = false;
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(is_call(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    })
    .unwrap_or(false)
}

/// How a column of a table is numbered.
pub(crate) fn numbering(identity: &Identity, durable: bool) -> Numbering {
    Numbering { id: identity.id, start: identity.start, step: identity.step, durable }
}

/// The next numbers for so many rows.
pub(crate) fn next(store: &TableStore, numbering: &Numbering, rows: usize) -> bowshot_api::Result<ArrayRef> {
    if rows == 0 {
        return Ok(Arc::new(Int64Array::from(Vec::<i64>::new())));
    }
    let first = store.next_numbers(numbering, rows)?;
    let numbers = (0_i64..).take(rows).map(|row| first.wrapping_add(row.wrapping_mul(numbering.step)));
    Ok(Arc::new(numbers.collect::<Int64Array>()))
}

/// The function over the counters of a store.
pub(crate) fn function(store: &Arc<TableStore>) -> ScalarUDF {
    ScalarUDF::new_from_impl(Next {
        store: Arc::clone(store).into(),
        signature: Signature::any(4, Volatility::Volatile),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Next {
    store: PtrEq<Arc<TableStore>>,
    signature: Signature,
}

impl ScalarUDFImpl for Next {
    fn name(&self) -> &str {
        NAME
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [
            ColumnarValue::Scalar(id),
            ColumnarValue::Scalar(ScalarValue::Int64(Some(start))),
            ColumnarValue::Scalar(ScalarValue::Int64(Some(step))),
            ColumnarValue::Scalar(ScalarValue::Boolean(Some(durable))),
        ] = arguments.args.as_slice()
        else {
            return exec_err!("a column is numbered by nothing");
        };
        let id = id.try_as_str().flatten().and_then(|id| Uuid::parse_str(id).ok());
        let Some(id) = id else { return exec_err!("a column is numbered by nothing") };
        let numbering = Numbering { id, start: *start, step: *step, durable: *durable };
        let numbers = next(&self.store, &numbering, arguments.number_rows);
        Ok(ColumnarValue::Array(numbers.map_err(|error| DataFusionError::External(Box::new(error)))?))
    }
}
