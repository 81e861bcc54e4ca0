//! `?` becomes `$1`, `$2`, … in the order of the text; `?3` is SQLite's numbered form.

use crate::walk::Tree;
use sqlparser::ast::Value;

pub(super) fn number(statement: &mut impl Tree) {
    let mut places = Vec::new();
    statement.change_values(|value| {
        if matches!(&value.value, Value::Placeholder(name) if name == "?") {
            places.push(value.span.start);
        }
    });
    if places.is_empty() {
        return;
    }
    places.sort_unstable();
    statement.change_values(|value| {
        if let Value::Placeholder(name) = &mut value.value
            && let Some(index) = name.strip_prefix('?')
        {
            *name = match places.binary_search(&value.span.start) {
                Ok(place) if index.is_empty() => format!("${}", place + 1),
                _ => format!("${index}"),
            };
        }
    });
}
