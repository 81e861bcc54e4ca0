//! Dates and times of different types meet in microseconds. DataFusion lets a date, a text and a timestamp meet in nanoseconds,
//! which cannot express 2263 or `9999-12-31`, and drops the time zone of an instant beside a date.

use super::casts::{Columns, rewritten};
use super::zone;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Between, Cast, InList, ScalarFunction};
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Union, Values,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Functions whose arguments have one type, which is that of the result.
pub(super) const ONE_TYPE: &[&str] = &["coalesce", "nvl", "ifnull", "nullif", "greatest", "least"];

/// The rule of where times meet, before DataFusion settles their types. What is settled stays as it is.
///
/// # Errors
/// When a type cannot be told.
pub fn meeting_times(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    let zone = zone::of(config);
    let in_union = |node: LogicalPlan| match node {
        LogicalPlan::Union(union) => united(union, &zone),
        other => Ok(Transformed::no(other)),
    };
    rewritten(plan, &in_union, &|expr, columns| met(expr, columns, &zone))
}

/// An expression whose parts meet in one type.
pub(super) fn met(expr: Expr, columns: &Columns, zone: &Arc<str>) -> Result<Transformed<Expr>> {
    let (expr, changed) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let ([left, right], changed) = together_each([*left, *right], columns, zone);
            (Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))), changed)
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let ([expr, low, high], changed) = together_each([*expr, *low, *high], columns, zone);
            let between = Between::new(Box::new(expr), negated, Box::new(low), Box::new(high));
            (Expr::Between(between), changed)
        }
        Expr::InList(InList { expr, mut list, negated }) => {
            list.push(*expr);
            let (mut list, changed) = together(list, columns, zone);
            let Some(expr) = list.pop() else { return internal_err!("IN has lost a side") };
            (Expr::InList(InList::new(Box::new(expr), list, negated)), changed)
        }
        Expr::Case(case) => cases(case, columns, zone),
        Expr::ScalarFunction(ScalarFunction { func, args }) if ONE_TYPE.contains(&func.name()) => {
            let (args, changed) = together(args, columns, zone);
            (Expr::ScalarFunction(ScalarFunction { func, args }), changed)
        }
        other => (other, false),
    };
    Ok(Transformed::new_transformed(expr, changed))
}

pub(super) fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// `CASE` has the value that its tests are compared with, and the values that it gives: each kind meets among itself.
fn cases(case: Case, columns: &Columns, zone: &Arc<str>) -> (Expr, bool) {
    let Case { expr: base, when_then_expr, else_expr } = case;
    let (whens, thens): (Vec<Expr>, Vec<Expr>) =
        when_then_expr.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let count = thens.len();
    let with_else = else_expr.is_some();
    let (mut results, changed) =
        together(thens.into_iter().chain(else_expr.map(|expr| *expr)).collect(), columns, zone);
    let otherwise = if with_else { results.pop() } else { None };
    let (base, whens, tests_changed) = match base {
        None => (None, whens, false),
        Some(base) => {
            let (mut parts, changed) = together(whens.into_iter().chain([*base]).collect(), columns, zone);
            (parts.pop(), parts, changed)
        }
    };
    debug_assert_eq!(count, results.len(), "a CASE has lost a result");
    let expr = Expr::Case(Case {
        expr: base.map(Box::new),
        when_then_expr: whens.into_iter().zip(results).map(|(w, t)| (Box::new(w), Box::new(t))).collect(),
        else_expr: otherwise.map(Box::new),
    });
    (expr, changed || tests_changed)
}

/// The expressions in the type in which they meet, and whether that changed any.
fn together(parts: Vec<Expr>, columns: &Columns, zone: &Arc<str>) -> (Vec<Expr>, bool) {
    let types: Vec<Option<DataType>> = parts.iter().map(|part| part.get_type(columns.all()).ok()).collect();
    let Some(meeting) = meeting(&types, zone) else { return (parts, false) };
    let parts = parts.into_iter().zip(types).map(|(part, data_type)| match data_type {
        Some(data_type) => casted(part, &data_type, &meeting),
        None => part,
    });
    (parts.collect(), true)
}

/// The same of so many.
fn together_each<const N: usize>(parts: [Expr; N], columns: &Columns, zone: &Arc<str>) -> ([Expr; N], bool) {
    let types = parts.each_ref().map(|part| part.get_type(columns.all()).ok());
    let Some(meeting) = meeting(&types, zone) else { return (parts, false) };
    let mut types = types.into_iter();
    let parts = parts.map(|part| match types.next().flatten() {
        Some(data_type) => casted(part, &data_type, &meeting),
        None => part,
    });
    (parts, true)
}

/// An expression in the type of a meeting.
fn casted(part: Expr, from: &DataType, to: &DataType) -> Expr {
    match (from, to) {
        (from, to) if from == to => part,
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, Some(_))) if same_unit(from, to) => part,
        (
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None),
            DataType::Timestamp(_, Some(zone)),
        ) => zone::as_instant(part, (from, to), zone),
        (_, to) => Expr::Cast(Cast::new(Box::new(part), to.clone())),
    }
}

fn same_unit(one: &DataType, other: &DataType) -> bool {
    matches!((one, other), (DataType::Timestamp(one, _), DataType::Timestamp(other, _)) if one == other)
}

/// The type in which values of these types meet; `None` where DataFusion's answer is right, or is its own to give.
fn meeting(types: &[Option<DataType>], zone: &Arc<str>) -> Option<DataType> {
    let (mut instants, mut clocks, mut days, mut texts, mut units) = (false, false, false, false, Vec::new());
    let mut times = Vec::new();
    for data_type in types.iter().flatten() {
        match data_type {
            DataType::Timestamp(unit, Some(_)) => {
                instants = true;
                units.push(*unit);
            }
            DataType::Timestamp(unit, None) => {
                clocks = true;
                units.push(*unit);
            }
            DataType::Date32 | DataType::Date64 => days = true,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts = true,
            DataType::Time32(_) | DataType::Time64(_) => times.push(data_type),
            DataType::Null => {}
            _ => return None,
        }
    }
    if units.is_empty() {
        let mixed = times.windows(2).any(|pair| pair.first() != pair.last());
        return (mixed && !days && !texts).then_some(DataType::Time64(TimeUnit::Nanosecond));
    }
    let needed = days || texts || (instants && clocks);
    if !needed || !times.is_empty() {
        return None;
    }
    // Nanoseconds are kept where they came from.
    let unit =
        if units.contains(&TimeUnit::Nanosecond) { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
    Some(DataType::Timestamp(unit, instants.then(|| Arc::clone(zone))))
}

/// A UNION or VALUES whose columns have the types in which they meet, for what is above and looks at them.
pub(super) fn with_common_types(node: LogicalPlan, zone: &Arc<str>) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Union(union) => planned_union(union),
        LogicalPlan::Values(values) => rows(values, zone),
        other => Ok(Transformed::no(other)),
    }
}

/// A UNION with the types to which its inputs will be cast, once all of theirs are settled; the planner gives it those of the first.
fn planned_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let Union { inputs, schema } = union;
    let mut changed = false;
    let mut fields = Vec::with_capacity(schema.fields().len());
    for (position, (relation, field)) in schema.iter().enumerate() {
        let field = match common(&types_at(&inputs, position)) {
            Some(common) if common != *field.data_type() => {
                changed = true;
                Arc::new(field.as_ref().clone().with_data_type(common))
            }
            _ => Arc::clone(field),
        };
        fields.push((relation.cloned(), field));
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Union(Union { inputs, schema })));
    }
    let schema = Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?);
    Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema })))
}

/// The type in which numbers or times of these types meet, in a UNION; instants are labelled as those of columns are.
fn common(types: &[Option<DataType>]) -> Option<DataType> {
    if let Some(meeting) = meeting(types, &Arc::from("UTC")) {
        return Some(meeting);
    }
    let mut types = types
        .iter()
        .map(|data_type| data_type.as_ref().filter(|it| it.is_numeric() || it.is_temporal() || it.is_null()));
    let first = types.next()??.clone();
    types.try_fold(first, |common, next| type_union_coercion(&common, next?))
}

/// The types that the inputs of a UNION have in a column.
fn types_at(inputs: &[Arc<LogicalPlan>], position: usize) -> Vec<Option<DataType>> {
    let fields = inputs.iter().map(|input| input.schema().fields().get(position));
    fields.map(|field| field.map(|field| field.data_type().clone())).collect()
}

/// The inputs of a UNION in the types in which their columns meet.
fn united(union: Union, zone: &Arc<str>) -> Result<Transformed<LogicalPlan>> {
    let columns = 0..union.schema.fields().len();
    let wanted: Vec<Option<DataType>> =
        columns.map(|position| meeting(&types_at(&union.inputs, position), zone)).collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|input| {
        let columns = input.schema().columns().into_iter().zip(input.schema().fields()).zip(&wanted);
        let columns: Vec<Expr> = columns
            .map(|((column, field), wanted)| {
                let (name, relation) = (column.name.clone(), column.relation.clone());
                match wanted {
                    Some(wanted) if wanted != field.data_type() => {
                        casted(Expr::Column(column), field.data_type(), wanted)
                            .alias_qualified(relation, name)
                    }
                    _ => Expr::Column(column),
                }
            })
            .collect();
        LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build().map(Arc::new)
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// The type of nanoseconds in which the planner lets days and times of VALUES meet.
const PLANNED: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

/// The rows of VALUES in the types in which their columns meet.
fn rows(values: Values, zone: &Arc<str>) -> Result<Transformed<LogicalPlan>> {
    let wanted = values.schema.fields().iter().enumerate().map(|(position, field)| {
        if *field.data_type() != PLANNED {
            return None;
        }
        let column = values.values.iter().filter_map(|row| row.get(position));
        let types = column.map(|value| Some(written(value)?.1)).collect::<Option<Vec<_>>>()?;
        let types: Vec<Option<DataType>> = types.into_iter().map(Some).collect();
        meeting(&types, zone).filter(|wanted| *wanted != PLANNED)
    });
    let wanted: Vec<Option<DataType>> = wanted.collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Values(values)));
    }
    let Values { schema, values } = values;
    let in_types = |(value, wanted): (Expr, &Option<DataType>)| match (wanted, written(&value)) {
        // Rows have the time zone of the schema, too.
        (
            Some(wanted @ DataType::Timestamp(_, Some(_))),
            Some((instant, DataType::Timestamp(_, Some(_)))),
        ) => Expr::Cast(Cast::new(Box::new(instant), wanted.clone())),
        (Some(wanted), Some((written, from))) => casted(written, &from, wanted),
        _ => value,
    };
    let rows =
        values.into_iter().map(|row| row.into_iter().zip(&wanted).map(in_types).collect::<Vec<Expr>>());
    let rows: Vec<Vec<Expr>> = rows.collect();
    let fields = schema.fields().iter().zip(wanted).map(|(field, wanted)| match wanted {
        Some(wanted) => Arc::new(field.as_ref().clone().with_data_type(wanted)),
        None => Arc::clone(field),
    });
    let schema = DFSchema::from_unqualified_fields(fields.collect(), HashMap::new())?;
    Ok(Transformed::yes(LogicalPlan::Values(Values { schema: Arc::new(schema), values: rows })))
}

/// A value of VALUES without the cast of the planner, and its type; `None` where that is not known.
fn written(value: &Expr) -> Option<(Expr, DataType)> {
    let value = match value {
        Expr::Literal(value, _) if value.is_null() => {
            return Some((Expr::Literal(ScalarValue::Null, None), DataType::Null));
        }
        Expr::Cast(Cast { expr, field }) if *field.data_type() == PLANNED => expr.as_ref(),
        other => other,
    };
    let data_type = value.get_type(&DFSchema::empty()).ok()?;
    Some((value.clone(), data_type))
}
