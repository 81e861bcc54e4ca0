//! `OPTIMIZE`, `VACUUM` and `REFRESH MATERIALIZED VIEW`: what they do with which table.

use crate::catalog::Visible;
use crate::catalog::names::Names;
use crate::error::classify;
use crate::write::Write;
use crate::write::ddl::Ddl;
use bowshot_api::{Error, Reason, Result};
use bowshot_tables::View;
use chrono::Duration;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::ObjectName;
use uuid::Uuid;

/// How long versions are kept that VACUUM does not name: as Delta's own default.
const RETAIN: Duration = Duration::days(7);

/// `OPTIMIZE t`
///
/// # Errors
/// `NotFound` without the table.
pub(crate) fn optimize(table: &ObjectName, names: &Names) -> Result<Ddl> {
    Ok(Ddl::Optimize { name: names.writable(table)?.0 })
}

/// `VACUUM t [RETAIN …]`
///
/// # Errors
/// `NotFound` without the table.
pub(crate) fn vacuum(table: &ObjectName, retain: Option<std::time::Duration>, names: &Names) -> Result<Ddl> {
    let (name, _) = names.writable(table)?;
    let retain = retain.and_then(|retain| Duration::from_std(retain).ok());
    Ok(Ddl::Vacuum { name, retain: retain.unwrap_or(RETAIN) })
}

/// `REFRESH MATERIALIZED VIEW v`: its query once more, with the names that were the defaults where it was made.
///
/// # Errors
/// `NotFound` without the view, `Invalid` where it is a table, and from planning.
pub(crate) async fn refresh(
    view: &ObjectName,
    visible: &Visible,
    names: &Names,
) -> Result<(Write, LogicalPlan)> {
    let name = names.resolve(view)?;
    let table = names.table(&name)?;
    names.access.check_refresh(&name)?;
    let Some(view) = &table.definition().materialized else {
        return Err(Error::invalid(format!("`{name}` is no materialized view"))
            .with_reason(Reason::WrongObject)
            .with_hint("make one with `CREATE MATERIALIZED VIEW … AS …`"));
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
    Ok((Write::Overwrite(name), plan))
}
