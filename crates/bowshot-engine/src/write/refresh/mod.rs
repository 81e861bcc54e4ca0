//! REFRESH MATERIALIZED VIEW: which rows are computed again, and why. `form` says of which queries a part can be computed, `changes`
//! which part that is.

mod changes;
mod form;

use crate::catalog::Visible;
use crate::catalog::materialized_query;
use crate::catalog::names::Names;
use crate::error::classify;
use crate::plan;
use crate::write::NewTable;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_formats::table_version::AsOf;
use bowshot_sql::{Privilege, RefreshMode};
use bowshot_tables::{EntryName, LastRefresh, Materialized, SourceVersion, Table, TableStore};
use bowshot_types::{result_metadata, storage_type};
use changes::Source;
use chrono::Utc;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use form::Form;
use std::sync::Arc;
use std::time::Duration;

/// A materialized view whose rows become those of its query.
#[derive(Debug, Clone)]
pub(crate) struct Refresh {
    pub(crate) name: EntryName,
    pub(crate) extent: Extent,
    /// The versions of its tables that it shows then.
    pub(crate) sources: Vec<SourceVersion>,
    /// What its query means now.
    pub(crate) meaning: Option<String>,
}

/// Which rows are computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Extent {
    /// None: it shows its tables as they are.
    Nothing,
    /// Those that a MERGE takes out and puts in.
    Changes,
    /// All, for this reason.
    Full(String),
}

/// The query of a view with the view itself.
struct Target<'a> {
    table: &'a Arc<Table>,
    view: &'a Materialized,
    query: LogicalPlan,
    /// The columns of the query once it is analysed.
    made: SchemaRef,
    meaning: String,
}

/// How a view is brought up to date, and the plan that gives the rows for it.
///
/// # Errors
/// `NotFound` without the view, `Invalid` where it is a table, `Denied` for who does not own it, `Unsupported` where commits refresh
/// it and cannot any more, and from planning.
pub(crate) async fn refresh(
    name: EntryName,
    visible: &Visible,
    names: &Names,
) -> Result<(Refresh, LogicalPlan)> {
    let table = names.table(&name)?;
    names.access.check_refresh(&name)?;
    let view = definition(&name, &table)?;
    let target = Target::plan(&table, view, visible).await?;
    let sources = if view.on_commit {
        target.form().map_err(|reason| not_on_commit(&name, &reason))?;
        materialized_query::versions_at_commit(&target.query)
    } else {
        materialized_query::versions(&target.query)
    };
    let planned = target.changes(&visible.parts.tables)?;
    let Target { query, meaning, .. } = target;
    let (extent, rows) = match planned {
        Ok(Some(rows)) => (Extent::Changes, rows),
        Ok(None) => (Extent::Nothing, query),
        Err(reason) => (Extent::Full(reason), query),
    };
    Ok((Refresh { name, extent, sources, meaning: Some(meaning) }, rows))
}

/// Checks that commits can refresh a view: a part of its rows can be computed, and its owner may say what the commits of its tables do.
///
/// # Errors
/// `Unsupported` with the reason, `Denied` for who does not own all of its tables.
pub(crate) async fn check_on_commit(
    name: &EntryName,
    table: &Arc<Table>,
    visible: &Visible,
    names: &Names,
) -> Result<()> {
    let target = Target::plan(table, definition(name, table)?, visible).await?;
    let form = target.form().map_err(|reason| not_on_commit(name, &reason))?;
    if !table.definition().is_durable() {
        return Err(not_on_commit(name, "its rows are in memory"));
    }
    let is_read = |table: &Table| form.tables.iter().any(|source| source.id() == table.id());
    for (source, _) in names.pinned.shared().tables().filter(|(_, table)| is_read(table)) {
        if !names.access.may_table(Privilege::Own, &source) {
            let message = format!(
                "`{}` does not own `{source}`, whose commits would refresh `{name}`",
                names.access.user()
            );
            return Err(Error::new(ErrorKind::Denied, message)
                .with_hint("use `REFRESH EVERY '5 minutes'`, or let the owner of its tables make the view"));
        }
    }
    Ok(())
}

/// The same for a view that is to be made, if commits are to refresh it.
///
/// # Errors
/// As [`check_on_commit`].
pub(crate) async fn check_new(new: &NewTable, visible: &Visible, names: &Names) -> Result<()> {
    if !new.definition.materialized.as_ref().is_some_and(|view| view.on_commit) {
        return Ok(());
    }
    let table = Arc::new(Table::new(new.definition.clone()));
    Box::pin(check_on_commit(&new.name, &table, visible, names)).await
}

/// A view that is to be refreshed then.
pub(crate) fn in_mode(view: &Materialized, mode: RefreshMode) -> Materialized {
    let (every, on_commit) = match mode {
        RefreshMode::Manual => (None, false),
        RefreshMode::Every(every) => (Some(every), false),
        RefreshMode::OnCommit => (None, true),
    };
    Materialized { every, on_commit, ..view.clone() }
}

fn not_on_commit(name: &EntryName, reason: &str) -> Error {
    Error::unsupported(format!("`{name}` cannot be refreshed on commit: {reason}"))
        .with_hint("use `REFRESH EVERY '5 minutes'` or `REFRESH MANUAL`, which may compute all rows")
}

/// EXPLAIN of it: a row with what is computed and, for all rows, the reason.
///
/// # Errors
/// As [`refresh`].
pub(crate) async fn explain(name: EntryName, visible: &Visible, names: &Names) -> Result<LogicalPlan> {
    let (refresh, _) = refresh(name, visible, names).await?;
    let (extent, reason) = match refresh.extent {
        Extent::Nothing => ("nothing", None),
        Extent::Changes => ("incremental", None),
        Extent::Full(reason) => ("full", Some(reason)),
    };
    let row =
        vec![lit(extent).alias("refresh"), Expr::Literal(ScalarValue::Utf8(reason), None).alias("reason")];
    LogicalPlanBuilder::empty(true).project(row).and_then(LogicalPlanBuilder::build).map_err(classify)
}

impl Refresh {
    /// What is known of the view once that is done.
    pub(crate) fn done(&self, view: &Materialized, took: Duration) -> Materialized {
        let full = match &self.extent {
            Extent::Full(reason) => Some(reason.clone()),
            Extent::Nothing | Extent::Changes => None,
        };
        let before = view.last.as_ref().and_then(|last| last.full_took);
        let full_took = if full.is_some() { Some(took) } else { before };
        let last = LastRefresh { ended_us: Utc::now().timestamp_micros(), took, full, full_took };
        let (sources, meaning) = (self.sources.clone(), self.meaning.clone());
        Materialized { sources, meaning, last: Some(last), ..view.clone() }
    }
}

/// # Errors
/// `Invalid` for a table that is none.
pub(crate) fn definition<'a>(name: &EntryName, table: &'a Table) -> Result<&'a Materialized> {
    table.definition().materialized.as_ref().ok_or_else(|| {
        Error::invalid(format!("`{name}` is no materialized view"))
            .with_reason(Reason::WrongObject)
            .with_hint("make one with `CREATE MATERIALIZED VIEW … AS …`")
    })
}

impl<'a> Target<'a> {
    async fn plan(table: &'a Arc<Table>, view: &'a Materialized, visible: &Visible) -> Result<Self> {
        let query = Box::pin(materialized_query::query(view, visible)).await?;
        let state = visible.state();
        let made = result_metadata::analysed_schema(&state, &query);
        let meaning = materialized_query::meaning(&query, state.config_options());
        Ok(Self { table, view, query, made, meaning })
    }

    /// What tells which rows changes of the tables concern, or the reason why all are computed.
    fn form(&self) -> Result<Form<'_>, String> {
        let form = Form::read(&self.query)?;
        self.check_columns(&form)?;
        Ok(form)
    }

    /// The rows that a MERGE needs, if any, or the reason why all are computed.
    fn changes(&self, store: &TableStore) -> Result<Result<Option<LogicalPlan>, String>> {
        let read = self.form().and_then(|form| {
            let sources = self.sources(&form, store)?;
            self.check_meaning()?;
            Ok((sources, form))
        });
        let (sources, form) = match read {
            Ok(read) => read,
            Err(reason) => return Ok(Err(reason)),
        };
        if !sources.iter().any(Source::has_changed) {
            return Ok(Ok(None));
        }
        if changes::are_many(&self.query, &sources).map_err(classify)? {
            return Ok(Err("more than an eighth of the rows of its tables were changed or moved".to_owned()));
        }
        let rows = changes::merge(&self.query, &form, &sources, self.table).map_err(classify)?;
        if let Err(error) = plan::allowed::check_size(&rows) {
            return Ok(Err(format!("the plan of its changes is too large: {}", error.message())));
        }
        Ok(Ok(Some(rows)))
    }

    /// Keys are looked for in the view as it is kept: what is kept in another type is not found.
    fn check_columns(&self, form: &Form<'_>) -> Result<(), String> {
        let (made, kept) = (self.made.fields(), &self.table.definition().columns);
        if made.len() != kept.len() {
            return Err("its query gives other columns now".to_owned());
        }
        for column in &form.key {
            let same = made.get(*column).zip(kept.get(*column)).is_some_and(|(made, kept)| {
                let kept = storage_type::logical(&kept.field);
                let is_same = kept == *made.data_type() || kept.is_string() && made.data_type().is_string();
                is_same && form::is_key(&kept)
            });
            if !same {
                return Err(format!("column {} is kept in another type", column + 1));
            }
        }
        Ok(())
    }

    /// Rows that stay were made by what the query meant then.
    fn check_meaning(&self) -> Result<(), String> {
        match self.view.meaning.as_ref() == Some(&self.meaning) {
            true => Ok(()),
            false => {
                Err("its query means something else now: a view, a function, a name or the dialect"
                    .to_owned())
            }
        }
    }

    /// The tables as the view shows them beside what they are now.
    fn sources(&self, form: &Form<'_>, store: &TableStore) -> Result<Vec<Source>, String> {
        if self.view.sources.is_empty() {
            return Err("which versions of its tables it shows is not known".to_owned());
        }
        let newest = store.snapshot();
        let source = |now: &Arc<Table>| -> Result<Source, String> {
            let shown = self.view.sources.iter().find(|source| source.table == now.id());
            let shown = shown.ok_or_else(|| "it reads other tables now".to_owned())?.version;
            if now.has_rows_of(shown) {
                return Ok(Source::new(Arc::clone(now), Arc::clone(now)));
            }
            if shown == SourceVersion::COMMITTING {
                return Err("it shows what the transaction has changed since".to_owned());
            }
            let before = match newest.table(now.id()).filter(|newest| newest.has_rows_of(shown)) {
                Some(newest) => Arc::clone(newest),
                None => {
                    let before = store.table_as_of(now, AsOf::Version(shown));
                    Arc::new(before.map_err(|error| error.to_string())?)
                }
            };
            if before.schema() != now.schema() {
                return Err("the columns of a table have changed".to_owned());
            }
            Ok(Source::new(Arc::clone(now), before))
        };
        form.tables.iter().map(source).collect()
    }
}
