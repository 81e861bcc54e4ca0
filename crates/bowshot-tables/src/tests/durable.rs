//! The data folder: what is kept, left alone and removed there. Restarts, versions, VACUUM and OPTIMIZE of whole servers are tested in
//! `tests/clients/test_durable.py`, what others read in `test_delta.py`.

use super::*;
use crate::{External, LastRefresh, Materialized, SourceVersion, Storage, StoreOptions, TablesPlace};
use bowshot_formats::read_options::OptionValue;
use datafusion::execution::runtime_env::RuntimeEnv;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

pub(super) fn open(folder: &Path) -> Arc<TableStore> {
    try_open(folder).unwrap()
}

/// A new data folder, and its store.
pub(super) fn fresh() -> (TempDir, Arc<TableStore>) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    (folder, store)
}

/// The store after a restart.
pub(super) fn reopened(store: Arc<TableStore>, folder: &TempDir) -> Arc<TableStore> {
    drop(store);
    open(folder.path())
}

fn try_open(folder: &Path) -> Result<Arc<TableStore>, Error> {
    open_at(folder, &RuntimeEnv::default(), None)
}

/// A store whose files queries of `runtime` can read, perhaps with the files of its tables in an object store.
pub(super) fn open_at(
    folder: &Path,
    runtime: &RuntimeEnv,
    place: Option<TablesPlace>,
) -> Result<Arc<TableStore>, Error> {
    let options = StoreOptions {
        default_catalog: "bowshot".to_owned(),
        default_schema: "main".to_owned(),
        memory_bytes: 1 << 30,
        max_open_files: 100,
        columns: bowshot_formats::decoded_columns::ColumnCache::new(64 << 20),
        place,
    };
    TableStore::open(folder, &options, runtime)
}

pub(super) fn durable() -> Definition {
    Definition { storage: Storage::Durable, ..definition() }
}

/// Adds rows to table `t`, which is made if it is not there.
pub(super) fn insert(store: &Arc<TableStore>, rows: &RecordBatch) {
    change(store, |table| {
        let table = table.unwrap_or_else(|| Table::new(durable()));
        let segment = store.copied(&table, vec![rows.clone()]).unwrap();
        table.append(segment.into_iter().collect())
    });
}

pub(super) fn change(store: &Arc<TableStore>, change: impl FnOnce(Option<Table>) -> Table) {
    let base = store.snapshot();
    let there = match base.entry(&name("t")) {
        Some(Entry::Table(table)) => Some(table.as_ref().clone()),
        _ => None,
    };
    let changed = base.with_entry(&name("t"), Entry::Table(Arc::new(change(there)))).unwrap();
    store.commit(&base, &Arc::new(changed)).unwrap();
}

pub(super) fn delete(store: &Arc<TableStore>, id: i64) {
    change(store, |table| without(store, &table.unwrap(), id).as_ref().clone());
}

pub(super) fn now(store: &TableStore) -> Arc<Table> {
    get(&store.snapshot(), "t")
}

pub(super) fn sorted(table: &Table) -> Vec<i64> {
    let mut ids = ids(table);
    ids.sort_unstable();
    ids
}

pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "parquet") {
            found.push(path);
        }
    }
    found
}

#[test]
fn external_tables_are_there_after_a_restart() {
    let (folder, store) = fresh();
    let external = External {
        id: Uuid::new_v4(),
        format: "csv".to_owned(),
        location: "orders/'day'=*/".to_owned(),
        found: Some("/data/orders/'day'=*/**/*".to_owned()),
        options: vec![
            ("delim".to_owned(), OptionValue::Text(";".to_owned())),
            ("nullstr".to_owned(), OptionValue::List(vec!["-".to_owned(), String::new()])),
            ("types".to_owned(), OptionValue::Map(vec![("a".to_owned(), "INT".to_owned())])),
        ],
        comment: Some("outside".to_owned()),
    };
    let found = |store: &TableStore, there: &str| match store.snapshot().entry(&name(there)) {
        Some(Entry::External(external)) => Some(external.as_ref().clone()),
        _ => None,
    };
    let base = store.snapshot();
    let made = base.with_entry(&name("x"), Entry::External(Arc::new(external.clone()))).unwrap();
    store.commit(&base, &Arc::new(made)).unwrap();
    let store = reopened(store, &folder);
    assert_eq!(found(&store, "x"), Some(external.clone()));
    assert_eq!(crate::examine(folder.path()).unwrap(), []);
    let base = store.snapshot();
    let renamed = base.without_entry(&name("x")).unwrap();
    let renamed = renamed.with_entry(&name("y"), Entry::External(Arc::new(external.clone()))).unwrap();
    store.commit(&base, &Arc::new(renamed)).unwrap();
    let store = reopened(store, &folder);
    assert_eq!((found(&store, "x"), found(&store, "y")), (None, Some(external)));
}

#[test]
fn what_no_commit_took_leaves_nothing() {
    let (folder, store) = fresh();
    let table = Table::new(durable());
    let segment = store.copied(&table, vec![rows(0..10_000)]).unwrap();
    assert_eq!(files(folder.path()).len(), 1);
    drop(segment);
    assert_eq!(files(folder.path()).len(), 0);
    // What a killed writer leaves goes at the next start.
    insert(&store, &rows(0..10_000));
    let kept = files(folder.path()).pop().unwrap();
    let orphan = kept.with_file_name("bowshot-orphan.parquet");
    fs::copy(&kept, &orphan).unwrap();
    let foreign = kept.with_file_name("other.parquet");
    fs::copy(&kept, &foreign).unwrap();
    let store = reopened(store, &folder);
    assert!(kept.exists() && foreign.exists() && !orphan.exists());
    assert_eq!(now(&store).rows(), 10_000);
}

#[test]
fn a_catalog_that_is_none_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    fs::write(
        &path,
        "not a database, but somebody's file, longer than a header of one hundred bytes would be, or so",
    )
    .unwrap();
    let before = fs::read(&path).unwrap();
    let error = try_open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("catalog.sqlite"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn tables_without_their_catalog_are_not_rubbish() {
    let (folder, store) = fresh();
    insert(&store, &rows(0..10_000));
    drop(store);
    for name in ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"] {
        let _ = fs::remove_file(folder.path().join(name));
    }
    assert!(matches!(try_open(folder.path()), Err(Error::NoCatalog { .. })));
    assert!(matches!(try_open(folder.path()), Err(Error::NoCatalog { .. })));
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_file_that_comes_back_is_not_removed() {
    let (folder, store) = fresh();
    insert(&store, &rows(0..10_000));
    insert(&store, &rows(10_000..20_000));
    let base = store.snapshot();
    let table = get(&base, "t");
    change(&store, |table| table.unwrap().optimized(&store).unwrap().0);
    store.vacuum(&now(&store), chrono::Duration::zero()).unwrap();
    let (left, _) = table.delete(&store, &[address_of(&table, 5).unwrap()]).unwrap();
    let mine = base.with_entry(&name("t"), Entry::Table(Arc::new(left))).unwrap();
    store.commit(&base, &Arc::new(mine)).unwrap();
    drop((base, table, store));
    let store = open(folder.path());
    assert_eq!(sorted(&now(&store)).len(), 19_999);
}

#[test]
fn a_change_that_changes_nothing_gets_in_nobodys_way() {
    let (_folder, store) = fresh();
    insert(&store, &rows(0..3));
    let base = store.snapshot();
    let same = Entry::Table(Arc::new(get(&base, "t").append(Vec::new())));
    let other = Entry::Table(Arc::new(Table::new(durable())));
    let changed = base.with_entry(&name("t"), same).unwrap().with_entry(&name("u"), other).unwrap();
    store.commit(&base, &Arc::new(changed)).unwrap();
    assert_eq!(now(&store).version(), 0);
    change(&store, |table| table.unwrap().truncate().truncate());
    change(&store, |table| table.unwrap().truncate());
    assert_eq!(now(&store).version(), 1);
}

#[test]
fn uniting_segments_changes_no_rows() {
    let (folder, store) = fresh();
    insert(&store, &rows(0..3));
    insert(&store, &rows(3..6));
    change(&store, |table| table.unwrap().optimized(&store).unwrap().0);
    let check = |table: &Table| {
        assert!(table.version() > 1 && table.has_rows_of(1) && table.has_rows_of(table.version()));
        assert!(!table.has_rows_of(0) && !table.has_rows_of(table.version() + 1));
    };
    check(&now(&store));
    let store = reopened(store, &folder);
    check(&now(&store));
    let table = now(&store);
    let segment = store.copied(&table, vec![rows([6])]).unwrap();
    let changed = table.append(segment.into_iter().collect());
    assert!(!changed.is_committed() && !changed.has_rows_of(changed.version()));
    insert(&store, &rows([6]));
    assert!(now(&store).is_committed() && !now(&store).has_rows_of(1));
}

#[test]
fn what_a_materialized_view_shows_is_committed_with_its_rows() {
    let (folder, store) = fresh();
    let view = Materialized {
        sql: "SELECT 1".to_owned(),
        dialect: "ansi".to_owned(),
        default_catalog: "bowshot".to_owned(),
        default_schema: "main".to_owned(),
        every: Some(Duration::from_secs(60)),
        on_commit: false,
        sources: vec![SourceVersion { table: Uuid::from_u128(7), version: 3 }],
        meaning: Some(Materialized::digest("a plan")),
        last: Some(LastRefresh {
            ended_us: 5,
            took: Duration::from_micros(6),
            full: Some("why".to_owned()),
            full_took: Some(Duration::from_micros(6)),
        }),
    };
    insert(&store, &rows(0..3));
    change(&store, |table| table.unwrap().with_materialized(view.clone()));
    let store = reopened(store, &folder);
    assert_eq!(now(&store).definition().materialized.as_ref(), Some(&view));
    assert_eq!(store.snapshot().is_fresh(&view), Some(false), "there is no such table");
    assert_eq!(sorted(&now(&store)), [0, 1, 2]);
}

#[test]
fn a_catalog_from_a_backup_does_not_make_rubbish_of_newer_tables() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = folder.path().join("catalog.sqlite");
    drop(open(folder.path()));
    let before_the_table = fs::read(&catalog).unwrap();
    let store = open(folder.path());
    insert(&store, &rows(0..10_000));
    drop(store);
    let before_the_rows = fs::read(&catalog).unwrap();
    let store = open(folder.path());
    insert(&store, &rows(10_000..20_000));
    drop(store);
    let newest = fs::read(&catalog).unwrap();
    for old in [before_the_table, before_the_rows] {
        fs::write(&catalog, old).unwrap();
        let opened = try_open(folder.path()).map(drop);
        assert!(matches!(opened, Err(Error::OldCatalog { .. })), "{opened:?}");
        assert_eq!(files(folder.path()).len(), 2);
    }
    fs::write(&catalog, newest).unwrap();
    assert_eq!(now(&open(folder.path())).rows(), 20_000);
}

#[tokio::test]
async fn readers_skip_no_row_that_is_not_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Arc::new(RuntimeEnv::default());
    let store = open_at(folder.path(), &runtime, None).unwrap();
    let columns = vec![column("d", DataType::Float64, true)];
    let table = Table::new(Definition { storage: Storage::Durable, columns, ..Definition::default() });
    let values = (0..10_000).map(|n| if n == 77 { f64::NAN } else { f64::from(n) });
    let values: arrow::array::ArrayRef = Arc::new(arrow::array::Float64Array::from_iter_values(values));
    let batch = RecordBatch::try_new(table.schema(), vec![values]).unwrap();
    let segment = store.copied(&table, vec![batch]).unwrap();
    let table = Arc::new(table.append(segment.into_iter().collect()));
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    context.register_table("t", table.provider()).unwrap();
    let found = context.sql("SELECT count(*) FROM t WHERE d > 1e9").await.unwrap().collect().await.unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 1);
}
