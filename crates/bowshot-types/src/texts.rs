//! Casts between text and times: those that were written, and those that DataFusion inserts where a text meets something else, as
//! in `'at ' || now()`. They become calls of [`to_text`] and [`from_text`].

use super::casts::{Columns, rewritten};
use super::{from_text, nested_texts, to_text, uuids, variants, zone};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use std::sync::Arc;

/// The rule of how times are written as text and read from it, once DataFusion has settled where that happens.
///
/// # Errors
/// When a type cannot be told.
pub fn texts_of_times(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    let zone = zone::of(config);
    let postgres = config.sql_parser.dialect == Dialect::PostgreSQL;
    rewritten(plan, &|node| Ok(Transformed::no(node)), &|expr, columns| {
        let nested = if postgres { nested_text(&expr, columns) } else { None };
        nested.map_or_else(|| cast(expr, columns, &zone), |text| Ok(Transformed::yes(text)))
    })
}

fn cast(expr: Expr, columns: &Columns, zone: &Arc<str>) -> Result<Transformed<Expr>> {
    let (inner, field, tries): (&Expr, &FieldRef, bool) = match &expr {
        Expr::Cast(Cast { expr, field }) => (expr.as_ref(), field, false),
        Expr::TryCast(TryCast { expr, field }) => (expr.as_ref(), field, true),
        _ => return Ok(uuids::in_json(expr, columns)),
    };
    let to = field.data_type();
    if !(to.is_string() || from_text::is_ours(to)) || !field.metadata().is_empty() {
        return Ok(Transformed::no(expr));
    }
    let made = match inner.get_type(columns.all()) {
        Ok(from)
            if to.is_string()
                && (to_text::is_ours(&from)
                    || from == DataType::FixedSizeBinary(16) && uuids::is_uuid(inner, columns.all())) =>
        {
            Some(as_text(inner, &from, (to, zone)))
        }
        Ok(from) if from_text::reads(&from, to) => Some(from_text::call(inner.clone(), to, tries)?),
        _ => None,
    };
    Ok(match made {
        Some(made) => Transformed::yes(made),
        None => Transformed::no(expr),
    })
}

/// A row or an array as text in PostgreSQL's form.
fn nested_text(expr: &Expr, columns: &Columns) -> Option<Expr> {
    let (Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })) = expr
    else {
        return None;
    };
    if !field.data_type().is_string() || !field.metadata().is_empty() {
        return None;
    }
    let (_, from) = inner.to_field(columns.all()).ok()?;
    let text = nested_texts::is_ours(from.data_type())
        .then(|| nested_texts::function(nested_texts::is_vector(&from)).call(vec![inner.as_ref().clone()]))?;
    let to = field.data_type();
    Some(if *to == DataType::Utf8 { text } else { Expr::Cast(Cast::new(Box::new(text), to.clone())) })
}

/// A time as text, an instant as the clock of the session's zone shows it.
fn as_text(inner: &Expr, from: &DataType, (to, zone): (&DataType, &Arc<str>)) -> Expr {
    let cast = |expr: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(expr), to));
    let inner = match from {
        DataType::Timestamp(unit, Some(there)) if there != zone => {
            cast(inner.clone(), DataType::Timestamp(*unit, Some(Arc::clone(zone))))
        }
        _ => inner.clone(),
    };
    let text = to_text::function().call(vec![inner]);
    if *to == DataType::Utf8 { text } else { cast(text, to.clone()) }
}

/// Values of one of the two in the other one; `None` for casts that are Arrow's.
pub(super) fn converted(values: &ArrayRef, to: &DataType) -> Option<Result<ArrayRef>> {
    let from = values.data_type();
    if let Some(converted) = variants::converted(values, to) {
        return Some(converted);
    }
    if *to == DataType::Utf8 && (to_text::is_ours(from) || *from == DataType::FixedSizeBinary(16)) {
        return Some(to_text::texts(values));
    }
    from_text::reads(from, to).then(|| from_text::values(values, to, false))
}
