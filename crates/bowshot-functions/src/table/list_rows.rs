//! Functions that return a list, as tables with a row for each element.

use super::{literals, of_array};
use crate::define::Body;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::{MemTable, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use std::sync::Arc;

/// The table function of that name.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) name: &'static str,
    pub(super) of: &'static str,
    /// The name of the column; structs have a column for each member.
    pub(super) column: &'static str,
}

impl TableFunctionImpl for Expanded {
    fn call_with_args(&self, given: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = literals(self.name, given.exprs())?;
        let function =
            crate::json::FUNCTIONS.iter().flat_map(|group| group.iter()).find(|one| one.name == self.of);
        let Some(Body::Udf(make)) = function.map(|function| function.body) else {
            return internal_err!("{} is made of no function", self.name);
        };
        let list = call(&make(), &arguments)?;
        let Some(list) = list.as_list_opt::<i32>() else {
            return internal_err!("{} does not return a list", self.of);
        };
        let values =
            if list.is_empty() || list.is_null(0) { list.values().slice(0, 0) } else { list.value(0) };
        match values.as_struct_opt() {
            None => of_array(self.column, values),
            Some(members) => {
                let schema = Arc::new(Schema::new(members.fields().clone()));
                let batch = RecordBatch::try_new(Arc::clone(&schema), members.columns().to_vec())?;
                Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
            }
        }
    }
}

/// The result of a function for one row of constants.
fn call(function: &ScalarUDF, arguments: &[ScalarValue]) -> Result<ArrayRef> {
    let fields = arguments.iter().map(|value| Arc::new(Field::new("", value.data_type(), true)));
    let fields = fields_with_udf(&fields.collect::<Vec<_>>(), function)?;
    if fields.len() != arguments.len() {
        return plan_err!("invalid arguments of {}", function.name());
    }
    let values = arguments.iter().zip(&fields).map(|(value, field)| value.cast_to(field.data_type()));
    let values = values.collect::<Result<Vec<_>>>()?;
    let constants: Vec<Option<&ScalarValue>> = values.iter().map(Some).collect();
    let return_field = function
        .return_field_from_args(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &constants })?;
    let result = function.invoke_with_args(ScalarFunctionArgs {
        args: values.into_iter().map(ColumnarValue::Scalar).collect(),
        arg_fields: fields,
        number_rows: 1,
        return_field,
        config_options: Arc::new(ConfigOptions::default()),
    })?;
    result.into_array(1)
}
