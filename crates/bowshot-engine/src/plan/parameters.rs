//! Parameters of a statement: which there are, of which types, and how bound rows become values in the plan.

use crate::error::classify;
use bowshot_api::{Error, Reason, Result};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast as arrow_cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ParamValues;
use datafusion::common::ScalarValue;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Statement};
use std::collections::HashMap;
use std::sync::Arc;

/// More parameters than this in one statement are a mistake or an attack: `$4000000000` must not make a vector.
const MAX_PARAMETERS: usize = 10_000;

/// A plan whose parameters have the types that the statement gives them, and those parameters.
///
/// # Errors
/// `Invalid` for a number beyond the limit, or types that contradict one another.
pub(crate) fn declared(plan: LogicalPlan) -> Result<(LogicalPlan, SchemaRef)> {
    let wanted = plan.get_parameter_fields().map_err(classify)?;
    if wanted.values().all(Option::is_some) {
        let parameters = schema(&plan, &wanted)?;
        return Ok((plan, parameters));
    }
    let plan = typed(plan, &wanted)?;
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

/// `CAST($1 AS BIGINT)` and `LIMIT $1` want a whole number: a driver that is told "text" refuses to bind anything else.
fn typed(plan: LogicalPlan, wanted: &HashMap<String, Option<FieldRef>>) -> Result<LogicalPlan> {
    let given = types_in(&plan, wanted).map_err(classify)?;
    if given.is_empty() {
        return Ok(plan);
    }
    let typed = plan.transform_up_with_subqueries(|node| {
        let typed = node.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::Placeholder(Placeholder { id, field: None }) => {
                    let field = given.get(&id).cloned().flatten();
                    Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
                }
                other => Ok(Transformed::no(other)),
            })
        })?;
        typed.data.recompute_schema().map(Transformed::yes)
    });
    typed.data().map_err(classify)
}

/// What `value op ANY (list)` and `ALL` are planned as.
pub(crate) const QUANTIFIED: [&str; 2] = ["quantified_any", "quantified_all"];

/// The types that casts, limits and quantifiers give to the parameters that have none; `None` for one that is given several.
fn types_in(
    plan: &LogicalPlan,
    wanted: &HashMap<String, Option<FieldRef>>,
) -> datafusion::common::Result<HashMap<String, Option<FieldRef>>> {
    let mut given: HashMap<String, Option<FieldRef>> = HashMap::new();
    let mut note = |expr: &Expr, data_type: &DataType| {
        let Expr::Placeholder(Placeholder { id, field: None }) = expr else { return };
        if wanted.get(id).is_some_and(Option::is_some) {
            return;
        }
        let field = Arc::new(Field::new(id, data_type.clone(), true));
        let there = given.entry(id.clone()).or_insert_with(|| Some(Arc::clone(&field)));
        if there.as_ref().is_some_and(|there| there.data_type() != data_type) {
            *there = None;
        }
    };
    plan.apply_with_subqueries(|node| {
        let inputs = merge_schema(&node.inputs());
        if let LogicalPlan::Limit(limit) = node {
            let counts = [&limit.skip, &limit.fetch].into_iter().flatten();
            counts.for_each(|count| note(count, &DataType::Int64));
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::Cast(cast) => note(&cast.expr, cast.field.data_type()),
                    Expr::TryCast(cast) => note(&cast.expr, cast.field.data_type()),
                    // `a = ANY ($1)` wants a list of what `a` is.
                    Expr::ScalarFunction(call) if QUANTIFIED.contains(&call.name()) => {
                        if let [_, value, list] = call.args.as_slice()
                            && let Ok(data_type) = value.get_type(&inputs)
                            && data_type != DataType::Null
                        {
                            note(list, &DataType::new_list(data_type, true));
                        }
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(given)
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
    Field::new(name, data_type, true)
}

/// Checks that a batch of parameters fits the statement: right number of columns, castable types.
///
/// # Errors
/// `Invalid`, naming the parameter.
pub(crate) fn check(plan: &LogicalPlan, expected: &Schema, rows: &RecordBatch) -> Result<()> {
    let (wanted, given) = (expected.fields().len(), rows.num_columns());
    if wanted != given {
        return Err(Error::invalid(format!("the statement has {wanted} parameters, but {given} were bound"))
            .with_reason(Reason::WrongParameters)
            .with_hint("bind one column for each parameter"));
    }
    if rows.num_rows() > 0 {
        values(plan, expected, rows, 0)?;
    }
    Ok(())
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
        let target = wanted.get(field.name()).and_then(Option::as_ref).map(|field| field.data_type());
        let column = cast(field.name(), column, target, is_query(plan))?;
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
    let values = values(plan, expected, rows, row)?;
    let bound = plan.clone().with_param_values(values).map_err(classify)?;
    // Nodes keep the schema that they had with untyped parameters unless it is computed again.
    bound
        .transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
        .data()
        .map_err(classify)
}

fn values(plan: &LogicalPlan, expected: &Schema, rows: &RecordBatch, row: usize) -> Result<ParamValues> {
    let wanted = plan.get_parameter_fields().map_err(classify)?;
    let mut values = HashMap::with_capacity(wanted.len());
    let mut list = Vec::with_capacity(wanted.len());
    for (field, column) in expected.fields().iter().zip(rows.columns()) {
        let target = wanted.get(field.name()).and_then(Option::as_ref).map(|field| field.data_type());
        let column = cast(field.name(), &column.slice(row, 1), target, is_query(plan))?;
        let value = ScalarValue::try_from_array(column.as_ref(), 0).map_err(classify)?;
        list.push(ScalarAndMetadata::from(value.clone()));
        values.insert(field.name().trim_start_matches('$').to_owned(), ScalarAndMetadata::from(value));
    }
    let numbered = expected.fields().iter().all(|field| number(field.name()).is_some());
    Ok(if numbered { ParamValues::List(list) } else { ParamValues::Map(values) })
}

/// Numbers without their fractions, half of one away from zero; `None` where none has any.
fn rounded(column: &ArrayRef) -> Option<ArrayRef> {
    if !column.data_type().is_floating() && !column.data_type().is_decimal() {
        return None;
    }
    let floats = arrow_cast(column, &DataType::Float64).ok()?;
    let floats = floats.as_primitive_opt::<Float64Type>()?;
    if !floats.iter().flatten().any(|value| value.is_finite() && value.fract() != 0.0) {
        return None;
    }
    if column.data_type().is_decimal() {
        return arrow_cast(column, &DataType::Decimal128(38, 0)).ok();
    }
    Some(Arc::new(floats.unary::<_, Float64Type>(f64::round)))
}

/// Whether all that a plan does is to compute rows, so that the types of its parameters are guesses from what stands beside them.
fn is_query(plan: &LogicalPlan) -> bool {
    let mut stores = false;
    let walked = plan.apply_with_subqueries(|node| {
        stores |= matches!(node, LogicalPlan::Values(_) | LogicalPlan::Dml(_) | LogicalPlan::Ddl(_));
        Ok(if stores { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.is_ok() && !stores
}

/// A column of parameters in the type that the plan expects. Of a number that is not whole, where a whole one is expected, a
/// query takes the value as it is, as in `$1 + 1` and `i < $1`; what is stored is rounded, as every assignment rounds.
fn cast(name: &str, column: &ArrayRef, target: Option<&DataType>, in_query: bool) -> Result<ArrayRef> {
    let Some(target) = target.filter(|target| *target != &DataType::Null && *target != column.data_type())
    else {
        return Ok(Arc::clone(column));
    };
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let rounded = target.is_integer().then(|| rounded(column)).flatten();
    let column = match &rounded {
        Some(_) if in_query => return Ok(Arc::clone(column)),
        Some(rounded) => rounded,
        None => column,
    };
    cast_with_options(column, target, &strict).map_err(|error| {
        Error::invalid(format!(
            "parameter `{name}` of type {} cannot be used as {target}",
            column.data_type()
        ))
        .with_reason(Reason::InvalidText)
        .with_hint("bind a value of that type, or cast the parameter in the statement")
        .with_source(error)
    })
}
