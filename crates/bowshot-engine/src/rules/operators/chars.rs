//! CHAR(n) has no blanks at its end, which count for nothing when it is compared (SQL standard, PAD SPACE): a text that is written
//! beside one is compared without its own.

use crate::types::declared::Declared;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr};

/// Comparisons by an operator.
pub(super) fn compared(mut binary: BinaryExpr, schema: &DFSchema) -> Transformed<BinaryExpr> {
    if !binary.op.supports_propagation() {
        return Transformed::no(binary);
    }
    let changed = is_char(&binary.left, schema) && trim(&mut binary.right)
        || is_char(&binary.right, schema) && trim(&mut binary.left);
    if changed { Transformed::yes(binary) } else { Transformed::no(binary) }
}

/// `c IN ('a  ')`
pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    let mut changed = false;
    if is_char(&list.expr, schema) {
        list.list.iter_mut().for_each(|value| changed |= trim(value));
    }
    if changed { Transformed::yes(list) } else { Transformed::no(list) }
}

/// `c BETWEEN 'a  ' AND 'b'`
pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let changed = is_char(&between.expr, schema) && (trim(&mut between.low) | trim(&mut between.high));
    if changed { Transformed::yes(between) } else { Transformed::no(between) }
}

fn is_char(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Column(column) => schema
            .field_from_column(column)
            .is_ok_and(|field| matches!(Declared::of(field), Some(Declared::Char(_)))),
        // What a cast to it has become.
        Expr::ScalarFunction(call) => call.name().starts_with("cast_as_char("),
        Expr::Alias(alias) => is_char(&alias.expr, schema),
        _ => false,
    }
}

/// Takes the blanks off the end of a literal.
fn trim(expr: &mut Expr) -> bool {
    let Expr::Literal(
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)),
        _,
    ) = expr
    else {
        return false;
    };
    let length = text.trim_end_matches(' ').len();
    let changed = length < text.len();
    text.truncate(length);
    changed
}
