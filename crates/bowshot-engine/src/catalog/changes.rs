//! `table_changes('events', 3, 7)`: which changes of which table are meant, and who may read them. Durable tables have them, and Delta
//! tables that others write, where their writers keep them. They are read by the rules for the table as it is now: each row of a
//! change is one of the table for its row policies, masks and columns. What has been done to it is nobody's secret who sees the row.

use super::{Visible, time_travel};
use crate::execute::table_changes::{MayRead, OwnChanges, missing_version};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::table_version::AsOf;
use bowshot_lakehouse::change_feed::{CHANGE_COLUMNS, ChangeRange, change_fields, is_taken};
use bowshot_policy::Reading;
use bowshot_policy::access::Limits;
use bowshot_sql::rewrite::{AsOf as Written, NamedChanges};
use bowshot_tables::durable::Version;
use bowshot_tables::{Definition, Entry, EntryName, Table};
use bowshot_types::storage_type;
use datafusion::arrow::datatypes::{Fields, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
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
    if written.follows && visible.depth > 0 {
        return Err(external(followed_in_view()));
    }
    let reading = visible.access.reading(&name);
    if let Some(entry) = visible.raw.entry(&name).filter(|_| reading != Reading::Unseen) {
        visible.raw.note_read(&name);
        visible.check_read(&name, &reading)?;
        return match entry {
            Entry::Table(table) if table.definition().is_durable() => {
                let changes = own(visible, (&name, &reading), table, (range, written.follows))?;
                guard(visible, (&name, reading), changes)
            }
            _ => Err(external(keeps_none(&name))),
        };
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
    let Some(files) = files.filter(|_| !written.follows) else { return Err(external(keeps_none(&name))) };
    let found = files.changes(&name.name, range).await;
    let found = found.map_err(|error| external(told(&name, &reading, error)))?;
    let changes = found.ok_or_else(|| external(not_there(&name)))?;
    match reading {
        // Policies are for the columns as they are now; what a column of the same name was then, they do not say.
        Reading::Limited(_) if !changes.same_columns => Err(external(time_travel::other_then(&name))),
        reading => guard(visible, (&name, reading), changes.table),
    }
}

/// The part of changes that somebody may read who reads the table so.
fn guard(
    visible: &Visible,
    (name, mut reading): (&EntryName, Reading),
    changes: Arc<dyn TableProvider>,
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    if let Reading::Limited(Limits { columns: Some(columns), .. }) = &mut reading {
        columns.extend(CHANGE_COLUMNS.map(str::to_owned));
    }
    visible.guarded((name, &reading), changes, None)
}

/// The changes of a durable table.
fn own(
    visible: &Visible,
    (name, reading): (&EntryName, &Reading),
    table: &Table,
    (range, follows): (ChangeRange, bool),
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let external = |error: Error| DataFusionError::External(Box::new(error));
    let full = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
    let empty = Arc::new(table.without_rows());
    let columns = storage_type::as_declared(empty.provider(), table.definition(), full)?.schema();
    if let Some(taken) = columns.fields().iter().find(|field| is_taken(field.name())) {
        let message = format!("`{name}` has a column `{}`, as changes have", taken.name());
        return Err(external(Error::unsupported(message).with_hint("rename the column")));
    }
    let store = &visible.parts.tables;
    let mut commits = store.history_of(table.id(), 0).map_err(|error| external(error.into()))?;
    commits.retain(|commit| commit.version <= table.version());
    let (from, end) = versions(name, range, &commits).map_err(external)?;
    let changes = OwnChanges {
        name: name.clone(),
        table: empty,
        store: Arc::clone(store),
        session: visible.context.state(),
        from,
        end: Some(end).filter(|_| !follows),
        may_read: may_read(visible, (name, reading), table, follows),
        schema: Arc::new(Schema::new(
            columns.fields().iter().cloned().chain(change_fields()).collect::<Fields>(),
        )),
    };
    changes.provider()
}

/// Policies are for the columns as they are now. Who follows changes has the rights with which that began, or none.
fn may_read(
    visible: &Visible,
    (name, reading): (&EntryName, &Reading),
    table: &Table,
    follows: bool,
) -> Box<MayRead> {
    let (name, reading, access) = (name.clone(), reading.clone(), visible.access.clone());
    let now = matches!(reading, Reading::Limited(_)).then(|| Arc::clone(table.definition()));
    let gate = visible.gate.clone().filter(|_| follows);
    Box::new(move |then: &Definition| {
        if now.as_ref().is_some_and(|now| **now != *then) {
            return Err(time_travel::other_then(&name));
        }
        let Some(gate) = &gate else { return Ok(()) };
        let newest = gate.newest();
        match newest.is_same(&access) || reading == Reading::All && newest.reading(&name) == reading {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Conflict,
                format!("access rules have changed while the changes of `{name}` were read"),
            )
            .with_hint("query its changes again, starting after the last version that you read")),
        }
    })
}

/// The first version of a range, and the one before which it ends.
///
/// # Errors
/// `NotFound` for versions that are not kept, or not there yet; `Invalid` for a range that ends before it begins.
fn versions(name: &EntryName, range: ChangeRange, commits: &[Version]) -> Result<(u64, u64)> {
    let (Some(first), Some(last)) = (commits.first(), commits.last()) else { return Err(keeps_none(name)) };
    let (oldest, next) = (first.version, last.version.saturating_add(1));
    let from = match range.from {
        AsOf::Version(version) => version,
        AsOf::Time(time) => {
            commits.iter().find(|commit| commit.committed >= time).map_or(next, |commit| commit.version)
        }
    };
    let end = match range.to {
        None => next.max(from),
        Some(AsOf::Version(version)) => version.saturating_add(1),
        Some(AsOf::Time(time)) => {
            let before = commits.iter().rev().find(|commit| commit.committed <= time);
            before.map_or(oldest, |commit| commit.version.saturating_add(1))
        }
    };
    if from.max(end) > next {
        let message = format!(
            "`{name}` has no version {} yet: the newest is {}",
            from.max(end.saturating_sub(1)),
            last.version
        );
        return Err(Error::not_found(message).with_hint("query the changes from the next version on"));
    }
    if from > end {
        return Err(Error::invalid("the range of changes ends before it begins"));
    }
    // Those of a version are told by the one before it.
    if from < oldest || from == oldest && from > 0 && from < next {
        return Err(missing_version(name, from, oldest));
    }
    Ok((from, end))
}

/// Of changes that never end, where something waits for their end.
fn followed_in_view() -> Error {
    Error::unsupported("changes are followed by a query of their own, not in views")
        .with_hint("leave out `follow => true`, or query the changes themselves")
}

/// An error that whoever sees a part of a table may be told: others name columns, values and files that may be hidden.
fn told(name: &EntryName, reading: &Reading, error: Error) -> Error {
    let found = std::error::Error::source(&error).and_then(|found| found.downcast_ref());
    let is_harmless = matches!(found, Some(bowshot_object_store::Error::NoState { .. }))
        || matches!(error.kind(), ErrorKind::Invalid | ErrorKind::LimitReached | ErrorKind::Unavailable);
    if is_harmless || !matches!(reading, Reading::Limited(_)) {
        return error;
    }
    tracing::warn!(table = %name, error = %error, "cannot read the changes of a table for a user who sees \
        only a part of it");
    Error::new(error.kind(), format!("the changes of `{name}` in this range cannot be read"))
        .with_hint("query later versions; the log of the server has the cause")
}

fn not_there(name: &EntryName) -> Error {
    Error::not_found(format!("no table `{name}` that records changes"))
}

/// Of a table that may be read.
fn keeps_none(name: &EntryName) -> Error {
    Error::unsupported(format!("`{name}` does not record changes of its rows")).with_hint(
        "durable tables record changes, and so do external Delta tables with `delta.enableChangeDataFeed` \
         (without `follow`); for other tables compare two versions: `SELECT * FROM t EXCEPT SELECT * FROM t \
         FOR VERSION AS OF 3`",
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
        Written::Reference(name) => Err(not_a_time(name)),
    }
}

fn not_a_time(text: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("`{text}` is not a valid timestamp")).with_hint(
        "write a time as in '2026-01-31 12:00:00', in UTC or with a zone as `+01:00`, and a version as a number without quotes",
    )
}
