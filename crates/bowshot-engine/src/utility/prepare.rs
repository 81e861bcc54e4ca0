//! `EXECUTE name(…)`. A named statement is kept as its text; each EXECUTE plans it with the values in the places of its parameters.

use super::utility_context::UtilityContext;
use crate::plan;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_sql::Tree;
use bowshot_sql::rewrite::Source;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr, Statement, Value};

/// Bytes that the values of one EXECUTE may become in the places of its parameters.
const MAX_BYTES: usize = 16 << 20;

/// The statement of a name, with these values in the places of its parameters.
///
/// # Errors
/// `NotFound` for the name; `Invalid` for values that do not fit.
pub(crate) fn execute(name: &str, values: Vec<Expr>, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let statement = asked.named(name).ok_or_else(|| {
        Error::not_found(format!("prepared statement `{name}` not found"))
            .with_reason(Reason::UndefinedStatement)
            .with_hint("name one with `PREPARE name AS statement`")
    })?;
    let values = typed(values, &statement.types)?;
    let options = asked.visible.options();
    let source = Source { text: &statement.sql, dialect: plan::dialect(&options).name() };
    let bowshot_sql::Statement::Sql(inner) = plan::parse(&options, &statement.sql)? else {
        return Err(Error::unsupported("only a query or a change of rows can be executed"));
    };
    let mut inner = plan::known(&options, inner, source)?;
    bind(&mut inner, &values)?;
    Ok(Parsed::Statement(inner))
}

/// The values as they are put into the statement: with the declared type, where there is one.
fn typed(values: Vec<Expr>, types: &[String]) -> Result<Vec<Expr>> {
    let mut typed = Vec::with_capacity(values.len());
    for (n, value) in values.into_iter().enumerate() {
        check_constant(&value)?;
        typed.push(match types.get(n) {
            Some(data_type) if !data_type.eq_ignore_ascii_case("unknown") => cast(value, data_type)?,
            _ => Expr::Nested(Box::new(value)),
        });
    }
    Ok(typed)
}

/// What depends on rows is no value.
fn check_constant(value: &Expr) -> Result<()> {
    let mut of_rows = None;
    value.has_expression(|expr| {
        let found = matches!(
            expr,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::Exists { .. }
        );
        if found {
            of_rows = Some(expr.to_string());
        }
        found
    });
    match of_rows {
        None => Ok(()),
        Some(expr) => Err(Error::invalid(format!("`{expr}` is no value"))
            .with_hint("EXECUTE takes literals and what is made of them")),
    }
}

fn cast(value: Expr, data_type: &str) -> Result<Expr> {
    let data_type = bowshot_sql::read_type(data_type)
        .ok_or_else(|| Error::new(ErrorKind::Syntax, format!("syntax error: `{data_type}` is not a type")))?;
    let mut cast = bowshot_sql::read_expression("CAST(1 AS INTEGER)")?;
    if let Expr::Cast { expr, data_type: place, .. } = &mut cast {
        (**expr, *place) = (value, data_type);
    }
    Ok(cast)
}

fn bind(statement: &mut Statement, values: &[Expr]) -> Result<()> {
    let sizes = values.iter().map(|value| value.to_string().len()).collect();
    let mut bound = Bound { values, sizes, bytes: 0, used: vec![false; values.len()] };
    statement.try_change_expressions(|expr| bound.replace(expr))?;
    let used = bound.used.iter().filter(|used| **used).count();
    if used == values.len() {
        return Ok(());
    }
    Err(Error::invalid(format!("the statement has {used} parameters, and got {} values", values.len()))
        .with_reason(Reason::WrongParameters))
}

struct Bound<'a> {
    values: &'a [Expr],
    sizes: Vec<usize>,
    bytes: usize,
    used: Vec<bool>,
}

impl Bound<'_> {
    fn replace(&mut self, expr: &mut Expr) -> Result<()> {
        let Expr::Value(value) = expr else { return Ok(()) };
        let Value::Placeholder(name) = &value.value else { return Ok(()) };
        let number = name.trim_start_matches(['$', '?', ':']).parse::<usize>().ok();
        let place = number.and_then(|number| number.checked_sub(1)).unwrap_or(usize::MAX);
        let found = (self.values.get(place), self.sizes.get(place), self.used.get_mut(place));
        let (Some(given), Some(size), Some(used)) = found else {
            return Err(Error::invalid(format!("parameter `{name}` has no value"))
                .with_reason(Reason::WrongParameters)
                .with_hint(format!("EXECUTE was given {} values", self.values.len())));
        };
        self.bytes = self.bytes.saturating_add(*size);
        if self.bytes > MAX_BYTES {
            return Err(Error::new(
                ErrorKind::LimitReached,
                "the statement is too large with its values in it",
            )
            .with_hint("bind long values through the prepared statements of your client"));
        }
        *used = true;
        *expr = given.clone();
        Ok(())
    }
}
