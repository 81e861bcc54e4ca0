//! Walks over syntax trees, compiled once.
//!
//! The parser's own walk (`sqlparser::ast::VisitMut`) is generic over the visitor, so each visitor compiles the whole tree
//! of some hundred types again, which took minutes. Here one visitor stands for all of them, and asks the real one through
//! a table of functions. A walk happens once per statement, so what that costs at run time is not seen.

use sqlparser::ast::{
    Distinct, Expr, ObjectName, OrderByExpr, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    TableWithJoins, ValueWithSpan, Values, Visit, VisitMut, Visitor, VisitorMut,
};
use std::convert::Infallible;
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

    /// The same as [`Tree::walk`], with what the visitor breaks with as an error.
    fn try_walk<V: VisitorMut>(&mut self, visitor: &mut V) -> Result<(), V::Break> {
        match self.walk(visitor) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// Changes each expression in this part, after those within it, until there is an error.
    fn try_change_expressions<E>(&mut self, change: impl FnMut(&mut Expr) -> Result<(), E>) -> Result<(), E> {
        self.try_walk(&mut Expressions(change))
    }

    /// Changes each expression in this part, after those within it.
    fn change_expressions(&mut self, mut change: impl FnMut(&mut Expr)) {
        let Ok(()) = self.try_change_expressions(|expr| {
            change(expr);
            Ok::<(), Infallible>(())
        });
    }

    /// Changes each expression in this part that is in no query within it, after those within the expression, until there is
    /// an error.
    fn try_change_own_expressions<E>(
        &mut self,
        change: impl FnMut(&mut Expr) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_walk(&mut OwnExpressions { change, depth: 0 })
    }

    /// Changes each query in this part, before those within it, until there is an error.
    fn try_change_queries<E>(&mut self, change: impl FnMut(&mut Query) -> Result<(), E>) -> Result<(), E> {
        self.try_walk(&mut Queries(change))
    }

    /// Changes each SELECT in this part, before those within it.
    fn change_selects(&mut self, mut change: impl FnMut(&mut Select)) {
        let Ok(()) = self.try_walk(&mut Selects(|select: &mut Select| {
            change(select);
            Ok::<(), Infallible>(())
        }));
    }

    /// Changes each table in FROM in this part, after those within it, until there is an error.
    fn try_change_tables<E>(
        &mut self,
        change: impl FnMut(&mut TableFactor) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_walk(&mut Factors(change))
    }

    /// Changes each table in FROM in this part, after those within it.
    fn change_tables(&mut self, mut change: impl FnMut(&mut TableFactor)) {
        let Ok(()) = self.try_change_tables(|factor| {
            change(factor);
            Ok::<(), Infallible>(())
        });
    }

    /// Changes each value that is written in this part.
    fn change_values(&mut self, mut change: impl FnMut(&mut ValueWithSpan)) {
        let Ok(()) = self.try_walk(&mut Literals(|value: &mut ValueWithSpan| {
            change(value);
            Ok::<(), Infallible>(())
        }));
    }

    /// Calls `visit` for each expression in this part, before those within it.
    fn each_expression(&self, mut visit: impl FnMut(&Expr)) {
        self.has_expression(|expr| {
            visit(expr);
            false
        });
    }

    /// Whether `found` holds for an expression in this part.
    fn has_expression(&self, found: impl FnMut(&Expr) -> bool) -> bool {
        self.look(&mut FindExpression(found)).is_break()
    }

    /// Whether `found` holds for a query in this part.
    fn has_query(&self, found: impl FnMut(&Query) -> bool) -> bool {
        self.look(&mut FindQuery(found)).is_break()
    }

    /// Whether `found` holds for the name of a table in this part.
    fn has_relation(&self, found: impl FnMut(&ObjectName) -> bool) -> bool {
        self.look(&mut FindRelation(found)).is_break()
    }

    /// What `find` makes of the first expression in this part of which it makes anything.
    fn find_expression<T>(&self, mut find: impl FnMut(&Expr) -> Option<T>) -> Option<T> {
        let mut found = None;
        self.has_expression(|expr| {
            found = find(expr);
            found.is_some()
        });
        found
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

/// Hooks of a visitor that count, in a field of this name, the queries around a place.
macro_rules! count_queries {
    ($depth:ident: $query:ty) => {
        fn pre_visit_query(&mut self, _: $query) -> ControlFlow<Self::Break> {
            self.$depth += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: $query) -> ControlFlow<Self::Break> {
            self.$depth = self.$depth.saturating_sub(1);
            ControlFlow::Continue(())
        }
    };
}
pub(crate) use count_queries;

/// Breaks a walk where there is an error.
pub(crate) fn flow<E>(result: Result<(), E>) -> ControlFlow<E> {
    result.map_or_else(ControlFlow::Break, ControlFlow::Continue)
}

/// Puts what `with` makes of an expression, if anything, in its place; breaks a walk where there is an error.
pub(crate) fn replace<E>(
    expr: &mut Expr,
    with: impl FnOnce(&mut Expr) -> Result<Option<Expr>, E>,
) -> ControlFlow<E> {
    flow(with(expr).map(|other| {
        if let Some(other) = other {
            *expr = other;
        }
    }))
}

/// Visitors with one hook, which calls a function.
macro_rules! with_one_hook {
    ($($name:ident: $hook:ident($part:ty);)+) => {
        $(struct $name<F>(F);

        impl<E, F: FnMut(&mut $part) -> Result<(), E>> VisitorMut for $name<F> {
            type Break = E;

            fn $hook(&mut self, part: &mut $part) -> ControlFlow<E> {
                flow((self.0)(part))
            }
        })+
    };
}

with_one_hook! {
    Expressions: post_visit_expr(Expr);
    Queries: pre_visit_query(Query);
    Selects: pre_visit_select(Select);
    Factors: post_visit_table_factor(TableFactor);
    Literals: pre_visit_value(ValueWithSpan);
}

struct OwnExpressions<F> {
    change: F,
    /// How many queries are open.
    depth: usize,
}

impl<E, F: FnMut(&mut Expr) -> Result<(), E>> VisitorMut for OwnExpressions<F> {
    type Break = E;

    count_queries!(depth: &mut Query);

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<E> {
        if self.depth == 0 { flow((self.change)(expr)) } else { ControlFlow::Continue(()) }
    }
}

/// Visitors with one hook, which break where a function holds.
macro_rules! finding {
    ($($name:ident: $hook:ident($part:ty);)+) => {
        $(struct $name<F>(F);

        impl<F: FnMut(&$part) -> bool> Visitor for $name<F> {
            type Break = ();

            fn $hook(&mut self, part: &$part) -> ControlFlow<()> {
                if (self.0)(part) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        })+
    };
}

finding! {
    FindExpression: pre_visit_expr(Expr);
    FindQuery: pre_visit_query(Query);
    FindRelation: pre_visit_relation(ObjectName);
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

/// The visitors above, of which each asks the one within it at each part of a tree: before what is within that part, and after it.
macro_rules! hooks {
    ($($hook:ident($part:ty),)*) => {
        impl VisitorMut for Changing<'_> {
            type Break = ();

            $(fn $hook(&mut self, part: &mut $part) -> ControlFlow<()> {
                self.0.$hook(part)
            })*
        }

        impl Visitor for Looking<'_> {
            type Break = ();

            $(fn $hook(&mut self, part: &$part) -> ControlFlow<()> {
                self.0.$hook(part)
            })*
        }

        impl<V: VisitorMut> VisitorMut for Kept<'_, V, V::Break> {
            type Break = ();

            $(fn $hook(&mut self, part: &mut $part) -> ControlFlow<()> {
                let flow = self.visitor.$hook(part);
                self.keep(flow)
            })*
        }

        impl<V: Visitor> Visitor for Kept<'_, V, V::Break> {
            type Break = ();

            $(fn $hook(&mut self, part: &$part) -> ControlFlow<()> {
                let flow = self.visitor.$hook(part);
                self.keep(flow)
            })*
        }
    };
}

hooks!(
    pre_visit_query(Query),
    post_visit_query(Query),
    pre_visit_select(Select),
    post_visit_select(Select),
    pre_visit_relation(ObjectName),
    post_visit_relation(ObjectName),
    pre_visit_table_factor(TableFactor),
    post_visit_table_factor(TableFactor),
    pre_visit_expr(Expr),
    post_visit_expr(Expr),
    pre_visit_statement(Statement),
    post_visit_statement(Statement),
    pre_visit_value(ValueWithSpan),
    post_visit_value(ValueWithSpan),
);
