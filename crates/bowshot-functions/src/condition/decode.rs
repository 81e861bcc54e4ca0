//! Oracle's and Spark's `decode(x, search, result, …, default)`, and PostgreSQL's `decode(text, format)`.

use crate::text::encoding::bytes_of_text;
use crate::values::{Arguments, Blob, Text, map2};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

pub(crate) fn decode() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Decode { signature: Signature::user_defined(Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Decode {
    signature: Signature,
}

/// Whether the argument at this position is a result, not a search value.
fn is_result(position: usize, count: usize) -> bool {
    position >= 2 && (position.is_multiple_of(2) || position + 1 == count)
}

fn common(types: &[DataType]) -> Result<DataType> {
    type_union_resolution(types).map_or_else(|| plan_err!("the values of `decode` have no common type"), Ok)
}

impl ScalarUDFImpl for Decode {
    fn name(&self) -> &str {
        "decode"
    }

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if given.len() < 2 {
            return plan_err!("`decode` takes a text and a format, or a value, search values and results");
        }
        if given.len() == 2 {
            return Ok(vec![DataType::Utf8, DataType::Utf8]);
        }
        let (results, searched): (Vec<_>, Vec<_>) =
            given.iter().enumerate().partition(|(position, _)| is_result(*position, given.len()));
        let types =
            |found: Vec<(usize, &DataType)>| found.into_iter().map(|(_, t)| t.clone()).collect::<Vec<_>>();
        let (result, search) = (common(&types(results))?, common(&types(searched))?);
        let fitted =
            |position| if is_result(position, given.len()) { result.clone() } else { search.clone() };
        Ok((0..given.len()).map(fitted).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given {
            [_, _] => Ok(DataType::Binary),
            given => given.get(2).cloned().map_or_else(|| plan_err!("`decode` lacks a result"), Ok),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.args.len() != 2 {
            return exec_err!("`decode` cannot be computed here; use it in a query");
        }
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let arguments = Arguments::new("decode", args, constant)?;
        let array: ArrayRef = map2::<Text, Text, Blob, Result<Vec<u8>>>(&arguments, |text, format| {
            bytes_of_text(text, format)
        })?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }

    fn short_circuits(&self) -> bool {
        true
    }

    fn simplify(&self, mut args: Vec<Expr>, _context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if args.len() == 2 {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let otherwise = if args.len().is_multiple_of(2) { args.pop().map(Box::new) } else { None };
        let mut rest = args.into_iter();
        let Some(value) = rest.next() else { return plan_err!("`decode` lacks a value") };
        let mut cases = Vec::new();
        while let (Some(search), Some(result)) = (rest.next(), rest.next()) {
            // Null equals null here.
            let equal = super::binary(value.clone(), Operator::IsNotDistinctFrom, search);
            cases.push((Box::new(equal), Box::new(result)));
        }
        Ok(ExprSimplifyResult::Simplified(Expr::Case(Case::new(None, cases, otherwise))))
    }
}
