//! Whether rows may come into a table with a primary key or other keys.

use crate::catalog::lazy_state::LazyState;
use crate::error::classify;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_optimizer::cooperative;
use bowshot_query_task::{QueryTask, run_blocking};
use bowshot_tables::{EntryName, Key, Table, has_plain_equality};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;
use datafusion::datasource::provider_as_source;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionConfig;
use datafusion::prelude::ident;
use std::collections::HashSet;
use std::sync::Arc;

/// New rows up to which their keys are looked up one by one, which lets a scan skip what cannot have them.
const FEW_ROWS: u64 = 20;
/// Rows of a table of which an index is made to look keys up. Of larger ones that takes longer than a scan that skips most.
const MAX_INDEXED_ROWS: u64 = 1 << 20;

/// Fails if rows of `added` have the same key, or that of a row that was there before.
pub(super) async fn check(
    name: &EntryName,
    before: &Arc<Table>,
    added: &Arc<Table>,
    state: &LazyState,
) -> Result<()> {
    let definition = before.definition();
    if let Some(key) = &definition.primary_key {
        check_key(name, ("primary key", key), (before, added), state).await?;
    }
    for key in &definition.unique {
        check_key(name, ("unique key", key), (before, added), state).await?;
    }
    Ok(())
}

/// Fails if the rows that are there have the same key twice.
pub(super) async fn check_rows(
    name: &EntryName,
    (kind, key): (&str, &Key),
    table: &Arc<Table>,
    state: &LazyState,
) -> Result<()> {
    let none = Arc::new(Table::new(table.definition().as_ref().clone()));
    check_key(name, (kind, key), (&none, table), state).await
}

async fn check_key(
    name: &EntryName,
    (kind, key): (&str, &Key),
    (before, added): (&Arc<Table>, &Arc<Table>),
    state: &LazyState,
) -> Result<()> {
    let twice = match added.rows() {
        0 => None,
        rows if rows <= FEW_ROWS => looked_up(&key.columns, before, added, state).await?,
        _ => joined(&key.columns, before, added, state).await?,
    };
    match twice {
        None => Ok(()),
        Some(values) => {
            // Who sees a part of the table may have written neither the other columns nor the other row.
            let told = match (state.access().check_whole(name), &key.name) {
                (Ok(()), _) => format!("{kind} ({}) = ({})", key.columns.join(", "), values.join(", ")),
                (Err(_), Some(constraint)) => format!("{kind} `{constraint}`"),
                (Err(_), None) => format!("same {kind}"),
            };
            let message = format!("table `{name}` would have the {told} twice");
            Err(Error::new(ErrorKind::AlreadyExists, message)
                .with_reason(Reason::UniqueViolation)
                .with_hint("change the row that is there with UPDATE or MERGE"))
        }
    }
}

/// The key of a few rows that is there twice: compares them with one another, and asks the table for each.
async fn looked_up(
    columns: &[String],
    before: &Arc<Table>,
    added: &Arc<Table>,
    state: &LazyState,
) -> Result<Option<Vec<String>>> {
    let mut keys: HashSet<Vec<ScalarValue>> = HashSet::new();
    for rows in added.batches() {
        let rows = rows?;
        for row in 0..rows.num_rows() {
            let values = columns.iter().map(|column| {
                let values = rows.column_by_name(column);
                let values =
                    values.ok_or_else(|| Error::internal("a key names a column that is not there"))?;
                ScalarValue::try_from_array(values, row).map_err(classify)
            });
            let values: Vec<ScalarValue> = values.collect::<Result<_>>()?;
            // Null is nobody's equal.
            if values.iter().any(ScalarValue::is_null) {
                continue;
            }
            let told = || values.iter().map(ScalarValue::to_string).collect();
            let meant: Vec<ScalarValue> = values.iter().map(as_compared).collect();
            if keys.contains(&meant) {
                return Ok(Some(told()));
            }
            keys.insert(meant);
        }
    }
    if before.rows() == 0 {
        return Ok(None);
    }
    if let Some(found) = indexed(columns, before, &keys) {
        return first_of(&found);
    }
    let wanted = keys.into_iter().filter_map(|values| {
        columns.iter().zip(values).map(|(name, value)| ident(name).eq(lit(value))).reduce(Expr::and)
    });
    let Some(wanted) = wanted.reduce(Expr::or) else { return Ok(None) };
    let plan = LogicalPlanBuilder::scan("there", provider_as_source(before.provider()), None)
        .and_then(|scan| scan.filter(wanted))
        .and_then(|found| found.project(columns.iter().map(ident)))
        .and_then(|keys| keys.limit(0, Some(1)))
        .and_then(LogicalPlanBuilder::build)
        .map_err(classify)?;
    let physical =
        cooperative::ensure(state.create_physical_plan(&plan).await.map_err(classify)?).map_err(classify)?;
    let context = Arc::new(TaskContext::from(&**state));
    first_of(&collect(physical, context).await.map_err(classify)?)
}

/// The rows of the table that have one of these keys, by the index of the key. `None` where that does not tell.
fn indexed(columns: &[String], before: &Table, keys: &HashSet<Vec<ScalarValue>>) -> Option<Vec<RecordBatch>> {
    let (definition, schema) = (before.definition(), before.operator_schema());
    let places = columns.iter().map(|name| definition.position(name)).collect::<Option<Vec<usize>>>()?;
    let is_plain = places.iter().all(|place| {
        let field = schema.field(*place);
        field.metadata().is_empty() && has_plain_equality(field.data_type())
    });
    if !is_plain {
        return None;
    }
    let found = keys.iter().map(|values| {
        let values = places.iter().zip(values).map(|(place, value)| Some((*place, value.to_array().ok()?)));
        let mut key = values.collect::<Option<Vec<(usize, ArrayRef)>>>()?;
        // As lookups of queries have it, which share the index.
        key.sort_unstable_by_key(|(place, _)| *place);
        match before.find_rows(&key, &places).ok()? {
            None if before.rows() <= MAX_INDEXED_ROWS => {
                let task = QueryTask::current();
                let goes_on = || task.as_ref().is_none_or(|task| task.check().is_ok());
                let found = run_blocking(|| before.index_and_find_rows(&key, &places, &goes_on));
                found.ok()?.map(|found| found.rows)
            }
            found => found,
        }
    });
    found.collect()
}

/// A value in the form that all its equals have: both zeros are equal, and all that are no numbers.
fn as_compared(value: &ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float32(Some(number)) if *number == 0.0 => ScalarValue::Float32(Some(0.0)),
        ScalarValue::Float32(Some(number)) if number.is_nan() => ScalarValue::Float32(Some(f32::NAN)),
        ScalarValue::Float64(Some(number)) if *number == 0.0 => ScalarValue::Float64(Some(0.0)),
        ScalarValue::Float64(Some(number)) if number.is_nan() => ScalarValue::Float64(Some(f64::NAN)),
        other => other.clone(),
    }
}

/// The key of many rows that is there twice: by joining them with the table.
async fn joined(
    columns: &[String],
    before: &Arc<Table>,
    added: &Arc<Table>,
    state: &LazyState,
) -> Result<Option<Vec<String>>> {
    let mut config = SessionConfig::new();
    // Scans leave out what columns are marked with, and the plan expects it of keys of groups.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    let context = SessionContext::new_with_config_rt(config, state.runtime_env());
    context.register_table("\"new\"", added.provider()).map_err(classify)?;
    context.register_table("\"old\"", before.provider()).map_err(classify)?;
    let schema = added.definition().schema();
    let parts = |table: &str| -> Vec<String> {
        let part = |name: &String| {
            let column = format!("{table}.\"{}\"", name.replace('"', "\"\""));
            match schema.field_with_name(name) {
                // As in `as_compared`.
                Ok(field) if field.data_type().is_floating() => {
                    format!("nanvl({column} + 0.0, CAST('NaN' AS DOUBLE))")
                }
                _ => column,
            }
        };
        columns.iter().map(part).collect()
    };
    let (old, new) = (parts("o"), parts("n"));
    let same: Vec<String> = old.iter().zip(&new).map(|(old, new)| format!("{old} = {new}")).collect();
    let known: Vec<String> = new.iter().map(|part| format!("{part} IS NOT NULL")).collect();
    let (columns, same, known) = (new.join(", "), same.join(" AND "), known.join(" AND "));
    for sql in [
        format!(
            "SELECT {columns} FROM \"new\" n WHERE {known} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
        ),
        format!("SELECT {columns} FROM \"old\" o JOIN \"new\" n ON {same} LIMIT 1"),
    ] {
        let rows = context.sql(&sql).await.map_err(classify)?.collect().await.map_err(classify)?;
        if let Some(key) = first_of(&rows)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

fn first_of(rows: &[RecordBatch]) -> Result<Option<Vec<String>>> {
    let Some(rows) = rows.iter().find(|rows| rows.num_rows() > 0) else { return Ok(None) };
    let values = rows.columns().iter().map(|column| array_value_to_string(column, 0));
    values.collect::<Result<_, _>>().map(Some).map_err(|error| classify(error.into()))
}
