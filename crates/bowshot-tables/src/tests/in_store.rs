//! Tables whose files are in an object store: what is read, moved, removed and refused there. Kills, backups and other readers are
//! tested in `tests/sources/test_tables.py`.

use super::durable::{delete, files, insert, now, open_at, sorted};
use super::store_with_tags::StoreWithTags;
use super::*;
use crate::TablesPlace;
use bowshot_object_store::ObjectFolder;
use datafusion::execution::runtime_env::RuntimeEnv;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

const OWNER: &str = "bowshot-owner.json";

/// A store, and a data folder whose tables are there.
struct World {
    disk: tempfile::TempDir,
    objects: ObjectFolder,
    cache_bytes: u64,
}

impl World {
    fn new() -> Self {
        let objects = ObjectFolder::in_store(Arc::new(StoreWithTags::default()), "tables").unwrap();
        Self { disk: tempfile::tempdir().unwrap(), objects, cache_bytes: 1 << 30 }
    }

    /// With a table, whose one file is there.
    fn with_rows() -> (Self, Arc<TableStore>) {
        let world = Self::new();
        let store = world.open();
        insert(&store, &rows(0..10_000));
        (world, store)
    }

    fn data(&self) -> PathBuf {
        self.disk.path().join("data")
    }

    fn place(&self) -> TablesPlace {
        TablesPlace { folder: self.objects.clone(), cache_bytes: self.cache_bytes }
    }

    fn try_open(&self) -> Result<Arc<TableStore>, Error> {
        self.open_on(&RuntimeEnv::default())
    }

    fn open_on(&self, runtime: &RuntimeEnv) -> Result<Arc<TableStore>, Error> {
        fs::create_dir_all(self.data()).unwrap();
        open_at(&self.data(), runtime, Some(self.place()))
    }

    fn open(&self) -> Arc<TableStore> {
        self.try_open().unwrap()
    }

    fn lose_copies(&self) {
        fs::remove_dir_all(self.data().join("tables")).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.objects.list("").unwrap().into_iter().map(|one| one.name).collect();
        names.retain(|name| name != OWNER);
        names.sort();
        names
    }

    /// Files of rows, and numbers of entries of logs.
    fn rows_and_entries(&self) -> (usize, Vec<u64>) {
        let names = self.names();
        let rows = names.iter().filter(|name| name.contains("/bowshot-")).count();
        let entries = names
            .iter()
            .filter_map(|name| name.split_once("_delta_log/")?.1.strip_suffix(".json")?.parse().ok());
        (rows, entries.collect())
    }
}

/// Ends a store, with the threads that look after it.
fn end(store: Arc<TableStore>) {
    let weak = Arc::downgrade(&store);
    drop(store);
    until("the threads end", || weak.strong_count() == 0);
}

fn until(what: &str, check: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !check() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn drop_table(store: &Arc<TableStore>) {
    commit(store, |base| base.without_entry(&name("t"))).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_read_what_is_in_the_store_alone() {
    let (world, store) = World::with_rows();
    insert(&store, &rows(20_000..30_000));
    end(store);
    world.lose_copies();
    let runtime = Arc::new(RuntimeEnv::default());
    let store = world.open_on(&runtime).unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), Arc::clone(&runtime));
    context.register_table("t", now(&store).addressed_provider("_address")).unwrap();
    let sql = "SELECT id FROM t WHERE id % 5000 = 7 ORDER BY id";
    let found = context.sql(sql).await.unwrap().collect().await.unwrap();
    let found = arrow::compute::concat_batches(&found[0].schema(), &found).unwrap();
    assert_eq!(found.column(0).as_primitive::<Int64Type>().values().to_vec(), [7, 5007, 20_007, 25_007]);
    // Nothing was fetched for it as a whole.
    assert!(files(&world.data()).is_empty());
}

#[test]
fn a_drop_is_done_to_its_end_by_the_next_start() {
    let (world, store) = World::with_rows();
    // Somebody reads the table until the end.
    let reader = now(&store);
    drop_table(&store);
    assert_eq!(world.rows_and_entries().0, 1);
    end(store);
    drop(reader);
    let store = world.open();
    until("all is removed", || world.names().is_empty());
    end(store);
}

#[test]
fn a_folder_moves_into_a_store_and_not_back_unnoticed() {
    let world = World::new();
    fs::create_dir_all(world.data()).unwrap();
    let local = || open_at(&world.data(), &RuntimeEnv::default(), None);
    let store = local().unwrap();
    insert(&store, &rows(0..10_000));
    insert(&store, &rows(10_000..20_000));
    delete(&store, 3);
    end(store);
    let store = world.open();
    until("files and log are there", || world.rows_and_entries() == (3, vec![0, 1, 2]));
    end(store);
    world.lose_copies();
    let store = world.open();
    assert_eq!(sorted(&now(&store)).len(), 19_999);
    end(store);
    assert!(matches!(local(), Err(Error::NotNamed { .. })));
}

#[test]
fn two_folders_cannot_have_one_place() {
    let (world, store) = World::with_rows();
    let other = World { disk: tempfile::tempdir().unwrap(), objects: world.objects.clone(), cache_bytes: 0 };
    let error = other.try_open().unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    // Whose mark is replaced writes nothing more.
    world.objects.overwrite(OWNER, b"{}".to_vec()).unwrap();
    let table = now(&store);
    let error = store.copied(&table, vec![rows(0..10_000)]).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    assert!(store.copied(&table, vec![rows(0..10)]).is_ok(), "few rows stay in the catalog");
    assert_eq!(sorted(&table).len(), 10_000);
}

#[test]
fn only_what_was_never_committed_is_rubbish() {
    let (world, store) = World::with_rows();
    let table = now(&store).id();
    until("the log is written", || world.rows_and_entries().1 == [0]);
    end(store);
    let known = world.names();
    let [unfinished, committed] = [Uuid::new_v4(), Uuid::new_v4()];
    for name in [
        format!("{table}/bowshot-left.parquet"),
        format!("{table}/others.parquet"),
        format!("{unfinished}/bowshot-left.parquet"),
        format!("{committed}/bowshot-kept.parquet"),
        format!("{committed}/_delta_log/{:020}.json", 0),
        "others/bowshot-x.parquet".to_owned(),
    ] {
        world.objects.put_new(&name, b"x".to_vec()).unwrap();
    }
    let store = world.open();
    let left = |text: &str| world.names().iter().any(|name| name.contains(text));
    until("what killed writers left is gone", || !left("bowshot-left"));
    assert!(left("others.parquet") && left("others/bowshot-x.parquet"));
    assert!(left(&format!("{committed}/bowshot-kept")) && !left(&unfinished.to_string()));
    assert!(known.iter().all(|name| world.names().contains(name)));
    end(store);
}

#[test]
fn an_old_catalog_removes_nothing() {
    let (world, store) = World::with_rows();
    until("the log is written", || world.rows_and_entries().1 == [0]);
    // The catalog of this moment is put back later, while the mark of its run is still there.
    let old = world.disk.path().join("old");
    fs::create_dir(&old).unwrap();
    for entry in fs::read_dir(world.data()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, old.join(path.file_name().unwrap())).unwrap();
        }
    }
    insert(&store, &rows(10_000..20_000));
    until("the log is written", || world.rows_and_entries().1 == [0, 1]);
    end(store);
    let names = world.names();
    fs::remove_dir_all(world.data()).unwrap();
    fs::rename(&old, world.data()).unwrap();
    let store = world.open();
    let table = now(&store);
    until("it is noticed", || {
        matches!(store.copied(&table, vec![rows(0..10_000)]), Err(Error::NotOurs { .. }))
    });
    assert!(names.iter().all(|name| world.names().contains(name)));
    end(store);
}

#[test]
fn files_go_there_and_back() {
    let disk = tempfile::tempdir().unwrap();
    let folder = ObjectFolder::in_store(Arc::new(StoreWithTags::default()), "").unwrap();
    let (from, to) = (disk.path().join("from"), disk.path().join("to"));
    // More than one part.
    let content: Vec<u8> = (0..40_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(&from, &content).unwrap();
    folder.upload("t/x.parquet", &from).unwrap();
    // Again, as after an answer that was lost; and another one, which nobody would send.
    folder.upload("t/x.parquet", &from).unwrap();
    let other = disk.path().join("other");
    fs::write(&other, b"other").unwrap();
    assert!(folder.upload("t/x.parquet", &other).is_err());
    folder.fetch("t/x.parquet", &to, &disk.path().join("beside")).unwrap();
    assert_eq!(fs::read(&to).unwrap(), content);
    assert!(folder.fetch("t/none", &disk.path().join("none"), &disk.path().join("beside")).is_err());
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 3);
}
