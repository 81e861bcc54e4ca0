//! Where in a text something stands that the planner complains of.

use super::outer_columns::qualifiers;
use crate::template::meaning;
use crate::walk::Tree;
use sqlparser::ast::{Expr, Ident, ObjectName, Visitor};
use std::ops::ControlFlow;

/// What is looked for, by the name that it has inside of plans.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'name> {
    Column(&'name str),
    Function(&'name str),
    /// A table or view, by the last part of its name.
    Table(&'name str),
}

/// Line and column, both from 1, of the first place where it stands; `None` for one that only a rewritten form has.
pub fn place(statement: &impl Tree, wanted: Wanted<'_>) -> Option<(u64, u64)> {
    statement.look(&mut Look(wanted)).break_value()
}

struct Look<'a>(Wanted<'a>);

impl Look<'_> {
    fn at(ident: &Ident, name: &str) -> ControlFlow<(u64, u64)> {
        let start = ident.span.start;
        if start.line > 0 && meaning(ident) == name {
            ControlFlow::Break((start.line, start.column))
        } else {
            ControlFlow::Continue(())
        }
    }

    fn last(name: &ObjectName, wanted: &str) -> ControlFlow<(u64, u64)> {
        match name.0.last().and_then(|part| part.as_ident()) {
            Some(ident) => Self::at(ident, wanted),
            None => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Look<'_> {
    type Break = (u64, u64);

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
        match self.0 {
            Wanted::Table(name) => Self::last(relation, name),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match (self.0, expr) {
            (Wanted::Column(name), Expr::Identifier(ident)) => Self::at(ident, name),
            (Wanted::Column(name), Expr::CompoundIdentifier(names)) => {
                names.iter().skip(qualifiers(names)).try_for_each(|ident| Self::at(ident, name))
            }
            (Wanted::Function(name), Expr::Function(function)) => Self::last(&function.name, name),
            _ => ControlFlow::Continue(()),
        }
    }
}
