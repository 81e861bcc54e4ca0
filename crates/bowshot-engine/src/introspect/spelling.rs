//! PostgreSQL's spellings that the planner does not know: functions named with their schema, as in `pg_catalog.version()`, and
//! the number of a table as `'t'::regclass`.

use super::asked::{parsed, quoted};
use super::prepare::projected;
use bowshot_api::Error;
use bowshot_sql::Tree;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{DataType, Expr, Value, VisitorMut};
use std::ops::ControlFlow;

/// Whether a text may have one of them in it.
pub(crate) fn is_mentioned(sql: &str) -> bool {
    let has =
        |word: &str| sql.as_bytes().windows(word.len()).any(|at| at.eq_ignore_ascii_case(word.as_bytes()));
    has("pg_catalog") || has("regclass")
}

/// The statement with them as calls that the planner knows.
///
/// # Errors
/// `Internal`; does not happen.
pub(crate) fn understood(statement: &mut Parsed) -> Result<(), Error> {
    let Parsed::Statement(inner) = statement else { return Ok(()) };
    match inner.walk(&mut Spelling) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Spelling;

impl VisitorMut for Spelling {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match expr {
            Expr::Function(function) if function.name.0.len() == 2 => {
                let schema = function.name.0.first().and_then(|part| part.as_ident());
                if schema.is_some_and(|schema| schema.value.eq_ignore_ascii_case("pg_catalog")) {
                    function.name.0.remove(0);
                }
            }
            Expr::Cast { expr: inner, data_type: DataType::Regclass, .. } => {
                if let Expr::Value(value) = inner.as_ref()
                    && let Value::SingleQuotedString(name) = &value.value
                {
                    match call(name) {
                        Ok(called) => *expr = called,
                        Err(error) => return ControlFlow::Break(error),
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn call(name: &str) -> Result<Expr, Error> {
    let mut statement = parsed(&format!("SELECT regclass({})", quoted(name)))?;
    projected(&mut statement).cloned().ok_or_else(|| Error::internal("a query of our own is none"))
}
