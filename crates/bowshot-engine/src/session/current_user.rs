//! `current_user` and `session_user`: who asks. A view that compares it with a column shows everybody their own rows.
//!
//! Each session has the functions with its own name in them, and the optimiser puts the name in their place. A cached join is
//! looked up with that name in its conditions: either it has the very same one, or it has the rows of all, and the
//! condition is applied to them. Whole results are found by plans that are not optimised yet, and are kept of functions
//! that always give the same only, which these are not.

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

const NAMES: [&str; 2] = ["current_user", "session_user"];

/// The functions for sessions of one principal.
pub(crate) fn functions(principal: &Principal) -> [ScalarUDF; 2] {
    NAMES.map(|name| {
        let (user, signature) = (principal.name.clone(), Signature::nullary(Volatility::Stable));
        CurrentUser { name, user, signature }.into()
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentUser {
    name: &'static str,
    user: String,
    signature: Signature,
}

impl ScalarUDFImpl for CurrentUser {
    bowshot_api::getters!(name: &str);

    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(self.name.to_owned())
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name, DataType::Utf8, false)))
    }

    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(lit(self.user.as_str())))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::from(self.user.as_str())))
    }
}
