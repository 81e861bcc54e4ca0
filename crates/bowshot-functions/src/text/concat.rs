//! `concat`, which passes nulls over, but not in MySQL.

use crate::condition::{balanced, case};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::string;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, lit};
use std::sync::Arc;

pub(super) fn concat() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Concat { stock: string::concat() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Concat {
    stock: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Concat {
    crate::stock_methods!(stock: signature, coerce_types, return_type, return_field_from_args);

    fn name(&self) -> &str {
        "concat"
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let missing =
            |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(scalar) if scalar.is_null());
        if is_mysql(&args.config_options) && args.args.iter().any(missing) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_type())?));
        }
        self.stock.invoke_with_args(args)
    }

    // The dialect is known when a query is planned.
    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if !is_mysql(context.config_options()) {
            return Ok(ExprSimplifyResult::Simplified(self.stock.call(args)));
        }
        let missing = balanced(args.iter().cloned().map(Expr::is_null).collect(), Expr::or);
        let joined = self.stock.call(args);
        Ok(ExprSimplifyResult::Simplified(match missing {
            Some(missing) => {
                let data_type = context.get_data_type(&joined)?;
                case(missing, lit(ScalarValue::try_from(&data_type)?), joined)
            }
            None => joined,
        }))
    }
}

fn is_mysql(options: &ConfigOptions) -> bool {
    options.sql_parser.dialect.to_string().eq_ignore_ascii_case("mysql")
}
