//! The rows of `INSERT … VALUES` with nothing but literals, without a plan: optimising one and making operators of it takes
//! longer than all the rest of such a statement.

use crate::error::classify;
use bowshot_api::Result;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, LogicalPlan, Projection, Values};
use datafusion::physical_expr::create_physical_expr;
use std::sync::Arc;

/// Rows up to which planning is what takes the time.
const MAX_ROWS: usize = 1_000;
/// Digits of the greatest REAL.
const MAX_FLOAT_DIGITS: usize = 39;

/// The rows of a plan that computes nothing: projections that name, arrange and cast the columns of a few rows of literals.
/// They come in their own types. `None` for any other plan, and where a literal cannot be cast by Arrow alone: a plan knows
/// more forms, or says what is wrong.
///
/// # Errors
/// `Invalid` for a literal that is no value.
pub(crate) fn rows(plan: &LogicalPlan) -> Result<Option<RecordBatch>> {
    match plan {
        LogicalPlan::Values(values) => values_of(values),
        LogicalPlan::Projection(projection) if projection.expr.iter().all(is_plain) => {
            let Some(input) = rows(&projection.input)? else { return Ok(None) };
            Ok(projected(projection, &input).ok())
        }
        _ => Ok(None),
    }
}

/// Whether an expression is a column or literal, with another name or type at the most.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_plain(&alias.expr),
        Expr::Cast(cast) => is_plain(&cast.expr) && is_cast_by_arrow(cast),
        other => is_literal(other),
    }
}

/// Whether a cast of a literal means in Arrow what it means in SQL.
pub(super) fn is_cast_by_arrow(cast: &Cast) -> bool {
    let data_type = cast.field.data_type();
    match cast.expr.as_ref() {
        Expr::Literal(ScalarValue::Null, _) => true,
        // `'\x41'` is one byte.
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if data_type.is_binary() => !text.contains('\\'),
        // SQL reads more forms.
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if *data_type == DataType::Date32 => {
            text.len() == 10 && text.as_bytes().get(4) == Some(&b'-')
        }
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if matches!(data_type, DataType::Time64(_)) => {
            text.len() == 8 && text.as_bytes().get(5) == Some(&b':')
        }
        // Arrow makes numbers that are too large infinite.
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if data_type.is_floating() => {
            text.len() < MAX_FLOAT_DIGITS && !text.contains(['e', 'E'])
        }
        Expr::Literal(ScalarValue::Float64(Some(number)), _) if *data_type == DataType::Float32 => {
            number.abs() <= f64::from(f32::MAX)
        }
        Expr::Negative(_) | Expr::Literal(ScalarValue::Decimal256(..), _)
            if *data_type == DataType::Float32 =>
        {
            false
        }
        _ => !is_read(data_type),
    }
}

/// Whether Arrow reads texts of a type, such as moments, intervals and arrays, in other forms than SQL does.
pub(crate) fn is_read(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Interval(_) | DataType::List(_))
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Alias(alias) => is_literal(&alias.expr),
        Expr::Cast(cast) => is_literal(&cast.expr) && is_cast_by_arrow(cast),
        Expr::Negative(inner) => is_literal(inner),
        _ => false,
    }
}

fn values_of(values: &Values) -> Result<Option<RecordBatch>> {
    if values.values.len() > MAX_ROWS || !values.values.iter().flatten().all(is_literal) {
        return Ok(None);
    }
    let nothing = no_columns(1)?;
    written_rows(values, |cell| evaluated(cell, &DFSchema::empty(), &nothing))
}

/// Rows that are written out, where `evaluate` gives each of their values. `None` if one has another type than its column.
///
/// # Errors
/// From computing the values.
pub(super) fn written_rows(
    values: &Values,
    evaluate: impl Fn(&Expr) -> Result<ColumnarValue>,
) -> Result<Option<RecordBatch>> {
    let rows = &values.values;
    let columns = values.schema.fields().iter().enumerate().map(|(index, field)| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| match evaluate(cell)? {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0).map_err(classify),
        });
        let cells: Vec<ScalarValue> = cells.collect::<Result<_>>()?;
        let same = cells.iter().all(|cell| cell.data_type() == *field.data_type());
        if !same {
            // Coercion would find their common type.
            return Ok(None);
        }
        ScalarValue::iter_to_array(cells).map(Some).map_err(classify)
    });
    let Some(columns) = columns.collect::<Result<Option<Vec<ArrayRef>>>>()? else { return Ok(None) };
    batch(values.schema.as_ref(), columns, rows.len()).map(Some)
}

fn projected(projection: &Projection, input: &RecordBatch) -> Result<RecordBatch> {
    let columns = projection.expr.iter().map(|expr| {
        let value = evaluated(uncast(expr), projection.input.schema(), input)?;
        value.into_array(input.num_rows()).map_err(classify)
    });
    batch(projection.schema.as_ref(), columns.collect::<Result<_>>()?, input.num_rows())
}

/// The column under its cast to the type of the table's column: the table casts by itself, and names it when it cannot.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => uncast(&alias.expr),
        Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Column(_)) => &cast.expr,
        other => other,
    }
}

/// The value of a planned expression for some rows.
///
/// # Errors
/// From computing it.
pub(crate) fn evaluated(expr: &Expr, schema: &DFSchema, rows: &RecordBatch) -> Result<ColumnarValue> {
    evaluated_within(&ExecutionProps::new(), (expr, schema), rows)
}

/// The same with what functions are told of their statement.
///
/// # Errors
/// As [`evaluated`].
pub(super) fn evaluated_within(
    statement: &ExecutionProps,
    (expr, schema): (&Expr, &DFSchema),
    rows: &RecordBatch,
) -> Result<ColumnarValue> {
    let physical = create_physical_expr(expr, schema, statement, &PhysicalPlanningContext::default());
    let physical = physical.map_err(classify)?;
    physical.evaluate(rows).map_err(classify)
}

/// Rows without columns.
///
/// # Errors
/// As [`batch`].
pub(super) fn no_columns(rows: usize) -> Result<RecordBatch> {
    batch(&DFSchema::empty(), Vec::new(), rows)
}

/// Columns as a batch. Which of them may be null is the table's to say.
///
/// # Errors
/// None for columns of this number of rows.
pub(crate) fn batch(schema: &DFSchema, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let fields = schema.fields().iter().zip(&columns).map(|(field, column)| {
        field.as_ref().clone().with_data_type(column.data_type().clone()).with_nullable(true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| classify(error.into()))
}
