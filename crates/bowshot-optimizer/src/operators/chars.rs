//! Literals beside a column whose type has several spellings of one value are normalized: CHAR(n) has no trailing blanks, which are
//! ignored in comparisons (SQL standard, PAD SPACE), and JSONB has its keys in order.

use super::is_choice;
use crate::expressions::is_comparison;
use bowshot_formats::extension_types::EXTENSION;
use bowshot_functions::normal_jsonb;
use bowshot_tables::PADDED;
use bowshot_types::declared::Declared;
use datafusion::arrow::datatypes::Field;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, FieldMetadata, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Projection, Union};
use std::collections::HashMap;
use std::sync::Arc;

/// Types with one spelling for each value.
#[derive(Clone, Copy)]
enum Spelling {
    Char,
    Jsonb,
}

/// Comparisons by an operator.
pub(super) fn compared(mut binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<BinaryExpr>> {
    if !is_comparison(binary.op) {
        return Ok(Transformed::no(binary));
    }
    let changed = match (spelling(&binary.left, schema), spelling(&binary.right, schema)) {
        (Some(of), _) | (None, Some(of)) => of.write(&mut binary.left)? | of.write(&mut binary.right)?,
        (None, None) => false,
    };
    Ok(if changed { Transformed::yes(binary) } else { Transformed::no(binary) })
}

/// `c IN ('a  ')`
pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Result<Transformed<InList>> {
    let mut changed = false;
    if let Some(of) = spelling(&list.expr, schema) {
        for value in std::iter::once(list.expr.as_mut()).chain(&mut list.list) {
            changed |= of.write(value)?;
        }
    }
    Ok(if changed { Transformed::yes(list) } else { Transformed::no(list) })
}

/// `c BETWEEN 'a  ' AND 'b'`
pub(super) fn between(mut between: Between, schema: &DFSchema) -> Result<Transformed<Between>> {
    let changed = match spelling(&between.expr, schema) {
        Some(of) => {
            of.write(&mut between.expr)? | of.write(&mut between.low)? | of.write(&mut between.high)?
        }
        None => false,
    };
    Ok(if changed { Transformed::yes(between) } else { Transformed::no(between) })
}

/// Texts that are written out among values of CHAR(n) with which they are compared; says whether there are any.
pub(super) fn among(values: Vec<&mut Expr>, schema: &DFSchema) -> Result<bool> {
    let Some(of) = of_choice(values.iter().map(|value| &**value), schema) else { return Ok(false) };
    let mut changed = false;
    for value in values {
        changed |= of.write(value)?;
    }
    Ok(changed)
}

/// CHAR(n), if values of which one is taken are of that type.
fn of_choice<'a>(mut values: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> Option<Spelling> {
    let value = values.find(|value| !matches!(value, Expr::Literal(..)))?;
    spelling(value, schema).filter(|of| matches!(of, Spelling::Char))
}

fn spelling(expr: &Expr, schema: &DFSchema) -> Option<Spelling> {
    match expr {
        Expr::Column(column) => of_field(schema.field_from_column(column).ok()?),
        Expr::OuterReferenceColumn(field, _) => of_field(field),
        Expr::ScalarSubquery(query) => of_field(query.subquery.schema().fields().first()?),
        // What a cast to it has become.
        Expr::ScalarFunction(call) if call.name().starts_with("cast_as_char(") => Some(Spelling::Char),
        Expr::ScalarFunction(call) if call.name() == "cast_as_jsonb" => Some(Spelling::Jsonb),
        Expr::ScalarFunction(call) if is_choice(call.name()) => of_choice(call.args.iter(), schema),
        Expr::Case(case) => {
            let answers = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            of_choice(answers.chain(case.else_expr.as_deref()), schema)
        }
        Expr::Alias(alias) => spelling(&alias.expr, schema),
        _ => None,
    }
}

fn of_field(field: &Field) -> Option<Spelling> {
    match Declared::of(field) {
        Some(Declared::Char(_)) => Some(Spelling::Char),
        Some(Declared::Jsonb) if field.metadata().contains_key(EXTENSION) => Some(Spelling::Jsonb),
        _ => field.metadata().contains_key(PADDED).then_some(Spelling::Char),
    }
}

/// `min(c)` and `max(c)`, which are CHAR(n) as well.
pub(super) fn extreme(function: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_char = match &function {
        Expr::AggregateFunction(call) if matches!(call.func.name(), "min" | "max") => {
            let value = call.params.args.first();
            value.is_some_and(|value| matches!(spelling(value, schema), Some(Spelling::Char)))
        }
        _ => false,
    };
    if !is_char {
        return Transformed::no(function);
    }
    let name = function.schema_name().to_string();
    Transformed::yes(function.alias_with_metadata(name, Some(padded())))
}

/// What the field of a value of CHAR(n) says.
fn padded() -> FieldMetadata {
    FieldMetadata::from(HashMap::from([(PADDED.to_owned(), String::new())]))
}

/// `SELECT c FROM t UNION SELECT 'ab '`
pub(super) fn in_union(mut union: Union) -> Result<Transformed<Union>> {
    let width = union.inputs.first().map_or(0, |input| input.schema().fields().len());
    let mut changed = false;
    for place in 0..width {
        let is_char = |input: &LogicalPlan| {
            input.schema().fields().get(place).is_some_and(|field| field.metadata().contains_key(PADDED))
        };
        if !union.inputs.iter().any(|input| is_char(input)) {
            continue;
        }
        for input in &mut union.inputs {
            let LogicalPlan::Projection(projection) = &**input else { continue };
            let mut exprs = projection.expr.clone();
            let Some(expr) = exprs.get_mut(place) else { continue };
            let mut value = std::mem::take(expr).unalias_nested().data;
            if !matches!(value, Expr::Literal(..)) {
                continue;
            }
            Spelling::Char.write(&mut value)?;
            let (relation, name) = projection.schema.qualified_field(place);
            *expr = value.alias_qualified_with_metadata(relation.cloned(), name.name(), Some(padded()));
            let written = Projection::try_new(exprs, Arc::clone(&projection.input))?;
            *input = Arc::new(LogicalPlan::Projection(written));
            changed = true;
        }
    }
    Ok(if changed {
        Transformed::yes(Union::try_new_with_loose_types(union.inputs)?)
    } else {
        Transformed::no(union)
    })
}

/// The values of which an expression takes one.
fn choices(expr: &mut Expr) -> Option<Vec<&mut Expr>> {
    match expr {
        Expr::ScalarFunction(call) if is_choice(call.name()) => Some(call.args.iter_mut().collect()),
        Expr::Case(case) => {
            let answers = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            Some(answers.chain(case.else_expr.iter_mut().map(AsMut::as_mut)).collect())
        }
        _ => None,
    }
}

impl Spelling {
    /// Writes a literal so that is compared; says whether it was another text.
    fn write(self, expr: &mut Expr) -> Result<bool> {
        if matches!(self, Self::Char)
            && let Some(values) = choices(expr)
        {
            return values.into_iter().try_fold(false, |changed, value| Ok(self.write(value)? || changed));
        }
        let Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
            _,
        ) = expr
        else {
            return Ok(false);
        };
        let kept = match self {
            Self::Char => text.trim_end_matches(' ').to_owned(),
            Self::Jsonb => normal_jsonb(text)?,
        };
        let changed = kept != *text;
        *text = kept;
        Ok(changed)
    }
}
