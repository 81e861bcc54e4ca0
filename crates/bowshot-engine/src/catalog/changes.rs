//! `table_changes('events', 3, 7)`: which changes of which table are meant, and who may read them. Delta tables that others write
//! have them, where their writers keep them. They are read by the rules for the table as it is now: each row of a change is one of
//! the table for its row policies, masks and columns. What has been done to it is nobody's secret who sees the row.

use super::{Visible, time_travel};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::table_version::AsOf;
use bowshot_lakehouse::change_feed::{CHANGE_COLUMNS, ChangeRange};
use bowshot_policy::Reading;
use bowshot_sql::rewrite::{AsOf as Written, NamedChanges};
use bowshot_tables::EntryName;
use datafusion::catalog::TableProvider;
use datafusion::error::DataFusionError;
use std::sync::Arc;

/// The changes that are meant, of the table of this name.
///
/// # Errors
/// `NotFound` for a table or a version that is not there, whatever there is that may not be seen; `Denied` for one that may not be
/// read; `Unsupported` for tables that keep no changes.
pub(super) async fn table(
    visible: &Visible,
    name: EntryName,
    written: &NamedChanges<'_>,
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let external = |error: Error| DataFusionError::External(Box::new(error));
    let range = range(written).map_err(external)?;
    if visible.raw.entry(&name).is_some() && visible.access.reading(&name) != Reading::Unseen {
        visible.raw.note_read(&name);
        visible.check_read(&name, &visible.access.reading(&name))?;
        return Err(external(keeps_none(&name)));
    }
    let is_file = name.catalog == DEFAULT_CATALOG && name.schema == DEFAULT_SCHEMA;
    let name = if is_file { visible.parts.file_table(&name) } else { name };
    // Under the name that it has, however it was written: others decide by it.
    visible.raw.note_read(&name);
    let reading = visible.access.reading(&name);
    // Not those behind `main`, which shows what may be seen and hides where it comes from: the rights are looked at here.
    let files = visible.parts.files.as_ref().filter(|_| is_file);
    if reading == Reading::Unseen || (files.is_none() && !visible.parts.databases.has(&name.catalog)) {
        return Err(external(not_there(&name)));
    }
    visible.check_read(&name, &reading)?;
    let Some(files) = files else { return Err(external(keeps_none(&name))) };
    let found = files.changes(&name.name, range).await;
    let found = found.map_err(|error| external(told(&name, &reading, error)))?;
    let changes = found.ok_or_else(|| external(not_there(&name)))?;
    match reading {
        // Policies are for the columns as they are now; what a column of the same name was then, they do not say.
        Reading::Limited(_) if !changes.same_columns => Err(external(time_travel::other_then(&name))),
        Reading::Limited(mut limits) => {
            if let Some(columns) = &mut limits.columns {
                columns.extend(CHANGE_COLUMNS.map(str::to_owned));
            }
            visible.guarded((&name, &Reading::Limited(limits)), changes.table, None)
        }
        reading => visible.guarded((&name, &reading), changes.table, None),
    }
}

/// An error that whoever sees a part of a table may be told: others name columns, values and files that may be hidden.
fn told(name: &EntryName, reading: &Reading, error: Error) -> Error {
    let found = std::error::Error::source(&error).and_then(|found| found.downcast_ref());
    let is_harmless = matches!(found, Some(bowshot_object_store::Error::NoState { .. }))
        || matches!(error.kind(), ErrorKind::Invalid | ErrorKind::LimitReached | ErrorKind::Unavailable);
    if is_harmless || !matches!(reading, Reading::Limited(_)) {
        return error;
    }
    tracing::warn!(table = %name, error = %error, "changes could not be read by a user who sees a part of the table");
    Error::new(error.kind(), format!("the changes of `{name}` in this range cannot be read"))
        .with_hint("ask for later versions; the owner of the table, and the log of the server, can tell why")
}

fn not_there(name: &EntryName) -> Error {
    Error::not_found(format!("`{name}` is no table that keeps changes"))
}

/// Of a table that may be read.
fn keeps_none(name: &EntryName) -> Error {
    Error::unsupported(format!("`{name}` keeps no changes of its rows")).with_hint(
        "Delta tables that others write keep them (`delta.enableChangeDataFeed`); of others compare two states, as in \
         `SELECT * FROM t EXCEPT SELECT * FROM t FOR VERSION AS OF 3`",
    )
}

/// # Errors
/// `Syntax` for a time that is none.
fn range(written: &NamedChanges<'_>) -> Result<ChangeRange> {
    let to = written.to.as_ref().map(moment).transpose()?;
    Ok(ChangeRange { from: moment(&written.from)?, to })
}

fn moment(written: &Written<'_>) -> Result<AsOf> {
    match written {
        Written::Version(version) => Ok(AsOf::Version(*version)),
        Written::Time(text) => time_travel::time(text).map(AsOf::Time).map_err(|_| not_a_time(text)),
    }
}

fn not_a_time(text: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("`{text}` is no point in time")).with_hint(
        "write a time as in '2026-01-31 12:00:00', in UTC or with a zone as `+01:00`, and a version as a number without quotes",
    )
}
