//! Text → logical plan. One statement at a time; `bowshot-sql` reads it and puts it into forms that the planner knows.

pub(crate) mod allowed;
mod order_names;
pub(crate) mod parameter_types;
pub(crate) mod parameters;
pub(crate) mod plan_limits;
pub(crate) mod planned_statement;
mod recursion;
pub(crate) mod row_expressions;
pub(crate) mod semantics;
pub(crate) mod steps;
pub(crate) mod struct_fields;

use crate::error::classify;
use crate::error::wording::closest;
use crate::models;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_api::{Error, ErrorKind, Position, Reason, Result, SAME_NAME_MARK, display_name};
use bowshot_optimizer::{MySqlOperands, ParameterOperands, compared_by_labels, materialized_cte};
use bowshot_sql::rewrite::{self, Defaults, Source, Wanted};
use bowshot_sql::{CopyStatement, Dialect, DialectName, Direction, Explain, Tree};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::format::{ExplainFormat, ExplainStatementOptions};
use datafusion::common::{Column, DFSchema, SchemaError, TableReference};
use datafusion::config::{self, ConfigOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::{DFParserBuilder, ExplainStatement, Statement};
use datafusion::sql::sqlparser::ast::{self, ExprWithAlias};
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use futures::FutureExt;
use futures::future::BoxFuture;
use planned_statement::Planned;
use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;

/// The parser's dialect for one of ours. `ansi` is the widest one: standard SQL with everybody's harmless extensions.
pub fn parser_dialect(name: &str) -> Option<config::Dialect> {
    match name.to_ascii_lowercase().as_str() {
        "ansi" => Some(config::Dialect::Generic),
        "postgres" | "postgresql" => Some(config::Dialect::PostgreSQL),
        "mysql" => Some(config::Dialect::MySQL),
        _ => None,
    }
}

/// The dialect of the texts that are kept in a form of our own: defaults and checks, which are printed from the tree.
pub(crate) const KEPT: DialectName = DialectName::Ansi;

/// A query that is kept as text, such as a view's, read in the dialect that it was written in.
///
/// # Errors
/// `Syntax` for a text that is no single statement.
pub(crate) fn kept_query(options: &ConfigOptions, sql: &str, dialect: DialectName) -> Result<Statement> {
    let limit = options.sql_parser.recursion_limit.get();
    match only(bowshot_sql::parse(sql, Dialect::new(dialect), limit)?)? {
        bowshot_sql::Statement::Sql(statement) => {
            known(options, statement, Source { text: sql, dialect }).map(Statement::Statement)
        }
        _ => Err(Error::invalid("what is kept is no query")),
    }
}

/// An expression that is kept as text, over columns.
///
/// # Errors
/// `Syntax` for a text that is none, and whatever planning it gives.
pub(crate) fn kept_expression(
    state: &SessionState,
    sql: &str,
    columns: &DFSchema,
) -> datafusion::error::Result<Expr> {
    let external = |error: Error| DataFusionError::External(Box::new(error));
    let mut expr = bowshot_sql::parse_expression(sql, Dialect::new(KEPT)).map_err(external)?;
    rewrite::expression(&mut expr, KEPT).map_err(external)?;
    let expr = state.create_logical_expr_from_sql_expr(ExprWithAlias { expr, alias: None }, columns)?;
    let expr = compared_by_labels(expr, columns)?;
    if models::asks_model_by_name(&expr) {
        let error = Error::unsupported(
            "models are not allowed in policies, masks, defaults, checks and generated columns",
        );
        return Err(external(error.with_hint("create a view that calls the model")));
    }
    Ok(expr)
}

/// Plans one parsed statement.
pub(crate) fn plan<'a>(state: &'a SessionState, statement: Statement) -> BoxFuture<'a, Result<Planned>> {
    async move { planned(logical(state, statement).await.map_err(classify)?) }.boxed()
}

/// Names of columns in one statement that are put right.
const MAX_REPAIRS: usize = 64;

/// The plan of a statement. Names of columns that are not found are looked for once more: in another spelling where only one
/// column has it, and among the names of the result.
pub(crate) fn logical<'a>(
    state: &'a SessionState,
    mut statement: Statement,
) -> BoxFuture<'a, datafusion::error::Result<LogicalPlan>> {
    async move {
        let of_dialect = in_dialect(state, &statement)?;
        let state = of_dialect.as_ref().unwrap_or(state);
        if let Statement::Statement(statement) = &mut statement {
            models::by_columns(state, statement).await?;
        }
        let again = has_parameters(&statement).then(|| statement.clone());
        let plan = match (by_names(state, statement).await, again) {
            (Err(error), Some(statement)) => {
                let mut state = state.clone();
                state.register_expr_planner(Arc::new(ParameterOperands::INTERVALS))?;
                by_names(&state, statement).await.map_err(|_| error)?
            }
            (planned, _) => planned?,
        };
        models::bind(plan, state)
    }
    .boxed()
}

/// The state with what operators mean in the session's dialect, where that differs.
fn in_dialect(
    state: &SessionState,
    statement: &Statement,
) -> datafusion::error::Result<Option<SessionState>> {
    let is_operator = |expr: &ast::Expr| matches!(expr, ast::Expr::BinaryOp { .. });
    let has_none =
        matches!(statement, Statement::Statement(statement) if !statement.has_expression(is_operator));
    if has_none || dialect(state.config_options()).name() != DialectName::MySql {
        return Ok(None);
    }
    let mut state = state.clone();
    state.register_expr_planner(Arc::new(MySqlOperands))?;
    Ok(Some(state))
}

fn has_parameters(statement: &Statement) -> bool {
    let is_parameter = |expr: &ast::Expr| matches!(expr, ast::Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)));
    matches!(statement, Statement::Statement(statement) if statement.has_expression(is_parameter))
}

fn by_names<'a>(
    state: &'a SessionState,
    mut statement: Statement,
) -> BoxFuture<'a, datafusion::error::Result<LogicalPlan>> {
    async move {
        statement = semantics::with_natural_columns(statement, || state.clone()).await;
        statement =
            semantics::unambiguous(statement).map_err(|error| DataFusionError::External(Box::new(error)))?;
        if let Statement::Statement(statement) = &mut statement {
            lists_of_columns(state, statement).await?;
        }
        shared(&mut statement, state).map_err(|error| DataFusionError::External(Box::new(error)))?;
        // What was wrong before a name was taken for a field.
        let mut before = None;
        for _ in 0..MAX_REPAIRS {
            match Box::pin(state.statement_to_plan(statement.clone())).await {
                Err(error) if struct_fields::reread_as_field(&mut statement, &error) => before = Some(error),
                Err(error) if repaired(&mut statement, &error, state.config_options()) => {}
                Err(error) => {
                    let about_name = matches!(error.find_root(), DataFusionError::SchemaError(..));
                    let told = before.filter(|_| !about_name).unwrap_or(error);
                    return Err(placed(&statement, told, state));
                }
                Ok(plan) => {
                    return match before {
                        Some(error) if !struct_fields::fields_are_there(&plan) => {
                            Err(placed(&statement, error, state))
                        }
                        _ => settled(plan, state),
                    };
                }
            }
        }
        settled(Box::pin(state.statement_to_plan(statement)).await?, state)
    }
    .boxed()
}

/// Names queries of WITH that are read more than once, where the planner knows what that says.
fn shared(statement: &mut Statement, state: &SessionState) -> Result<()> {
    match statement {
        Statement::Statement(statement) if !state.relation_planners().is_empty() => {
            rewrite::share_queries(statement)
        }
        Statement::Explain(explain) => shared(&mut explain.statement, state),
        _ => Ok(()),
    }
}

/// A plan as the planner made it, with what SQL means where that is another plan.
fn settled(plan: LogicalPlan, state: &SessionState) -> datafusion::error::Result<LogicalPlan> {
    recursion::check(&plan).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let plan = if state.relation_planners().is_empty() { plan } else { materialized_cte::tell_apart(plan)? };
    match dialect(state.config_options()).name() {
        // There, a name is that of a column of the result first.
        DialectName::MySql => Ok(plan),
        _ => order_names::of_columns(plan),
    }
}

/// The error with the place in the text that it is about, and the table that was probably meant, if these are known.
fn placed(statement: &Statement, error: DataFusionError, state: &SessionState) -> DataFusionError {
    let Statement::Statement(statement) = statement else { return error };
    if let Some(told) = struct_fields::unknown_qualifier(statement, &error) {
        return DataFusionError::External(Box::new(told.with_source(error)));
    }
    let mut nearest = None;
    let place = match error.find_root() {
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, .. } | SchemaError::AmbiguousReference { field } => {
                rewrite::place(statement, Wanted::Column(&field.name))
            }
            _ => None,
        },
        DataFusionError::Plan(text) => {
            let quoted = text.split('\'').nth(1).unwrap_or_default();
            if text.starts_with("Invalid function") {
                rewrite::place(statement, Wanted::Function(quoted))
            } else if text.ends_with("not found") {
                let table = quoted.rsplit('.').next().unwrap_or_default();
                nearest = if text.starts_with("table '") { nearest_table(state, quoted) } else { None };
                rewrite::place(statement, Wanted::Table(table))
            } else {
                None
            }
        }
        _ => None,
    };
    if place.is_none() && nearest.is_none() {
        return error;
    }
    let mut classified = classify(error);
    if let Some((line, column)) = place {
        classified = classified.with_position(Position { line, column });
    }
    if let Some(nearest) = nearest {
        classified = classified.with_hint(format!("did you mean `{nearest}`?"));
    }
    DataFusionError::External(Box::new(classified))
}

/// The table in the same schema that was probably meant: catalogs list only what the statement may know of.
fn nearest_table(state: &SessionState, full: &str) -> Option<String> {
    let full = rewrite::unmarked(full);
    let mut parts = full.splitn(3, '.');
    let (catalog, schema, table) = (parts.next()?, parts.next()?, parts.next()?);
    let names = |catalog: &str, schema: &str| {
        let schema = state.catalog_list().catalog(catalog)?.schema(schema)?;
        Some(schema.table_names())
    };
    let mut there = names(catalog, schema).unwrap_or_default();
    there.extend(names(TEMPORARY_CATALOG, DEFAULT_SCHEMA).unwrap_or_default());
    closest(table, there.iter().map(String::as_str)).map(ToOwned::to_owned)
}

/// Puts columns in the place of `COLUMNS(…)` and the like, list by list.
fn lists_of_columns<'a>(
    state: &'a SessionState,
    statement: &'a mut ast::Statement,
) -> BoxFuture<'a, datafusion::error::Result<()>> {
    async move {
        for _ in 0..MAX_REPAIRS {
            let Some(query) = rewrite::probe(statement) else { break };
            let query = Statement::Statement(Box::new(ast::Statement::Query(query)));
            let plan = Box::pin(state.statement_to_plan(query)).await?;
            let named = |(table, field): (Option<&TableReference>, &FieldRef)| {
                (table.map(|table| table.table().to_owned()), field.name().clone())
            };
            let columns: Vec<rewrite::Named> = plan.schema().iter().map(named).collect();
            rewrite::expand(statement, &columns)
                .map_err(|error| DataFusionError::External(Box::new(error)))?;
        }
        Ok(())
    }
    .boxed()
}

fn repaired(statement: &mut Statement, error: &DataFusionError, options: &ConfigOptions) -> bool {
    let DataFusionError::SchemaError(schema, _) = error.find_root() else { return false };
    let SchemaError::FieldNotFound { field, valid_fields } = schema.as_ref() else { return false };
    let statement = match statement {
        Statement::Statement(statement) => statement,
        Statement::Explain(explain) => return repaired(&mut explain.statement, error, options),
        _ => return false,
    };
    let postgres = options.sql_parser.dialect == config::Dialect::PostgreSQL;
    let mut spellings: Vec<&str> = valid_fields
        .iter()
        .map(|valid| valid.name.as_str())
        .filter(|name| name.eq_ignore_ascii_case(&field.name) && *name != field.name)
        .collect();
    spellings.sort_unstable();
    spellings.dedup();
    match spellings.as_slice() {
        [spelling] => rewrite::spell(statement, &field.name, spelling, !postgres),
        _ if field.relation.is_none() && whole_row(statement, &field.name, valid_fields) => true,
        _ => !postgres && field.relation.is_none() && rewrite::inline_alias(statement, &field.name),
    }
}

/// Puts the columns of a table in the place of its name.
fn whole_row(statement: &mut ast::Statement, name: &str, there: &[Column]) -> bool {
    let table = name.trim_start_matches(rewrite::WHOLE_ROW);
    let mut seen = HashSet::new();
    let of_table = |column: &&Column| column.relation.as_ref().is_some_and(|of| of.table() == table);
    let names = there.iter().filter(of_table).map(|column| column.name.as_str());
    let columns: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    !columns.is_empty() && rewrite::whole_row(statement, name, &columns)
}

/// A plan with the parameters that it wants.
///
/// # Errors
/// `LimitReached` for one that is too large.
pub(crate) fn planned(plan: LogicalPlan) -> Result<Planned> {
    crate::plan::allowed::check_size(&plan)?;
    let (plan, parameters) = parameters::declared(plan)?;
    let ordered = asks_for_order(&plan);
    Ok(Planned::new(plan, parameters, ordered))
}

/// The dialect of the session.
pub fn dialect(options: &ConfigOptions) -> Dialect {
    Dialect::new(match options.sql_parser.dialect {
        config::Dialect::PostgreSQL => DialectName::Postgres,
        config::Dialect::MySQL => DialectName::MySql,
        _ => DialectName::Ansi,
    })
}

/// Parses one statement in the dialect of the session.
pub(crate) fn parse(options: &ConfigOptions, sql: &str) -> Result<bowshot_sql::Statement> {
    only(bowshot_sql::parse(sql, dialect(options), options.sql_parser.recursion_limit.get())?)
}

/// Parses one statement as DataFusion does.
pub(crate) fn parse_plain(options: &ConfigOptions, sql: &str) -> Result<Statement> {
    let name = options.sql_parser.dialect;
    let dialect =
        dialect_from_str(name).ok_or_else(|| Error::invalid(format!("dialect `{name}` is not known")))?;
    bowshot_sql::check_limits(sql, dialect.as_ref())?;
    let parser = DFParserBuilder::new(sql)
        .with_dialect(dialect.as_ref())
        .with_recursion_limit(options.sql_parser.recursion_limit.get())
        .build();
    let statements = parser.and_then(|mut parser| parser.parse_statements()).map_err(classify)?;
    let mut statement = only(statements.into())?;
    if let Statement::Statement(inner) = &mut statement {
        rewrite::placeholders(inner);
    }
    Ok(statement)
}

/// A statement in forms that the planner knows.
pub(crate) fn known(
    options: &ConfigOptions,
    mut statement: Box<ast::Statement>,
    source: Source<'_>,
) -> Result<Box<ast::Statement>> {
    secrets_are_apart(&statement)?;
    rewrite::keep_strangers_out(statement.as_mut(), defaults(options));
    rewrite::statement(&mut statement, source)?;
    Ok(statement)
}

/// The query of COPY in forms that the planner knows.
pub(crate) fn copy_known(
    options: &ConfigOptions,
    copy: &mut CopyStatement,
    source: Source<'_>,
) -> Result<()> {
    let Direction::QueryOut(query) = &mut copy.direction else { return Ok(()) };
    rewrite::keep_strangers_out(query, defaults(options));
    rewrite::query(query, source)
}

/// The parser knows a form of CREATE SECRET, which the planner does not, and would quote. By itself it was read before.
fn secrets_are_apart(statement: &ast::Statement) -> Result<()> {
    match statement {
        ast::Statement::CreateSecret { .. } => {
            Err(Error::unsupported("CREATE SECRET is no part of another statement")
                .with_hint("send `CREATE SECRET name (…)` by itself"))
        }
        _ => Ok(()),
    }
}

fn defaults(options: &ConfigOptions) -> Defaults<'_> {
    Defaults { catalog: &options.catalog.default_catalog, schema: &options.catalog.default_schema }
}

/// EXPLAIN of a statement in forms that the planner knows.
pub(crate) fn explained(options: &ConfigOptions, explain: Explain, source: Source<'_>) -> Result<Statement> {
    let statement = known(options, explain.statement, source)?;
    let format = explain.format.map(|format| ExplainFormat::from_str(&format)).transpose();
    let format = format.map_err(|_| {
        Error::new(ErrorKind::Syntax, "invalid format of EXPLAIN")
            .with_hint("write FORMAT indent, tree, json or graphviz")
    })?;
    let options = ExplainStatementOptions {
        analyze: explain.analyze,
        verbose: explain.verbose,
        format,
        ..ExplainStatementOptions::default()
    };
    let statement = Box::new(Statement::Statement(statement));
    Ok(Statement::Explain(ExplainStatement { options, statement }))
}

fn only<T>(mut statements: Vec<T>) -> Result<T> {
    match (statements.pop(), statements.is_empty()) {
        (None, _) => {
            Err(Error::new(ErrorKind::Syntax, "the statement is empty").with_hint("send one SQL statement"))
        }
        (Some(_), false) => {
            Err(Error::new(ErrorKind::Syntax, "there is more than one statement in the text")
                .with_hint("send one statement at a time"))
        }
        (Some(statement), true) => Ok(statement),
    }
}

/// Whether a sort decides the order of the rows: one at the top, under nodes that keep order.
fn asks_for_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(node) => asks_for_order(&node.input),
        LogicalPlan::SubqueryAlias(node) => asks_for_order(&node.input),
        LogicalPlan::Limit(node) => asks_for_order(&node.input),
        // Their rows are lines of a text.
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => true,
        _ => false,
    }
}

/// The plan with other names of its columns.
pub(crate) fn renamed(plan: LogicalPlan, names: &[String]) -> datafusion::error::Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let renamed: Vec<Expr> = columns
        .into_iter()
        .zip(names)
        .map(|(column, name)| Expr::Column(column).alias(name.clone()))
        .collect();
    LogicalPlanBuilder::from(plan).project(renamed)?.build()
}

/// The plan with the names that are shown. A column beside a `*`, which may stand for one of the same name, has a mark until then.
///
/// # Errors
/// `Invalid` for two columns of one name.
pub(crate) fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let fields = plan.schema().fields();
    if !fields.iter().any(|field| field.name().contains(SAME_NAME_MARK)) {
        return Ok(plan);
    }
    let names: Vec<String> = fields.iter().map(|field| display_name(field.name()).to_owned()).collect();
    let mut seen = HashSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(Error::invalid(format!("column `{name}` is there twice"))
            .with_reason(Reason::DuplicateColumn)
            .with_hint(format!("give one of them another name: `… AS {name}_2`")));
    }
    renamed(plan, &names).map_err(classify)
}
