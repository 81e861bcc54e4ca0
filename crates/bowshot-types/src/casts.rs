//! Casts with another meaning in SQL than in Arrow: numbers are rounded, not truncated; a declared length is applied; integers
//! are seconds; and an instant is displayed in the zone of the session.

use super::declared::{DECLARED, Declared};
use super::functions::{self, Held, Rounded};
use super::{dates_of_numbers, from_text, temporal, timestamptz_arithmetic, to_text, uuids, variants, zone};
use bowshot_tables::PADDED;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, ScalarUDF};
use std::cell::OnceCell;
use std::sync::Arc;

/// The rule of what casts mean, before anything else looks at them.
///
/// # Errors
/// When a cast has no meaning.
pub fn sql_casts(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    let dialect = config.sql_parser.dialect;
    let plan = with_casts(plan, config, &|node| uuids::with_canonical_texts(node, dialect))?;
    match &config.execution.time_zone {
        Some(zone) => Ok(zone::shown(plan, &Arc::from(zone.as_str()))),
        None => Ok(plan),
    }
}

/// The plan with SQL's casts. What is settled stays as it is.
pub fn settled(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    with_casts(plan, config, &|node| Ok(Transformed::no(node)))
}

fn with_casts(
    plan: LogicalPlan,
    config: &ConfigOptions,
    before: &dyn Fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let zone = zone::of(config);
    let with_escapes = config.sql_parser.dialect != Dialect::MySQL;
    let in_rows = |node| before(node)?.transform_data(|node| temporal::with_common_types(node, &zone));
    rewritten(plan, &in_rows, &|expr, columns| match bytes_read(&expr, columns)? {
        Some(bytes) if with_escapes => Ok(Transformed::yes(bytes)),
        _ => dates_of_numbers::cast(expr, columns, &config.sql_parser.dialect)?
            .transform_data(|expr| cast(expr, columns, &zone)),
    })
}

/// What a cast of texts to bytes becomes, if they are not written out, or are no bytes.
fn bytes_read(expr: &Expr, columns: &Columns) -> Result<Option<Expr>> {
    let (inner, field, tries): (&Expr, &FieldRef, bool) = match expr {
        Expr::Cast(Cast { expr, field }) => (expr.as_ref(), field, false),
        Expr::TryCast(TryCast { expr, field }) => (expr.as_ref(), field, true),
        _ => return Ok(None),
    };
    let is_plain = *field.data_type() == DataType::Binary && !field.metadata().contains_key(DECLARED);
    let is_read_here = match inner {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => !text.contains('\\') || text_bytes(text).is_some(),
        Expr::Literal(..) => true,
        _ => false,
    };
    if !is_plain || is_read_here {
        return Ok(None);
    }
    let is_text = inner.get_type(columns.all()).is_ok_and(|of| of.is_string());
    if is_text { from_text::call(inner.clone(), &DataType::Binary, tries).map(Some) } else { Ok(None) }
}

/// The columns that the expressions of a node see.
pub(super) struct Columns {
    inputs: Vec<DFSchemaRef>,
    /// Made when they are asked for: most expressions are none that matter.
    merged: OnceCell<DFSchema>,
}

impl Columns {
    fn of(node: &LogicalPlan) -> Self {
        let inputs = match node {
            LogicalPlan::TableScan(scan) => vec![Arc::clone(&scan.projected_schema)],
            other => other.inputs().into_iter().map(uuids::with_uuids).collect(),
        };
        Self { inputs, merged: OnceCell::new() }
    }

    pub(super) fn all(&self) -> &DFSchema {
        if let [one] = self.inputs.as_slice() {
            return one;
        }
        self.merged.get_or_init(|| {
            let mut merged = DFSchema::empty();
            self.inputs.iter().for_each(|input| merged.merge(input));
            merged
        })
    }
}

/// A plan with its nodes, then their expressions rewritten from the inside out, in the columns that they see. Columns keep their
/// names.
pub(super) fn rewritten(
    plan: LogicalPlan,
    rewrite_node: &dyn Fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
    rewrite: &dyn Fn(Expr, &Columns) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let mut changed = false;
    plan.transform_up_with_subqueries(|node| {
        let Transformed { data: node, transformed, .. } = rewrite_node(node)?;
        let columns = Columns::of(&node);
        let names = NamePreserver::new(&node);
        let mut node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| rewrite(expr, &columns))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })?;
        node.transformed |= transformed;
        // What stands above may have to see other types.
        changed |= node.transformed;
        if changed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
    })
    .data()
}

fn cast(expr: Expr, columns: &Columns, zone: &Arc<str>) -> Result<Transformed<Expr>> {
    let (inner, field, wrap): (_, _, fn(Box<Expr>, FieldRef) -> Expr) = match &expr {
        Expr::Cast(Cast { expr, field }) => (expr, field, |expr, field| Expr::Cast(Cast { expr, field })),
        Expr::TryCast(TryCast { expr, field }) => {
            (expr, field, |expr, field| Expr::TryCast(TryCast { expr, field }))
        }
        Expr::ScalarFunction(_) => return Ok(on_the_clock(expr, columns, zone)),
        // What is cast above has the type in which its branches meet, not that of the first.
        Expr::Case(_) => return temporal::met(expr, columns, zone),
        Expr::BinaryExpr(_) => return Ok(timestamptz_arithmetic::arithmetic(expr, columns, zone)),
        _ => return Ok(Transformed::no(expr)),
    };
    let Ok(source) = inner.get_type(columns.all()) else { return Ok(Transformed::no(expr)) };
    let declared = Declared::of(field);
    let tries = matches!(expr, Expr::TryCast(_));
    let prepared = match variants::cast(inner, &source, (field, zone), tries)? {
        Some(whole) => Some(Prepared::Whole(whole)),
        None => prepared(inner, &source, field.data_type(), zone),
    };
    if prepared.is_none() && !field.metadata().contains_key(DECLARED) {
        let texts = source.is_string() && field.data_type().is_string() && field.name().is_empty();
        return Ok(if texts && is_padded(inner, columns) {
            Transformed::yes(wrap(inner.clone(), plain(field)))
        } else {
            Transformed::no(expr)
        });
    }
    if tries && declared == Some(Declared::Uuid) && source.is_string() {
        // As bytes a text that is no UUID is null.
        let bytes = from_text::call(inner.as_ref().clone(), &DataType::FixedSizeBinary(16), true)?;
        return Ok(Transformed::yes(to_text::function().call(vec![bytes])));
    }
    let value = match prepared {
        Some(Prepared::Whole(whole)) => whole,
        Some(Prepared::Input(input)) => wrap(Box::new(input), undeclared(field)),
        None => wrap(inner.clone(), undeclared(field)),
    };
    // Operators ask for these.
    let keeps_mark =
        matches!(declared, Some(Declared::Jsonb | Declared::Enum(_))) && field.data_type().is_string();
    let marked = if keeps_mark { Arc::clone(field) } else { undeclared(field) };
    Ok(Transformed::yes(match declared {
        Some(Declared::Uuid) if tries => value,
        Some(declared) => ScalarUDF::new_from_impl(Held::new(declared, &marked, tries)).call(vec![value]),
        None => value,
    }))
}

/// Whether it is a value of CHAR(n).
fn is_padded(value: &Expr, columns: &Columns) -> bool {
    value.to_field(columns.all()).is_ok_and(|(_, field)| field.metadata().contains_key(PADDED))
}

/// The field of a text whose blanks at the end count. A field without a name would get the metadata of what is cast.
fn plain(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new("text", field.data_type().clone(), true).with_metadata(field.metadata().clone()))
}

/// A function of an instant sees the clock of the session's zone.
fn on_the_clock(expr: Expr, columns: &Columns, zone: &Arc<str>) -> Transformed<Expr> {
    let Expr::ScalarFunction(mut function) = expr else { return Transformed::no(expr) };
    let mut changed = false;
    if zone.as_ref() != "UTC" {
        for argument in &mut function.args {
            if let Ok(DataType::Timestamp(unit, Some(there))) = argument.get_type(columns.all())
                && there != *zone
            {
                let shown = DataType::Timestamp(unit, Some(Arc::clone(zone)));
                *argument = Expr::Cast(Cast::new(Box::new(std::mem::take(argument)), shown));
                changed = true;
            }
        }
    }
    let expr = Expr::ScalarFunction(function);
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// What the field is without its declaration.
fn undeclared(field: &FieldRef) -> FieldRef {
    if !field.metadata().contains_key(DECLARED) {
        return Arc::clone(field);
    }
    let mut metadata = field.metadata().clone();
    metadata.remove(DECLARED);
    Arc::new(Field::new("", field.data_type().clone(), true).with_metadata(metadata))
}

enum Prepared {
    /// What is to be cast instead.
    Input(Expr),
    /// What stands for the whole cast.
    Whole(Expr),
}

fn prepared(inner: &Expr, source: &DataType, target: &DataType, zone: &Arc<str>) -> Option<Prepared> {
    let to = |data_type: DataType| Prepared::Input(Expr::Cast(Cast::new(Box::new(inner.clone()), data_type)));
    match (source, target) {
        (source, target) if is_whole(target) && functions::may_have_fractions(source) => {
            rounded(inner).map(Prepared::Input)
        }
        (source, target) if is_whole(target) => whole_decimal(source).map(to),
        (source, DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, zone))
            if source.is_integer() =>
        {
            Some(to(DataType::Timestamp(TimeUnit::Second, zone.clone())))
        }
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(unit, None)) => {
            let local = Box::new(zone::clock_of(inner.clone(), zone));
            Some(Prepared::Whole(Expr::Cast(Cast::new(local, DataType::Timestamp(*unit, None)))))
        }
        (
            DataType::Timestamp(_, Some(_)),
            DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_),
        ) if !zone::is_utc(zone) => Some(Prepared::Input(zone::clock_of(inner.clone(), zone))),
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, Some(_))) => None,
        // What names no zone is meant in that of the session.
        (
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View,
            DataType::Timestamp(unit, Some(to_zone)),
        ) if to_zone != zone => Some(to(DataType::Timestamp(*unit, Some(Arc::clone(zone))))),
        (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_))) if !zone::is_utc(zone) => {
            Some(Prepared::Input(zone::instant_of(inner.clone(), zone)))
        }
        (DataType::Timestamp(unit, Some(from)), _) if from != zone => {
            Some(to(DataType::Timestamp(*unit, Some(Arc::clone(zone)))))
        }
        (DataType::Date32 | DataType::Date64, DataType::Timestamp(unit, Some(_))) => {
            let instant = DataType::Timestamp(*unit, Some(Arc::clone(zone)));
            Some(Prepared::Input(zone::as_instant(inner.clone(), (source, &instant), zone)))
        }
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Binary) => {
            escaped_bytes(inner).map(Prepared::Whole)
        }
        _ => None,
    }
}

/// Whether values are integers, or lists of such.
pub fn is_whole(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => is_whole(item.data_type()),
        other => other.is_integer(),
    }
}

/// Halves go to the even neighbour, as PostgreSQL and DuckDB have it; those of a number that is written out are no floats
/// to them, and go away from zero. `None` for what is rounded.
fn rounded(inner: &Expr) -> Option<Expr> {
    match inner {
        Expr::Literal(ScalarValue::Float64(Some(value)), metadata) => {
            let nearest = value.round();
            // The same number again is no change.
            (nearest.to_bits() != value.to_bits())
                .then(|| Expr::Literal(ScalarValue::Float64(Some(nearest)), metadata.clone()))
        }
        Expr::Literal(..) => None,
        Expr::Negative(negative) => rounded(negative).map(|inner| Expr::Negative(Box::new(inner))),
        Expr::ScalarFunction(function) if function.func.name() == Rounded::NAME => None,
        other => Some(functions::rounded().call(vec![other.clone()])),
    }
}

/// The same decimal, or list of such, without digits behind the point: a cast to it rounds halves away from zero.
pub(super) fn whole_decimal(source: &DataType) -> Option<DataType> {
    Some(match source {
        DataType::Decimal32(precision, scale) if *scale > 0 => DataType::Decimal32(*precision, 0),
        DataType::Decimal64(precision, scale) if *scale > 0 => DataType::Decimal64(*precision, 0),
        DataType::Decimal128(precision, scale) if *scale > 0 => DataType::Decimal128(*precision, 0),
        DataType::Decimal256(precision, scale) if *scale > 0 => DataType::Decimal256(*precision, 0),
        DataType::List(item) => {
            let whole = whole_decimal(item.data_type())?;
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(whole)))
        }
        _ => return None,
    })
}

/// `'\x4142'` and `'\x41z'` as bytes: all digits is PostgreSQL's form, others escape one byte each.
pub fn escaped_bytes(inner: &Expr) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) = inner else { return None };
    let bytes = text.contains('\\').then(|| text_bytes(text))??;
    Some(Expr::Literal(ScalarValue::Binary(Some(bytes)), metadata.clone()))
}

/// The bytes that a text is written for; `None` where an escape is none.
pub(super) fn text_bytes(text: &str) -> Option<Vec<u8>> {
    if has_odd_digits(text) { None } else { whole_hex(text).or_else(|| unescaped(text.as_bytes())) }
}

/// Whether a text is of digits alone, and the last byte has one.
pub(super) fn has_odd_digits(text: &str) -> bool {
    let digits = text.strip_prefix("\\x").map(str::as_bytes);
    digits.is_some_and(|digits| digits.len() % 2 != 0 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// A text as bytes.
///
/// # Errors
/// When the expression cannot be built.
pub fn bytes_of(text: Expr) -> Result<Expr> {
    from_text::call(text, &DataType::Binary, false)
}

fn whole_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    if digits.len() % 2 != 0 {
        return None;
    }
    digits.chunks_exact(2).map(hex_byte).collect()
}

pub(super) fn hex_byte(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|c| c.is_ascii_hexdigit()).then(|| u8::from_str_radix(text, 16).ok()).flatten()
}

fn unescaped(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
        } else if let Some(after) = rest.strip_prefix(b"x") {
            bytes.push(hex_byte(after.get(..2)?)?);
            rest = after.get(2..)?;
        } else {
            let digits = std::str::from_utf8(rest.get(..3)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 8).ok()?);
            rest = rest.get(3..)?;
        }
    }
    Some(bytes)
}
