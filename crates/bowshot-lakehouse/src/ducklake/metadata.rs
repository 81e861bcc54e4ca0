//! What a catalog says: its tables, and what one of them is made of at a snapshot. Everything here has a limit.

use super::catalog::{MAX_TEXT, State, damaged};
use super::inlined::{self, Inlined};
use bowshot_formats::table_version::AsOf;
use bowshot_object_store::Error;
use chrono::{DateTime, Utc};
use rusqlite::Row;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

const MAX_TABLES: usize = 100_000;
/// Bytes of the names in a list of them.
const MAX_NAMES_BYTES: usize = 64 << 20;
/// Columns of one table, nested ones included.
const MAX_COLUMNS: usize = 10_000;
/// Snapshots that are looked through for one of a time.
const MAX_SNAPSHOTS: usize = 1_000_000;

/// Which rows of the catalog's tables count at the snapshot `?1`.
const AT: &str = "begin_snapshot <= ?1 AND (end_snapshot IS NULL OR end_snapshot > ?1)";

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
    /// In an order, so that the same is told as the same.
    pub(super) mappings: BTreeMap<i64, Vec<NameRow>>,
    pub(super) inlined: Vec<Inlined>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ColumnRow {
    pub(super) number: i64,
    pub(super) name: String,
    pub(super) data_type: String,
    pub(super) default: Option<String>,
    pub(super) parent: Option<i64>,
}

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
pub(super) fn listed(state: &State<'_>) -> Result<Vec<LakeName>, Error> {
    let snapshot = state.moment.snapshot;
    let schemas = schemas(state, snapshot)?;
    let mut bytes = 0_usize;
    let mut names = named(state, ("ducklake_table", "table_name"), snapshot, |schema, table| {
        let schema = &schemas.get(&schema)?.name;
        bytes = bytes.saturating_add(schema.len()).saturating_add(table.len());
        (bytes <= MAX_NAMES_BYTES).then(|| LakeName { schema: schema.clone(), table })
    })?;
    if bytes > MAX_NAMES_BYTES {
        return Err(too_long(state));
    }
    names.sort_unstable_by(|one, other| (&one.schema, &one.table).cmp(&(&other.schema, &other.table)));
    Ok(names)
}

/// What `read` makes of the schemas, by number and name. Nothing is joined or sorted in the database, which has no limit for it.
fn named<T>(
    state: &State<'_>,
    (table, column): (&str, &str),
    snapshot: i64,
    mut read: impl FnMut(i64, String) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let sql = format!("SELECT schema_id, substr({column}, 1, {MAX_TEXT}) FROM {table} WHERE {AT}");
    state.some_rows(&sql, &[snapshot], MAX_TABLES, |row| {
        let Some(schema) = row.get::<_, Option<i64>>(0)? else { return Ok(None) };
        Ok(read(schema, row.get(1)?))
    })
}

struct Schema {
    name: String,
    path: LakePath,
}

/// The schemas of a snapshot by their numbers.
fn schemas(state: &State<'_>, snapshot: i64) -> Result<HashMap<i64, Schema>, Error> {
    // Schemas within schemas have no names here, and their tables are none of the schema of that name.
    let nested = match state.has_column("ducklake_schema", "parent_schema_id")? {
        true => " AND parent_schema_id IS NULL",
        false => "",
    };
    let sql = format!(
        "SELECT schema_id, substr(schema_name, 1, {MAX_TEXT}), substr(path, 1, {MAX_TEXT}), path_is_relative \
         FROM ducklake_schema WHERE {AT}{nested}"
    );
    let mut bytes = 0_usize;
    let all: Vec<(i64, Schema)> = state.some_rows(&sql, &[snapshot], MAX_TABLES, |row| {
        let schema = Schema { name: row.get(1)?, path: path(row, 2)? };
        bytes = bytes.saturating_add(schema.name.len()).saturating_add(schema.path.path.len());
        Ok((bytes <= MAX_NAMES_BYTES).then_some((row.get(0)?, schema)))
    })?;
    if bytes > MAX_NAMES_BYTES {
        return Err(too_long(state));
    }
    let mut schemas = HashMap::with_capacity(all.len());
    for (number, schema) in all {
        if schemas.insert(number, schema).is_some() {
            return Err(damaged(state.path, format!("it has two schemas with the id {number}")));
        }
    }
    Ok(schemas)
}

fn too_long(state: &State<'_>) -> Error {
    damaged(state.path, format!("its names have more than {} MiB in total", MAX_NAMES_BYTES >> 20))
}

/// The path in a column, and in the next one whether it is relative.
fn path(row: &Row<'_>, at: usize) -> rusqlite::Result<LakePath> {
    let path: Option<String> = row.get(at)?;
    let is_relative: Option<bool> = row.get(at + 1)?;
    Ok(LakePath { path: path.unwrap_or_default(), is_relative: is_relative.unwrap_or(true) })
}

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
        Some(AsOf::Time(time)) => at_time(state, time),
    }
}

/// The last snapshot that was there at a time. What is wrong with the times of others does not matter.
fn at_time(state: &State<'_>, time: DateTime<Utc>) -> Result<Option<i64>, Error> {
    let sql = "SELECT snapshot_id, substr(snapshot_time, 1, 40) FROM ducklake_snapshot";
    let mut all: Vec<(i64, Option<String>)> = state.rows(sql, &[], MAX_SNAPSHOTS, |row| {
        Ok((row.get(0)?, row.get_ref(1)?.as_str().ok().map(str::to_owned)))
    })?;
    all.sort_unstable_by_key(|(snapshot, _)| Reverse(*snapshot));
    for (snapshot, text) in all {
        let committed = text.and_then(|text| DateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f%#z").ok());
        let committed = committed
            .ok_or_else(|| damaged(state.path, format!("its snapshot {snapshot} has an invalid time")))?;
        if committed.to_utc() <= time {
            return Ok(Some(snapshot));
        }
    }
    Ok(None)
}

/// The first snapshot that has not been expired.
pub(super) fn first_snapshot(state: &State<'_>) -> Result<i64, Error> {
    let sql = "SELECT min(snapshot_id) FROM ducklake_snapshot";
    let first: Vec<Option<i64>> = state.rows(sql, &[], 1, |row| row.get(0))?;
    Ok(first.into_iter().flatten().next().unwrap_or(state.moment.snapshot))
}

/// A table at a snapshot, with at most so many files; none of a name that is not there.
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

pub(super) fn is_view(state: &State<'_>, name: &LakeName, snapshot: i64) -> Result<bool, Error> {
    if !state.has_table("ducklake_view")? {
        return Ok(false);
    }
    let schemas = schemas(state, snapshot)?;
    let views = named(state, ("ducklake_view", "view_name"), snapshot, |schema, view| {
        (view == name.table && schemas.get(&schema)?.name == name.schema).then_some(())
    })?;
    Ok(!views.is_empty())
}

fn found(state: &State<'_>, name: &LakeName, snapshot: i64) -> Result<Option<(i64, [LakePath; 2])>, Error> {
    let schemas = schemas(state, snapshot)?;
    let sql = format!(
        "SELECT table_id, schema_id, substr(table_name, 1, {MAX_TEXT}), substr(path, 1, {MAX_TEXT}), \
         path_is_relative FROM ducklake_table WHERE {AT}"
    );
    // By comparison here, since SQLite's own depends on how a column is declared.
    let fitting = state.some_rows(&sql, &[snapshot], MAX_TABLES, |row| {
        let schema = row.get::<_, Option<i64>>(1)?.and_then(|number| schemas.get(&number));
        let Some(schema) = schema.filter(|schema| schema.name == name.schema) else { return Ok(None) };
        if row.get_ref(2)?.as_str()? != name.table {
            return Ok(None);
        }
        Ok(Some((row.get::<_, i64>(0)?, [schema.path.clone(), path(row, 3)?])))
    })?;
    let mut fitting = fitting.into_iter();
    match (fitting.next(), fitting.next()) {
        (None, _) => Ok(None),
        (Some(found), None) => Ok(Some(found)),
        _ => Err(damaged(state.path, format!("it has two tables `{}.{}`", name.schema, name.table))),
    }
}

fn data_path(state: &State<'_>) -> Result<String, Error> {
    let sql = format!(
        "SELECT substr(value, 1, {MAX_TEXT}) FROM ducklake_metadata WHERE key = 'data_path' AND scope IS NULL"
    );
    let found: Vec<String> = state.rows(&sql, &[], 1, |row| row.get(0))?;
    found.into_iter().next().ok_or_else(|| damaged(state.path, "it has no data path"))
}

fn columns(state: &State<'_>, (table, snapshot): (i64, i64)) -> Result<Vec<ColumnRow>, Error> {
    let sql = format!(
        "SELECT column_id, substr(column_name, 1, {MAX_TEXT}), substr(column_type, 1, {MAX_TEXT}), \
         substr(initial_default, 1, {MAX_TEXT}), parent_column, column_order \
         FROM ducklake_column WHERE table_id = ?2 AND {AT}"
    );
    let mut columns: Vec<(Option<i64>, ColumnRow)> =
        state.rows(&sql, &[snapshot, table], MAX_COLUMNS, |row| {
            let column = ColumnRow {
                number: row.get(0)?,
                name: row.get(1)?,
                data_type: row.get(2)?,
                default: row.get(3)?,
                parent: row.get(4)?,
            };
            Ok((row.get(5)?, column))
        })?;
    columns.sort_by_key(|(order, column)| (*order, column.number));
    Ok(columns.into_iter().map(|(_, column)| column).collect())
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
         encryption_key IS NOT NULL, mapping_id, {partial}, file_order, partition_id \
         FROM ducklake_data_file WHERE table_id = ?2 AND {AT}"
    );
    let mut files = state.rows(&sql, &[snapshot, table], max_files, |row| {
        let file = FileRow {
            id: row.get(0)?,
            path: LakePath { path: row.get(1)?, is_relative: row.get(2)? },
            format: row.get::<_, Option<String>>(3)?.unwrap_or_else(|| "parquet".to_owned()),
            is_encrypted: row.get(4)?,
            mapping: row.get(5)?,
            partial: row.get(6)?,
            partition: Vec::new(),
        };
        Ok((row.get::<_, Option<i64>>(7)?, row.get::<_, Option<i64>>(8)?, file))
    })?;
    files.sort_by_key(|(order, _, file)| (*order, file.id));
    let partitions = files.iter().filter_map(|(_, partition, file)| Some((file.id, (*partition)?)));
    let mut values = partition_values(state, table, &partitions.collect(), max_files)?;
    let with_values = |(_, _, file): (_, _, FileRow)| {
        let partition = values.remove(&file.id).unwrap_or_default();
        FileRow { partition, ..file }
    };
    Ok(files.into_iter().map(with_values).collect())
}

/// Values that all rows of a file have, of columns that files are grouped by unchanged.
type PartitionValues = HashMap<i64, Vec<(i64, Option<String>)>>;

/// Those of files whose partitions are given by their numbers.
fn partition_values(
    state: &State<'_>,
    table: i64,
    partitions: &HashMap<i64, i64>,
    max_files: usize,
) -> Result<PartitionValues, Error> {
    let mut values = PartitionValues::new();
    if partitions.is_empty() {
        return Ok(values);
    }
    let sql = "SELECT partition_id, partition_key_index, column_id FROM ducklake_partition_column \
               WHERE table_id = ?1 AND transform = 'identity'";
    let mut columns = HashMap::new();
    let keys: Vec<((i64, i64), i64)> =
        state.rows(sql, &[table], MAX_COLUMNS, |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    for (key, column) in keys {
        if columns.insert(key, column).is_some() {
            return Err(damaged(state.path, format!("two columns are key {} of partition {}", key.1, key.0)));
        }
    }
    let sql = format!(
        "SELECT data_file_id, partition_key_index, substr(partition_value, 1, {MAX_TEXT}) \
         FROM ducklake_file_partition_value WHERE table_id = ?1"
    );
    let rows = state.some_rows(&sql, &[table], max_files.saturating_mul(64), |row| {
        let (file, key): (i64, i64) = (row.get(0)?, row.get(1)?);
        let column = partitions.get(&file).and_then(|partition| columns.get(&(*partition, key)));
        let Some(column) = column else { return Ok(None) };
        Ok(Some((file, (*column, row.get(2)?))))
    })?;
    for (file, value) in rows {
        values.entry(file).or_default().push(value);
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
         encryption_key IS NOT NULL, delete_file_id \
         FROM ducklake_delete_file WHERE table_id = ?2 AND {AT}"
    );
    let mut deletes: Vec<(Option<i64>, DeleteRow)> =
        state.rows(&sql, &[snapshot, table], max_files, |row| {
            let delete = DeleteRow {
                file: row.get(0)?,
                path: LakePath { path: row.get(1)?, is_relative: row.get(2)? },
                format: row.get::<_, Option<String>>(3)?.unwrap_or_else(|| "parquet".to_owned()),
                is_encrypted: row.get(4)?,
            };
            Ok((row.get(5)?, delete))
        })?;
    deletes.sort_by_key(|(number, _)| *number);
    Ok(deletes.into_iter().map(|(_, delete)| delete).collect())
}

fn mappings(state: &State<'_>, table: i64, files: &[FileRow]) -> Result<BTreeMap<i64, Vec<NameRow>>, Error> {
    if files.iter().all(|file| file.mapping.is_none()) {
        return Ok(BTreeMap::new());
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
    let mut mappings = BTreeMap::new();
    for wanted in files.iter().filter_map(|file| file.mapping) {
        if mappings.contains_key(&wanted) {
            continue;
        }
        match kinds.iter().find(|(mapping, _)| *mapping == wanted) {
            Some((_, kind)) if kind == "map_by_name" => {}
            Some((_, kind)) => {
                return Err(damaged(state.path, format!("unknown kind of column mapping {kind:?}")));
            }
            None => return Err(damaged(state.path, format!("it lacks the column mapping {wanted}"))),
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
