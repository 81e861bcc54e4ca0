//! Rows on their way into a table: cast to its types, and checked against its constraints. An error names the column.

use crate::catalog::identity;
use crate::catalog::lazy_state::LazyState;
use crate::error::classify;
use crate::plan::{self, row_expressions};
use crate::secured_scan;
use bowshot_api::variant::is_variant_type;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_kernels::nan::with_one_nan;
use bowshot_sql::{Dialect, DialectName};
use bowshot_tables::{Check, Definition, EntryName, Generated, Numbering, Table, TableStore};
use bowshot_types::declared::Declared;
use bowshot_types::{lacks_assignment, storage_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{CastOptions, cast_with_options, filter_record_batch, is_null, max};
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Int64Type, Schema, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{Expr, Ident, visit_expressions};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// What becomes of values that their column can only take in part: `1.5` in a column of whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Casts {
    /// As an assignment in SQL does: they are rounded.
    Assign,
    /// They are refused.
    Exact,
}

/// Holds rows against the definition of a table.
pub(crate) struct Fit {
    table: EntryName,
    casts: Casts,
    /// That of the session, in which times without a zone are meant.
    zone: Arc<str>,
    schema: SchemaRef,
    /// The columns as SQL has them, which checks are about.
    meant: SchemaRef,
    /// What is declared for each column beyond its type.
    declared: Vec<Option<Declared>>,
    /// Columns that are computed of the others.
    generated: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    /// Columns that number themselves, and the greatest number that came.
    numbered: Vec<(usize, Numbering, AtomicI64)>,
    checks: Vec<(String, Arc<dyn PhysicalExpr>)>,
    /// Whether who writes sees all of the table: errors of what is computed of a row may have any value of it in them.
    sees_all: bool,
    /// What rows must fulfil that somebody writes who sees a part of the table.
    policy: Option<Arc<dyn PhysicalExpr>>,
}

impl Fit {
    pub(crate) fn new(
        table: &EntryName,
        definition: &Definition,
        casts: Casts,
        state: &LazyState,
    ) -> Result<Self> {
        let schema = definition.schema();
        let meant = storage_type::schema(definition);
        let operands = storage_type::operand_schema(definition);
        let columns = DFSchema::try_from(Arc::clone(&operands)).map_err(classify)?;
        let checks = definition.checks.iter();
        let checks = checks.map(|check| Ok((check.name.clone(), plan_check(&columns, check, state)?)));
        let checks = checks.collect::<Result<_>>()?;
        let declared = definition.columns.iter().map(|column| Declared::of(&column.field)).collect();
        let generated = definition.generated.iter().filter_map(|generated| {
            let position = definition.position(&generated.column)?;
            Some(plan_generated(&columns, generated, state).map(|planned| (position, planned)))
        });
        let generated = generated.collect::<Result<_>>()?;
        let numbered = definition.identities.iter().filter_map(|identity| {
            let position = definition.position(&identity.column)?;
            Some((position, identity::numbering(identity, definition.is_durable()), AtomicI64::new(i64::MIN)))
        });
        let numbered = numbered.collect();
        let policy = match state.access().written(table) {
            Some(filters) => {
                Some(secured_scan::plan_filter(table, &filters, &operands, state).map_err(classify)?)
            }
            None => None,
        };
        let (table, sees_all) = (table.clone(), state.access().check_whole(table).is_ok());
        let zone = state.zone();
        Ok(Self {
            table,
            casts,
            zone,
            schema,
            meant,
            declared,
            generated,
            numbered,
            checks,
            sees_all,
            policy,
        })
    }

    /// Rows whose columns are those of the table in order, as the table has them.
    ///
    /// # Errors
    /// `Invalid` for a value that does not fit, naming the column.
    pub(crate) fn fit(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.schema.fields().iter().zip(&self.declared).zip(rows.columns()).enumerate();
        let columns = columns.map(|(place, ((field, declared), column))| {
            if self.generated.iter().any(|(computed, _)| *computed == place) {
                return Ok(new_null_array(field.data_type(), rows.num_rows()));
            }
            self.check_null(column, field)?;
            self.one(column, (place, field), declared.as_ref())
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let columns = self.computed(columns, rows.num_rows())?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let fitted = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| classify(error.into()))?;
        if !self.checks.is_empty() || self.policy.is_some() {
            let meant = self.as_meant(fitted.columns(), rows.num_rows())?;
            for (name, check) in &self.checks {
                self.hold(name, check, &meant)?;
            }
            if let Some(policy) = &self.policy {
                self.allow(policy, &meant)?;
            }
        }
        Ok(fitted)
    }

    /// A column in the type and the bounds of its field.
    fn one(
        &self,
        column: &ArrayRef,
        (place, field): (usize, &FieldRef),
        declared: Option<&Declared>,
    ) -> Result<ArrayRef> {
        // First what it means, then as it is kept.
        let meant = self.meant.fields().get(place).unwrap_or(field);
        let of_zone = storage_type::assigned(column, meant.data_type(), &self.zone);
        let of_zone = of_zone.map_err(|error| in_column(&classify(error), field));
        let fitted = of_zone.and_then(|column| match self.casts {
            Casts::Assign => assign(&column, meant),
            Casts::Exact => cast_exactly(&column, meant),
        });
        let fitted = fitted.and_then(|fitted| {
            let fitted = with_one_nan(&fitted).map_err(|error| classify(error.into()))?;
            storage_type::converted(&fitted, field.data_type()).map_err(|error| classify(error.into()))
        });
        let held = fitted.and_then(|fitted| match declared {
            Some(declared) => declared.assign(&fitted).map_err(|error| in_column(&error, field)),
            None => Ok(fitted),
        });
        held.map_err(|error| inside(&error, &format!("table `{}`", self.table)))
    }

    /// The columns with those that are computed of the others, and a note of the numbers that rows brought.
    fn computed(&self, mut columns: Vec<ArrayRef>, rows: usize) -> Result<Vec<ArrayRef>> {
        for (place, _, greatest) in &self.numbered {
            let numbers = columns.get(*place).and_then(|column| cast_to_numbers(column));
            if let Some(found) = numbers.as_ref().and_then(|numbers| max(numbers.as_primitive::<Int64Type>()))
            {
                greatest.fetch_max(found, Ordering::Relaxed);
            }
        }
        if self.generated.is_empty() {
            return Ok(columns);
        }
        let row = self.as_meant(&columns, rows)?;
        for (place, expr) in &self.generated {
            let values = self.generate(*place, expr, &row);
            let values = values.map_err(|error| self.told(error, "a generated column cannot be computed"))?;
            if let Some(slot) = columns.get_mut(*place) {
                *slot = values;
            }
        }
        Ok(columns)
    }

    /// The values of a column that is computed of the others.
    fn generate(&self, place: usize, expr: &Arc<dyn PhysicalExpr>, row: &RecordBatch) -> Result<ArrayRef> {
        let field = self.schema.fields().get(place).ok_or_else(|| Error::internal("no field"))?;
        let values = expr.evaluate(row).and_then(|values| values.into_array(row.num_rows()));
        let declared = self.declared.get(place).and_then(Option::as_ref);
        let values = self.one(&values.map_err(classify)?, (place, field), declared)?;
        self.check_null(&values, field)?;
        Ok(values)
    }

    /// An error of what is computed of a row, as it may be told: to who sees a part of the table, without values.
    fn told(&self, error: Error, what: &str) -> Error {
        if self.sees_all {
            return error;
        }
        let plain = Error::new(error.kind(), format!("{what} for a row of table `{}`", self.table));
        match error.reason() {
            Some(reason) => plain.with_reason(reason),
            None => plain,
        }
    }

    /// The columns in the types that SQL has for them, perhaps with nulls that must not stay.
    fn as_meant(&self, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let open = self.meant.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let open = Arc::new(Schema::new(open.collect::<Fields>()));
        let columns = columns.iter().zip(open.fields()).map(|(column, field)| {
            if column.data_type() == field.data_type() {
                return Ok(Arc::clone(column));
            }
            storage_type::converted(column, field.data_type())
        });
        let columns =
            columns.collect::<std::result::Result<Vec<_>, _>>().map_err(|error| classify(error.into()))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(open, columns, &options).map_err(|error| classify(error.into()))
    }

    /// The numbers that the first and the last row have in the column that numbers itself, of rows that fit.
    pub(crate) fn numbers_in(&self, rows: &RecordBatch) -> Option<(i64, i64)> {
        let (place, ..) = self.numbered.first()?;
        let numbers = cast_to_numbers(rows.columns().get(*place)?)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        let last = numbers.len().checked_sub(1)?;
        (numbers.null_count() == 0).then(|| (numbers.value(0), numbers.value(last)))
    }

    /// Lets the numbers that columns give themselves go on behind those that rows brought. Blocks.
    pub(crate) fn settle(&self, store: &TableStore) -> Result<()> {
        for (_, numbering, greatest) in &self.numbered {
            let greatest = greatest.load(Ordering::Relaxed);
            if greatest > i64::MIN && numbering.step > 0 {
                store.skip_numbers(numbering, greatest)?;
            }
        }
        Ok(())
    }

    fn check_null(&self, column: &ArrayRef, field: &FieldRef) -> Result<()> {
        if field.is_nullable() || column.logical_null_count() == 0 {
            return Ok(());
        }
        let name = field.name();
        Err(Error::invalid(format!("column `{name}` of table `{}` must not be NULL", self.table))
            .with_reason(Reason::NotNullViolation)
            .with_hint(format!("give `{name}` a value in every row, or a default in the table")))
    }

    /// Whoever sees a part of a table writes rows of that part alone.
    fn allow(&self, policy: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<()> {
        let held = policy.evaluate(rows).and_then(|held| held.into_array(rows.num_rows()));
        let held = held.is_ok_and(|held| {
            let held = held.as_boolean();
            held.true_count() == held.len()
        });
        if held {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Denied,
            format!("a row would be one that you may not see in `{}`", self.table),
        )
        .with_hint("a row policy of the table says which rows are yours"))
    }

    fn hold(&self, name: &str, check: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<()> {
        let held = check.evaluate(rows).and_then(|held| held.into_array(rows.num_rows()));
        let held = held.map_err(|error| {
            self.told(classify(error), &format!("constraint `{name}` cannot be computed"))
        })?;
        let held = held.as_boolean();
        if held.false_count() == 0 {
            return Ok(());
        }
        let error = Error::invalid(format!("a row violates constraint `{name}` of table `{}`", self.table))
            .with_reason(Reason::CheckViolation);
        if !self.sees_all {
            return Err(error);
        }
        let row = held.iter().position(|held| held == Some(false)).unwrap_or(0);
        Err(error.with_hint(format!("the first such row is number {} of its batch", row + 1)))
    }
}

fn in_column(error: &Error, field: &FieldRef) -> Error {
    inside(error, &format!("column `{}`", field.name()))
}

fn inside(error: &Error, place: &str) -> Error {
    error.duplicate().with_message(format!("{place}: {}", error.message()))
}

/// A column in the type of a field, as an assignment has it: what a whole number cannot take is rounded.
fn assign(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    if lacks_assignment(column.data_type(), field.data_type()) {
        return Err(cannot_take(field, &values_of(column.data_type()), Reason::DatatypeMismatch));
    }
    if !bowshot_types::casts::is_whole(field.data_type()) {
        return cast(column, field);
    }
    let whole = bowshot_types::functions::without_fractions(column);
    cast(whole.as_ref().unwrap_or(column), field)
}

fn cannot_take(field: &FieldRef, found: &str, reason: Reason) -> Error {
    let (name, wanted) = (field.name(), bowshot_types::names::sql_type(field.data_type()));
    Error::invalid(format!("column `{name}` is {wanted}, which cannot take {found}"))
        .with_reason(reason)
        .with_hint("cast the values in the statement, or send the type of the column")
}

fn values_of(data_type: &DataType) -> String {
    format!("values of type {}", bowshot_types::names::sql_type(data_type))
}

/// A column in the type of a field.
///
/// # Errors
/// `Invalid`, naming the column, for types that cannot be cast and for values that would be lost.
pub(crate) fn cast(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    storage_type::converted(column, field.data_type()).map_err(|error| {
        let error = classify(error.into());
        if is_variant_type(field.data_type()) {
            return in_column(&error, field)
                .with_hint("text is read as JSON; `to_variant(…)` keeps it a text");
        }
        let is_text = column.data_type().is_string();
        let reason = error.reason().filter(|reason| *reason == Reason::OutOfRange || is_text);
        let found = match first_lost(column, field.data_type()) {
            Some(found) => found,
            None if reason == Some(Reason::OutOfRange) => return in_column(&error, field),
            None => values_of(column.data_type()),
        };
        cannot_take(field, &found, reason.unwrap_or(Reason::DatatypeMismatch))
    })
}

/// The first value that a type has no place for.
fn first_lost(column: &ArrayRef, data_type: &DataType) -> Option<String> {
    let lenient = CastOptions { safe: true, ..CastOptions::default() };
    let taken = cast_with_options(column, data_type, &lenient).ok()?;
    let row = (0..column.len()).find(|row| taken.is_null(*row) && column.is_valid(*row))?;
    array_value_to_string(column, row).ok()
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
    Err(cannot_take(field, &value, Reason::InvalidText)
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
        return !(to.is_floating() || to.is_string() || is_variant_type(to));
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
    columns: &DFSchema,
    check: &Check,
    state: &SessionState,
) -> Result<Arc<dyn PhysicalExpr>> {
    let planned = plan::kept_expression(state, &check.sql, columns).map_err(classify)?;
    let planned = row_expressions::physical(state, planned, columns).map_err(classify)?;
    match planned.data_type(columns.as_arrow()).map_err(classify)? {
        DataType::Boolean => Ok(planned),
        other => Err(Error::invalid(format!("constraint `{}` is no condition but {other}", check.name))
            .with_reason(Reason::DatatypeMismatch)),
    }
}

/// The values of a computed column as an expression over the rows of a table.
///
/// # Errors
/// For expressions that are none over one row, or give another value each time.
pub(crate) fn plan_generated(
    columns: &DFSchema,
    generated: &Generated,
    state: &SessionState,
) -> Result<Arc<dyn PhysicalExpr>> {
    let planned = plan::kept_expression(state, &generated.sql, columns).map_err(classify)?;
    if planned.is_volatile() {
        return Err(Error::invalid(format!(
            "column `{}` cannot be computed by what gives another value each time",
            generated.column
        )));
    }
    if planned.column_refs().iter().any(|column| column.name == generated.column) {
        return Err(Error::invalid(format!("column `{}` cannot be computed of itself", generated.column)));
    }
    row_expressions::physical(state, planned, columns).map_err(classify)
}

fn cast_to_numbers(column: &ArrayRef) -> Option<ArrayRef> {
    cast_with_options(column, &DataType::Int64, &CastOptions { safe: true, ..CastOptions::default() }).ok()
}

/// Whether a check names a column; functions and types are none. One that cannot be read may name any.
pub(crate) fn mentions(sql: &str, column: &str) -> bool {
    let Ok(expr) = bowshot_sql::parse_expression(sql, Dialect::new(DialectName::Ansi)) else { return true };
    let is_column = |name: &Ident| match name.quote_style {
        Some(_) => name.value == column,
        None => name.value.to_lowercase() == column.to_lowercase(),
    };
    let found = visit_expressions(&expr, |expr| match expr {
        Expr::Identifier(name) if is_column(name) => ControlFlow::Break(()),
        Expr::CompoundIdentifier(parts) if parts.iter().any(is_column) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
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
                .with_reason(Reason::NotNullViolation)
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
