//! `PREPARE name AS …`, `EXECUTE name(…)`, `DEALLOCATE name`, `DISCARD …`. A named statement is kept as its text; each
//! EXECUTE plans it with the values in the places of its parameters.

use super::Expanded;
use super::asked::{Asked, parsed};
use super::parse::Words;
use crate::plan;
use crate::statement::forms;
use crate::statement::session::{Discarded, SessionStatement};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_sql::{Dialect, DialectName, Tree};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{DataType, Expr, SelectItem, SetExpr, Statement, Value, VisitorMut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// Bytes that the values of one EXECUTE may become in the places of its parameters.
const MAX_BYTES: usize = 16 << 20;

/// The statement with its first word taken.
pub(super) fn recognise(mut words: Words<'_>, first: &str, asked: &Asked<'_>) -> Result<Option<Expanded>> {
    match first {
        "prepare" => prepare(words).map(Some),
        "execute" => execute(words, asked).map(Some),
        "discard" => {
            let what = match words.word().as_deref() {
                Some("all") => Discarded::All,
                Some("temp" | "temporary") => Discarded::Temporary,
                Some("plans" | "sequences") => Discarded::Plans,
                _ => return Err(words.unexpected().with_hint("write `DISCARD ALL`, `TEMP` or `PLANS`")),
            };
            words.end()?;
            Ok(Some(Expanded::Act(SessionStatement::Discard(what))))
        }
        _ => {
            let _ = words.take("prepare");
            let all = words.peek().as_deref() == Some("all");
            let name = words.single()?;
            words.end()?;
            Ok(Some(Expanded::Act(SessionStatement::Deallocate((!all).then_some(name)))))
        }
    }
}

/// `PREPARE name [(types)] AS statement`, `PREPARE name FROM 'statement'`
fn prepare(mut words: Words<'_>) -> Result<Expanded> {
    if words.peek().as_deref() == Some("transaction") {
        return Err(
            Error::unsupported("transactions of two phases are not supported").with_hint("use COMMIT")
        );
    }
    let name = words.single()?;
    let mut types = Vec::new();
    if words.take_token(&Token::LParen) {
        loop {
            types.push(words.data_type()?);
            if words.take_token(&Token::RParen) {
                break;
            }
            if !words.take_token(&Token::Comma) {
                return Err(words.unexpected());
            }
        }
    }
    let sql = if words.take("from") {
        let text = words.string().ok_or_else(|| words.unexpected())?;
        words.end()?;
        text
    } else if words.take("as") {
        words.rest().to_owned()
    } else {
        return Err(words.unexpected().with_hint("write `PREPARE name AS statement`"));
    };
    let [first, _] = bowshot_sql::first_words(&sql);
    if ["prepare", "execute", "deallocate", "discard", ""].contains(&first.as_str())
        && !sql.trim_start().starts_with('(')
    {
        return Err(Error::unsupported("only a query or a change of rows can be prepared"));
    }
    if ["create", "alter", "attach", "grant", "set"].contains(&first.as_str())
        && bowshot_sql::holds_secrets(&sql, Dialect::new(DialectName::Ansi))
    {
        return Err(Error::unsupported("a statement about secrets is not prepared by name")
            .with_hint("send `CREATE SECRET name (…)` by itself"));
    }
    Ok(Expanded::Act(SessionStatement::Prepare { name, sql, types }))
}

/// `EXECUTE name [(values)]`, `EXECUTE name USING values`
fn execute(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Expanded> {
    let name = words.single()?;
    let mut values = Vec::new();
    let in_parentheses = words.take_token(&Token::LParen);
    if in_parentheses && words.take_token(&Token::RParen) {
        words.end()?;
    } else if in_parentheses || words.take("using") {
        loop {
            values.push(words.expression()?);
            if !words.take_token(&Token::Comma) {
                break;
            }
        }
        if in_parentheses && !words.take_token(&Token::RParen) {
            return Err(words.unexpected());
        }
    }
    words.end()?;
    let statement = asked.named(&name).ok_or_else(|| {
        Error::not_found(format!("prepared statement `{name}` not found"))
            .with_reason(Reason::UndefinedStatement)
            .with_hint("name one with `PREPARE name AS statement`")
    })?;
    let values = typed(values, &statement.types)?;
    let options = asked.visible.options();
    let spelled = forms::known(&statement.sql, &plan::dialect(&options))?;
    let mut inner = match plan::parse(&options, &spelled)? {
        plan::Parsed::Sql(Parsed::Statement(inner)) => inner,
        plan::Parsed::Sql(_) | plan::Parsed::Copy(_) => {
            return Err(Error::unsupported("only a query or a change of rows can be executed"));
        }
    };
    bind(&mut inner, &values)?;
    Ok(Expanded::Execute(Box::new(Parsed::Statement(inner))))
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
    let data_type: DataType = Parser::new(&GenericDialect {})
        .try_with_sql(data_type)
        .and_then(|mut parser| parser.parse_data_type())
        .map_err(|error| Error::new(ErrorKind::Syntax, format!("syntax error: {error}")))?;
    let mut cast = parsed("SELECT CAST(1 AS INTEGER)")?;
    let place = projected(&mut cast).ok_or_else(|| Error::internal("a query of our own is none"))?;
    if let Expr::Cast { expr, data_type: place, .. } = place {
        (**expr, *place) = (value, data_type);
    }
    Ok(place.clone())
}

/// The one expression that a query gives.
pub(super) fn projected(statement: &mut Parsed) -> Option<&mut Expr> {
    let Parsed::Statement(statement) = statement else { return None };
    let Statement::Query(query) = statement.as_mut() else { return None };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    match select.projection.first_mut()? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn bind(statement: &mut Statement, values: &[Expr]) -> Result<()> {
    let sizes = values.iter().map(|value| value.to_string().len()).collect();
    let mut bound = Bound { values, sizes, bytes: 0, used: vec![false; values.len()] };
    match statement.walk(&mut bound) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) if bound.used.iter().all(|used| *used) => Ok(()),
        ControlFlow::Continue(()) => {
            let used = bound.used.iter().filter(|used| **used).count();
            Err(Error::invalid(format!(
                "the statement has {used} parameters, and got {} values",
                values.len()
            ))
            .with_reason(Reason::WrongParameters))
        }
    }
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

impl VisitorMut for Bound<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match self.replace(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
