//! Table functions with constant arguments: series, and the contents of a JSON document. With columns as arguments, use the list functions
//! under `unnest`: `json_members`, `json_elements`.

mod list_rows;
mod series;

use crate::define::{Function, listed};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::{MemTable, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::Expr;
use list_rows::Expanded;
use series::Series;
use std::sync::Arc;

/// All functions of this area, for the documentation. Series have scalar functions of the same name.
pub(crate) const FUNCTIONS: &[&[Function]] = &[&[
    listed("json_array_elements", "a row for each element of a JSON array")
        .aliases(&["jsonb_array_elements"]),
    listed("json_array_elements_text", "the same as text").aliases(&["jsonb_array_elements_text"]),
    listed("json_each", "a row with key and value for each member of a JSON document")
        .aliases(&["jsonb_each"]),
    listed("json_each_text", "the same with values as text").aliases(&["jsonb_each_text"]),
    listed("json_object_keys", "a row for each key of a JSON object").aliases(&["jsonb_object_keys"]),
    listed("jsonb_path_query", "a row for each part that a path leads to"),
]];

pub(crate) fn functions() -> Vec<(&'static str, Arc<dyn TableFunctionImpl>)> {
    let mut all: Vec<(&'static str, Arc<dyn TableFunctionImpl>)> = vec![
        ("generate_series", Arc::new(Series { name: "generate_series", with_end: true })),
        ("range", Arc::new(Series { name: "range", with_end: false })),
    ];
    let expanded = [
        ("json_array_elements", "json_elements", "value"),
        ("jsonb_array_elements", "json_elements", "value"),
        ("json_array_elements_text", "json_elements_text", "value"),
        ("jsonb_array_elements_text", "json_elements_text", "value"),
        ("json_each", "json_members", "value"),
        ("jsonb_each", "json_members", "value"),
        ("json_each_text", "json_members_text", "value"),
        ("jsonb_each_text", "json_members_text", "value"),
        ("json_object_keys", "json_keys", "json_object_keys"),
        ("jsonb_object_keys", "json_keys", "jsonb_object_keys"),
        ("jsonb_path_query", "json_path_query", "jsonb_path_query"),
    ];
    all.extend(expanded.map(|(name, of, column)| {
        let function: Arc<dyn TableFunctionImpl> = Arc::new(Expanded { name, of, column });
        (name, function)
    }));
    all
}

fn literals(name: &str, arguments: &[Expr]) -> Result<Vec<ScalarValue>> {
    let value = |argument: &Expr| match argument {
        Expr::Literal(value, _) => Ok(value.clone()),
        other => plan_err!(
            "the arguments of {name} in FROM have to be constants, not `{other}`; use unnest for columns"
        ),
    };
    arguments.iter().map(value).collect()
}

fn of_array(name: &str, values: ArrayRef) -> Result<Arc<dyn TableProvider>> {
    let schema = Arc::new(Schema::new(vec![Field::new(name, values.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values])?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}
