//! Tables as they were: which state `FOR VERSION AS OF 3` and `FOR TIMESTAMP AS OF '…'` mean, and who may read it. Tables that
//! are written here have states, and so have Delta and Iceberg tables of others, whether their folders are served or a catalog
//! of another server names them.

use super::Visible;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::table_version::AsOf;
use bowshot_policy::Reading;
use bowshot_sql::rewrite::AsOf as Written;
use bowshot_tables::{Entry, EntryName, Table};
use bowshot_types::storage_type;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use std::sync::Arc;

/// The table of this name in the state that is meant.
pub(super) async fn table(
    visible: &Visible,
    name: EntryName,
    written: &Written<'_>,
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let external = |error: Error| DataFusionError::External(Box::new(error));
    let as_of = state(written).map_err(external)?;
    let reading = visible.access.reading(&name);
    let entry = visible.raw.entry(&name).filter(|_| reading != Reading::Unseen);
    if entry.is_some() {
        visible.raw.note_read(&name);
    }
    match entry {
        Some(Entry::Table(table)) => match as_of {
            State::At(as_of) => own(visible, (&name, &reading), table, as_of),
            State::Referenced(reference) => Err(external(no_reference(&name, reference))),
        },
        Some(_) => Err(external(keeps_none(&name))),
        None => of_others(visible, name, as_of).await,
    }
}

/// Which state is meant.
#[derive(Clone, Copy)]
enum State<'a> {
    At(AsOf),
    /// That of a branch or a tag.
    Referenced(&'a str),
}

/// A table of ours.
fn own(
    visible: &Visible,
    (name, reading): (&EntryName, &Reading),
    table: &Table,
    as_of: AsOf,
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let external = |error: Error| DataFusionError::External(Box::new(error));
    let earlier = visible.parts.tables.table_as_of(table, as_of);
    let earlier = Arc::new(earlier.map_err(|error| external(error.into()))?);
    if matches!(reading, Reading::Limited(_)) && earlier.definition() != table.definition() {
        return Err(external(other_then(name)));
    }
    let full = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
    let found = storage_type::as_declared(earlier.provider(), earlier.definition(), full)?;
    visible.guarded((name, reading), found, None)
}

/// A table that others write.
async fn of_others(
    visible: &Visible,
    name: EntryName,
    as_of: State<'_>,
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let external = |error: Error| DataFusionError::External(Box::new(error));
    let is_file = name.catalog == DEFAULT_CATALOG && name.schema == DEFAULT_SCHEMA;
    let name = if is_file { visible.parts.file_table(&name) } else { name };
    // Under the name that it has, however it was written: others decide by it.
    visible.raw.note_read(&name);
    let reading = visible.access.reading(&name);
    if reading == Reading::Unseen {
        return Err(external(keeps_none(&name)));
    }
    // Not those behind `main`, which shows what may be seen and hides where it comes from: the rights were looked at.
    let files = visible.parts.files.as_ref().filter(|_| is_file);
    let has_states = files.is_some() || visible.parts.databases.has(&name.catalog);
    if has_states {
        visible.check_read(&name, &reading)?;
    }
    let as_of = match as_of {
        State::At(as_of) => as_of,
        State::Referenced(_) if !has_states => return Err(external(keeps_none(&name))),
        State::Referenced(reference) => {
            let found = match files {
                Some(files) => files.referenced_state(&name.name, reference).await,
                None => visible.parts.databases.referenced_state(&name, reference, &visible.principal).await,
            };
            let found = found.map_err(external)?.ok_or_else(|| external(no_reference(&name, reference)))?;
            AsOf::Version(found)
        }
    };
    let found = match files {
        Some(files) => files.as_of(&name.name, as_of).await.map_err(external)?,
        None if has_states => {
            let found = visible.parts.databases.table_as_of(&name, as_of, &visible.principal).await;
            found.map_err(external)?
        }
        None => None,
    };
    let found = found.ok_or_else(|| external(keeps_none(&name)))?;
    if matches!(reading, Reading::Limited(_)) && current_schema(visible, &name).await? != Some(found.schema())
    {
        return Err(external(other_then(&name)));
    }
    visible.guarded((&name, &reading), found, None)
}

/// The columns that a table of others has now.
async fn current_schema(visible: &Visible, name: &EntryName) -> datafusion::error::Result<Option<SchemaRef>> {
    let now = if visible.parts.databases.has(&name.catalog) {
        let found = visible.parts.databases.table(name, &visible.principal).await;
        found.map_err(|error| DataFusionError::External(Box::new(error)))?
    } else {
        visible.parts.main.table(&name.name).await?
    };
    Ok(now.map(|table| table.schema()))
}

fn keeps_none(name: &EntryName) -> Error {
    Error::not_found(format!("no table `{name}` with earlier versions"))
}

/// Who sees a part of a table must not see another one by going back to other columns.
pub(super) fn other_then(name: &EntryName) -> Error {
    Error::new(ErrorKind::Denied, format!("`{name}` had another definition then"))
        .with_hint("row policies and masks apply to the current columns only; ask the owner of the table")
}

fn no_reference(name: &EntryName, reference: &str) -> Error {
    Error::not_found(format!("`{name}` has no branch or tag `{reference}`")).with_hint(
        "write a version as a number: `FOR VERSION AS OF 3`; Iceberg tables have branches and tags",
    )
}

/// The state that is meant.
///
/// # Errors
/// `Syntax` for a time that is none.
fn state<'a>(written: &Written<'a>) -> Result<State<'a>> {
    Ok(match written {
        Written::Version(version) => State::At(AsOf::Version(*version)),
        Written::Time(text) => State::At(AsOf::Time(time(text)?)),
        Written::Reference(name) => State::Referenced(*name),
    })
}

/// A time with a zone, else in UTC; a date is its first moment.
pub(super) fn time(text: &str) -> Result<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)) {
        return Ok(time.to_utc());
    }
    // As casts write it: `+00`, without minutes.
    for format in ["%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M:%S%.f%#z"] {
        if let Ok(time) = DateTime::parse_from_str(text, format) {
            return Ok(time.to_utc());
        }
    }
    for format in ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, format) {
            return Ok(time.and_utc());
        }
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| day.and_hms_opt(0, 0, 0));
    day.map(|day| day.and_utc()).ok_or_else(|| not_a_time(text))
}

fn not_a_time(text: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("`{text}` is not a valid timestamp"))
        .with_hint("write `FOR TIMESTAMP AS OF '2026-01-31 12:00:00'`, in UTC or with a zone as `+01:00`")
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_those_of_utc_unless_they_name_a_zone() {
        for (text, expected) in [
            ("1970-01-01 00:00:01", Some(1_000_000)),
            ("1970-01-01T01:00:01+01:00", Some(1_000_000)),
            ("1970-01-01 00:00:01.5+00", Some(1_500_000)),
            ("1970-01-01 05:30:01+0530", Some(1_000_000)),
            ("1970-01-02", Some(86_400_000_000)),
            ("soon", None),
        ] {
            assert_eq!(time(text).ok().map(|time| time.timestamp_micros()), expected, "{text}");
        }
    }
}
