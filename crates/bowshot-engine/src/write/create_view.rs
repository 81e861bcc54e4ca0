//! What CREATE VIEW and CREATE MATERIALIZED VIEW make.

use crate::catalog::materialized_query;
use crate::catalog::names::{Names, ident};
use crate::catalog::{Visible, search_path};
use crate::error::classify;
use crate::write::create_table::{made_schema, of_rows, storage_option, when_there, written};
use crate::write::ddl::Ddl;
use crate::write::{NewTable, NewView, WhenThere, Write, refresh};
use bowshot_api::{Error, Result};
use bowshot_sql::rewrite::Source;
use bowshot_sql::{REFRESH_OPTION, RefreshMode};
use bowshot_tables::{EntryName, Materialized, Storage, View};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, CreateTableOptions, CreateView, SqlOption};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

/// What a view is to be. Its query is planned once, so that one that cannot work is refused now.
pub(crate) fn view<'a>(
    create: CreateView,
    names: &'a Names,
    visible: &'a Visible,
    source: Source<'a>,
) -> BoxFuture<'a, Result<(Write, Option<LogicalPlan>)>> {
    async move {
        if create.to.is_some() || create.or_alter {
            return Err(
                Error::unsupported("only plain views can be created").with_hint("use `CREATE TABLE … AS`")
            );
        }
        let when_there = when_there(create.or_replace, create.if_not_exists)?;
        let name = names.new_name(&create.name, create.temporary)?;
        let written = bowshot_sql::view_query(source.text, bowshot_sql::Dialect::new(source.dialect));
        let sql = written.map_or_else(|| create.query.to_string(), ToOwned::to_owned);
        let sql = search_path::qualify_view(sql, source.dialect, names, visible)?;
        // What everybody sees is not made of the tables of one session.
        let state = if create.temporary { visible.state() } else { visible.without_own().state() };
        let query = Statement::Statement(Box::new(ast::Statement::Query(create.query)));
        let plan = crate::plan::logical(&state, query).await.map_err(classify)?;
        crate::plan::allowed::check_readable(&plan)?;
        if !plan.get_parameter_fields().map_err(classify)?.is_empty() {
            return Err(
                Error::invalid("a view has no parameters").with_hint("write the values into its query")
            );
        }
        let columns: Vec<String> = create.columns.iter().map(|column| ident(&column.name)).collect();
        let plan = if columns.is_empty() { crate::plan::without_marks(plan)? } else { plan };
        let made = plan.schema().fields().len();
        if !columns.is_empty() && columns.len() != made {
            return Err(Error::invalid(format!(
                "the view names {} columns, its query gives {made}",
                columns.len()
            )));
        }
        if create.materialized {
            let query = Materialized {
                sql,
                dialect: source.dialect.as_str().to_owned(),
                default_catalog: names.default_catalog.clone(),
                default_schema: names.default_schema.clone(),
                every: None,
                on_commit: false,
                sources: materialized_query::versions(&plan),
                meaning: None,
                last: None,
            };
            let query = refresh::in_mode(&query, refresh_option(&create.options)?);
            let meant = materialized_query::with_meaning(query, visible, state.config_options());
            let query = (Box::pin(meant).await, create.comment);
            let storage = names.storage(&name, storage(&create.options)?)?;
            let (new, plan) = materialized(name, query, plan, (&columns, when_there), (storage, &state))?;
            refresh::check_new(&new, visible, names).await?;
            return Ok((Write::CreateAs(new), Some(plan)));
        }
        let view = View {
            id: Uuid::new_v4(),
            sql,
            dialect: source.dialect.as_str().to_owned(),
            default_catalog: names.default_catalog.clone(),
            default_schema: names.default_schema.clone(),
            columns,
            comment: create.comment,
        };
        Ok((Write::Ddl(Ddl::CreateView(NewView { name, view, when_there })), None))
    }
    .boxed()
}

/// When `CREATE MATERIALIZED VIEW … REFRESH …` wants the view refreshed.
fn refresh_option(options: &CreateTableOptions) -> Result<RefreshMode> {
    let CreateTableOptions::With(options) = options else { return Ok(RefreshMode::Manual) };
    let mode = options.iter().find_map(|option| match option {
        SqlOption::KeyValue { key, value } if key.value == REFRESH_OPTION => written(value),
        _ => None,
    });
    mode.map_or(Ok(RefreshMode::Manual), |mode| bowshot_sql::refresh_mode(&mode))
}

/// Where `CREATE MATERIALIZED VIEW … WITH (storage = 'memory')` wants its rows.
fn storage(options: &CreateTableOptions) -> Result<Option<Storage>> {
    let CreateTableOptions::With(options) = options else { return Ok(None) };
    let is_storage =
        |option: &&SqlOption| matches!(option, SqlOption::KeyValue { key, .. } if ident(key) == "storage");
    storage_option(CreateTableOptions::With(options.iter().filter(is_storage).cloned().collect()))
}

/// A table of the rows that a query gives now, with the query, so that it can be run again.
fn materialized(
    name: EntryName,
    (query, comment): (Materialized, Option<String>),
    plan: LogicalPlan,
    (columns, when_there): (&[String], WhenThere),
    (storage, state): (Storage, &SessionState),
) -> Result<(NewTable, LogicalPlan)> {
    let plan =
        if columns.is_empty() { plan } else { crate::plan::renamed(plan, columns).map_err(classify)? };
    let mut definition = of_rows(&made_schema(&plan, state), storage)?;
    definition.comment = comment;
    definition.materialized = Some(query);
    Ok((NewTable { name, definition, when_there }, plan))
}
