//! The rules of a commit, one by one. `t` has three segments; two transactions begin with the same base.

use super::durable::sorted;
use super::*;
use crate::{Reads, SeenRows};
use bowshot_api::ErrorKind;
use std::collections::BTreeSet;

type Answer = Result<Arc<Snapshot>, Error>;

/// A store with table `t`, and the snapshot that both transactions begin with.
struct World {
    store: Arc<TableStore>,
    base: Arc<Snapshot>,
}

impl World {
    fn new(definition: Definition) -> Self {
        let store = store();
        let table = appended(&store, &Table::new(definition), [rows(0..3), rows(3..6), rows(6..9)]);
        put(&store, "t", Arc::new(table));
        let base = commit(&store, |base| base.create_schema("bowshot", "raw")).unwrap();
        Self { store, base }
    }

    /// Commits a change of the base.
    fn commit(&self, change: impl FnOnce(&Self) -> Snapshot) -> Answer {
        self.store.commit(&self.base, &Arc::new(change(self)))
    }

    fn with(&self, to: &str, table: impl Into<Arc<Table>>) -> Snapshot {
        self.base.with_entry(&name(to), Entry::Table(table.into())).unwrap()
    }

    fn append(&self, from: i64) -> Snapshot {
        self.with("t", appended(&self.store, &get(&self.base, "t"), [rows(from..from + 2)]))
    }

    fn delete(&self, id: i64) -> Snapshot {
        self.with("t", without(&self.store, &get(&self.base, "t"), id))
    }

    fn update(&self, id: i64) -> Snapshot {
        let left = without(&self.store, &get(&self.base, "t"), id);
        self.with("t", appended(&self.store, &left, [rows([id + 1000])]))
    }

    fn comment(&self, text: &str) -> Snapshot {
        let table = get(&self.base, "t");
        let definition = Definition { comment: Some(text.to_owned()), ..table.definition().as_ref().clone() };
        self.with("t", table.redefine(&self.store, definition, false, |rows| Ok(rows.clone())).unwrap())
    }

    fn drop(&self) -> Snapshot {
        self.base.without_entry(&name("t")).unwrap()
    }

    fn recreate(&self) -> Snapshot {
        self.with("t", Table::new(definition()))
    }

    fn rename(&self, to: &str) -> Snapshot {
        let entry = Entry::Table(get(&self.base, "t"));
        self.drop().with_entry(&name(to), entry).unwrap()
    }

    fn ids(&self) -> Vec<i64> {
        ids(&get(&self.store.snapshot(), "t"))
    }

    fn sorted_ids(&self) -> Vec<i64> {
        sorted(&get(&self.store.snapshot(), "t"))
    }
}

fn unkeyed() -> World {
    World::new(definition())
}

fn conflicts(answer: Answer, text: &str) {
    let error = bowshot_api::Error::from(answer.unwrap_err());
    assert_eq!((error.kind(), error.message()), (ErrorKind::Conflict, text));
    assert_eq!(error.hint(), Some("run the transaction again"));
    assert!(error.kind().is_retryable());
}

const CHANGED: &str = "table `bowshot.main.t` was changed by another transaction";
const DROPPED: &str = "table `bowshot.main.t` was dropped by another transaction";

#[test]
fn nothing_changed_gives_the_head() {
    let world = unkeyed();
    let head = world.commit(|world| world.append(20)).unwrap();
    assert!(Arc::ptr_eq(&world.store.commit(&world.base, &world.base).unwrap(), &head));
    // There and back again is no change either.
    let back = world.base.create_schema("bowshot", "x").unwrap().drop_schema("bowshot", "x", false).unwrap();
    assert!(Arc::ptr_eq(&world.commit(|_| back).unwrap(), &head));
    let (same, _) = get(&world.base, "t").delete(&world.store, &[]).unwrap();
    assert!(Arc::ptr_eq(&world.commit(|world| world.with("t", same)).unwrap(), &head));
}

#[test]
fn each_commit_is_one_version() {
    let world = unkeyed();
    assert_eq!(world.base.version(), 2);
    let changed = world.append(20);
    assert_eq!(changed.version(), 2);
    assert_eq!(world.commit(|_| changed).unwrap().version(), 3);
    assert_eq!(world.store.snapshot().version(), 3);
}

#[test]
fn appends_do_not_conflict() {
    let world = unkeyed();
    world.commit(|world| world.append(20)).unwrap();
    world.commit(|world| world.append(30)).unwrap();
    assert_eq!(world.ids(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 20, 21, 30, 31]);
}

#[test]
fn appends_do_not_conflict_with_updates() {
    for append_first in [true, false] {
        let world = unkeyed();
        let (append, update) = (world.append(20), world.update(4));
        let (first, second) = if append_first { (append, update) } else { (update, append) };
        world.commit(|_| first).unwrap();
        world.commit(|_| second).unwrap();
        assert_eq!(world.sorted_ids(), [0, 1, 2, 3, 5, 6, 7, 8, 20, 21, 1004]);
    }
}

#[test]
fn changes_of_one_row_conflict() {
    for definition in [definition(), keyed()] {
        let world = World::new(definition);
        world.commit(|world| world.update(3)).unwrap();
        conflicts(world.commit(|world| world.update(3)), CHANGED);
        conflicts(world.commit(|world| world.delete(3)), CHANGED);
        assert_eq!(world.store.snapshot().version(), 3);
        assert!(world.ids().contains(&1003));
    }
}

#[test]
fn changes_of_different_rows_of_a_segment_do_not_conflict() {
    for definition in [definition(), keyed()] {
        let world = World::new(definition);
        world.commit(|world| world.update(3)).unwrap();
        world.commit(|world| world.update(4)).unwrap();
        world.commit(|world| world.delete(5)).unwrap();
        // Nothing is left of the segment.
        assert_eq!(world.sorted_ids(), [0, 1, 2, 6, 7, 8, 1003, 1004]);
        for id in 3..6 {
            conflicts(world.commit(|world| world.delete(id)), CHANGED);
        }
        // What was made of it by a rebase goes on as well.
        let base = world.store.snapshot();
        let changed = Arc::new(base.with_entry(&name("t"), without_id(&world, &base, 0)).unwrap());
        let other = Arc::new(base.with_entry(&name("t"), without_id(&world, &base, 1)).unwrap());
        world.store.commit(&base, &changed).unwrap();
        let head = world.store.snapshot();
        let rebased = Snapshot::rebased(&base, &other, &head).unwrap();
        assert_eq!(rebased.version(), head.version());
        let next = Arc::new(rebased.with_entry(&name("t"), without_id(&world, &rebased, 2)).unwrap());
        world
            .store
            .commit(&head, &Arc::new(head.with_entry(&name("t"), without_id(&world, &head, 6)).unwrap()))
            .unwrap();
        world.store.commit(&head, &next).unwrap();
        assert_eq!(world.sorted_ids(), [7, 8, 1003, 1004]);
    }
}

fn without_id(world: &World, snapshot: &Snapshot, id: i64) -> Entry {
    Entry::Table(without(&world.store, &get(snapshot, "t"), id))
}

#[test]
fn truncating_takes_only_the_rows_that_it_saw() {
    let world = unkeyed();
    world.commit(|world| world.append(20)).unwrap();
    world.commit(|world| world.with("t", get(&world.base, "t").truncate())).unwrap();
    assert_eq!(world.ids(), [20, 21]);
    let world = unkeyed();
    world.commit(|world| world.delete(0)).unwrap();
    conflicts(world.commit(|world| world.with("t", get(&world.base, "t").truncate())), CHANGED);
}

#[test]
fn added_rows_of_a_keyed_table_conflict_with_the_same_keys() {
    for first in [World::append as fn(&World, i64) -> Snapshot, World::delete, World::update] {
        let world = World::new(keyed());
        world.commit(|world| first(world, 8)).unwrap();
        world.commit(|world| world.append(20)).unwrap();
        world.commit(|world| world.update(0)).unwrap();
        for same in [19, 20, 21, 1000] {
            conflicts(world.commit(|world| world.append(same)), CHANGED);
        }
        world.commit(|world| world.append(22)).unwrap();
    }
    // Of keys that are not compared by their bytes, and of very many, it is not known.
    let floats = Definition { columns: vec![column("id", DataType::Float64, false)], ..keyed() };
    for (definition, count) in [(floats, 1), (keyed(), 10_000)] {
        let world = World::new(keyed());
        let base = put(&world.store, "u", Arc::new(Table::new(definition.clone())));
        let changed = |first: i32| {
            let ids = first..first + count;
            let ids: arrow::array::ArrayRef = match definition.columns.len() {
                1 => Arc::new(arrow::array::Float64Array::from_iter_values(ids.map(f64::from))),
                _ => Arc::new(Int64Array::from_iter_values(ids.map(i64::from))),
            };
            let columns = vec![ids; definition.columns.len()];
            let rows = RecordBatch::try_new(definition.schema(), columns).unwrap();
            let table = get(&base, "u").append(vec![world.store.segment(&rows).unwrap()]);
            Arc::new(base.with_entry(&name("u"), Entry::Table(Arc::new(table))).unwrap())
        };
        world.store.commit(&base, &changed(0)).unwrap();
        let answer = world.store.commit(&base, &changed(50_000));
        assert!(matches!(answer, Err(Error::Conflict { .. })), "{count}");
    }
}

#[test]
fn a_keyed_table_takes_rows_when_nobody_changed_it() {
    let world = World::new(keyed());
    put(&world.store, "other", Arc::new(Table::new(keyed())));
    world.commit(|world| world.append(20)).unwrap();
    assert_eq!(world.ids().len(), 11);
    // Whole segments go without a row being added.
    let world = World::new(keyed());
    world.commit(|world| world.append(20)).unwrap();
    world.commit(|world| world.with("t", get(&world.base, "t").truncate())).unwrap();
    assert_eq!(world.ids(), [20, 21]);
}

#[test]
fn definitions_conflict_with_every_change_of_the_table() {
    let changes: [fn(&World) -> Snapshot; 5] = [
        |world| world.append(20),
        |world| world.delete(0),
        |world| world.comment("other"),
        |world| world.recreate(),
        |world| world.rename("u"),
    ];
    for change in changes {
        let world = unkeyed();
        world.commit(|world| world.comment("mine")).unwrap();
        conflicts(world.commit(change), CHANGED);
    }
    for change in changes {
        let world = unkeyed();
        world.commit(change).unwrap();
        assert!(matches!(world.commit(|world| world.comment("mine")), Err(Error::Conflict { .. })));
        assert!(matches!(world.commit(World::drop), Err(Error::Conflict { .. })));
    }
}

#[test]
fn a_dropped_table_conflicts_with_every_change() {
    let changes: [fn(&World) -> Snapshot; 5] = [
        |world| world.append(20),
        |world| world.delete(0),
        |world| world.comment("other"),
        World::drop,
        World::recreate,
    ];
    for change in changes {
        let world = unkeyed();
        world.commit(World::drop).unwrap();
        conflicts(world.commit(change), DROPPED);
        let world = unkeyed();
        world.commit(World::recreate).unwrap();
        conflicts(world.commit(change), CHANGED);
    }
}

#[test]
fn two_cannot_create_the_same_name() {
    let world = unkeyed();
    let create = |world: &World| world.with("new", Table::new(definition()));
    world.commit(create).unwrap();
    conflicts(world.commit(create), "table `bowshot.main.new` was created by another transaction");
    world.commit(|world| world.with("other", Table::new(definition()))).unwrap();
    assert_eq!(world.store.snapshot().names("bowshot", "main"), ["new", "other", "t"]);
}

#[test]
fn renaming_is_dropping_and_creating() {
    let world = unkeyed();
    world.commit(|world| world.rename("u")).unwrap();
    assert_eq!(world.store.snapshot().names("bowshot", "main"), ["u"]);
    assert_eq!(get(&world.store.snapshot(), "u").id(), get(&world.base, "t").id());
    conflicts(world.commit(|world| world.append(20)), DROPPED);
    conflicts(world.commit(|world| world.rename("v")), DROPPED);
    let world = unkeyed();
    world.commit(|world| world.append(20)).unwrap();
    conflicts(world.commit(|world| world.rename("u")), CHANGED);
    assert_eq!(world.store.snapshot().names("bowshot", "main"), ["t"]);
}

#[test]
fn views_conflict_when_both_change_them() {
    let view = |sql: &str| Entry::View(view(sql));
    let mut world = unkeyed();
    world.base = commit(&world.store, |base| base.with_entry(&name("v"), view("SELECT 1"))).unwrap();
    world.commit(|world| world.base.with_entry(&name("v"), view("SELECT 2")).unwrap()).unwrap();
    let text = "view `bowshot.main.v` was changed by another transaction";
    conflicts(world.commit(|world| world.base.with_entry(&name("v"), view("SELECT 3")).unwrap()), text);
    conflicts(world.commit(|world| world.base.without_entry(&name("v")).unwrap()), text);
    world.commit(|world| world.append(20)).unwrap();
}

#[test]
fn schemas_are_created_once() {
    let world = unkeyed();
    let create = |world: &World| world.base.create_schema("bowshot", "new").unwrap();
    world.commit(create).unwrap();
    conflicts(world.commit(create), "schema `bowshot.new` was created by another transaction");
    let create = |world: &World| world.base.create_catalog("lake").unwrap();
    world.commit(create).unwrap();
    conflicts(world.commit(create), "catalog `lake` was created by another transaction");
    world.commit(|world| world.base.create_schema("bowshot", "third").unwrap()).unwrap();
    assert_eq!(world.store.snapshot().schemas("bowshot"), ["main", "new", "raw", "third"]);
}

#[test]
fn a_schema_is_dropped_only_as_it_was_seen() {
    let raw = EntryName::new("bowshot", "raw", "x");
    let fill = |world: &World| world.base.with_entry(&raw, Entry::Table(get(&world.base, "t"))).unwrap();
    let drop = |world: &World| world.base.drop_schema("bowshot", "raw", true).unwrap();
    let world = unkeyed();
    world.commit(fill).unwrap();
    conflicts(world.commit(drop), "schema `bowshot.raw` was changed by another transaction");
    let world = unkeyed();
    world.commit(drop).unwrap();
    conflicts(world.commit(fill), "schema `bowshot.raw` was dropped by another transaction");
    conflicts(world.commit(drop), "schema `bowshot.raw` was dropped by another transaction");
    // What others do in other schemas is no matter.
    let world = unkeyed();
    world.commit(|world| world.append(20)).unwrap();
    world.commit(drop).unwrap();
    assert_eq!(world.store.snapshot().schemas("bowshot"), ["main"]);
    assert_eq!(world.ids().len(), 11);
}

#[test]
fn a_schema_made_anew_is_another_one() {
    let world = unkeyed();
    let anew = |world: &World| {
        world.base.drop_schema("bowshot", "raw", false).unwrap().create_schema("bowshot", "raw").unwrap()
    };
    let fill = |world: &World| {
        let raw = EntryName::new("bowshot", "raw", "x");
        world.base.with_entry(&raw, Entry::Table(get(&world.base, "t"))).unwrap()
    };
    world.commit(anew).unwrap();
    conflicts(world.commit(fill), "schema `bowshot.raw` was changed by another transaction");
}

#[test]
fn a_catalog_is_dropped_only_as_it_was_seen() {
    let mut world = unkeyed();
    world.base = commit(&world.store, |base| base.create_catalog("lake")).unwrap();
    world.commit(|world| world.base.create_schema("lake", "raw").unwrap()).unwrap();
    let drop = world.base.drop_catalog("lake", true).unwrap();
    conflicts(world.commit(|_| drop), "catalog `lake` was changed by another transaction");
}

#[test]
fn a_failed_commit_changes_nothing() {
    let world = unkeyed();
    world.commit(|world| world.update(0)).unwrap();
    let head = world.store.snapshot();
    let other =
        world.update(0).with_entry(&name("new"), Entry::Table(Arc::new(Table::new(definition())))).unwrap();
    assert!(world.commit(|_| other).is_err());
    assert!(Arc::ptr_eq(&head, &world.store.snapshot()));
}

#[test]
fn small_segments_are_united() {
    let store = store();
    put(&store, "t", Arc::new(Table::new(definition())));
    let append = |rows: RecordBatch| {
        let table = get(&store.snapshot(), "t");
        put(&store, "t", Arc::new(appended(&store, &table, [rows])));
    };
    append(rows(0..5000));
    (5000..5064).for_each(|id| append(rows([id])));
    assert_eq!(get(&store.snapshot(), "t").segment_count(), 65);
    append(rows(5064..15_000));
    append(rows([15_000]));
    let table = get(&store.snapshot(), "t");
    let sizes: Vec<usize> = table.batches().map(|rows| rows.unwrap().num_rows()).collect();
    assert_eq!(sizes, [5000, 65, 9936]);
    assert_eq!(sorted(&table), (0..15_001).collect::<Vec<_>>());
    // A transaction that deletes what was united meanwhile finds it again.
    let base = store.snapshot();
    let deleted = without(&store, &get(&base, "t"), 5010);
    let changed = Arc::new(base.with_entry(&name("t"), Entry::Table(deleted)).unwrap());
    (20_000..20_065).for_each(|id| append(rows([id])));
    store.commit(&base, &changed).unwrap();
    conflicts(store.commit(&base, &changed), CHANGED);
    let found = sorted(&get(&store.snapshot(), "t"));
    assert!(found.into_iter().eq((0..5010).chain(5011..15_001).chain(20_000..20_065)));
}

#[test]
fn a_serializable_commit_needs_what_it_has_read_as_it_was() {
    let world = unkeyed();
    let reads = || Reads { names: BTreeSet::from([name("t"), name("not_there")]), ..Reads::default() };
    let with = |schema: &str| Arc::new(world.base.create_schema("bowshot", schema).unwrap());
    world.store.commit_serializable(&world.base, &with("before"), reads()).unwrap();
    world.commit(|world| world.append(20)).unwrap();
    let late = world.store.commit_serializable(&world.base, &with("after"), reads());
    assert!(matches!(late, Err(Error::NotSerializable)), "{late:?}");
    // It has written nothing, or read nothing.
    world.store.commit_serializable(&world.base, &world.base, reads()).unwrap();
    world.store.commit_serializable(&world.base, &with("after"), Reads::default()).unwrap();
}

#[test]
fn a_commit_needs_the_rows_that_it_watches_as_they_were() {
    let world = unkeyed();
    let commit = |schema: &str, addresses: Option<Vec<u64>>| {
        let changed = Arc::new(world.base.create_schema("bowshot", schema).unwrap());
        let rows = vec![SeenRows { table: get(&world.base, "t"), addresses, checked: None }];
        world.store.commit_serializable(&world.base, &changed, Reads { rows, ..Reads::default() })
    };
    world.commit(|world| world.append(20)).unwrap();
    commit("nothing_was_taken_out", None).unwrap();
    world.commit(|world| world.delete(1)).unwrap();
    for addresses in [None, Some(vec![0, 1])] {
        let late = commit("late", addresses);
        assert!(matches!(late, Err(Error::NotSerializable)), "{late:?}");
    }
    commit("others_are_there", Some(vec![0, 2, 1 << 32])).unwrap();
}
