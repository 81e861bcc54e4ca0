//! `OPTIMIZE`, `VACUUM`, `REFRESH MATERIALIZED VIEW` and changes of the layout of a table: what they do with which table.

use crate::catalog::Visible;
use crate::catalog::names::Names;
use crate::databases::DatabaseDefinition;
use crate::write::ddl::Ddl;
use crate::write::external_definition::DatabaseDefine;
use crate::write::{Write, refresh};
use bowshot_api::{Error, Result};
use bowshot_sql::{LayoutStatement, RefreshMode};
use bowshot_tables::EntryName;
use chrono::Duration;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::ObjectName;

/// How long versions are kept that VACUUM does not name: as Delta's own default.
const RETAIN: Duration = Duration::days(7);

/// `OPTIMIZE t`
///
/// # Errors
/// `NotFound` without the table.
pub(crate) fn optimize(table: &ObjectName, names: &Names) -> Result<Write> {
    if let Some(name) = in_database(table, names)? {
        return Ok(of_database(DatabaseDefinition::Optimize { name }));
    }
    Ok(Write::Ddl(Ddl::Optimize { name: names.writable(table)?.0 }))
}

/// The table, if it is in another database that has its rows in files.
fn in_database(table: &ObjectName, names: &Names) -> Result<Option<EntryName>> {
    let name = names.resolve(table)?;
    if !names.parts.databases.has_definitions(&name.catalog) {
        return Ok(None);
    }
    names.parts.databases.check_writable(&name.catalog)?;
    Ok(Some(name))
}

fn of_database(definition: DatabaseDefinition) -> Write {
    Write::DatabaseDefine(DatabaseDefine { definition, has_rows: false })
}

/// `ALTER TABLE t ADD PARTITION FIELD …`, `ALTER TABLE t CREATE TAG …`
///
/// # Errors
/// `Unsupported` for a table that is in no lake.
pub(crate) fn layout(statement: LayoutStatement, names: &Names) -> Result<Write> {
    let LayoutStatement { table, if_exists, change } = statement;
    match in_database(&table, names)? {
        Some(name) => Ok(of_database(DatabaseDefinition::AlterLayout { name, change, if_exists })),
        None => Err(Error::unsupported(format!(
            "`{table}` has no partition fields, branches and tags that are changed"
        ))
        .with_hint("tables of Iceberg catalogs have them; a table here keeps its versions by their numbers")),
    }
}

/// `VACUUM t [RETAIN …]`
///
/// # Errors
/// `NotFound` without the table.
pub(crate) fn vacuum(
    table: &ObjectName,
    retain: Option<std::time::Duration>,
    names: &Names,
) -> Result<Write> {
    let retain = retain.and_then(|retain| Duration::from_std(retain).ok()).unwrap_or(RETAIN);
    if let Some(name) = in_database(table, names)? {
        return Ok(of_database(DatabaseDefinition::Vacuum { name, retain }));
    }
    let (name, _) = names.writable(table)?;
    Ok(Write::Ddl(Ddl::Vacuum { name, retain }))
}

/// `ALTER MATERIALIZED VIEW v SET REFRESH …`
///
/// # Errors
/// `NotFound` without the view, `Invalid` where it is a table, `Denied` for who does not own it, `Unsupported` where it cannot be
/// refreshed so.
pub(crate) async fn set_refresh(
    view: &ObjectName,
    mode: RefreshMode,
    (visible, names): (&Visible, &Names),
) -> Result<Ddl> {
    let name = names.resolve(view)?;
    let table = names.table(&name)?;
    refresh::definition(&name, &table)?;
    names.access.check_refresh(&name)?;
    if mode == RefreshMode::OnCommit {
        refresh::check_on_commit(&name, &table, visible, names).await?;
    }
    Ok(Ddl::SetRefresh { name, mode })
}

/// `REFRESH MATERIALIZED VIEW v`
///
/// # Errors
/// As [`refresh::refresh`].
pub(crate) async fn refresh(
    view: &ObjectName,
    visible: &Visible,
    names: &Names,
) -> Result<(Write, LogicalPlan)> {
    let (refresh, rows) = refresh::refresh(names.resolve(view)?, visible, names).await?;
    Ok((Write::Refresh(refresh), rows))
}
