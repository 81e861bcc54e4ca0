//! UUIDs. As bytes: which values are UUIDs, and their texts where JSON is made of them. As texts, which are lower case with hyphens:
//! what is compared with one. Above an aggregate, a CASE or an `unnest`, columns have only the type; what they are is followed from
//! the tables up ([`result_metadata`]).

use super::casts::{Columns, hex_byte};
use super::declared::{DECLARED, Declared};
use super::result_metadata::{ColumnMetadata, InputColumns, Kind};
use super::temporal::{ONE_TYPE, is_comparison};
use super::{result_metadata, to_text};
use bowshot_api::{Error, Reason};
use bowshot_formats::extension_types::{EXTENSION, UUID};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result, ScalarValue};
use datafusion::config::Dialect;
use datafusion::logical_expr::expr::{
    Between, Cast, InList, InSubquery, Placeholder, ScalarFunction, SetComparison,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan};
use std::iter;
use std::sync::Arc;
use uuid::Uuid;

/// Functions and aggregates that make JSON of any values.
const MAKING_JSON: &[&str] = bowshot_api::words! {
    json_agg json_array json_array_of_values json_group_array json_group_object json_object json_object_agg
    json_object_of_values json_quote to_json
};

/// Whether values are UUIDs that are bytes. What gives one of several values passes on their type alone.
pub fn is_uuid(expr: &Expr, columns: &DFSchema) -> bool {
    let Ok((_, field)) = expr.to_field(columns) else { return false };
    if *field.data_type() != DataType::FixedSizeBinary(16) {
        return false;
    }
    let is = |value: &Expr| is_uuid(value, columns);
    match expr {
        Expr::ScalarFunction(call) => match (call.name(), call.args.as_slice()) {
            ("coalesce" | "greatest" | "ifnull" | "least" | "nullif" | "nvl", values) => {
                values.iter().any(is)
            }
            ("array_element", [list, ..]) => {
                list.to_field(columns).is_ok_and(|(_, list)| are_lists_of_uuids(&list))
            }
            _ => are_uuids(&field),
        },
        Expr::Case(case) => {
            case.when_then_expr.iter().any(|(_, then)| is(then)) || case.else_expr.as_deref().is_some_and(is)
        }
        Expr::ScalarSubquery(query) => {
            with_uuids(&query.subquery).fields().first().is_some_and(|field| are_uuids(field))
        }
        _ => are_uuids(&field),
    }
}

/// Whether values are UUIDs by the extension type of Arrow.
pub fn are_uuids(field: &Field) -> bool {
    *field.data_type() == DataType::FixedSizeBinary(16)
        && field.metadata().get(EXTENSION).is_some_and(|name| name == UUID)
}

/// Whether values are lists of such.
pub fn are_lists_of_uuids(field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            are_uuids(item)
        }
        _ => false,
    }
}

/// The columns of a plan, of which those of UUIDs say so.
pub fn with_uuids(plan: &LogicalPlan) -> DFSchemaRef {
    let schema = plan.schema();
    if !schema.fields().iter().any(|field| may_lack_mark(field)) {
        return Arc::clone(schema);
    }
    let described = result_metadata::describe_plan(plan, 0);
    let fields = schema.iter().zip(&described).map(|((table, field), described)| {
        let field = match described {
            Some(described) if may_lack_mark(field) => described.mark(field),
            _ => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let marked = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone());
    marked.map_or_else(|_| Arc::clone(schema), Arc::new)
}

/// Whether bytes, or lists of such, may be UUIDs without saying so.
fn may_lack_mark(field: &Field) -> bool {
    match field.data_type() {
        DataType::FixedSizeBinary(16) => !field.metadata().contains_key(EXTENSION),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            may_lack_mark(item)
        }
        _ => false,
    }
}

/// What makes JSON gets the texts of UUIDs: the bytes that a file is read as do not say what they are.
pub(super) fn in_json(mut expr: Expr, columns: &Columns) -> Transformed<Expr> {
    let arguments = match &mut expr {
        Expr::ScalarFunction(call) if MAKING_JSON.contains(&call.func.name()) => &mut call.args,
        // DISTINCT values are sorted as they are.
        Expr::AggregateFunction(call) if MAKING_JSON.contains(&call.func.name()) && !call.params.distinct => {
            &mut call.params.args
        }
        _ => return Transformed::no(expr),
    };
    let changed = all_as_texts(arguments, columns.all());
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

fn all_as_texts(values: &mut [Expr], columns: &DFSchema) -> bool {
    let mut changed = false;
    for value in values {
        changed |= as_texts(value, columns);
    }
    changed
}

/// UUIDs, or those that a row or an array is made of, as texts; says whether there are any.
fn as_texts(value: &mut Expr, columns: &DFSchema) -> bool {
    if is_uuid(value, columns) {
        *value = to_text::function().call(vec![std::mem::take(value)]);
        return true;
    }
    let Expr::ScalarFunction(call) = value else { return false };
    match call.func.name() {
        "named_struct" | "struct" => all_as_texts(&mut call.args, columns),
        "make_array" if call.args.iter().all(|value| is_uuid(value, columns)) => {
            all_as_texts(&mut call.args, columns)
        }
        _ => false,
    }
}

/// A UUID as PostgreSQL reads it: a hyphen may stand behind any four digits, and braces around all.
///
/// # Errors
/// `Invalid` for a text that is none.
pub(super) fn read_uuid(text: &str) -> bowshot_api::Result<Uuid> {
    uuid_of(text).ok_or_else(|| {
        Error::invalid(format!("invalid input syntax for type uuid: \"{text}\""))
            .with_reason(Reason::InvalidText)
    })
}

fn uuid_of(text: &str) -> Option<Uuid> {
    let digits = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let (mut rest, mut bytes) = (digits.as_bytes(), [0; 16]);
    for (at, byte) in bytes.iter_mut().enumerate() {
        let (pair, after) = rest.split_at_checked(2)?;
        *byte = hex_byte(pair)?;
        rest = if at % 2 == 1 && at < 15 { after.strip_prefix(b"-").unwrap_or(after) } else { after };
    }
    rest.is_empty().then(|| Uuid::from_bytes(bytes))
}

type Described = Option<Arc<ColumnMetadata>>;

/// A node whose literals and parameters beside UUIDs that are texts are UUIDs in the one form in which these are compared.
///
/// # Errors
/// For a literal that is no UUID. In MySQL it is a text that differs from all of them.
pub(super) fn with_canonical_texts(node: LogicalPlan, dialect: Dialect) -> Result<Transformed<LogicalPlan>> {
    canonical(node, &|_| None, dialect)
}

/// The same for a node of a subquery, of which the columns of the query around it are described.
fn canonical(
    node: LogicalPlan,
    outside: &dyn Fn(&Expr) -> Described,
    dialect: Dialect,
) -> Result<Transformed<LogicalPlan>> {
    if !may_compare_texts(&node)? {
        return Ok(Transformed::no(node));
    }
    let below: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
    let inputs: Vec<InputColumns<'_>> = below.iter().map(|input| InputColumns::by(input, 0)).collect();
    let of_input = |expr: &Expr| inputs.iter().find_map(|input| input.of(expr));
    let of_reference = |expr: &Expr| match expr {
        Expr::OuterReferenceColumn(_, column) => of_input(&Expr::Column(column.clone())),
        _ => None,
    };
    let describe = |expr: &Expr| outside(expr).or_else(|| of_input(expr));
    let within = node.map_subqueries(|subquery| match is_correlated(&subquery) {
        true => subquery.transform_up(|node| canonical(node, &of_reference, dialect)),
        false => Ok(Transformed::no(subquery)),
    })?;
    within.transform_data(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|mut expr| {
                let changed = make_canonical(&mut expr, &describe, dialect)?;
                Ok(Transformed::new_transformed(expr, changed))
            })?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    })
}

fn is_correlated(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Subquery(subquery) if !subquery.outer_ref_columns.is_empty())
}

fn may_compare_texts(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = expr.exists(|part| Ok(is_given(part)))? && expr.exists(|part| Ok(has_one_type(part)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    node.apply_subqueries(|subquery| {
        found |= is_correlated(subquery);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether it is a text, or an array of texts, that is written out or sent by the client.
fn is_given(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.data_type().is_string() || is_array_of_texts(&value.data_type()),
        Expr::Placeholder(_) => true,
        Expr::Cast(cast) => {
            is_array_of_texts(cast.field.data_type()) && !cast.field.metadata().contains_key(DECLARED)
        }
        _ => false,
    }
}

fn is_array_of_texts(of: &DataType) -> bool {
    matches!(of, DataType::List(item) if item.data_type().is_string())
}

/// Whether parts of an expression have one type.
fn has_one_type(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => is_comparison(binary.op),
        Expr::ScalarFunction(call) => ONE_TYPE.contains(&call.name()) || is_quantified(call),
        Expr::Case(case) => case.expr.is_some(),
        other => {
            matches!(other, Expr::InList(_) | Expr::Between(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
        }
    }
}

/// Whether it is `value = ANY (array)`, or ALL.
fn is_quantified(call: &ScalarFunction) -> bool {
    call.name().starts_with("quantified_")
}

/// Says whether an expression compares a UUID with another text than it did.
fn make_canonical(expr: &mut Expr, describe: &dyn Fn(&Expr) -> Described, dialect: Dialect) -> Result<bool> {
    let is_uuid = |of: &ColumnMetadata| of.kind() == Some(Kind::Uuid);
    let compares_items = matches!(expr, Expr::ScalarFunction(call) if is_quantified(call));
    let of_rows = describe_rows(expr);
    let mut parts = parts_of_one_type(expr);
    if !parts.iter().any(|part| is_given(part)) {
        return Ok(false);
    }
    let known: Vec<Arc<ColumnMetadata>> =
        parts.iter().filter_map(|part| describe(part)).chain(of_rows).collect();
    let has_uuids = known.iter().any(|of| is_uuid(of));
    let has_arrays = known.iter().filter_map(|of| of.element()).any(|of| is_uuid(&of));
    let mut changed = false;
    for part in &mut parts {
        let is_array = is_array_of_texts(&given_type(part));
        let (alike, others) = if is_array { (has_arrays, has_uuids) } else { (has_uuids, has_arrays) };
        if is_given(part) && (alike || (compares_items && others)) {
            changed |= write_canonical(part, is_array, dialect)?;
        }
    }
    Ok(changed)
}

/// What the rows of a subquery are that a value is compared with.
fn describe_rows(expr: &Expr) -> Described {
    let (Expr::InSubquery(InSubquery { expr: value, subquery, .. })
    | Expr::SetComparison(SetComparison { expr: value, subquery, .. })) = expr
    else {
        return None;
    };
    if !is_given(value) {
        return None;
    }
    result_metadata::describe_plan(&subquery.subquery, 0).into_iter().next().flatten()
}

/// The parts of one type; of `value = ANY (array)` the value and the array, or what it is made of.
fn parts_of_one_type(expr: &mut Expr) -> Vec<&mut Expr> {
    if !has_one_type(expr) {
        return Vec::new();
    }
    let is_quantified = matches!(expr, Expr::ScalarFunction(call) if is_quantified(call));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => vec![left.as_mut(), right.as_mut()],
        Expr::InSubquery(InSubquery { expr, .. }) | Expr::SetComparison(SetComparison { expr, .. }) => {
            vec![expr.as_mut()]
        }
        Expr::InList(InList { expr, list, .. }) => iter::once(expr.as_mut()).chain(list).collect(),
        Expr::Between(Between { expr, low, high, .. }) => vec![expr.as_mut(), low.as_mut(), high.as_mut()],
        Expr::Case(Case { expr: value, when_then_expr, .. }) => {
            let whens = when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
            value.iter_mut().map(AsMut::as_mut).chain(whens).collect()
        }
        Expr::ScalarFunction(call) => match is_quantified {
            true => quantified_parts(&mut call.args),
            false => call.args.iter_mut().collect(),
        },
        _ => Vec::new(),
    }
}

fn quantified_parts(arguments: &mut [Expr]) -> Vec<&mut Expr> {
    let lists_items =
        matches!(arguments.get(2), Some(Expr::ScalarFunction(list)) if list.name() == "make_array");
    let [_, value, list] = arguments else { return Vec::new() };
    match (lists_items, list) {
        (true, Expr::ScalarFunction(list)) => iter::once(value).chain(&mut list.args).collect(),
        (_, list) => vec![value, list],
    }
}

/// The type of what is given, text where that is not known.
fn given_type(expr: &Expr) -> DataType {
    match expr {
        Expr::Literal(value, _) => value.data_type(),
        Expr::Cast(cast) => cast.field.data_type().clone(),
        Expr::Placeholder(Placeholder { field: Some(field), .. }) => field.data_type().clone(),
        _ => DataType::Utf8,
    }
}

fn write_canonical(expr: &mut Expr, is_array: bool, dialect: Dialect) -> Result<bool> {
    let declared = if is_array { Declared::Items(Box::new(Declared::Uuid)) } else { Declared::Uuid };
    match expr {
        Expr::Literal(value, _) if !is_array => {
            let Some(text) = value.try_as_str().flatten() else { return Ok(false) };
            let uuid = match read_uuid(text) {
                Err(_) if dialect == Dialect::MySQL => return Ok(false),
                read => read.map_err(|error| DataFusionError::External(Box::new(error)))?,
            };
            let canonical = uuid.hyphenated().to_string();
            let changed = canonical != text;
            *value = ScalarValue::Utf8(Some(canonical));
            Ok(changed)
        }
        Expr::Cast(cast) => {
            cast.field = Arc::new(declared.field(cast.field.data_type().clone()));
            Ok(true)
        }
        given => {
            let field = Arc::new(declared.field(given_type(given)));
            *given = Expr::Cast(Cast::new_from_field(Box::new(std::mem::take(given)), field));
            Ok(true)
        }
    }
}
