//! The function that stands for one of DataFusion's, and applies the NULLs first.

use bowshot_kernels::nulls::{hidden_by, nothing_below};
use datafusion::common::Result;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::logical_expr::{
    ColumnarValue, ExpressionPlacement, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
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
    bowshot_functions::stock_methods!(inner:
        signature, coerce_types, return_type, return_field_from_args, simplify, is_strict, schema_name
    );

    bowshot_api::getters!(name: &str);

    bowshot_api::delegate! { inner: fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement; }

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
