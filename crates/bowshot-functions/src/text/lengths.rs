//! Lengths in bytes and in bits, of texts and of bytes.

use crate::scalar_udf::{no_overload, stock_types, udf};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::kernels::length::{bit_length as bits, length};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::functions::string;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use std::sync::Arc;

pub(super) fn octet_length() -> Arc<ScalarUDF> {
    udf("octet_length", takes, gives, |given| match bytes(given)? {
        Some(bytes) => Ok(ColumnarValue::Array(length(&bytes)?)),
        None => string::octet_length().invoke_with_args(given.clone()),
    })
}

pub(super) fn bit_length() -> Arc<ScalarUDF> {
    udf("bit_length", takes, gives, |given| match bytes(given)? {
        Some(bytes) => Ok(ColumnarValue::Array(bits(&bytes)?)),
        None => string::bit_length().invoke_with_args(given.clone()),
    })
}

fn bytes(given: &ScalarFunctionArgs) -> Result<Option<ArrayRef>> {
    let Some(bytes) = given.args.first().filter(|value| value.data_type() == DataType::Binary) else {
        return Ok(None);
    };
    bytes.to_array(given.number_rows).map(Some)
}

fn takes(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let [one] = given else { return no_overload(name, given) };
    if one.is_binary() {
        return Ok(vec![DataType::Binary]);
    }
    stock_types(name, &string::octet_length(), given)
}

fn gives(name: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let types: Vec<DataType> = given.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    match types.as_slice() {
        [DataType::Binary] => Ok(Field::new(name, DataType::Int32, true)),
        _ => Ok(Field::new(name, string::octet_length().return_type(&types)?, true)),
    }
}
