//! `coalesce`, `nullif`, `greatest` and `least`, with text beside dates, times, intervals, bytes, booleans, UUIDs or arrays read as that type:
//! `coalesce(d, '2024-01-31')`. DataFusion has no common type for these.

use crate::scalar_udf::{no_overload, stock_types};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature,
};
use std::sync::Arc;

/// One of them over DataFusion's.
pub(super) fn choice(stock: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(stock.signature().volatility);
    Arc::new(ScalarUDF::new_from_impl(Choice { stock, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Choice {
    stock: Arc<ScalarUDF>,
    signature: Signature,
}

impl Choice {
    /// The types that the arguments get without us.
    fn stock_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if self.stock.signature().type_signature == TypeSignature::UserDefined {
            return self.stock.coerce_types(given);
        }
        stock_types(self.stock.name(), &self.stock, given)
    }
}

/// UUIDs, as files have them.
const UUID: DataType = DataType::FixedSizeBinary(16);

/// The type of values among texts that are such values.
fn among_texts(given: &[DataType]) -> Option<DataType> {
    let others: Vec<DataType> = given.iter().filter(|of| !of.is_string() && !of.is_null()).cloned().collect();
    let common = type_union_resolution(&others)?;
    let is_read = common.is_temporal()
        || matches!(
            common,
            DataType::Boolean | DataType::Binary | DataType::FixedSizeBinary(16) | DataType::List(_)
        );
    is_read.then_some(common)
}

/// Whether texts stand beside UUIDs. Arrow casts no text to bytes of one size: the optimizer's rules read the texts.
fn are_uuids_and_texts(given: &[DataType]) -> bool {
    given.iter().any(DataType::is_string) && among_texts(given) == Some(UUID)
}

impl ScalarUDFImpl for Choice {
    crate::stock_methods!(stock: name, simplify, short_circuits, documentation);

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if let Ok(types) = self.stock_types(given) {
            return Ok(types);
        }
        let takes = &self.stock.signature().type_signature;
        let count_fits = !matches!(takes, TypeSignature::Comparable(count) if *count != given.len());
        match among_texts(given) {
            Some(DataType::FixedSizeBinary(16)) if count_fits => Ok(given.to_vec()),
            Some(of) if count_fits => Ok(vec![of; given.len()]),
            _ => no_overload(self.name(), given),
        }
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        if are_uuids_and_texts(given) {
            return Ok(UUID);
        }
        self.stock.return_type(given)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = given.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        if are_uuids_and_texts(&types) {
            let is_nullable = given.arg_fields.iter().any(|field| field.is_nullable());
            return Ok(Arc::new(Field::new(self.name(), UUID, is_nullable || self.name() == "nullif")));
        }
        self.stock.return_field_from_args(given)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.stock.invoke_with_args(args)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.stock.conditional_arguments(args)
    }
}
