//! Windows by name: `OVER w` and `OVER (w ROWS …)` are written out, as the WINDOW clause of their SELECT says. The planner takes
//! the name in brackets for nothing. Ranks are integers with a sign.

use crate::template::{self, meaning};
use crate::walk::{Tree, count_queries, flow};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query, Select, SetExpr, VisitorMut,
    WindowSpec, WindowType,
};
use std::ops::ControlFlow;

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    statement.try_walk(&mut Windows)
}

struct Windows;

impl VisitorMut for Windows {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        flow(in_order(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(in_select(select))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        flow(with_sign(expr))
    }
}

/// `row_number() OVER …` as a BIGINT. DataFusion's has no sign, so that it cannot be negated, and few clients know its type.
fn with_sign(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let [part] = function.name.0.as_slice() else { return Ok(()) };
    let name = part.as_ident().map(meaning).unwrap_or_default();
    if function.over.is_some() && matches!(name.as_str(), "row_number" | "rank" | "dense_rank" | "ntile") {
        *expr = template::expression("CAST(ranked AS BIGINT)", &[("ranked", expr)])?;
    }
    Ok(())
}

/// The ORDER BY behind a SELECT, which sees the windows of that.
fn in_order(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let known = Known::of(&select.named_window)?;
    match &mut query.order_by {
        Some(order_by) => match &mut order_by.kind {
            OrderByKind::Expressions(keys) => known.put(keys),
            OrderByKind::All(_) => Ok(()),
        },
        None => Ok(()),
    }
}

fn in_select(select: &mut Select) -> Result<()> {
    let known = Known::of(&select.named_window)?;
    known.put(&mut select.projection)?;
    known.put(&mut select.qualify)?;
    known.put(&mut select.distinct)?;
    select.named_window.clear();
    Ok(())
}

/// The windows of a WINDOW clause, each written out.
#[derive(Default)]
struct Known(Vec<(String, WindowSpec)>);

impl Known {
    /// A window may begin with one that stands before it.
    fn of(windows: &[NamedWindowDefinition]) -> Result<Self> {
        let mut known = Self::default();
        for NamedWindowDefinition(name, window) in windows {
            if known.find(name).is_some() {
                return Err(Error::invalid(format!("window `{}` is defined twice", name.value)));
            }
            let window = match window {
                NamedWindowExpr::NamedWindow(other) => known.named(other)?.clone(),
                NamedWindowExpr::WindowSpec(window) => known.written_out(window)?,
            };
            known.0.push((meaning(name), window));
        }
        Ok(known)
    }

    fn find(&self, name: &Ident) -> Option<&WindowSpec> {
        let name = meaning(name);
        self.0.iter().find(|(known, _)| *known == name).map(|(_, window)| window)
    }

    fn named(&self, name: &Ident) -> Result<&WindowSpec> {
        self.find(name).ok_or_else(|| {
            Error::invalid(format!("window `{}` does not exist", name.value))
                .with_hint("define it in the WINDOW clause of the same SELECT")
        })
    }

    /// `w ORDER BY … ROWS …`: what is written after the name is added to what the name stands for.
    fn written_out(&self, window: &WindowSpec) -> Result<WindowSpec> {
        let mut window = window.clone();
        let Some(name) = window.window_name.take() else { return Ok(window) };
        let base = self.named(&name)?;
        let refused = |what: &str| Err(Error::invalid(format!("cannot {what}")));
        if !window.partition_by.is_empty() {
            return refused(&format!("override PARTITION BY clause of window `{}`", name.value));
        }
        if !window.order_by.is_empty() && !base.order_by.is_empty() {
            return refused(&format!("override ORDER BY clause of window `{}`", name.value));
        }
        if base.window_frame.is_some() {
            let message = format!("cannot copy window `{}` because it has a frame clause", name.value);
            return Err(Error::invalid(message).with_hint("write OVER and the name without brackets"));
        }
        window.partition_by.clone_from(&base.partition_by);
        if window.order_by.is_empty() {
            window.order_by.clone_from(&base.order_by);
        }
        Ok(window)
    }

    /// Writes out the windows of one SELECT; those of queries within have their own names.
    fn put(&self, part: &mut impl Tree) -> Result<()> {
        part.try_walk(&mut Put { known: self, depth: 0 })
    }
}

struct Put<'known> {
    known: &'known Known,
    /// How many queries are open.
    depth: usize,
}

impl VisitorMut for Put<'_> {
    type Break = Error;

    count_queries!(depth: &mut Query);

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let window = match &function.over {
            Some(WindowType::NamedWindow(name)) => self.known.named(name).cloned(),
            Some(WindowType::WindowSpec(window)) if window.window_name.is_some() => {
                self.known.written_out(window)
            }
            _ => return ControlFlow::Continue(()),
        };
        flow(window.map(|window| function.over = Some(WindowType::WindowSpec(window))))
    }
}
