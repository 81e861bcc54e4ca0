//! `user_attribute('name')` and `has_role('name')`: what policies ask about who asks.

use super::session_access::SessionAccess;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ptr_eq::PtrEq;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// The functions for one session.
pub fn user_attribute(gate: &Arc<SessionAccess>) -> [ScalarUDF; 2] {
    [("user_attribute", false), ("has_role", true)].map(|(name, role)| {
        let signature = Signature::exact(vec![DataType::Utf8], Volatility::Stable);
        ScalarUDF::new_from_impl(About { name, role, gate: Arc::clone(gate).into(), signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct About {
    name: &'static str,
    role: bool,
    gate: PtrEq<Arc<SessionAccess>>,
    signature: Signature,
}

impl ScalarUDFImpl for About {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.role { DataType::Boolean } else { DataType::Utf8 })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let access = self.gate.newest();
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let names = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(names) = names.first() else { return Ok(ColumnarValue::Scalar(ScalarValue::Utf8(None))) };
        let names = cast(names, &DataType::Utf8)?;
        let names = names.as_string::<i32>().iter().take(rows);
        let found: ArrayRef = if self.role {
            Arc::new(names.map(|name| name.map(|name| access.has_role(name))).collect::<BooleanArray>())
        } else {
            Arc::new(names.map(|name| access.attribute(name?)).collect::<StringArray>())
        };
        if constant && !found.is_empty() {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?));
        }
        Ok(ColumnarValue::Array(found))
    }
}
