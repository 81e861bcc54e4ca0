//! Rows on their way into a table: cast to its types, and held against its constraints. An error names the column.

use crate::error::classify;
use crate::plan;
use crate::state::LazyState;
use bowshot_api::{Error, Result};
use bowshot_storage::tables::{Check, Definition, EntryName, Table};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{CastOptions, cast_with_options, filter_record_batch, is_null};
use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::sync::Arc;

/// What becomes of values that their column can only take in part: `1.5` in a column of whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Casts {
    /// As an assignment in SQL does: the rest is cut off.
    Assign,
    /// They are refused.
    Exact,
}

/// Holds rows against the definition of a table.
pub(crate) struct Fit {
    table: EntryName,
    casts: Casts,
    schema: SchemaRef,
    checks: Vec<(String, Arc<dyn PhysicalExpr>)>,
}

impl Fit {
    pub(crate) fn new(
        table: &EntryName,
        definition: &Definition,
        casts: Casts,
        state: &LazyState,
    ) -> Result<Self> {
        let schema = definition.schema();
        let checks = definition.checks.iter();
        let checks = checks.map(|check| Ok((check.name.clone(), plan_check(&schema, check, state)?)));
        let checks = checks.collect::<Result<_>>()?;
        Ok(Self { table: table.clone(), casts, schema, checks })
    }

    /// Rows whose columns are those of the table in order, as the table has them.
    ///
    /// # Errors
    /// `Invalid` for a value that does not fit, naming the column.
    pub(crate) fn fit(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let fields = self.schema.fields().iter();
        let columns = fields.zip(rows.columns()).map(|(field, column)| {
            self.check_null(column, field)?;
            let fitted = match self.casts {
                Casts::Assign => cast(column, field),
                Casts::Exact => cast_exactly(column, field),
            };
            fitted.map_err(|error| self.in_table(&error))
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let fitted = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| classify(error.into()))?;
        for (name, check) in &self.checks {
            self.hold(name, check, &fitted)?;
        }
        Ok(fitted)
    }

    fn check_null(&self, column: &ArrayRef, field: &FieldRef) -> Result<()> {
        if field.is_nullable() || column.logical_null_count() == 0 {
            return Ok(());
        }
        let name = field.name();
        Err(Error::invalid(format!("column `{name}` of table `{}` must not be NULL", self.table))
            .with_hint(format!("give `{name}` a value in every row, or a default in the table")))
    }

    fn in_table(&self, error: &Error) -> Error {
        let told = Error::new(error.kind(), format!("table `{}`: {}", self.table, error.message()));
        match error.hint() {
            Some(hint) => told.with_hint(hint),
            None => told,
        }
    }

    /// A check holds where it is true or unknown.
    fn hold(&self, name: &str, check: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<()> {
        let held =
            check.evaluate(rows).and_then(|held| held.into_array(rows.num_rows())).map_err(classify)?;
        let held = held.as_boolean();
        if held.false_count() == 0 {
            return Ok(());
        }
        let row = held.iter().position(|held| held == Some(false)).unwrap_or(0);
        Err(Error::invalid(format!("a row violates constraint `{name}` of table `{}`", self.table))
            .with_hint(format!("the first such row is number {} of its batch", row + 1)))
    }
}

/// A column in the type of a field.
///
/// # Errors
/// `Invalid`, naming the column, for types that cannot be cast and for values that would be lost.
pub(crate) fn cast(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, field.data_type(), &strict).map_err(|error| {
        Error::invalid(format!(
            "column `{}` is {}, which cannot take these values of type {}: {error}",
            field.name(),
            field.data_type(),
            column.data_type()
        ))
        .with_hint("cast the values in the statement, or send the type of the column")
    })
}

/// The same where nothing may be lost.
///
/// # Errors
/// As [`cast`], and for a value that the type can only take in part.
pub(crate) fn cast_exactly(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let fitted = cast(column, field)?;
    if let DataType::Dictionary(_, values) = column.data_type() {
        let plain = cast_with_options(column, values, &CastOptions::default());
        check_exact(&plain.map_err(|error| classify(error.into()))?, &fitted, field)?;
    } else {
        check_exact(column, &fitted, field)?;
    }
    Ok(fitted)
}

/// Fails if a cast has lost something: the values cast back must be those that came.
fn check_exact(given: &ArrayRef, taken: &ArrayRef, field: &FieldRef) -> Result<()> {
    if !loses(given.data_type(), taken.data_type()) {
        return Ok(());
    }
    let lenient = CastOptions { safe: true, ..CastOptions::default() };
    let back =
        cast_with_options(taken, given.data_type(), &lenient).map_err(|error| classify(error.into()))?;
    let same = eq(&back, given).map_err(|error| classify(error.into()))?;
    let lost = same.iter().position(|same| same == Some(false));
    let Some(row) = lost else { return Ok(()) };
    let value = array_value_to_string(given, row).unwrap_or_default();
    Err(Error::invalid(format!(
        "column `{}` is {}, which cannot take {value}",
        field.name(),
        field.data_type()
    ))
    .with_hint("round the values first, or send them in the type of the column"))
}

/// Whether a cast that does not fail may still lose a part of a value.
fn loses(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Duration, Time32, Time64, Timestamp,
    };
    let scale = |t: &DataType| match t {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
            Some(*scale)
        }
        _ => None,
    };
    let is_time =
        |t: &DataType| matches!(t, Timestamp(..) | Time32(_) | Time64(_) | Duration(_) | Date32 | Date64);
    if from.is_floating() {
        // Another width of float rounds, which is what floats do.
        return !to.is_floating() && !matches!(to, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    }
    match (scale(from), scale(to)) {
        (Some(from), Some(to)) => from > to,
        (Some(from), None) => from > 0 && to.is_integer(),
        (None, Some(_)) => false,
        (None, None) => (is_time(from) && is_time(to)) || (from.is_integer() && to.is_floating()),
    }
}

/// A check as an expression over the rows of a table.
///
/// # Errors
/// For expressions that are none over one row, or are no condition.
pub(crate) fn plan_check(
    schema: &SchemaRef,
    check: &Check,
    state: &SessionState,
) -> Result<Arc<dyn PhysicalExpr>> {
    let columns = DFSchema::try_from(Arc::clone(schema)).map_err(classify)?;
    let text = plan::kept(&check.sql, state).map_err(classify)?;
    let planned = state.create_logical_expr(&text, &columns).map_err(classify)?;
    let planned = state.create_physical_expr(planned, &columns).map_err(classify)?;
    match planned.data_type(schema).map_err(classify)? {
        DataType::Boolean => Ok(planned),
        other => Err(Error::invalid(format!("constraint `{}` is no condition but {other}", check.name))),
    }
}

/// Whether a check names a column.
pub(crate) fn mentions(sql: &str, column: &str) -> bool {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().unwrap_or_default();
    tokens.iter().any(|token| match token {
        Token::Word(word) if word.quote_style.is_some() => word.value == column,
        Token::Word(word) => word.value.to_ascii_lowercase() == column,
        _ => false,
    })
}

/// Fails if a column that is to have no nulls has some.
pub(crate) fn check_nulls(table: &Table, field: &FieldRef) -> Result<()> {
    let Some(position) = table.definition().position(field.name()) else { return Ok(()) };
    if field.is_nullable() {
        return Ok(());
    }
    for rows in table.batches() {
        if rows?.column(position).logical_null_count() > 0 {
            return Err(Error::invalid(format!("column `{}` has rows without a value", field.name()))
                .with_hint("give them one first with UPDATE"));
        }
    }
    Ok(())
}

/// Fails if rows that are there do not hold a new check.
pub(crate) fn check_all(name: &EntryName, table: &Table, check: &Check, state: &LazyState) -> Result<()> {
    let definition = Definition { checks: vec![check.clone()], ..table.definition().as_ref().clone() };
    let fit = Fit::new(name, &definition, Casts::Assign, state)?;
    table.batches().try_for_each(|rows| fit.fit(&rows?).map(drop))
}

/// The rows whose first column is null, and the others.
pub(crate) fn split_by_null(rows: &RecordBatch) -> Result<(RecordBatch, RecordBatch)> {
    let nulls = is_null(rows.column(0)).map_err(|error| classify(error.into()))?;
    let others = datafusion::arrow::compute::not(&nulls).map_err(|error| classify(error.into()))?;
    let take = |mask| filter_record_batch(rows, mask).map_err(|error| classify(error.into()));
    Ok((take(&nulls)?, take(&others)?))
}
