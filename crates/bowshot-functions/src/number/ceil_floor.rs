//! `ceil` and `floor` of decimals, whose nearest whole number may have one digit more before the point than they have, and
//! `round` of floating-point numbers, halves to even as in PostgreSQL and MySQL. The rest of them is DataFusion's.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    Up,
    Down,
    Nearest,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    stock: Arc<ScalarUDF>,
    way: Way,
}

pub(super) fn made(stock: Arc<ScalarUDF>, way: Way) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Whole { stock, way }))
}

impl Whole {
    /// The type of a result that is not DataFusion's.
    fn own(&self, given: &[&DataType]) -> Option<DataType> {
        match (given, self.way) {
            ([DataType::Float32 | DataType::Float64], Way::Nearest) => given.first().copied().cloned(),
            ([DataType::Decimal128(precision, scale)], Way::Up | Way::Down) if *scale > 0 => {
                let before = precision.saturating_sub(scale.unsigned_abs());
                Some(DataType::Decimal128((before + 1).min(DECIMAL128_MAX_PRECISION), 0))
            }
            _ => None,
        }
    }
}

impl ScalarUDFImpl for Whole {
    crate::stock_methods!(stock: name, aliases, signature, is_strict, output_ordering);

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let types: Vec<&DataType> = given.iter().collect();
        self.own(&types).map_or_else(|| self.stock.return_type(given), Ok)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<&DataType> = given.arg_fields.iter().map(|field| field.data_type()).collect();
        match self.own(&types) {
            Some(own) => {
                let nullable = given.arg_fields.iter().any(|field| field.is_nullable());
                Ok(Arc::new(Field::new(self.name(), own, nullable)))
            }
            None => self.stock.return_field_from_args(given),
        }
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<&DataType> = given.arg_fields.iter().map(|field| field.data_type()).collect();
        let Some(own) = self.own(&types) else { return self.stock.invoke_with_args(given) };
        match given.args.first() {
            Some(ColumnarValue::Array(values)) => whole(values, &own, self.way).map(ColumnarValue::Array),
            Some(ColumnarValue::Scalar(value)) => {
                let made = whole(&value.to_array()?, &own, self.way)?;
                ScalarValue::try_from_array(&made, 0).map(ColumnarValue::Scalar)
            }
            None => internal_err!("`{}` takes a number", self.name()),
        }
    }
}

fn whole(values: &ArrayRef, own: &DataType, way: Way) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Float32 => {
            let values = values.as_primitive::<Float32Type>();
            Arc::new(values.unary::<_, Float32Type>(f32::round_ties_even))
        }
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Float64Type>(f64::round_ties_even))
        }
        of => {
            let scale = if let DataType::Decimal128(_, scale) = of { scale.unsigned_abs() } else { 0 };
            let unit = 10_i128.pow(u32::from(scale.min(DECIMAL128_MAX_PRECISION)));
            let values = values.as_primitive::<Decimal128Type>();
            let whole = values.unary::<_, Decimal128Type>(|value| {
                let (down, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
                if way == Way::Up && rest != 0 { down + 1 } else { down }
            });
            Arc::new(whole.with_data_type(own.clone()))
        }
    })
}
