//! The query of a function that SQL has made, with marks in the place of its parameters.

use super::call::fill;
use super::{FunctionParameter, FunctionResult};
use crate::dialect::{Dialect, DialectName};
use crate::internal_sql::read_type;
use crate::literal::is_placeholder;
use crate::rewrite;
use crate::sqlparser_statement::parse_expression;
use crate::statement::Statement;
use crate::template::{self, meaning, quoted};
use crate::walk::Tree;
use bowshot_api::{Error, Reason, Result};
use sqlparser::ast::{
    self, CastKind, Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, Query, SelectItem, SetExpr,
    TableFactor, Value, VisitorMut,
};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// What the name of a parameter becomes, with its number behind.
pub(super) const HOLE: &str = "__bowshot_parameter_";

/// A function as it was defined.
#[derive(Debug, Clone, Copy)]
pub struct FunctionBody<'a> {
    /// The last part of its name, which may stand before the names of parameters.
    pub name: &'a str,
    pub parameters: &'a [FunctionParameter],
    pub returns: &'a FunctionResult,
    pub body: &'a str,
    pub dialect: DialectName,
}

impl FunctionBody<'_> {
    /// The query of the function as a statement, with marks in the place of its parameters. What it gives is cast to its types.
    ///
    /// # Errors
    /// `Syntax` for a body that cannot be read, `Invalid` for one that is no query.
    pub fn read(&self, recursion_limit: usize) -> Result<Box<ast::Statement>> {
        let mut parsed = crate::parse(self.body, Dialect::new(self.dialect), recursion_limit)?;
        let (first, is_alone) = (parsed.pop(), parsed.is_empty());
        let mut query = match first {
            Some(Statement::Sql(statement)) if is_alone => match *statement {
                ast::Statement::Query(query) => query,
                _ => return Err(no_query()),
            },
            _ => return Err(no_query()),
        };
        let mut holes =
            Holes { function: self, types: self.types()?, qualified: HashSet::new(), lambdas: Vec::new() };
        query.each_expression(|expr| holes.qualified.extend(holes.qualified_place(expr)));
        let ControlFlow::Continue(()) = query.walk(&mut holes);
        if query.has_expression(is_placeholder) {
            return Err(self.misfit("uses a parameter number that it does not have"));
        }
        let query = match self.returns {
            FunctionResult::Value(data_type) => {
                let value = value_of(query);
                let value = match data_type {
                    Some(data_type) => cast(value, known_type(data_type)?),
                    None => value,
                };
                template::query("SELECT __bowshot_value", &[("__bowshot_value", &value)])?
            }
            FunctionResult::Rows(columns) if columns.is_empty() => query,
            FunctionResult::Rows(columns) => rows_of_types(query, columns)?,
        };
        Ok(Box::new(ast::Statement::Query(query)))
    }

    /// The query that [`Self::read`] has given by itself, with NULL for each parameter. `None` for an expression without a query, in
    /// which a call looks at the names.
    pub fn by_itself(&self, query: &Query) -> Option<Box<Query>> {
        let mut query = Box::new(query.clone());
        let gives_value = matches!(self.returns, FunctionResult::Value(_));
        if gives_value && !value_of(query.clone()).has_query(|_| true) {
            return None;
        }
        let nulls: Vec<Expr> = self.parameters.iter().map(|_| Expr::value(Value::Null)).collect();
        fill(&mut query, &nulls);
        Some(query)
    }

    fn types(&self) -> Result<Vec<Option<ast::DataType>>> {
        let types = self.parameters.iter().map(|parameter| parameter.data_type.as_deref());
        types.map(|data_type| data_type.map(known_type).transpose()).collect()
    }

    /// The arguments of a call, one for each parameter: by place, by name, by default.
    pub fn bind(&self, given: Vec<FunctionArg>) -> Result<Vec<Expr>> {
        let mut bound: Vec<Option<Expr>> = self.parameters.iter().map(|_| None).collect();
        let count = given.len();
        let mut is_named = false;
        for (at, argument) in given.into_iter().enumerate() {
            let (place, value) = match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) if !is_named => (at, value),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
                | FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg: FunctionArgExpr::Expr(value),
                    ..
                } => {
                    is_named = true;
                    (self.place_of(&meaning(&name))?, value)
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) => {
                    return Err(self.misfit("has positional arguments after named ones"));
                }
                _ => return Err(self.misfit("takes values")),
            };
            let Some(free) = bound.get_mut(place) else {
                return Err(self.misfit(&format!("does not take {count} arguments")));
            };
            if free.replace(value).is_some() {
                return Err(self.misfit("has two arguments for one parameter"));
            }
        }
        let both = bound.into_iter().zip(self.parameters);
        both.map(|(bound, parameter)| bound.map_or_else(|| self.default_of(parameter), Ok)).collect()
    }

    fn place_of(&self, name: &str) -> Result<usize> {
        let place = self.parameters.iter().position(|parameter| parameter.name == name);
        place.ok_or_else(|| self.misfit(&format!("has no parameter `{name}`")))
    }

    fn default_of(&self, parameter: &FunctionParameter) -> Result<Expr> {
        let Some(text) = &parameter.default else {
            return Err(self.misfit(&format!("needs an argument for `{}`", parameter.name)));
        };
        let mut value = parse_expression(text, Dialect::new(self.dialect))?;
        if has_columns(&value) || value.has_expression(is_placeholder) {
            let message = format!("the default of parameter `{}` names a column", parameter.name);
            return Err(Error::invalid(message).with_hint("a default is computed of constants"));
        }
        rewrite::expression(&mut value, self.dialect)?;
        Ok(value)
    }

    fn misfit(&self, what: &str) -> Error {
        let parameters = self.parameters.iter().map(|parameter| {
            let data_type = parameter.data_type.iter().map(|of| format!(" {of}"));
            let default = parameter.default.iter().map(|default| format!(" DEFAULT {default}"));
            std::iter::once(parameter.name.clone()).chain(data_type).chain(default).collect::<String>()
        });
        let signature = format!("{}({})", self.name, parameters.collect::<Vec<_>>().join(", "));
        Error::invalid(format!("function `{}` {what}", self.name))
            .with_reason(Reason::UndefinedFunction)
            .with_hint(format!("call it as `{signature}`"))
    }
}

fn no_query() -> Error {
    Error::invalid("the body of a function must be a single query")
        .with_hint("write `RETURN expression`, or `AS $$ SELECT … $$`")
}

fn known_type(text: &str) -> Result<ast::DataType> {
    read_type(text)
        .ok_or_else(|| Error::invalid(format!("`{text}` is not a valid type of a parameter or a result")))
}

fn cast(expr: Expr, data_type: ast::DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// The value that a query gives: what it selects where it reads no table, else the query as a value.
pub(super) fn value_of(query: Box<Query>) -> Expr {
    let is_bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    if is_bare
        && let SetExpr::Select(select) = query.body.as_ref()
        && select.from.is_empty()
        && select.selection.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.distinct.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
        && let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
            select.projection.as_slice()
    {
        return expr.clone();
    }
    Expr::Subquery(query)
}

fn rows_of_types(query: Box<Query>, columns: &[(String, String)]) -> Result<Box<Query>> {
    let items = columns.iter().enumerate().map(|(at, (_, data_type))| {
        known_type(data_type)?;
        Ok::<_, Error>(format!("CAST(__bowshot_rows.c{at} AS {data_type}) AS c{at}"))
    });
    let items = items.collect::<Result<Vec<_>>>()?.join(", ");
    let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let text = format!("SELECT {items} FROM (SELECT 1) AS __bowshot_rows ({})", names.join(", "));
    let mut outer = crate::internal_sql::read_query(&text)?;
    if let SetExpr::Select(select) = outer.body.as_mut() {
        for (item, (name, _)) in select.projection.iter_mut().zip(columns) {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                // Not in the text, where quotes and backslashes in a name would be taken for others.
                *alias = quoted(name);
            }
        }
    }
    put_query(&mut outer, 0, query)?;
    Ok(outer)
}

/// Puts a query in the place of one of the tables of another, which are queries too.
pub(super) fn put_query(outer: &mut Query, table: usize, query: Box<Query>) -> Result<()> {
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(from) = select.from.get_mut(table)
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        *subquery = query;
        return Ok(());
    }
    Err(Error::internal("a query of our own was read as something else"))
}

/// Puts marks in the place of parameters.
struct Holes<'a> {
    function: &'a FunctionBody<'a>,
    types: Vec<Option<ast::DataType>>,
    /// Parameters that the body names as `f.a`: their names alone are those of columns, as in PostgreSQL.
    qualified: HashSet<usize>,
    /// Names that lambdas around this place give.
    lambdas: Vec<Vec<String>>,
}

impl Holes<'_> {
    fn place(&self, name: &Ident) -> Option<usize> {
        let name = meaning(name);
        self.function.parameters.iter().position(|parameter| parameter.name == name)
    }

    fn qualified_place(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [function, name] if meaning(function) == self.function.name => self.place(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The parameter that an expression names; `$1` is the first one.
    fn named(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Identifier(name) => {
                let written = meaning(name);
                let is_other = self.lambdas.iter().flatten().any(|lambda| *lambda == written);
                self.place(name).filter(|place| !is_other && !self.qualified.contains(place))
            }
            Expr::Value(value) => match &value.value {
                Value::Placeholder(text) => {
                    let number = text.strip_prefix('$')?.parse::<usize>().ok()?;
                    number.checked_sub(1).filter(|place| *place < self.types.len())
                }
                _ => None,
            },
            expr => self.qualified_place(expr),
        }
    }
}

impl VisitorMut for Holes<'_> {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Lambda(lambda) = expr {
            self.lambdas.push(lambda.params.iter().map(|parameter| meaning(&parameter.name)).collect());
        }
        if let Expr::Function(function) = expr
            && let ast::FunctionArguments::List(list) = &mut function.args
        {
            list.args.iter_mut().for_each(keep_name);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Lambda(_)) {
            self.lambdas.pop();
        }
        if let Some(place) = self.named(expr) {
            let hole = Expr::Identifier(quoted(&format!("{HOLE}{place}")));
            let data_type = self.types.get(place).cloned().flatten();
            *expr = match data_type {
                Some(data_type) => cast(hole, data_type),
                None => hole,
            };
        }
        ControlFlow::Continue(())
    }
}

/// The name of an argument is that of a parameter of the other function.
fn keep_name(argument: &mut FunctionArg) {
    if let FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, operator } = argument {
        *argument = FunctionArg::Named { name: name.clone(), arg: arg.clone(), operator: operator.clone() };
    }
}

/// Whether an expression names columns of the statement that it stands in.
pub(super) fn has_columns(expr: &Expr) -> bool {
    expr.has_expression(|part| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
}
