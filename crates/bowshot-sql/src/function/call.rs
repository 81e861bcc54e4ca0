//! Calls of functions that SQL has made, with the query of the function in their place. Arguments stand where the body names
//! parameters. An argument that has columns never stands within a query of the body, whose tables may have columns of the same names:
//! it is a column of a table of arguments there.

use super::body::{HOLE, has_columns, put_query, value_of};
use crate::rewrite::is_aggregate;
use crate::template::{self, meaning, quoted};
use crate::walk::{Tree, count_queries};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use sqlparser::ast::{Expr, ObjectName, Query, Visitor};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Text of all that is put in the place of the calls of one statement.
const MAX_EXPANDED_BYTES: usize = 4_000_000;
/// What a call takes of that beside its text: the body is read anew for each.
const CALL_BYTES: usize = 1_000;
/// Parts of such an expression inside one another: as many operators as one expression may be written with.
const MAX_DEPTH: usize = 1_000;

const COMPUTE_BEFORE: &str = "compute it in an inner query, and name its column in the call";

/// One call of a function.
#[derive(Debug)]
pub struct Call<'a> {
    /// The query of [`FunctionBody::read`] in forms that the planner knows.
    pub query: Box<Query>,
    /// One for each parameter.
    pub arguments: Vec<Expr>,
    /// Tells the call from others around it.
    pub number: u64,
    /// Bytes that may still be put into the statement.
    pub budget: &'a mut ExpansionBudget,
}

/// See [`MAX_EXPANDED_BYTES`].
#[derive(Debug)]
pub struct ExpansionBudget(usize);

impl Default for ExpansionBudget {
    fn default() -> Self {
        Self(MAX_EXPANDED_BYTES)
    }
}

impl ExpansionBudget {
    fn take(&mut self, bytes: usize) -> Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            let message =
                format!("the functions of the statement expand to more than {MAX_EXPANDED_BYTES} bytes");
            Error::new(ErrorKind::LimitReached, message)
                .with_hint("compute arguments in an inner query, and name their columns in calls")
        })?;
        Ok(())
    }
}

impl Call<'_> {
    /// The call as an expression. `is_volatile` tells functions that give another value each time.
    ///
    /// # Errors
    /// `Invalid` for names that are no parameters; `Unsupported` for arguments that would be computed more than once, or over other
    /// rows; `LimitReached`.
    pub fn into_value(mut self, is_volatile: &dyn Fn(&ObjectName) -> bool) -> Result<Expr> {
        let query = std::mem::replace(&mut self.query, crate::internal_sql::read_query("SELECT 1")?);
        let mut value = value_of(query);
        check_names(&value)?;
        let uses = Uses::count(&value, self.arguments.len());
        let moves = self.check(&uses, is_volatile)?;
        self.spend(&value, &uses)?;
        if !moves {
            fill(&mut value, &self.arguments);
            check_depth(&value)?;
            return Ok(Expr::Nested(Box::new(value)));
        }
        let (table, items) = self.table_of_arguments(&mut value);
        let text = format!("SELECT __bowshot_value FROM (SELECT {items}) AS {table}");
        let query = self.with_arguments(&text, Some(&value))?;
        check_depth(&query)?;
        Ok(Expr::Subquery(query))
    }

    /// The call as a query, and whether it reads columns of tables beside it.
    pub fn into_rows(mut self, is_volatile: &dyn Fn(&ObjectName) -> bool) -> Result<(Box<Query>, bool)> {
        let mut query = std::mem::replace(&mut self.query, crate::internal_sql::read_query("SELECT 1")?);
        let uses = Uses::count(&query, self.arguments.len());
        let moves = self.check(&uses, is_volatile)?;
        self.spend(&query, &uses)?;
        if !moves {
            fill(&mut query, &self.arguments);
            check_depth(&query)?;
            return Ok((query, false));
        }
        let (table, items) = self.table_of_arguments(&mut query);
        let rows = format!("__bowshot_rows_{}", self.number);
        let text = format!("SELECT {rows}.* FROM (SELECT {items}) AS {table}, LATERAL (SELECT 1) AS {rows}");
        let mut outer = self.with_arguments(&text, None)?;
        put_query(&mut outer, 1, query)?;
        check_depth(&outer)?;
        Ok((outer, true))
    }

    /// Whether arguments have to be columns of a table of their own.
    fn check(&self, uses: &[Uses], is_volatile: &dyn Fn(&ObjectName) -> bool) -> Result<bool> {
        let both = || uses.iter().zip(&self.arguments);
        let moves = both().any(|(uses, argument)| uses.is_within && has_columns(argument));
        let over_rows = both().find(|(uses, argument)| (uses.is_within || moves) && is_over_rows(argument));
        if let Some((_, argument)) = over_rows {
            let message = format!(
                "the argument `{argument}` is computed over rows, and the function has rows of its own"
            );
            return Err(Error::unsupported(message).with_hint(COMPUTE_BEFORE));
        }
        let is_random = |expr: &Expr| matches!(expr, Expr::Function(call) if is_volatile(&call.name));
        // A query within the body may compute it for each of its rows.
        let many = both().find(|(uses, argument)| {
            (uses.count > 1 || uses.is_within || moves && uses.count > 0)
                && argument.has_expression(is_random)
        });
        match many {
            None => Ok(moves),
            Some((_, argument)) => Err(Error::unsupported(format!(
                "the argument `{argument}` is volatile, and the function may evaluate it more than once"
            ))
            .with_hint(COMPUTE_BEFORE)),
        }
    }

    fn spend(&mut self, body: &impl ToString, uses: &[Uses]) -> Result<()> {
        let arguments = uses.iter().zip(&self.arguments).fold(0_usize, |sum, (uses, argument)| {
            sum.saturating_add(argument.to_string().len().saturating_mul(uses.count))
        });
        self.budget.take(arguments.saturating_add(body.to_string().len()).saturating_add(CALL_BYTES))
    }

    /// Puts the columns of a table of the arguments into the body. Gives the name of the table and what it selects.
    fn table_of_arguments(&self, body: &mut impl Tree) -> (String, String) {
        let table = format!("__bowshot_arguments_{}", self.number);
        let name = |at: usize| format!("a{at}");
        let column = |at| Expr::CompoundIdentifier(vec![quoted(&table), quoted(&name(at))]);
        let columns: Vec<Expr> = (0..self.arguments.len()).map(column).collect();
        fill(body, &columns);
        let items = (0..self.arguments.len()).map(|at| format!("{HOLE}{at} AS {}", name(at)));
        let items = items.collect::<Vec<_>>().join(", ");
        (table, items)
    }

    fn with_arguments(&self, text: &str, value: Option<&Expr>) -> Result<Box<Query>> {
        let names: Vec<String> = (0..self.arguments.len()).map(|at| format!("{HOLE}{at}")).collect();
        let mut holes: Vec<(&str, &Expr)> = names.iter().map(String::as_str).zip(&self.arguments).collect();
        holes.extend(value.map(|value| ("__bowshot_value", value)));
        template::query(text, &holes)
    }
}

/// Whether an expression is computed over rows of the statement that it stands in: queries within it have rows of their own.
fn is_over_rows(expr: &Expr) -> bool {
    expr.look(&mut OverRows { depth: 0 }).is_break()
}

struct OverRows {
    depth: usize,
}

impl Visitor for OverRows {
    type Break = ();

    count_queries!(depth: &Query);

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_window = matches!(expr, Expr::Function(call) if call.over.is_some());
        if self.depth == 0 && (is_window || is_aggregate(expr)) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn hole(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Identifier(name) => name.value.strip_prefix(HOLE)?.parse().ok(),
        _ => None,
    }
}

pub(super) fn fill(body: &mut impl Tree, arguments: &[Expr]) {
    body.change_expressions(|expr| {
        if let Some(argument) = hole(expr).and_then(|at| arguments.get(at)) {
            *expr = Expr::Nested(Box::new(argument.clone()));
        }
    });
}

/// How a body uses one argument.
#[derive(Debug, Clone, Default)]
struct Uses {
    count: usize,
    /// Whether some use is in a query within the body.
    is_within: bool,
}

impl Uses {
    fn count(body: &impl Tree, arguments: usize) -> Vec<Self> {
        let mut counter = Counter { uses: vec![Self::default(); arguments], depth: 0 };
        let ControlFlow::Continue(()) = body.look(&mut counter);
        counter.uses
    }
}

struct Counter {
    uses: Vec<Uses>,
    depth: usize,
}

impl Visitor for Counter {
    type Break = Infallible;

    count_queries!(depth: &Query);

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if let Some(uses) = hole(expr).and_then(|at| self.uses.get_mut(at)) {
            uses.count += 1;
            uses.is_within |= self.depth > 0;
        }
        ControlFlow::Continue(())
    }
}

/// Outside of queries, a body names nothing but parameters: other names would be those of the statement that calls.
fn check_names(value: &Expr) -> Result<()> {
    match value.look(&mut Strangers { depth: 0, lambdas: Vec::new() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => Err(Error::invalid(format!("column `{name}` does not exist"))
            .with_reason(Reason::UndefinedColumn)
            .with_hint("a function names its parameters, and columns of tables in queries of its own")),
    }
}

struct Strangers {
    depth: usize,
    lambdas: Vec<Vec<String>>,
}

impl Visitor for Strangers {
    type Break = String;

    count_queries!(depth: &Query);

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        if let Expr::Lambda(lambda) = expr {
            self.lambdas.push(lambda.params.iter().map(|parameter| meaning(&parameter.name)).collect());
        }
        if self.depth > 0 || hole(expr).is_some() {
            return ControlFlow::Continue(());
        }
        let first = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.first(),
            _ => None,
        };
        match first.map(meaning) {
            Some(name) if !self.lambdas.iter().flatten().any(|lambda| *lambda == name) => {
                ControlFlow::Break(expr.to_string())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        if matches!(expr, Expr::Lambda(_)) {
            self.lambdas.pop();
        }
        ControlFlow::Continue(())
    }
}

fn check_depth(tree: &impl Tree) -> Result<()> {
    match tree.look(&mut Depth(0)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let message = format!(
                "the functions of the statement expand to more than {MAX_DEPTH} levels of expressions"
            );
            Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("compute arguments in an inner query, and name their columns in calls"))
        }
    }
}

struct Depth(usize);

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.0 += 1;
        if self.0 > MAX_DEPTH { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_become_has_a_limit() {
        let mut budget = ExpansionBudget(100);
        budget.take(60).expect("there is room");
        let error = budget.take(60).expect_err("there is none");
        assert_eq!(error.kind(), ErrorKind::LimitReached);
    }
}
