//! The module from outside: tables, commits, and rows read through SQL.

mod commit_views;
mod commits;
mod deleted_rows;
mod durable;
mod edits;
mod history;
mod in_store;
mod lookups;
mod memory;
mod names;
mod scans;
mod sequences;
mod store_with_tags;
mod values;

use super::{Column, Definition, Entry, EntryName, Error, Key, Snapshot, Table, TableStore, View};
use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, UInt64Type};
use datafusion::catalog::TableProvider;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use uuid::Uuid;

/// Rows per batch in the sessions of the tests: few, so that small tables have several partitions.
const BATCH_ROWS: usize = 16;
const PARTITIONS: usize = 4;

fn store() -> Arc<TableStore> {
    TableStore::in_memory("bowshot", "main", 256 << 20)
}

fn name(table: &str) -> EntryName {
    EntryName::new("bowshot", "main", table)
}

fn column(name: &str, data_type: DataType, nullable: bool) -> Column {
    Column { field: Arc::new(Field::new(name, data_type, nullable)), default: None, comment: None }
}

/// `id` BIGINT NOT NULL, `value` BIGINT.
fn definition() -> Definition {
    let columns = vec![column("id", DataType::Int64, false), column("value", DataType::Int64, true)];
    Definition { columns, ..Definition::default() }
}

fn keyed() -> Definition {
    Definition {
        primary_key: Some(Key { name: None, columns: vec!["id".to_owned()], comment: None }),
        ..definition()
    }
}

fn view(sql: &str) -> Arc<View> {
    Arc::new(View {
        id: Uuid::new_v4(),
        sql: sql.to_owned(),
        dialect: "ansi".to_owned(),
        default_catalog: "bowshot".to_owned(),
        default_schema: "main".to_owned(),
        columns: vec![],
        comment: None,
    })
}

/// A row for each id. Its value is ten times the id, or null where the id is a multiple of five.
fn rows(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    pairs(ids.iter().map(|id| (*id, (id % 5 != 0).then_some(id * 10))))
}

fn pairs(rows: impl IntoIterator<Item = (i64, Option<i64>)>) -> RecordBatch {
    let (ids, values): (Vec<i64>, Vec<Option<i64>>) = rows.into_iter().unzip();
    let columns = vec![Arc::new(Int64Array::from(ids)) as _, Arc::new(Int64Array::from(values)) as _];
    RecordBatch::try_new(definition().schema(), columns).unwrap()
}

/// A table of the store with one segment for each batch.
fn table(store: &Arc<TableStore>, batches: impl IntoIterator<Item = RecordBatch>) -> Arc<Table> {
    Arc::new(appended(store, &Table::new(definition()), batches))
}

fn appended(store: &Arc<TableStore>, table: &Table, batches: impl IntoIterator<Item = RecordBatch>) -> Table {
    table.append(batches.into_iter().map(|rows| store.segment(&rows).unwrap()).collect())
}

/// Commits a change of the newest snapshot.
fn commit(
    store: &Arc<TableStore>,
    change: impl FnOnce(&Snapshot) -> Result<Snapshot, Error>,
) -> Result<Arc<Snapshot>, Error> {
    let base = store.snapshot();
    store.commit(&base, &Arc::new(change(&base)?))
}

fn put(store: &Arc<TableStore>, to: &str, table: Arc<Table>) -> Arc<Snapshot> {
    commit(store, |base| base.with_entry(&name(to), Entry::Table(table))).unwrap()
}

/// The table of that name, which is there.
fn get(snapshot: &Snapshot, from: &str) -> Arc<Table> {
    match snapshot.entry(&name(from)) {
        Some(Entry::Table(table)) => Arc::clone(table),
        other => panic!("no table {from}: {other:?}"),
    }
}

fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(PARTITIONS).with_batch_size(BATCH_ROWS);
    SessionContext::new_with_config(config)
}

/// The answer to a query of table `t`.
async fn query(provider: Arc<dyn TableProvider>, sql: &str) -> RecordBatch {
    let context = session();
    context.register_table("t", provider).unwrap();
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let schema = Arc::clone(frame.schema().inner());
    let batches = frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

/// The first column of the answer, without nulls.
async fn integers(provider: Arc<dyn TableProvider>, sql: &str) -> Vec<i64> {
    query(provider, sql).await.column(0).as_primitive::<Int64Type>().iter().flatten().collect()
}

async fn addresses(table: &Arc<Table>, condition: &str) -> Vec<u64> {
    let sql = format!("SELECT _address FROM t WHERE {condition}");
    let rows = query(table.addressed_provider("_address"), &sql).await;
    rows.column(0).as_primitive::<UInt64Type>().values().to_vec()
}

/// Ids of the rows, in their order, without DataFusion.
fn ids(table: &Table) -> Vec<i64> {
    table
        .batches()
        .map(Result::unwrap)
        .flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

/// Address of the first row with this id, without DataFusion.
fn address_of(table: &Table, id: i64) -> Option<u64> {
    table.shared_segments().iter().enumerate().find_map(|(position, segment)| {
        let batches = segment.read_stored(&table.schema(), 1 << 20).unwrap();
        let ids = batches
            .flat_map(|rows| rows.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec())
            .enumerate();
        let mut left = ids.filter(|(row, _)| !segment.deleted().contains(*row));
        let (row, _) = left.find(|(_, value)| *value == id)?;
        Some(((position as u64) << 32) | row as u64)
    })
}

fn without(store: &Arc<TableStore>, table: &Table, id: i64) -> Arc<Table> {
    let address = address_of(table, id).unwrap();
    let (left, gone) = table.delete(store, &[address]).unwrap();
    assert_eq!(gone, 1);
    Arc::new(left)
}
