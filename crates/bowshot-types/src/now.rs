//! `now()`: the instant at which the statement began, in microseconds.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function `now()`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Now {
    signature: Signature,
    aliases: Vec<String>,
    zone: Arc<str>,
}

impl Now {
    fn of_zone(zone: Option<&str>) -> Self {
        Self {
            signature: Signature::nullary(Volatility::Stable),
            aliases: ["current", "transaction", "statement", "get_current"]
                .map(|moment| format!("{moment}_timestamp"))
                .to_vec(),
            zone: Arc::from(zone.unwrap_or("UTC")),
        }
    }

    fn data_type(&self) -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::clone(&self.zone)))
    }
}

impl Default for Now {
    fn default() -> Self {
        Self::of_zone(None)
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        "now"
    }

    bowshot_api::getters!(aliases: &[String], signature: &Signature);

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        Some(Self::of_zone(config.execution.time_zone.as_deref()).into())
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.data_type())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new("now", self.data_type(), false)))
    }

    fn simplify(&self, arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(now) = context.query_execution_start_time() else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        let value =
            ScalarValue::TimestampMicrosecond(Some(now.timestamp_micros()), Some(Arc::clone(&self.zone)));
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("now() is the same in all rows, and was to be known before")
    }
}
