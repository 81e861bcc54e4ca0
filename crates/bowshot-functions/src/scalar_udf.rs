//! Scalar functions as rows of a table: a name, argument types, result type and implementation. DataFusion wants a Rust type for each
//! function; one type with function pointers avoids that.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The types that the arguments are brought to.
pub(crate) type Takes = fn(&str, &[DataType]) -> Result<Vec<DataType>>;
/// The field of the result; its name does not count.
pub(crate) type Gives = fn(&str, &ReturnFieldArgs<'_>) -> Result<Field>;
pub(crate) type Runs = fn(&ScalarFunctionArgs) -> Result<ColumnarValue>;

/// A scalar function, made from a row of a table. Two of them are the same when their names are: a name has one row.
#[derive(Debug)]
pub(crate) struct ScalarFunction {
    name: &'static str,
    signature: Signature,
    takes: Takes,
    gives: Gives,
    runs: Runs,
}

pub(crate) fn udf(name: &'static str, takes: Takes, gives: Gives, runs: Runs) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(ScalarFunction { name, signature, takes, gives, runs }))
}

/// Rows of the table of functions: names, what is taken, given and run, and what it gives in words.
macro_rules! scalar_functions {
    ($($name:literal $($alias:literal)*: $takes:expr, $gives:expr, $runs:expr => $about:literal;)+) => {
        &[$($crate::define::made($name, $about, || $crate::scalar_udf::udf($name, $takes, $gives, $runs))
            .aliases(&[$($alias),*])),+]
    };
}
pub(crate) use scalar_functions;

/// Fields of results that no argument changes.
macro_rules! gives {
    ($($name:ident: $field:expr;)+) => {
        $(pub(crate) fn $name(_: &str, _: &datafusion::logical_expr::ReturnFieldArgs<'_>) -> Result<Field> {
            Ok($field)
        })+
    };
}
pub(crate) use gives;

gives! {
    gives_text: Field::new("", DataType::Utf8, true);
    gives_texts: Field::new("", DataType::new_list(DataType::Utf8, true), true);
    gives_truth: Field::new("", DataType::Boolean, true);
    gives_int: Field::new("", DataType::Int64, true);
    gives_double: Field::new("", DataType::Float64, true);
}

/// The error of a function that was called with arguments that it does not have.
pub(crate) fn no_overload<T>(name: &str, given: &[DataType]) -> Result<T> {
    let given = given.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    plan_err!("function {name}({given}) does not exist")
}

/// The types that a function of DataFusion takes for arguments of these.
pub(crate) fn stock_types(name: &str, stock: &ScalarUDF, given: &[DataType]) -> Result<Vec<DataType>> {
    let fields = given.iter().map(|of| Arc::new(Field::new("", of.clone(), true)));
    match fields_with_udf(&fields.collect::<Vec<FieldRef>>(), stock) {
        Ok(fields) => Ok(fields.iter().map(|field| field.data_type().clone()).collect()),
        Err(_) => no_overload(name, given),
    }
}

crate::define::same_by!(ScalarFunction, name);

impl ScalarUDFImpl for ScalarFunction {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        (self.takes)(self.name, given)
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        internal_err!("the result of {} depends on more than types", self.name)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        (self.gives)(self.name, &given).map(|field| Arc::new(field.with_name(self.name)))
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.runs)(&given)
    }
}

pub(crate) fn text_type(of: &DataType) -> bool {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => text_type(values),
        _ => false,
    }
}
