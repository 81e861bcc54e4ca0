//! Functions of plans on codes.

use bowshot_kernels::codes as kernels;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt16Array, UInt32Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{TakeOptions, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt16Type, UInt32Type};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// `text_of(code)`: the text that a code stands for.
pub(super) fn text_of(texts: ArrayRef) -> ScalarUDF {
    function(Kind::TextOf(texts), vec![DataType::UInt16])
}

/// `code_is_in(code)`: whether a code is one of those at whose places `wanted` is true.
pub(super) fn code_is_in(wanted: BooleanBuffer) -> ScalarUDF {
    function(Kind::IsIn(wanted), vec![DataType::UInt16])
}

/// One number for the codes of several columns.
#[derive(Debug)]
pub(super) struct CodesTogether {
    /// Codes of each column; a missing code counts as one more code.
    counts: Vec<u32>,
}

impl CodesTogether {
    /// For columns of so many codes; `None` if there are too many combinations.
    pub(super) fn new(counts: impl Iterator<Item = usize>) -> Option<Self> {
        let counts = counts.map(|count| u32::try_from(count + 1).ok()).collect::<Option<Vec<_>>>()?;
        counts.iter().try_fold(1_u32, |all, count| all.checked_mul(*count))?;
        Some(Self { counts })
    }

    /// `codes_together(code, …)`.
    pub(super) fn together(&self) -> ScalarUDF {
        function(Kind::Together(self.counts.clone()), vec![DataType::UInt16; self.counts.len()])
    }

    /// `code_apart(codes)`: gives back the codes of the column at a place.
    pub(super) fn apart(&self, place: usize, nullable: bool) -> ScalarUDF {
        let stride = self.counts.get(place + 1..).unwrap_or_default().iter().product();
        let count = self.counts.get(place).copied().unwrap_or(1);
        function(Kind::Apart { stride, count, nullable }, vec![DataType::UInt32])
    }
}

#[derive(Debug)]
struct CodeFunction {
    kind: Kind,
    signature: Signature,
}

#[derive(Debug)]
enum Kind {
    TextOf(ArrayRef),
    Together(Vec<u32>),
    Apart { stride: u32, count: u32, nullable: bool },
    IsIn(BooleanBuffer),
}

fn function(kind: Kind, arguments: Vec<DataType>) -> ScalarUDF {
    ScalarUDF::from(CodeFunction { kind, signature: Signature::exact(arguments, Volatility::Immutable) })
}

impl PartialEq for CodeFunction {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::TextOf(one), Kind::TextOf(other)) => Arc::ptr_eq(one, other),
            (Kind::Together(one), Kind::Together(other)) => one == other,
            (
                Kind::Apart { stride, count, nullable },
                Kind::Apart { stride: other_stride, count: other_count, nullable: other_nullable },
            ) => (stride, count, nullable) == (other_stride, other_count, other_nullable),
            (Kind::IsIn(one), Kind::IsIn(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for CodeFunction {}

impl Hash for CodeFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        match &self.kind {
            Kind::TextOf(texts) => Arc::as_ptr(texts).cast::<()>().hash(state),
            Kind::Together(counts) => counts.hash(state),
            Kind::Apart { stride, count, nullable } => (stride, count, nullable).hash(state),
            Kind::IsIn(wanted) => (wanted.len(), wanted.count_set_bits()).hash(state),
        }
    }
}

impl ScalarUDFImpl for CodeFunction {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::TextOf(_) => "text_of",
            Kind::Together(_) => "codes_together",
            Kind::Apart { .. } => "code_apart",
            Kind::IsIn(_) => "code_is_in",
        }
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match &self.kind {
            Kind::TextOf(texts) => texts.data_type().clone(),
            Kind::Together(_) => DataType::UInt32,
            Kind::Apart { .. } => DataType::UInt16,
            Kind::IsIn(_) => DataType::Boolean,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = match self.kind {
            Kind::TextOf(_) | Kind::IsIn(_) => {
                args.arg_fields.first().is_none_or(|codes| codes.is_nullable())
            }
            Kind::Together(_) => false,
            Kind::Apart { nullable, .. } => nullable,
        };
        Ok(Arc::new(Field::new(self.name(), self.return_type(&[])?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(first) = columns.first() else { return internal_err!("codes are missing") };
        let given: ArrayRef = match &self.kind {
            Kind::TextOf(texts) => take(texts, codes(first)?, Some(TakeOptions { check_bounds: true }))?,
            Kind::Together(counts) => {
                let mut together = vec![0_u32; args.number_rows];
                for (column, count) in columns.iter().zip(counts) {
                    let codes = codes(column)?;
                    if codes.len() != together.len() {
                        return internal_err!("columns of codes differ in length");
                    }
                    kernels::put_together(&mut together, codes, *count);
                }
                Arc::new(UInt32Array::from(together))
            }
            Kind::Apart { stride, count, .. } => {
                let together = first.as_primitive_opt::<UInt32Type>();
                let together = together.ok_or_else(|| internal_datafusion_err!("these are no codes"))?;
                Arc::new(kernels::taken_apart(together, *stride, *count))
            }
            Kind::IsIn(wanted) => Arc::new(kernels::are_in(codes(first)?, wanted)?),
        };
        Ok(ColumnarValue::Array(given))
    }
}

fn codes(array: &ArrayRef) -> Result<&UInt16Array> {
    array.as_primitive_opt::<UInt16Type>().ok_or_else(|| internal_datafusion_err!("these are no codes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::config::ConfigOptions;

    fn call(function: &ScalarUDF, arrays: Vec<ArrayRef>, nullable: bool) -> ArrayRef {
        let rows = arrays[0].len();
        let field = |array: &ArrayRef| Arc::new(Field::new("x", array.data_type().clone(), true));
        let arg_fields = arrays.iter().map(field).collect();
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
        let all = call(&together.together(), columns.clone(), false);
        assert_eq!(all.null_count(), 0);
        let different: std::collections::BTreeSet<u32> =
            all.as_primitive::<UInt32Type>().values().iter().copied().collect();
        assert_eq!(different.len(), 5);
        for (place, column) in columns.iter().enumerate() {
            assert_eq!(&call(&together.apart(place, true), vec![Arc::clone(&all)], true), column);
        }
    }

    #[test]
    fn too_many_combinations_are_refused() {
        assert!(CodesTogether::new([65_536, 65_536].into_iter()).is_none());
        assert!(CodesTogether::new([65_535, 65_534].into_iter()).is_some());
    }
}
