//! The function that stands for one of DataFusion's, and applies the NULLs first.

use bowshot_kernels::nulls::{hidden_by, nothing_below};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use std::sync::Arc;

/// Those that read what lies below a NULL, and the names of ours.
const READERS: [(&str, &str); 4] = [
    ("get_field", "field_of"),
    ("array_append", "array_append_to"),
    ("array_prepend", "array_prepend_to"),
    ("array_repeat", "array_repeat_of"),
];

/// A function whose arguments have nothing below their NULLs.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NullsFirst {
    inner: Arc<ScalarUDF>,
    name: &'static str,
}

impl NullsFirst {
    /// `None` where the function sees NULLs itself.
    pub(super) fn of(inner: Arc<ScalarUDF>) -> Option<Self> {
        let (_, name) = READERS.into_iter().find(|(reader, _)| *reader == inner.name())?;
        Some(Self { inner, name })
    }

    /// Whether it gives a field of a struct, or a value of a map.
    pub(super) fn gives_field(&self) -> bool {
        self.inner.inner().is::<GetFieldFunc>()
    }

    /// The function in whose place it stands.
    pub(super) fn stock(&self) -> &Arc<ScalarUDF> {
        &self.inner
    }

    /// Copies no field but the one that is asked for, and that only where there are NULLs.
    fn field(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let of = args.args.first().cloned();
        let found = self.inner.invoke_with_args(args)?;
        match (found, of) {
            (ColumnarValue::Array(found), Some(ColumnarValue::Array(of))) => {
                Ok(ColumnarValue::Array(hidden_by(&found, &of)?))
            }
            (ColumnarValue::Array(found), Some(ColumnarValue::Scalar(of))) => {
                Ok(ColumnarValue::Array(hidden_by(&found, &of.to_array()?)?))
            }
            (found, _) => Ok(found),
        }
    }
}

impl ScalarUDFImpl for NullsFirst {
    fn name(&self) -> &str {
        self.name
    }

    /// As that of the function in whose place it stands, so that columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.placement(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.gives_field() {
            return self.field(args);
        }
        for value in &mut args.args {
            if let ColumnarValue::Array(array) = value
                && array.data_type().is_nested()
            {
                *array = nothing_below(array)?;
            }
        }
        self.inner.invoke_with_args(args)
    }
}
