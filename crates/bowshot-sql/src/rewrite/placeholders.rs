//! `?` becomes `$1`, `$2`, … in the order of the text; `?3` is SQLite's numbered form.

use crate::walk::Tree;
use sqlparser::ast::{Value, ValueWithSpan, VisitorMut};
use sqlparser::tokenizer::Location;
use std::convert::Infallible;
use std::ops::ControlFlow;

pub(super) fn number(statement: &mut impl Tree) {
    let mut places = Places(Vec::new());
    let ControlFlow::Continue(()) = statement.walk(&mut places);
    if places.0.is_empty() {
        return;
    }
    places.0.sort_unstable();
    let ControlFlow::Continue(()) = statement.walk(&mut Numbers(places.0));
}

struct Places(Vec<Location>);

impl VisitorMut for Places {
    type Break = Infallible;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Infallible> {
        if matches!(&value.value, Value::Placeholder(name) if name == "?") {
            self.0.push(value.span.start);
        }
        ControlFlow::Continue(())
    }
}

struct Numbers(Vec<Location>);

impl VisitorMut for Numbers {
    type Break = Infallible;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Infallible> {
        if let Value::Placeholder(name) = &mut value.value
            && let Some(index) = name.strip_prefix('?')
        {
            *name = match self.0.binary_search(&value.span.start) {
                Ok(place) if index.is_empty() => format!("${}", place + 1),
                _ => format!("${index}"),
            };
        }
        ControlFlow::Continue(())
    }
}
