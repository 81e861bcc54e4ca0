//! One NaN. Hardware and files have many, of both signs; in SQL they are one value, greater than all numbers. Comparisons, hashes and orders
//! use bits, so NaN is normalized when values enter the engine. Zero keeps its sign, but keys have one zero. The cost is one pass over
//! floating-point columns; only batches with another NaN (or zero) are copied.

use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{ArrowNativeType, DataType, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// Values that are looked at together, without asking after each.
const TOGETHER: usize = 1024;

/// Bits of the one NaN, by width.
const NAN_16: u16 = 0x7e00;
const NAN_32: u32 = f32::NAN.to_bits();
const NAN_64: u64 = f64::NAN.to_bits();

/// The array with one NaN for all that it has, also within lists, structs, maps, unions and dictionaries. Without others it is
/// the same array, as is one of another type.
pub fn with_one_nan(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    with_form(array, Form::OneNan)
}

fn with_form(array: &ArrayRef, form: Form) -> Result<ArrayRef, ArrowError> {
    if !has_floats(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    let changed = canonical(&array.to_data(), form)?;
    Ok(changed.map_or_else(|| Arc::clone(array), make_array))
}

/// The same for all columns.
pub fn rows_with_one_nan(rows: RecordBatch) -> Result<RecordBatch, ArrowError> {
    if !rows.schema_ref().fields().iter().any(|field| has_floats(field.data_type())) {
        return Ok(rows);
    }
    let columns = rows.columns().iter().map(with_one_nan).collect::<Result<Vec<_>, _>>()?;
    if columns.iter().zip(rows.columns()).all(|(new, old)| Arc::ptr_eq(new, old)) {
        return Ok(rows);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(rows.schema(), columns, &options)
}

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Form::OneNan));
static KEY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(Form::Key));

fn udf(form: Form) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(WithForm { form, signature }))
}

/// The function that does so in plans.
pub fn function() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

/// The function that gives what values are compared by: with one NaN and one zero, also within lists, structs and maps.
pub fn key_function() -> Arc<ScalarUDF> {
    Arc::clone(&KEY)
}

/// Whether it is the function of [`function`].
pub fn is_function(function: &ScalarUDF) -> bool {
    has_form(function, Form::OneNan)
}

/// Whether it is the function of [`key_function`].
pub fn is_key_function(function: &ScalarUDF) -> bool {
    has_form(function, Form::Key)
}

fn has_form(function: &ScalarUDF, form: Form) -> bool {
    function.inner().downcast_ref::<WithForm>().is_some_and(|of| of.form == form)
}

/// Whether there are floating-point numbers in values of the type.
pub fn has_floats(data_type: &DataType) -> bool {
    let within = |field: &Field| has_floats(field.data_type());
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => within(item),
        DataType::Struct(fields) => fields.iter().any(|field| within(field)),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| within(field)),
        DataType::Dictionary(_, value) => has_floats(value),
        _ => false,
    }
}

/// `None` where there is nothing to change.
fn canonical(data: &ArrayData, form: Form) -> Result<Option<ArrayData>, ArrowError> {
    let is_key = form == Form::Key;
    match data.data_type() {
        DataType::Float16 => numbers(data, (NAN_16, 0), |bits: u16| {
            (bits & 0x7fff > 0x7c00 && bits != NAN_16, is_key && bits == 1 << 15)
        }),
        DataType::Float32 => numbers(data, (NAN_32, 0), |bits: u32| {
            (bits & 0x7fff_ffff > 0x7f80_0000 && bits != NAN_32, is_key && bits == 1 << 31)
        }),
        DataType::Float64 => {
            let infinite = f64::INFINITY.to_bits();
            numbers(data, (NAN_64, 0), |bits: u64| {
                (bits & !(1 << 63) > infinite && bits != NAN_64, is_key && bits == 1 << 63)
            })
        }
        other if has_floats(other) => nested(data, form),
        _ => Ok(None),
    }
}

/// `is_other` says whether bits are those of another NaN, and whether those of the other zero.
fn numbers<T: ArrowNativeType>(
    data: &ArrayData,
    (nan, zero): (T, T),
    is_other: impl Fn(T) -> (bool, bool),
) -> Result<Option<ArrayData>, ArrowError> {
    let Some(values) = data.buffer::<T>(0).get(..data.len()) else { return Ok(None) };
    // Without a way out within, the inner loop is one of vectors.
    let found = |chunk: &[T]| {
        chunk.iter().fold(false, |found, bits| {
            let (is_nan, is_zero) = is_other(*bits);
            found | is_nan | is_zero
        })
    };
    if !values.chunks(TOGETHER).any(found) {
        return Ok(None);
    }
    let one = values.iter().map(|bits| match is_other(*bits) {
        (true, _) => nan,
        (_, true) => zero,
        _ => *bits,
    });
    let one: Vec<T> = one.collect();
    let new = ArrayData::builder(data.data_type().clone())
        .len(one.len())
        .nulls(data.nulls().cloned())
        .add_buffer(Buffer::from_vec(one));
    new.build().map(Some)
}

fn nested(data: &ArrayData, form: Form) -> Result<Option<ArrayData>, ArrowError> {
    let parts = data.child_data().iter().map(|part| canonical(part, form)).collect::<Result<Vec<_>, _>>()?;
    if parts.iter().all(Option::is_none) {
        return Ok(None);
    }
    let parts = parts.into_iter().zip(data.child_data());
    let parts = parts.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
    data.clone().into_builder().child_data(parts).build().map(Some)
}

/// What the numbers of a value have one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    OneNan,
    /// One NaN and one zero.
    Key,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithForm {
    form: Form,
    signature: Signature,
}

impl ScalarUDFImpl for WithForm {
    fn name(&self) -> &'static str {
        match self.form {
            Form::OneNan => "__one_nan",
            Form::Key => "__float_key",
        }
    }

    /// The one of what is computed, so that columns keep their names. A key is another value.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [of] = args else { return internal_err!("`{}` takes one value", self.name()) };
        Ok(match self.form {
            Form::OneNan => of.schema_name().to_string(),
            Form::Key => format!("{}({})", self.name(), of.schema_name()),
        })
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] => Ok(of.clone()),
            _ => internal_err!("`{}` takes one value", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn output_ordering(&self, _input: &[ExprProperties]) -> Result<SortProperties> {
        Ok(SortProperties::Unordered)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(with_form(&array, self.form)?)),
            Some(ColumnarValue::Scalar(scalar)) => {
                let one = with_form(&scalar.to_array()?, self.form)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?))
            }
            None => internal_err!("`{}` takes one value", self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        AsArray, DictionaryArray, Float16Array, Float32Array, Float64Array, Int32Array, ListArray,
        StructArray,
    };
    use arrow::datatypes::{Float16Type, Float32Type, Float64Type, Int32Type, Schema};

    fn bits(array: &ArrayRef) -> Vec<u64> {
        array.as_primitive::<Float64Type>().values().iter().map(|number| number.to_bits()).collect()
    }

    fn signed() -> ArrayRef {
        Arc::new(Float64Array::from(vec![
            Some(-f64::NAN),
            None,
            Some(-0.0),
            Some(f64::from_bits(NAN_64 + 7)),
        ]))
    }

    #[test]
    fn every_nan_becomes_the_one() {
        let one = with_one_nan(&signed()).unwrap();
        assert_eq!(bits(&one), [NAN_64, 0, (-0.0_f64).to_bits(), NAN_64]);
        assert!(one.is_null(1));
        let part = with_one_nan(&signed().slice(1, 3)).unwrap();
        assert_eq!(bits(&part), [0, (-0.0_f64).to_bits(), NAN_64]);
        assert!(part.is_null(0));
        let narrow: ArrayRef = Arc::new(Float32Array::from(vec![-f32::NAN, 1.0]));
        let narrow = with_one_nan(&narrow).unwrap();
        assert_eq!(narrow.as_primitive::<Float32Type>().value(0).to_bits(), NAN_32);
        let half: Float16Array =
            Float16Array::from(vec![0xfe00, 0x7e00, 0xfc00].into_iter().map(half_of).collect::<Vec<_>>());
        let half = with_one_nan(&(Arc::new(half) as ArrayRef)).unwrap();
        let half: Vec<u16> =
            half.as_primitive::<Float16Type>().values().iter().map(|number| number.to_bits()).collect();
        assert_eq!(half, [0x7e00, 0x7e00, 0xfc00]);
    }

    fn half_of(bits: u16) -> <Float16Type as arrow::datatypes::ArrowPrimitiveType>::Native {
        <Float16Type as arrow::datatypes::ArrowPrimitiveType>::Native::from_bits(bits)
    }

    #[test]
    fn without_another_nan_nothing_is_copied() {
        let plain: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::INFINITY, f64::NAN, -0.0]));
        assert!(Arc::ptr_eq(&with_one_nan(&plain).unwrap(), &plain));
        let other: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(Arc::ptr_eq(&with_one_nan(&other).unwrap(), &other));
    }

    #[test]
    fn it_is_found_within_other_values() {
        let field = Arc::new(Field::new("x", DataType::Float64, true));
        let inner: ArrayRef = Arc::new(StructArray::from(vec![(Arc::clone(&field), signed())]));
        let codes = Int32Array::from(vec![Some(3), None, Some(0)]);
        let coded: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(codes, signed()));
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![Some(1.0), Some(-f64::NAN)]),
            None,
            Some(vec![Some(-f64::NAN)]),
        ]);
        let lists = with_one_nan(&(Arc::new(lists) as ArrayRef)).unwrap();
        assert_eq!(bits(lists.as_list::<i32>().values()), [1.0_f64.to_bits(), NAN_64, NAN_64]);
        let inner = with_one_nan(&inner).unwrap();
        assert_eq!(bits(inner.as_struct().column(0))[0], NAN_64);
        let coded = with_one_nan(&coded).unwrap();
        assert_eq!(bits(coded.as_any_dictionary().values())[3], NAN_64);
    }

    #[test]
    fn keys_have_one_zero_as_well() {
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![Some(-0.0), Some(-f64::NAN), None]),
            Some(vec![Some(-1.0)]),
        ]));
        let keys = with_form(&lists, Form::Key).unwrap();
        assert_eq!(bits(keys.as_list::<i32>().values()), [0, NAN_64, 0, (-1.0_f64).to_bits()]);
        assert!(keys.as_list::<i32>().values().is_null(2));
        let again = with_form(&keys, Form::Key).unwrap();
        assert!(Arc::ptr_eq(&again, &keys));
        let names = [function(), key_function()].map(|of| of.name().to_owned());
        assert_eq!(names, ["__one_nan", "__float_key"]);
        assert!(is_key_function(&key_function()) && !is_key_function(&function()));
    }

    #[test]
    fn rows_keep_their_schema() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int32, false),
            Field::new("x", DataType::Float64, true),
        ]));
        let n: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
        let rows = RecordBatch::try_new(Arc::clone(&schema), vec![n, signed()]).unwrap();
        let one = rows_with_one_nan(rows).unwrap();
        assert_eq!(one.schema(), schema);
        assert_eq!(bits(one.column(1))[0], NAN_64);
    }
}
