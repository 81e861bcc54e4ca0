//! Walks over syntax trees, compiled once.
//!
//! The parser's own walk (`sqlparser::ast::VisitMut`) is generic over the visitor, so each visitor compiles the whole tree
//! of some hundred types again, which took minutes. Here one visitor stands for all of them, and asks the real one through
//! a table of functions. A walk happens once per statement, so what that costs at run time is not seen.

use sqlparser::ast::{
    Distinct, Expr, ObjectName, OrderByExpr, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    TableWithJoins, ValueWithSpan, Values, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// A part of a syntax tree that can be walked over.
pub trait Tree {
    /// Calls `visitor` for all that is in this part, which it may change, until it breaks.
    fn walk<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut kept = Kept { visitor, broken: None };
        let _ = self.walk_with(&mut Changing(&mut kept));
        kept.broken.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    /// Calls `visitor` for all that is in this part, until it breaks.
    fn look<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut kept = Kept { visitor, broken: None };
        let _ = self.look_with(&mut Looking(&mut kept));
        kept.broken.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    /// Whether `found` holds for an expression in this part.
    fn has_expression(&self, found: impl FnMut(&Expr) -> bool) -> bool {
        self.look(&mut Finding(found)).is_break()
    }

    #[doc(hidden)]
    fn walk_with(&mut self, hooks: &mut Changing<'_>) -> ControlFlow<()>;

    #[doc(hidden)]
    fn look_with(&self, hooks: &mut Looking<'_>) -> ControlFlow<()>;
}

/// The one visitor that the parser's walk with changes is compiled for.
pub struct Changing<'a>(&'a mut dyn VisitorMut<Break = ()>);

/// The one visitor that the parser's walk without changes is compiled for.
pub struct Looking<'a>(&'a mut dyn Visitor<Break = ()>);

/// A visitor, and what it broke with.
struct Kept<'a, V, B> {
    visitor: &'a mut V,
    broken: Option<B>,
}

impl<V, B> Kept<'_, V, B> {
    fn keep(&mut self, flow: ControlFlow<B>) -> ControlFlow<()> {
        flow.map_break(|broken| self.broken = Some(broken))
    }
}

struct Finding<F>(F);

impl<F: FnMut(&Expr) -> bool> Visitor for Finding<F> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if (self.0)(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

macro_rules! trees {
    ($($part:ty),* $(,)?) => {
        $(impl Tree for $part {
            fn walk_with(&mut self, hooks: &mut Changing<'_>) -> ControlFlow<()> {
                VisitMut::visit(self, hooks)
            }

            fn look_with(&self, hooks: &mut Looking<'_>) -> ControlFlow<()> {
                Visit::visit(self, hooks)
            }
        })*
    };
}

impl<T: Tree> Tree for Box<T> {
    fn walk_with(&mut self, hooks: &mut Changing<'_>) -> ControlFlow<()> {
        self.as_mut().walk_with(hooks)
    }

    fn look_with(&self, hooks: &mut Looking<'_>) -> ControlFlow<()> {
        self.as_ref().look_with(hooks)
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn walk_with(&mut self, hooks: &mut Changing<'_>) -> ControlFlow<()> {
        self.iter_mut().try_for_each(|part| part.walk_with(hooks))
    }

    fn look_with(&self, hooks: &mut Looking<'_>) -> ControlFlow<()> {
        self.iter().try_for_each(|part| part.look_with(hooks))
    }
}

impl<T: Tree> Tree for Option<T> {
    fn walk_with(&mut self, hooks: &mut Changing<'_>) -> ControlFlow<()> {
        self.iter_mut().try_for_each(|part| part.walk_with(hooks))
    }

    fn look_with(&self, hooks: &mut Looking<'_>) -> ControlFlow<()> {
        self.iter().try_for_each(|part| part.look_with(hooks))
    }
}

trees!(
    Distinct,
    Expr,
    OrderByExpr,
    Query,
    Select,
    SelectItem,
    SetExpr,
    Statement,
    TableFactor,
    TableWithJoins,
    Values,
);

impl VisitorMut for Changing<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.0.pre_visit_select(select)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.0.post_visit_select(select)
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        self.0.pre_visit_relation(relation)
    }

    fn post_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        self.0.post_visit_relation(relation)
    }

    fn pre_visit_table_factor(&mut self, table_factor: &mut TableFactor) -> ControlFlow<()> {
        self.0.pre_visit_table_factor(table_factor)
    }

    fn post_visit_table_factor(&mut self, table_factor: &mut TableFactor) -> ControlFlow<()> {
        self.0.post_visit_table_factor(table_factor)
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0.pre_visit_expr(expr)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0.post_visit_expr(expr)
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        self.0.pre_visit_statement(statement)
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        self.0.post_visit_statement(statement)
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        self.0.pre_visit_value(value)
    }

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        self.0.post_visit_value(value)
    }
}

impl Visitor for Looking<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.0.pre_visit_select(select)
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.0.post_visit_select(select)
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.0.pre_visit_relation(relation)
    }

    fn post_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.0.post_visit_relation(relation)
    }

    fn pre_visit_table_factor(&mut self, table_factor: &TableFactor) -> ControlFlow<()> {
        self.0.pre_visit_table_factor(table_factor)
    }

    fn post_visit_table_factor(&mut self, table_factor: &TableFactor) -> ControlFlow<()> {
        self.0.post_visit_table_factor(table_factor)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0.pre_visit_expr(expr)
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0.post_visit_expr(expr)
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.0.pre_visit_statement(statement)
    }

    fn post_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.0.post_visit_statement(statement)
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        self.0.pre_visit_value(value)
    }

    fn post_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        self.0.post_visit_value(value)
    }
}

impl<V: VisitorMut> VisitorMut for Kept<'_, V, V::Break> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_query(query);
        self.keep(flow)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_query(query);
        self.keep(flow)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_select(select);
        self.keep(flow)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_select(select);
        self.keep(flow)
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_relation(relation);
        self.keep(flow)
    }

    fn post_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_relation(relation);
        self.keep(flow)
    }

    fn pre_visit_table_factor(&mut self, table_factor: &mut TableFactor) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_table_factor(table_factor);
        self.keep(flow)
    }

    fn post_visit_table_factor(&mut self, table_factor: &mut TableFactor) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_table_factor(table_factor);
        self.keep(flow)
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_expr(expr);
        self.keep(flow)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_expr(expr);
        self.keep(flow)
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_statement(statement);
        self.keep(flow)
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_statement(statement);
        self.keep(flow)
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_value(value);
        self.keep(flow)
    }

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_value(value);
        self.keep(flow)
    }
}

impl<V: Visitor> Visitor for Kept<'_, V, V::Break> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_query(query);
        self.keep(flow)
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_query(query);
        self.keep(flow)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_select(select);
        self.keep(flow)
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_select(select);
        self.keep(flow)
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_relation(relation);
        self.keep(flow)
    }

    fn post_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_relation(relation);
        self.keep(flow)
    }

    fn pre_visit_table_factor(&mut self, table_factor: &TableFactor) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_table_factor(table_factor);
        self.keep(flow)
    }

    fn post_visit_table_factor(&mut self, table_factor: &TableFactor) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_table_factor(table_factor);
        self.keep(flow)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_expr(expr);
        self.keep(flow)
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_expr(expr);
        self.keep(flow)
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_statement(statement);
        self.keep(flow)
    }

    fn post_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_statement(statement);
        self.keep(flow)
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        let flow = self.visitor.pre_visit_value(value);
        self.keep(flow)
    }

    fn post_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        let flow = self.visitor.post_visit_value(value);
        self.keep(flow)
    }
}
