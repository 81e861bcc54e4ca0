//! INSERT in its forms: what gives the rows, and what becomes of those whose key is there.

use crate::catalog::Visible;
use crate::catalog::defaults::WithDefaults;
use crate::catalog::names::{self, Names, ident};
use crate::error::classify;
use crate::policy::Touched;
use crate::statement::forms;
use crate::write::conflict::Conflict;
use crate::write::recognise::{Leading, Recognised, changing, with_returning};
use crate::write::{Affected, Write, change, elsewhere, values};
use crate::{plan, types};
use bowshot_api::{Error, Reason, Result};
use bowshot_sql::Privilege;
use bowshot_storage::tables::{Definition, EntryName, Table, View};
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, WriteOp};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, Statement};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// The change that an INSERT is.
pub(super) fn insert<'a>(
    insert: &'a ast::Insert,
    leading: Leading,
    visible: &'a Visible,
    names: &'a Names,
) -> BoxFuture<'a, Result<Recognised>> {
    async move {
        if insert.output.is_some() {
            return Err(change::no_output());
        }
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(Error::unsupported("INSERT takes the name of a table"));
        };
        if let Some(view) = refreshed(insert, name, names)? {
            return Box::pin(refresh(view, visible)).await;
        }
        let full = names.resolve(name)?;
        if names.parts.databases.has(&full.catalog) {
            return Box::pin(elsewhere::insert((insert, full), leading, visible, names)).await;
        }
        let (target, table) = names.writable(name)?;
        names.access.check_any_column(Privilege::Insert, &target)?;
        let definition = table.definition();
        let mut insert = insert.clone();
        let items = insert.returning.take();
        let alias = match insert.table_alias.take() {
            Some(alias) => alias.alias,
            None => names::last(name)?,
        };
        let conflict = Conflict::take(&mut insert, definition)?;
        let overwrite = std::mem::take(&mut insert.overwrite);
        values::assigned(&mut insert)?;
        if let Some(rows) = &mut insert.source {
            leading.before(rows, name)?;
        }
        named_by_rows(&mut insert, visible).await?;
        let columns = given_values(&insert, definition)?;
        let touched = match &conflict {
            None => Touched::inserting(columns),
            Some(conflict) => conflict.touched(columns)?,
        };
        names.access.check_touched(&target, &touched)?;
        if conflict.is_some() {
            names.access.check_merged(&target)?;
        }
        values::written_out(&mut insert, definition)?;
        let rows = new_rows(insert, &table, visible).await;
        let rows = rows.map_err(|error| names.access.told_of_columns(&target, error))?;
        let returning = (items.as_deref(), &alias);
        match conflict {
            None if overwrite => {
                with_returning(Write::Overwrite(target), rows, returning, &table, visible).await
            }
            None => {
                let write = Write::Insert(Affected { name: target, touched });
                with_returning(write, rows, returning, &table, visible).await
            }
            Some(_) if overwrite => Err(Error::invalid("INSERT OVERWRITE leaves no row to conflict with")),
            Some(conflict) => {
                let query = conflict.query(definition, &alias);
                let query = query.map_err(|error| names.access.told_of_columns(&target, error))?;
                let source = Arc::new(ViewTable::new(rows, None));
                let merged = changing(query, (&target, &table), &visible.with_source(source)).await?;
                let write = Write::Merge(Affected { name: target, touched });
                with_returning(write, merged, returning, &table, visible).await
            }
        }
    }
    .boxed()
}

/// The columns that an INSERT gives values: those that it names, else all; none for DEFAULT VALUES.
fn given_values(insert: &ast::Insert, definition: &Definition) -> Result<BTreeSet<String>> {
    if !insert.columns.is_empty() {
        return insert.columns.iter().map(|name| Ok(ident(&names::last(name)?))).collect();
    }
    let all = definition.columns.iter().map(|column| column.field.name().clone());
    Ok(all.filter(|_| insert.source.is_some()).collect())
}

/// The rows of an INSERT in the columns of the table.
fn new_rows<'a>(
    mut insert: ast::Insert,
    table: &'a Arc<Table>,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<LogicalPlan>> {
    async move {
        insert.table = ast::TableObject::TableName(change::target_name());
        let provider = WithDefaults::to_insert(table.provider(), table.definition(), &visible.context)
            .map_err(classify)?;
        let statement = Parsed::Statement(Box::new(Statement::Insert(insert)));
        let state = visible.with_target(provider).state();
        let plan = plan::logical(&state, statement).await.map_err(classify)?;
        match plan {
            LogicalPlan::Dml(DmlStatement { op: WriteOp::Insert(InsertOp::Append), input, .. }) => {
                types::casts::settled(Arc::unwrap_or_clone(input), state.config_options()).map_err(classify)
            }
            _ => Err(Error::internal("INSERT was planned as something else")),
        }
    }
    .boxed()
}

/// `INSERT … BY NAME`: the columns are those of the query.
pub(super) fn named_by_rows<'a>(
    insert: &'a mut ast::Insert,
    visible: &'a Visible,
) -> BoxFuture<'a, Result<()>> {
    async move {
        let [only] = insert.columns.as_slice() else { return Ok(()) };
        if ident(&names::last(only)?) != forms::BY_NAME {
            return Ok(());
        }
        let Some(source) = &insert.source else {
            return Err(Error::invalid("INSERT BY NAME takes a query"));
        };
        let query = Parsed::Statement(Box::new(Statement::Query(source.clone())));
        let plan = plan::logical(&visible.state(), query).await.map_err(classify)?;
        let columns = plan.schema().fields().iter().map(|field| Ident::with_quote('"', field.name()));
        insert.columns = columns.map(|name| ObjectName::from(vec![name])).collect();
        Ok(())
    }
    .boxed()
}

/// The view that REFRESH names, which comes as an INSERT.
fn refreshed(
    insert: &ast::Insert,
    name: &ObjectName,
    names: &Names,
) -> Result<Option<(EntryName, Arc<Table>)>> {
    let marker = format!("SELECT {}", forms::REFRESH);
    if !insert.overwrite || insert.source.as_ref().is_none_or(|source| source.to_string() != marker) {
        return Ok(None);
    }
    let name = names.resolve(name)?;
    let table = names.table(&name)?;
    names.access.check_refresh(&name)?;
    if table.definition().materialized.is_none() {
        return Err(Error::invalid(format!("`{name}` is no materialized view"))
            .with_reason(Reason::WrongObject)
            .with_hint("make one with `CREATE MATERIALIZED VIEW … AS …`"));
    }
    Ok(Some((name, table)))
}

/// Its query once more, with the names that were the defaults where it was made.
fn refresh<'a>(
    (name, table): (EntryName, Arc<Table>),
    visible: &'a Visible,
) -> BoxFuture<'a, Result<Recognised>> {
    async move {
        let Some(view) = &table.definition().materialized else {
            return Err(Error::internal("a table was to be refreshed"));
        };
        let view = View {
            id: Uuid::nil(),
            sql: view.sql.clone(),
            dialect: view.dialect.clone(),
            default_catalog: view.default_catalog.clone(),
            default_schema: view.default_schema.clone(),
            columns: Vec::new(),
            comment: None,
        };
        let plan = visible.without_own().view_plan(&view).await.map_err(classify)?;
        Ok(Recognised::Write(Box::new(Write::Overwrite(name)), plan))
    }
    .boxed()
}
