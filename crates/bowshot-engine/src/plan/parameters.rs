//! Parameters of a statement: which there are, of which types, and how bound rows become values in the plan.

use crate::error::classify;
use crate::plan::parameter_types;
use crate::plan::steps::Steps;
use bowshot_api::{Error, Reason, Result};
use bowshot_formats::extension_types::{EXTENSION, UUID};
use bowshot_kernels::nan::with_one_nan;
use bowshot_types::names::sql_type;
use bowshot_types::{
    are_uuids, casts, functions, is_mysql_assigned, lacks_assignment, mysql_assigned_values, storage_type,
};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::compute::{CastOptions, cast as arrow_cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, IntervalUnit, Schema,
    SchemaRef, TimeUnit,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ParamValues;
use datafusion::common::ScalarValue;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Statement};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// More parameters than this in one statement are a mistake or an attack: `$4000000000` must not make a vector.
const MAX_PARAMETERS: usize = 10_000;

/// A plan whose parameters have the types that the statement gives them, and those parameters.
///
/// # Errors
/// `Invalid` for a number beyond the limit.
pub(crate) fn declared(plan: LogicalPlan) -> Result<(LogicalPlan, SchemaRef)> {
    let plan = parameter_types::inferred(plan)?;
    let parameters = schema(&plan, &plan.get_parameter_fields().map_err(classify)?)?;
    Ok((plan, parameters))
}

/// The parameters of a plan as a schema: one nullable field each.
///
/// `$1`, `$2`, … are in the order of their numbers, gaps filled; named ones (`$name`) in the order of their names. The
/// type is the one that the plan expects. `Utf8` stands for "does not tell". Timestamps are declared in milliseconds:
/// the JDBC driver writes milliseconds whatever the declared unit, and what comes is cast to the plan's unit.
fn schema(plan: &LogicalPlan, wanted: &HashMap<String, Option<FieldRef>>) -> Result<SchemaRef> {
    // `PREPARE p AS SELECT $1` has no parameters itself; `EXECUTE p(1)` brings the values.
    let acting = if let LogicalPlan::Explain(explain) = plan { explain.plan.as_ref() } else { plan };
    if matches!(acting, LogicalPlan::Statement(Statement::Prepare(_))) {
        return Ok(Arc::new(Schema::empty()));
    }
    let mut fields = Vec::with_capacity(wanted.len());
    let numbers: Option<Vec<usize>> = wanted.keys().map(|name| number(name)).collect();
    match numbers {
        Some(numbers) => {
            let count = numbers.into_iter().max().unwrap_or(0);
            if count > MAX_PARAMETERS {
                return Err(Error::invalid(format!(
                    "parameter ${count} is beyond the limit of {MAX_PARAMETERS}"
                )));
            }
            for index in 1..=count {
                let name = format!("${index}");
                let field = wanted.get(&name).and_then(Option::as_ref);
                fields.push(parameter(&name, field));
            }
        }
        None => {
            let mut names: Vec<&String> = wanted.keys().collect();
            names.sort();
            for name in names {
                fields.push(parameter(name, wanted.get(name).and_then(Option::as_ref)));
            }
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

fn number(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse().ok()
}

fn parameter(name: &str, field: Option<&FieldRef>) -> Field {
    let data_type = match field.map(|field| field.data_type()) {
        None | Some(DataType::Null) => DataType::Utf8,
        Some(DataType::Timestamp(_, zone)) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        Some(DataType::Utf8View) => DataType::Utf8,
        Some(DataType::BinaryView) => DataType::Binary,
        Some(DataType::Dictionary(_, value)) => value.as_ref().clone(),
        Some(other) => other.clone(),
    };
    let parameter = Field::new(name, data_type, true);
    match field {
        Some(field) if has_uuids(field) => with_uuids(parameter),
        _ => parameter,
    }
}

/// Whether values are UUIDs that are bytes, or lists of such.
fn has_uuids(field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item) => are_uuids(item),
        _ => are_uuids(field),
    }
}

/// The field that says so, which drivers send texts for.
fn with_uuids(field: Field) -> Field {
    let mark = HashMap::from([(EXTENSION.to_owned(), UUID.to_owned())]);
    match field.data_type() {
        DataType::List(item) => {
            let item = Arc::new(item.as_ref().clone().with_metadata(mark));
            field.with_data_type(DataType::List(item))
        }
        _ => field.with_metadata(mark),
    }
}

/// Checks that a batch of parameters fits the statement: right number of columns, castable types.
///
/// # Errors
/// `Invalid`, naming the parameter.
pub(crate) fn check(plan: &LogicalPlan, expected: &Schema, rows: &RecordBatch) -> Result<()> {
    check_count(expected, rows)?;
    if rows.num_rows() > 0 {
        values(plan, expected, rows, 0)?;
    }
    Ok(())
}

/// Checks that there is a column for each parameter.
///
/// # Errors
/// `Invalid` for another number of columns.
pub(crate) fn check_count(expected: &Schema, rows: &RecordBatch) -> Result<()> {
    let (wanted, given) = (expected.fields().len(), rows.num_columns());
    if wanted == given {
        return Ok(());
    }
    Err(Error::invalid(format!("the statement has {wanted} parameters, but {given} were bound"))
        .with_reason(Reason::WrongParameters)
        .with_hint("bind one column for each parameter"))
}

/// Refuses to run a statement with parameters of which none were bound.
///
/// # Errors
/// `Invalid` if there are any.
pub(crate) fn check_none(expected: &Schema) -> Result<()> {
    let wanted = expected.fields().len();
    if wanted == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!("the statement has {wanted} parameters, but none were bound"))
        .with_reason(Reason::WrongParameters)
        .with_hint("prepare the statement and bind values"))
}

/// All rows of parameters, in the types that the plan expects; each column has the name of its parameter.
///
/// # Errors
/// `Invalid` when values cannot be cast.
pub(crate) fn columns(plan: &LogicalPlan, expected: &Schema, rows: &RecordBatch) -> Result<RecordBatch> {
    let wanted = plan.get_parameter_fields().map_err(classify)?;
    let (mut fields, mut columns) =
        (Vec::with_capacity(rows.num_columns()), Vec::with_capacity(rows.num_columns()));
    for (field, column) in expected.fields().iter().zip(rows.columns()) {
        let target = wanted.get(field.name()).and_then(Option::as_deref);
        let column = cast(field.name(), column, target, Place::Assigned)?;
        let column = with_one_nan(&column).map_err(|error| classify(error.into()))?;
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|error| classify(error.into()))
}

/// One row of parameters put into the plan.
///
/// # Errors
/// `Invalid` when a value cannot be cast to the type that the plan expects, or the plan refuses it.
pub(crate) fn bind(
    plan: &LogicalPlan,
    expected: &Schema,
    rows: &RecordBatch,
    row: usize,
) -> Result<LogicalPlan> {
    bind_values(plan, values(plan, expected, rows, row)?)
}

/// Values put into the plan.
///
/// # Errors
/// `Invalid` when the plan refuses one.
pub(crate) fn bind_values(plan: &LogicalPlan, values: ParamValues) -> Result<LogicalPlan> {
    let bound = plan.clone().with_param_values(values).map_err(classify)?;
    // Nodes keep the schema that they had with untyped parameters unless it is computed again.
    let typed = bound.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Values(values)
            if values.schema.fields().iter().any(|field| field.data_type() == &DataType::Null) =>
        {
            LogicalPlanBuilder::values(values.values)?.build().map(Transformed::yes)
        }
        node => node.recompute_schema().map(Transformed::yes),
    });
    typed.data().map_err(classify)
}

/// The values of one row of parameters, by which those in the plan are replaced.
///
/// # Errors
/// `Invalid` when a value cannot be cast to the type that the plan expects.
pub(crate) fn values(
    plan: &LogicalPlan,
    expected: &Schema,
    rows: &RecordBatch,
    row: usize,
) -> Result<ParamValues> {
    let wanted = plan.get_parameter_fields().map_err(classify)?;
    placed_values(&wanted, &assigned(plan), expected, (rows, row))
}

/// The same of the first row, where all parameters are of these types and none is the value of a column in an INSERT.
///
/// # Errors
/// As [`values`].
pub(crate) fn computed_values(
    wanted: &HashMap<String, Option<FieldRef>>,
    expected: &Schema,
    rows: &RecordBatch,
) -> Result<ParamValues> {
    placed_values(wanted, &HashSet::new(), expected, (rows, 0))
}

fn placed_values(
    wanted: &HashMap<String, Option<FieldRef>>,
    assigned: &HashSet<&str>,
    expected: &Schema,
    (rows, row): (&RecordBatch, usize),
) -> Result<ParamValues> {
    let mut values = HashMap::with_capacity(wanted.len());
    let mut list = Vec::with_capacity(wanted.len());
    for (field, column) in expected.fields().iter().zip(rows.columns()) {
        let target = wanted.get(field.name()).and_then(Option::as_deref);
        let is_assigned = assigned.contains(field.name().as_str());
        let place = if is_assigned { Place::Assigned } else { Place::Computed };
        let column = cast(field.name(), &column.slice(row, 1), target, place)?;
        let column = with_one_nan(&column).map_err(|error| classify(error.into()))?;
        let value = ScalarValue::try_from_array(column.as_ref(), 0).map_err(classify)?;
        list.push(ScalarAndMetadata::from(value.clone()));
        values.insert(field.name().trim_start_matches('$').to_owned(), ScalarAndMetadata::from(value));
    }
    let numbered = expected.fields().iter().all(|field| number(field.name()).is_some());
    Ok(if numbered { ParamValues::List(list) } else { ParamValues::Map(values) })
}

/// The parameters that are values of an INSERT as they stand, so that they become what their column is.
fn assigned(plan: &LogicalPlan) -> HashSet<&str> {
    let steps = Steps::of(plan);
    if !steps.is_empty() {
        return steps.into_iter().flat_map(assigned).collect();
    }
    let mut source = plan;
    let values = loop {
        source = match source {
            LogicalPlan::Values(values) => break values,
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Dml(node) => &node.input,
            _ => return HashSet::new(),
        };
    };
    fn parameter(value: &Expr) -> Option<&str> {
        match value {
            Expr::Placeholder(Placeholder { id, .. }) => Some(id),
            Expr::Alias(alias) => parameter(&alias.expr),
            Expr::Cast(cast) => parameter(&cast.expr),
            _ => None,
        }
    }
    values.values.iter().flatten().filter_map(parameter).collect()
}

/// What becomes of the value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It goes into a column, and is rounded as every assignment rounds.
    Assigned,
    /// Something is computed of it, as of a value of its own type.
    Computed,
}

/// A column of parameters in the type that the plan expects. What stands beside a parameter only tells the type of one that has
/// none: a value with a type of its own keeps that, unless it is the same value in the other one.
fn cast(name: &str, column: &ArrayRef, wanted: Option<&Field>, place: Place) -> Result<ArrayRef> {
    let differs = |wanted: &&Field| ![&DataType::Null, column.data_type()].contains(&wanted.data_type());
    let Some(wanted) = wanted.filter(differs) else { return Ok(Arc::clone(column)) };
    let target = wanted.data_type();
    if is_mysql_assigned(wanted) && lacks_assignment(column.data_type(), target) {
        return mysql_assigned_values(column, target).map_err(classify);
    }
    if place == Place::Computed
        && let (Some(lists), DataType::List(item)) = (column.as_list_opt::<i32>(), target)
        && item.data_type().is_numeric()
    {
        return cast_items(name, lists, item);
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let mut target = target.clone();
    let mut column = Arc::clone(column);
    match (place, Kind::of(column.data_type()), Kind::of(&target)) {
        (Place::Assigned, ..) if lacks_assignment(column.data_type(), &target) => {
            let [from, to] = [column.data_type(), &target].map(sql_type);
            let message =
                format!("parameter `{name}` of type {from} cannot be assigned to a column of type {to}");
            return Err(Error::invalid(message)
                .with_reason(Reason::DatatypeMismatch)
                .with_hint("bind a value of that type, or cast the parameter in the statement"));
        }
        (Place::Assigned, ..) => {
            let whole = if casts::is_whole(&target) { functions::without_fractions(&column) } else { None };
            column = whole.unwrap_or(column);
        }
        // A date takes an interval, and no duration.
        (Place::Computed, Some(Kind::Interval), Some(wanted))
            if wanted != Kind::Interval && matches!(column.data_type(), DataType::Duration(_)) =>
        {
            target = DataType::Interval(IntervalUnit::MonthDayNano);
        }
        (Place::Computed, Some(given), Some(wanted)) if given != wanted || given == Kind::Decimal => {
            return Ok(column);
        }
        (Place::Computed, Some(_), Some(_)) => return Ok(without_loss(&column, &target).unwrap_or(column)),
        (Place::Computed, None, Some(Kind::Decimal)) => {
            target = written_decimal(&column).unwrap_or(target);
        }
        (Place::Computed, ..) => {}
    }
    let cast = match (column.data_type(), &target) {
        (DataType::FixedSizeBinary(16), _)
        | (DataType::Float64, DataType::Float32)
        | (_, DataType::FixedSizeBinary(16) | DataType::List(_) | DataType::Struct(_)) => {
            storage_type::converted(&column, &target)
        }
        _ => cast_with_options(&column, &target, &strict),
    };
    cast.map_err(|error| {
        Error::invalid(format!(
            "parameter `{name}` of type {} cannot be used as {target}",
            column.data_type()
        ))
        .with_reason(Reason::InvalidText)
        .with_hint("bind a value of that type, or cast the parameter in the statement")
        .with_source(error)
    })
}

/// A list of numbers, whose items become what single values do.
fn cast_items(name: &str, lists: &ListArray, item: &Field) -> Result<ArrayRef> {
    let items = cast(name, lists.values(), Some(item), Place::Computed)?;
    let item = item.clone().with_data_type(items.data_type().clone()).with_nullable(true);
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    let lists = ListArray::try_new(Arc::new(item), offsets, items, nulls);
    Ok(Arc::new(lists.map_err(|error| classify(error.into()))?))
}

/// Types whose values mean the same in one another, as far as they have room for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Truth,
    Whole,
    Decimal,
    Float,
    Date,
    Time,
    Moment,
    Instant,
    Interval,
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Truth,
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            DataType::Timestamp(_, None) => Self::Moment,
            DataType::Timestamp(_, Some(_)) => Self::Instant,
            DataType::Interval(_) | DataType::Duration(_) => Self::Interval,
            number if number.is_integer() => Self::Whole,
            number if number.is_decimal() => Self::Decimal,
            number if number.is_floating() => Self::Float,
            _ => return None,
        })
    }
}

/// The values in another type of their kind, if they are the same values there.
fn without_loss(column: &ArrayRef, target: &DataType) -> Option<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(column, target, &strict).ok()?;
    let back = cast_with_options(&cast, column.data_type(), &strict).ok()?;
    (back.as_ref() == column.as_ref()).then_some(cast)
}

/// The type that has room for the digits of all numbers that come as text.
fn written_decimal(column: &ArrayRef) -> Option<DataType> {
    let texts = arrow_cast(column, &DataType::Utf8).ok()?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then_some(part.len());
    let (mut most_whole, mut most_fraction) = (0, 0);
    for text in texts.as_string_opt::<i32>()?.iter().flatten() {
        let text = text.trim();
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        most_fraction = digits(fraction)?.max(most_fraction);
        most_whole = digits(whole.trim_start_matches(['+', '-']))?.max(most_whole).max(1);
    }
    if most_whole == 0 {
        return None;
    }
    let precision = u8::try_from(most_whole + most_fraction).ok()?;
    let scale = i8::try_from(most_fraction).ok()?;
    if precision <= DECIMAL128_MAX_PRECISION {
        Some(DataType::Decimal128(precision, scale))
    } else if precision <= DECIMAL256_MAX_PRECISION {
        Some(DataType::Decimal256(precision, scale))
    } else {
        None
    }
}
