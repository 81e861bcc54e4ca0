//! What a catalog says: its tables, and what one of them is made of at a snapshot. Everything here has a limit.

use super::catalog::{MAX_TEXT, State, damaged};
use super::inlined::{self, Inlined};
use crate::Error;
use crate::tables::durable::AsOf;
use chrono::DateTime;
use std::collections::HashMap;

/// Tables of one lake.
const MAX_TABLES: usize = 100_000;
/// Columns of one table, nested ones included.
const MAX_COLUMNS: usize = 10_000;
/// Snapshots that are looked through for one of a time.
const MAX_SNAPSHOTS: usize = 1_000_000;

/// Which rows of the catalog's tables count at the snapshot `?1`.
const AT: &str = "begin_snapshot <= ?1 AND (end_snapshot IS NULL OR end_snapshot > ?1)";

/// A table by its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LakeName {
    pub(super) schema: String,
    pub(super) table: String,
}

/// A path and whether it begins where the one above it ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LakePath {
    pub(super) path: String,
    pub(super) is_relative: bool,
}

/// What a table is made of at one snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Described {
    pub(super) table: i64,
    pub(super) snapshot: i64,
    /// Whether no later snapshot is there.
    pub(super) is_newest: bool,
    /// As the catalog has it.
    pub(super) data_path: String,
    /// Of the schema, and of the table.
    pub(super) folders: [LakePath; 2],
    pub(super) columns: Vec<ColumnRow>,
    pub(super) files: Vec<FileRow>,
    pub(super) deletes: Vec<DeleteRow>,
    /// Places in files that are deleted by the catalog itself.
    pub(super) places: Vec<(i64, i64)>,
    pub(super) mappings: HashMap<i64, Vec<NameRow>>,
    pub(super) inlined: Vec<Inlined>,
}

/// A column, or a field within one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ColumnRow {
    pub(super) number: i64,
    pub(super) name: String,
    pub(super) data_type: String,
    pub(super) default: Option<String>,
    pub(super) parent: Option<i64>,
}

/// A data file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FileRow {
    pub(super) id: i64,
    pub(super) path: LakePath,
    pub(super) format: String,
    pub(super) is_encrypted: bool,
    pub(super) mapping: Option<i64>,
    /// The last snapshot that has added rows, of a file with rows of several.
    pub(super) partial: Option<i64>,
    /// Values that all its rows have, by the numbers of their columns.
    pub(super) partition: Vec<(i64, Option<String>)>,
}

/// A file of deleted places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DeleteRow {
    pub(super) file: i64,
    pub(super) path: LakePath,
    pub(super) format: String,
    pub(super) is_encrypted: bool,
}

/// What a column is called in files of others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NameRow {
    pub(super) id: i64,
    pub(super) parent: Option<i64>,
    pub(super) name: String,
    pub(super) target: i64,
    /// Whether its value is in the path of the file.
    pub(super) is_partition: bool,
}

/// Schemas and tables of the newest snapshot, sorted.
///
/// # Errors
/// What is wrong with the catalog.
pub(super) fn listed(state: &State<'_>) -> Result<Vec<LakeName>, Error> {
    let nested = nested_schemas(state)?;
    let sql = format!(
        "SELECT substr(s.schema_name, 1, {MAX_TEXT}), substr(t.table_name, 1, {MAX_TEXT}) \
         FROM (SELECT * FROM ducklake_table WHERE {AT}) AS t \
         JOIN (SELECT * FROM ducklake_schema WHERE {AT}{nested}) AS s USING (schema_id) ORDER BY 1, 2"
    );
    state.rows(&sql, &[state.moment.snapshot], MAX_TABLES, |row| {
        Ok(LakeName { schema: row.get(0)?, table: row.get(1)? })
    })
}

/// Schemas within schemas have no names here, and their tables are none of the schema of that name.
fn nested_schemas(state: &State<'_>) -> Result<&'static str, Error> {
    Ok(match state.has_column("ducklake_schema", "parent_schema_id")? {
        true => " AND parent_schema_id IS NULL",
        false => "",
    })
}

/// The snapshot that is meant; none that is not there.
///
/// # Errors
/// What is wrong with the catalog.
pub(super) fn snapshot(state: &State<'_>, at: Option<AsOf>) -> Result<Option<i64>, Error> {
    let newest = state.moment.snapshot;
    match at {
        None => Ok(Some(newest)),
        Some(AsOf::Version(version)) => {
            let Ok(version) = i64::try_from(version) else { return Ok(None) };
            if version == newest {
                return Ok(Some(newest));
            }
            let sql = "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id = ?1";
            Ok(state.rows(sql, &[version], 1, |row| row.get(0))?.into_iter().next())
        }
        Some(AsOf::Time(time)) => {
            let sql = "SELECT snapshot_id, substr(snapshot_time, 1, 40) FROM ducklake_snapshot";
            let all: Vec<(i64, String)> =
                state.rows(sql, &[], MAX_SNAPSHOTS, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let mut last = None;
            for (snapshot, text) in all {
                let committed = DateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f%#z").map_err(|_| {
                    damaged(state.path, format!("the time of its snapshot {snapshot} is not understood"))
                })?;
                if committed.to_utc() <= time {
                    last = last.max(Some(snapshot));
                }
            }
            Ok(last)
        }
    }
}

/// A table at a snapshot, with at most so many files; none of a name that is not there.
///
/// # Errors
/// What is wrong with the catalog, or not known here.
pub(super) fn described(
    state: &State<'_>,
    name: &LakeName,
    snapshot: i64,
    max_files: usize,
) -> Result<Option<Described>, Error> {
    let Some((table, folders)) = found(state, name, snapshot)? else { return Ok(None) };
    let at = (table, snapshot);
    let columns = columns(state, at)?;
    let files = files(state, at, max_files)?;
    let deletes = deletes(state, at, max_files)?;
    Ok(Some(Described {
        table,
        snapshot,
        is_newest: snapshot == state.moment.snapshot,
        data_path: data_path(state)?,
        folders,
        places: inlined::deleted(state, at)?,
        mappings: mappings(state, table, &files)?,
        inlined: inlined::tables(state, at)?,
        columns,
        files,
        deletes,
    }))
}

/// Whether a view has this name, which means a query in the dialect of DuckDB.
///
/// # Errors
/// What is wrong with the catalog.
pub(super) fn is_view(state: &State<'_>, name: &LakeName, snapshot: i64) -> Result<bool, Error> {
    if !state.has_table("ducklake_view")? {
        return Ok(false);
    }
    let sql = format!(
        "SELECT substr(s.schema_name, 1, {MAX_TEXT}), substr(v.view_name, 1, {MAX_TEXT}) \
         FROM (SELECT * FROM ducklake_view WHERE {AT}) AS v \
         JOIN (SELECT * FROM ducklake_schema WHERE {AT}) AS s USING (schema_id)"
    );
    let views = state.rows(&sql, &[snapshot], MAX_TABLES, |row| {
        Ok(LakeName { schema: row.get(0)?, table: row.get(1)? })
    })?;
    Ok(views.contains(name))
}

/// The number of a table, and the paths of its schema and of itself.
fn found(state: &State<'_>, name: &LakeName, snapshot: i64) -> Result<Option<(i64, [LakePath; 2])>, Error> {
    let nested = nested_schemas(state)?;
    let sql = format!(
        "SELECT t.table_id, substr(s.schema_name, 1, {MAX_TEXT}), substr(t.table_name, 1, {MAX_TEXT}), \
         substr(s.path, 1, {MAX_TEXT}), s.path_is_relative, substr(t.path, 1, {MAX_TEXT}), t.path_is_relative \
         FROM (SELECT * FROM ducklake_table WHERE {AT}) AS t \
         JOIN (SELECT * FROM ducklake_schema WHERE {AT}{nested}) AS s USING (schema_id)"
    );
    // By comparison here, since SQLite's own depends on how a column is declared.
    let all = state.rows(&sql, &[snapshot], MAX_TABLES, |row| {
        let name = LakeName { schema: row.get(1)?, table: row.get(2)? };
        let path = |at: usize| -> rusqlite::Result<LakePath> {
            let path: Option<String> = row.get(at)?;
            let is_relative: Option<bool> = row.get(at + 1)?;
            Ok(LakePath { path: path.unwrap_or_default(), is_relative: is_relative.unwrap_or(true) })
        };
        Ok((name, row.get::<_, i64>(0)?, [path(3)?, path(5)?]))
    })?;
    let mut fitting = all.into_iter().filter(|(found, ..)| found == name);
    match (fitting.next(), fitting.next()) {
        (None, _) => Ok(None),
        (Some((_, table, folders)), None) => Ok(Some((table, folders))),
        _ => Err(damaged(state.path, format!("it has two tables `{}.{}`", name.schema, name.table))),
    }
}

fn data_path(state: &State<'_>) -> Result<String, Error> {
    let sql = format!(
        "SELECT substr(value, 1, {MAX_TEXT}) FROM ducklake_metadata WHERE key = 'data_path' AND scope IS NULL"
    );
    let found: Vec<String> = state.rows(&sql, &[], 1, |row| row.get(0))?;
    found.into_iter().next().ok_or_else(|| damaged(state.path, "it does not say where its files are"))
}

fn columns(state: &State<'_>, (table, snapshot): (i64, i64)) -> Result<Vec<ColumnRow>, Error> {
    let sql = format!(
        "SELECT column_id, substr(column_name, 1, {MAX_TEXT}), substr(column_type, 1, {MAX_TEXT}), \
         substr(initial_default, 1, {MAX_TEXT}), parent_column \
         FROM ducklake_column WHERE table_id = ?2 AND {AT} ORDER BY column_order, column_id"
    );
    state.rows(&sql, &[snapshot, table], MAX_COLUMNS, |row| {
        Ok(ColumnRow {
            number: row.get(0)?,
            name: row.get(1)?,
            data_type: row.get(2)?,
            default: row.get(3)?,
            parent: row.get(4)?,
        })
    })
}

fn files(state: &State<'_>, (table, snapshot): (i64, i64), max_files: usize) -> Result<Vec<FileRow>, Error> {
    // Before 1.0 another column said the same in another way.
    let partial = if state.has_column("ducklake_data_file", "partial_max")? {
        "partial_max"
    } else if state.has_column("ducklake_data_file", "partial_file_info")? {
        "CASE WHEN partial_file_info IS NULL THEN NULL ELSE 9223372036854775807 END"
    } else {
        "NULL"
    };
    let sql = format!(
        "SELECT data_file_id, substr(path, 1, {MAX_TEXT}), path_is_relative, substr(file_format, 1, 40), \
         encryption_key IS NOT NULL, mapping_id, {partial} \
         FROM ducklake_data_file WHERE table_id = ?2 AND {AT} ORDER BY file_order, data_file_id"
    );
    let mut files = state.rows(&sql, &[snapshot, table], max_files, |row| {
        Ok(FileRow {
            id: row.get(0)?,
            path: LakePath { path: row.get(1)?, is_relative: row.get(2)? },
            format: row.get::<_, Option<String>>(3)?.unwrap_or_else(|| "parquet".to_owned()),
            is_encrypted: row.get(4)?,
            mapping: row.get(5)?,
            partial: row.get(6)?,
            partition: Vec::new(),
        })
    })?;
    let mut values = partition_values(state, (table, snapshot), max_files)?;
    for file in &mut files {
        file.partition = values.remove(&file.id).unwrap_or_default();
    }
    Ok(files)
}

/// Values that all rows of a file have, of columns that files are grouped by unchanged.
type PartitionValues = HashMap<i64, Vec<(i64, Option<String>)>>;

fn partition_values(
    state: &State<'_>,
    (table, snapshot): (i64, i64),
    max_files: usize,
) -> Result<PartitionValues, Error> {
    let sql = format!(
        "SELECT v.data_file_id, c.column_id, substr(v.partition_value, 1, {MAX_TEXT}) \
         FROM (SELECT * FROM ducklake_data_file WHERE table_id = ?2 AND {AT}) AS f \
         JOIN ducklake_file_partition_value AS v USING (data_file_id) \
         JOIN ducklake_partition_column AS c \
           ON c.partition_id = f.partition_id AND c.partition_key_index = v.partition_key_index \
         WHERE c.transform = 'identity'"
    );
    let limit = max_files.saturating_mul(64);
    let rows: Vec<(i64, i64, Option<String>)> =
        state.rows(&sql, &[snapshot, table], limit, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut values = PartitionValues::new();
    for (file, column, value) in rows {
        values.entry(file).or_default().push((column, value));
    }
    Ok(values)
}

fn deletes(
    state: &State<'_>,
    (table, snapshot): (i64, i64),
    max_files: usize,
) -> Result<Vec<DeleteRow>, Error> {
    let sql = format!(
        "SELECT data_file_id, substr(path, 1, {MAX_TEXT}), path_is_relative, substr(format, 1, 40), \
         encryption_key IS NOT NULL \
         FROM ducklake_delete_file WHERE table_id = ?2 AND {AT} ORDER BY delete_file_id"
    );
    state.rows(&sql, &[snapshot, table], max_files, |row| {
        Ok(DeleteRow {
            file: row.get(0)?,
            path: LakePath { path: row.get(1)?, is_relative: row.get(2)? },
            format: row.get::<_, Option<String>>(3)?.unwrap_or_else(|| "parquet".to_owned()),
            is_encrypted: row.get(4)?,
        })
    })
}

/// The names that files of others go by, for those that are needed.
fn mappings(state: &State<'_>, table: i64, files: &[FileRow]) -> Result<HashMap<i64, Vec<NameRow>>, Error> {
    if files.iter().all(|file| file.mapping.is_none()) {
        return Ok(HashMap::new());
    }
    let kinds: Vec<(i64, String)> = state.rows(
        "SELECT mapping_id, substr(type, 1, 40) FROM ducklake_column_mapping WHERE table_id = ?1",
        &[table],
        MAX_TABLES,
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let is_partition = match state.has_column("ducklake_name_mapping", "is_partition")? {
        true => "is_partition",
        false => "0",
    };
    let sql = format!(
        "SELECT column_id, parent_column, substr(source_name, 1, {MAX_TEXT}), target_field_id, {is_partition} \
         FROM ducklake_name_mapping WHERE mapping_id = ?1"
    );
    let mut mappings = HashMap::new();
    for wanted in files.iter().filter_map(|file| file.mapping) {
        if mappings.contains_key(&wanted) {
            continue;
        }
        match kinds.iter().find(|(mapping, _)| *mapping == wanted) {
            Some((_, kind)) if kind == "map_by_name" => {}
            Some((_, kind)) => {
                return Err(damaged(
                    state.path,
                    format!("it finds columns by {kind:?}, which is not known here"),
                ));
            }
            None => return Err(damaged(state.path, format!("it lacks the names of mapping {wanted}"))),
        }
        let names = state.rows(&sql, &[wanted], MAX_COLUMNS, |row| {
            Ok(NameRow {
                id: row.get(0)?,
                parent: row.get(1)?,
                name: row.get(2)?,
                target: row.get(3)?,
                is_partition: row.get::<_, Option<bool>>(4)?.unwrap_or(false),
            })
        })?;
        mappings.insert(wanted, names);
    }
    Ok(mappings)
}
