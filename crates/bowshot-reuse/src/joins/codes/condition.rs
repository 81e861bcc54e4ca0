//! Conditions on texts as conditions on their codes.

use super::functions::code_is_in;
use super::{code_name, texts};
use crate::cache::Loaded;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use std::sync::Arc;

/// Rows for each text at least: with fewer, asking all texts on the planner's thread costs more than it saves.
const ROWS_PER_TEXT: usize = 16;

/// A condition on one column that has codes, as one that takes the same rows by these. `None` for all others, and for one
/// that takes rows without a text, or that fails for a text.
///
/// What it is shown as does not tell how many texts it takes: there may be some among them that its reader may not see.
pub(in crate::joins) fn over_codes(
    condition: &Expr,
    rows: &Loaded,
    options: &Arc<ConfigOptions>,
) -> Option<Expr> {
    let columns = condition.column_refs();
    let mut columns = columns.into_iter();
    let (Some(column), None) = (columns.next(), columns.next()) else { return None };
    let texts = texts(rows, &column.name)?;
    if texts.len() * ROWS_PER_TEXT > rows.batches.iter().map(RecordBatch::num_rows).sum() {
        return None;
    }
    let codes = Expr::Column(Column::new(column.relation.clone(), code_name(&column.name)?));
    let mut props = ExecutionProps::new();
    props.mark_start_execution(Arc::clone(options));
    let wanted = taken(condition, column, &texts, &props).ok()??;
    // Without a text there is no code: the condition on the code takes no such row.
    let nothing = taken(condition, column, &new_null_array(texts.data_type(), 1), &props).ok()??;
    (!nothing.value(0)).then(|| code_is_in(wanted).call(vec![codes]))
}

/// For each text, whether the condition takes its row.
fn taken(
    condition: &Expr,
    column: &Column,
    texts: &ArrayRef,
    props: &ExecutionProps,
) -> Result<Option<BooleanBuffer>> {
    let schema = Schema::new(vec![Field::new(&column.name, texts.data_type().clone(), true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(texts)])?;
    let qualifiers = vec![column.relation.clone()];
    let schema = DFSchema::from_field_specific_qualified_schema(qualifiers, &batch.schema())?;
    let context = PhysicalPlanningContext::default();
    let condition = create_physical_expr(condition, &schema, props, &context)?;
    let given = condition.evaluate(&batch)?.into_array(batch.num_rows())?;
    Ok(given.as_boolean_opt().map(rows_taken))
}

/// Where a condition is true: neither false nor unknown.
fn rows_taken(given: &BooleanArray) -> BooleanBuffer {
    match given.nulls() {
        Some(known) => given.values() & known.inner(),
        None => given.values().clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joins::codes::{add_codes, shown, shown_schema};
    use datafusion::arrow::array::StringViewArray;
    use datafusion::logical_expr::{col, ident, lit};

    fn rows() -> Loaded {
        let texts = [Some("a"), None, Some("b"), Some("größe"), Some("")];
        let texts: StringViewArray = texts.iter().copied().cycle().take(100).collect();
        let batch = RecordBatch::try_from_iter_with_nullable([("#0.t", Arc::new(texts) as ArrayRef, true)]);
        let batch = batch.expect("a batch");
        let (schema, batches, _) = add_codes(&batch.schema(), &[batch], &|| {}).expect("codes");
        Loaded::in_memory(schema, batches)
    }

    fn given(condition: &Expr, rows: &Loaded) -> BooleanBuffer {
        let batch = shown(&rows.batches[0], &shown_schema(&rows.schema)).expect("numbers");
        let schema = DFSchema::try_from(batch.schema().as_ref().clone()).expect("a schema");
        let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let condition = create_physical_expr(condition, &schema, &props, &context).expect("a condition");
        let given = condition.evaluate(&batch).expect("values").into_array(batch.num_rows());
        rows_taken(given.expect("an array").as_boolean())
    }

    #[test]
    fn the_same_rows_are_taken() {
        let (rows, text) = (rows(), || ident("#0.t"));
        let view = |text: &str| lit(datafusion::scalar::ScalarValue::Utf8View(Some(text.to_owned())));
        for condition in [
            text().eq(view("a")),
            text().eq(view("absent")),
            text().not_eq(view("a")),
            text().gt(view("a")),
            text().in_list(vec![view("b"), view("")], false),
            text().like(view("%r%")),
            text().is_not_null(),
        ] {
            let coded = over_codes(&condition, &rows, &Arc::default()).expect("a condition on codes");
            assert_eq!(given(&coded, &rows), given(&condition, &rows), "{condition}");
            assert_eq!(coded.to_string(), "code_is_in(@0.t)");
        }
    }

    #[test]
    fn other_conditions_stay() {
        let rows = rows();
        for condition in [ident("#0.t").is_null(), col("other").eq(lit(1)), lit(true)] {
            assert_eq!(over_codes(&condition, &rows, &Arc::default()), None, "{condition}");
        }
    }
}
