//! `current_user`, or `session_user`: who asks. A view that compares it with a column shows everybody their own rows.
//!
//! Each session has the function with its own name in it, and the optimiser puts the name in its place. So a cached join
//! of such rows is one of that user's alone: the name is in the condition that it is found by. Whole results are found by
//! plans that are not optimised yet, and are kept of functions that always give the same only, which this is not.

use bowshot_api::Principal;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

const NAME: &str = "current_user";

/// The function for sessions of one principal.
pub(crate) fn function(principal: &Principal) -> ScalarUDF {
    CurrentUser {
        user: principal.name.clone(),
        signature: Signature::nullary(Volatility::Stable),
        aliases: vec!["session_user".to_owned()],
    }
    .into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentUser {
    user: String,
    signature: Signature,
    aliases: Vec<String>,
}

impl ScalarUDFImpl for CurrentUser {
    fn name(&self) -> &str {
        NAME
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(NAME.to_owned())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(NAME, DataType::Utf8, false)))
    }

    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(lit(self.user.as_str())))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::from(self.user.as_str())))
    }
}
