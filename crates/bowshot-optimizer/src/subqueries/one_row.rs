//! `__one_row(value, rows)`: the value of a subquery, if there is not more than one row of it.

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

static ONE_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(OneRow::new())));

/// The value, or an error where it is out of several rows.
pub(super) fn one_row(value: Expr, rows: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&ONE_ROW), vec![value, rows]))
}

/// The function, for who finds it by its name.
pub fn function() -> &'static Arc<ScalarUDF> {
    &ONE_ROW
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneRow {
    signature: Signature,
}

impl OneRow {
    fn new() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for OneRow {
    fn name(&self) -> &str {
        "__one_row"
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            _ => internal_err!("__one_row takes a value and a number of rows"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Ok([value, rows]) = <[ColumnarValue; 2]>::try_from(arguments.args) else {
            return internal_err!("__one_row takes a value and a number of rows");
        };
        let rows = rows.into_array(arguments.number_rows)?;
        let most = compute::max(rows.as_primitive::<Int64Type>());
        if most.is_some_and(|most| most > 1) {
            return exec_err!("more than one row returned by a subquery used as an expression");
        }
        Ok(value)
    }
}
