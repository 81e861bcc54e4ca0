//! Functions of plans on codes.

use bowshot_kernels::codes as kernels;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt16Array, UInt32Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{TakeOptions, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt16Type, UInt32Type};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

fn codes(array: &ArrayRef) -> Result<&UInt16Array> {
    array.as_primitive_opt::<UInt16Type>().ok_or_else(|| internal_datafusion_err!("these are no codes"))
}

fn one(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
    let arrays = ColumnarValue::values_to_arrays(&args.args)?;
    arrays.into_iter().next().ok_or_else(|| internal_datafusion_err!("codes are missing"))
}

fn nullable_like_codes(name: &str, data_type: DataType, args: &ReturnFieldArgs<'_>) -> FieldRef {
    let nullable = args.arg_fields.first().is_none_or(|codes| codes.is_nullable());
    Arc::new(Field::new(name, data_type, nullable))
}

/// `text_of(code)`: the text that a code stands for.
#[derive(Debug)]
pub(super) struct TextOf {
    texts: ArrayRef,
    signature: Signature,
}

impl TextOf {
    pub(super) fn new(texts: ArrayRef) -> Self {
        Self { texts, signature: Signature::exact(vec![DataType::UInt16], Volatility::Immutable) }
    }
}

impl PartialEq for TextOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texts, &other.texts)
    }
}

impl Eq for TextOf {}

impl Hash for TextOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.texts).cast::<()>().hash(state);
    }
}

impl ScalarUDFImpl for TextOf {
    fn name(&self) -> &'static str {
        "text_of"
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.texts.data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(nullable_like_codes(self.name(), self.texts.data_type().clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bounds = Some(TakeOptions { check_bounds: true });
        Ok(ColumnarValue::Array(take(&self.texts, codes(&one(&args)?)?, bounds)?))
    }
}

/// `codes_together(code, …)`: one number for the codes of several columns. For each column, a missing code counts as
/// one more code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CodesTogether {
    /// Codes of each column, with the one for none.
    counts: Vec<u32>,
    signature: Signature,
}

impl CodesTogether {
    /// For columns of so many codes; `None` if there are too many combinations.
    pub(super) fn new(counts: impl Iterator<Item = usize>) -> Option<Self> {
        let counts = counts.map(|count| u32::try_from(count + 1).ok()).collect::<Option<Vec<_>>>()?;
        counts.iter().try_fold(1_u32, |all, count| all.checked_mul(*count))?;
        let arguments = vec![DataType::UInt16; counts.len()];
        Some(Self { counts, signature: Signature::exact(arguments, Volatility::Immutable) })
    }

    /// Gives back the codes of the column at a place.
    pub(super) fn apart(&self, place: usize, nullable: bool) -> CodeApart {
        let stride = self.counts.get(place + 1..).unwrap_or_default().iter().product();
        let count = self.counts.get(place).copied().unwrap_or(1);
        let signature = Signature::exact(vec![DataType::UInt32], Volatility::Immutable);
        CodeApart { stride, count, nullable, signature }
    }
}

impl ScalarUDFImpl for CodesTogether {
    fn name(&self) -> &'static str {
        "codes_together"
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), DataType::UInt32, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut together = vec![0_u32; args.number_rows];
        for (column, count) in ColumnarValue::values_to_arrays(&args.args)?.iter().zip(&self.counts) {
            let codes = codes(column)?;
            if codes.len() != together.len() {
                return Err(internal_datafusion_err!("columns of codes differ in length"));
            }
            kernels::put_together(&mut together, codes, *count);
        }
        Ok(ColumnarValue::Array(Arc::new(UInt32Array::from(together))))
    }
}

/// `code_apart(codes)`: one of the codes that [`CodesTogether`] has put together.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CodeApart {
    stride: u32,
    count: u32,
    nullable: bool,
    signature: Signature,
}

impl ScalarUDFImpl for CodeApart {
    fn name(&self) -> &'static str {
        "code_apart"
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt16)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), DataType::UInt16, self.nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let together = one(&args)?;
        let together = together.as_primitive_opt::<UInt32Type>();
        let together = together.ok_or_else(|| internal_datafusion_err!("these are no codes"))?;
        let codes = kernels::taken_apart(together, self.stride, self.count);
        Ok(ColumnarValue::Array(Arc::new(codes)))
    }
}

/// `code_is_in(code)`: whether a code is one of some.
#[derive(Debug)]
pub(super) struct CodeIsIn {
    wanted: BooleanBuffer,
    signature: Signature,
}

impl CodeIsIn {
    /// Those at whose places `wanted` is true.
    pub(super) fn new(wanted: BooleanBuffer) -> Self {
        Self { wanted, signature: Signature::exact(vec![DataType::UInt16], Volatility::Immutable) }
    }
}

impl PartialEq for CodeIsIn {
    fn eq(&self, other: &Self) -> bool {
        self.wanted == other.wanted
    }
}

impl Eq for CodeIsIn {}

impl Hash for CodeIsIn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.wanted.len(), self.wanted.count_set_bits()).hash(state);
    }
}

impl ScalarUDFImpl for CodeIsIn {
    fn name(&self) -> &'static str {
        "code_is_in"
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(nullable_like_codes(self.name(), DataType::Boolean, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = one(&args)?;
        let codes = codes(&column)?;
        let given = kernels::are_in(codes, &self.wanted)?;
        Ok(ColumnarValue::Array(Arc::new(given)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::config::ConfigOptions;
    use datafusion::logical_expr::ScalarUDF;

    fn call(function: impl ScalarUDFImpl + 'static, arrays: Vec<ArrayRef>, nullable: bool) -> ArrayRef {
        let rows = arrays[0].len();
        let field = |array: &ArrayRef| Arc::new(Field::new("x", array.data_type().clone(), true));
        let (function, arg_fields) = (ScalarUDF::from(function), arrays.iter().map(field).collect());
        let args = arrays.into_iter().map(ColumnarValue::Array).collect();
        let return_field = Arc::new(Field::new("f", DataType::UInt16, nullable));
        let config_options = Arc::new(ConfigOptions::default());
        let args = ScalarFunctionArgs { args, arg_fields, number_rows: rows, return_field, config_options };
        function.invoke_with_args(args).expect("values").into_array(rows).expect("an array")
    }

    #[test]
    fn codes_come_apart_as_they_were_put_together() {
        let one = UInt16Array::from(vec![Some(0), Some(2), None, Some(1), None]);
        let other = UInt16Array::from(vec![Some(4), None, Some(0), Some(3), None]);
        let third = UInt16Array::from(vec![0, 0, 0, 0, 0]);
        let columns: Vec<ArrayRef> = vec![Arc::new(one), Arc::new(other), Arc::new(third)];
        let together = CodesTogether::new([3, 5, 1].into_iter()).expect("few");
        let all = call(together.clone(), columns.clone(), false);
        assert_eq!(all.null_count(), 0);
        let different: std::collections::BTreeSet<u32> =
            all.as_primitive::<UInt32Type>().values().iter().copied().collect();
        assert_eq!(different.len(), 5);
        for (place, column) in columns.iter().enumerate() {
            assert_eq!(&call(together.apart(place, true), vec![Arc::clone(&all)], true), column);
        }
    }

    #[test]
    fn too_many_combinations_are_refused() {
        assert!(CodesTogether::new([65_536, 65_536].into_iter()).is_none());
        assert!(CodesTogether::new([65_535, 65_534].into_iter()).is_some());
    }
}
