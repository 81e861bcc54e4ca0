//! No commit leaves a view behind that commits refresh.

use super::*;
use crate::{Materialized, SourceVersion};

const VERSION: u64 = SourceVersion::COMMITTING;

fn materialized(sources: &[&Arc<Table>]) -> Materialized {
    let version = |table: &&Arc<Table>| SourceVersion { table: table.id(), version: VERSION };
    Materialized {
        sql: "SELECT id, value FROM t".to_owned(),
        dialect: "ansi".to_owned(),
        default_catalog: "bowshot".to_owned(),
        default_schema: "main".to_owned(),
        every: None,
        on_commit: true,
        sources: sources.iter().map(version).collect(),
        meaning: Some("the rows of t".to_owned()),
        last: None,
    }
}

fn view_of(sources: &[&Arc<Table>]) -> Arc<Table> {
    Arc::new(Table::new(Definition { materialized: Some(materialized(sources)), ..definition() }))
}

/// The view with one more row, as a refresh leaves it.
fn refreshed(store: &Arc<TableStore>, view: &Arc<Table>, id: i64) -> Arc<Table> {
    let again = view.definition().materialized.clone().unwrap();
    Arc::new(appended(store, view, [rows([id])]).with_materialized(again))
}

fn with(snapshot: &Snapshot, to: &str, table: &Arc<Table>) -> Arc<Snapshot> {
    Arc::new(snapshot.with_entry(&name(to), Entry::Table(Arc::clone(table))).unwrap())
}

fn is_refused(outcome: Result<Arc<Snapshot>, Error>) -> bool {
    matches!(outcome, Err(Error::NotSerializable))
}

#[test]
fn rows_are_committed_with_the_view_of_them_or_not_at_all() {
    let store = store();
    let there = table(&store, [rows([1])]);
    put(&store, "t", Arc::clone(&there));
    let view = view_of(&[&there]);
    put(&store, "v", Arc::clone(&view));
    let base = store.snapshot();
    let more = with(&base, "t", &Arc::new(appended(&store, &there, [rows([2])])));
    assert!(is_refused(store.commit(&base, &more)), "the view has not the new row");
    let both = with(&more, "v", &refreshed(&store, &view, 2));
    store.commit(&base, &both).unwrap();
    assert_eq!((ids(&get(&store.snapshot(), "t")), ids(&get(&store.snapshot(), "v"))), (vec![1, 2], vec![2]));
}

#[test]
fn a_transaction_that_has_not_seen_the_view_does_not_pass_it_by() {
    let store = store();
    let there = table(&store, [rows([1])]);
    put(&store, "t", Arc::clone(&there));
    let before = store.snapshot();
    put(&store, "v", view_of(&[&there]));
    let more = with(&before, "t", &Arc::new(appended(&store, &there, [rows([2])])));
    assert!(is_refused(store.commit(&before, &more)));
    let defined = Arc::new(before.with_entry(&name("w"), Entry::View(view("SELECT 1"))).unwrap());
    assert!(is_refused(store.commit(&before, &defined)), "the view may read what is defined");
    // What has nothing to do with it is committed.
    let other = with(&before, "u", &table(&store, [rows([5])]));
    assert!(is_refused(store.commit(&before, &other)), "a new name may be one that it reads");
    let now = store.snapshot();
    store.commit(&now, &with(&now, "u", &table(&store, [rows([5])]))).unwrap();
}

#[test]
fn a_view_is_made_of_the_newest_rows_and_definitions() {
    let store = store();
    let there = table(&store, [rows([1])]);
    put(&store, "t", Arc::clone(&there));
    let before = store.snapshot();
    put(&store, "t", Arc::new(appended(&store, &there, [rows([2])])));
    assert!(is_refused(store.commit(&before, &with(&before, "v", &view_of(&[&there])))));
    let before = store.snapshot();
    commit(&store, |base| base.with_entry(&name("w"), Entry::View(view("SELECT 1")))).unwrap();
    assert!(is_refused(store.commit(&before, &with(&before, "v", &view_of(&[&there])))));
}

#[test]
fn two_refreshes_of_a_view_conflict_and_the_second_is_computed_over_the_first() {
    let store = store();
    let there = table(&store, [rows([1])]);
    put(&store, "t", Arc::clone(&there));
    let view = view_of(&[&there]);
    put(&store, "v", Arc::clone(&view));
    let base = store.snapshot();
    let inserts = |id| with(&base, "t", &Arc::new(appended(&store, &there, [rows([id])])));
    let (one, other) = (inserts(2), inserts(3));
    store.commit(&base, &with(&one, "v", &refreshed(&store, &view, 2))).unwrap();
    store.commit(&base, &with(&other, "v", &refreshed(&store, &view, 3))).unwrap_err();
    let [head, rebased] = store.rebased(&base, &other, &Default::default()).unwrap();
    assert_eq!((ids(&get(&rebased, "t")), rebased.version()), (vec![1, 2, 3], head.version()));
    assert!(!get(&rebased, "t").is_committed());
    let view = get(&rebased, "v");
    store.commit(&head, &with(&rebased, "v", &refreshed(&store, &view, 3))).unwrap();
    assert_eq!(ids(&get(&store.snapshot(), "v")), [2, 3]);
}
