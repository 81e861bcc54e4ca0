//! Catalogs, schemas and names within one snapshot.

use super::*;
use bowshot_api::ErrorKind;

fn refused(answer: Result<Snapshot, Error>, kind: ErrorKind, text: &str) {
    let error = bowshot_api::Error::from(answer.unwrap_err());
    assert_eq!((error.kind(), error.to_string()), (kind, text.to_owned()));
}

fn empty_table() -> Entry {
    Entry::Table(Arc::new(Table::new(definition())))
}

#[test]
fn a_new_store_has_one_empty_schema() {
    let snapshot = store().snapshot();
    assert_eq!(snapshot.catalogs(), ["bowshot"]);
    assert_eq!(snapshot.schemas("bowshot"), ["main"]);
    assert!(snapshot.names("bowshot", "main").is_empty());
    assert_eq!(snapshot.version(), 0);
    assert!(snapshot.has_catalog("bowshot") && snapshot.has_schema("bowshot", "main"));
    assert!(!snapshot.has_catalog("main") && !snapshot.has_schema("bowshot", "bowshot"));
}

#[test]
fn copies_leave_the_original() {
    let first = store().snapshot();
    let second = first.create_catalog("lake").unwrap().create_schema("lake", "raw").unwrap();
    let view = Entry::View(view("SELECT 1"));
    let third = second.with_entry(&EntryName::new("lake", "raw", "v"), view).unwrap();
    let third = third.with_entry(&EntryName::new("lake", "raw", "a"), empty_table()).unwrap();
    assert_eq!(first.catalogs(), ["bowshot"]);
    assert_eq!((second.catalogs(), second.schemas("lake")), (third.catalogs(), third.schemas("lake")));
    assert_eq!(third.catalogs(), ["bowshot", "lake"]);
    assert_eq!(third.schemas("lake"), ["main", "raw"]);
    assert_eq!(
        (second.names("lake", "raw").len(), third.names("lake", "raw")),
        (0, vec!["a".into(), "v".into()])
    );
    assert!(matches!(third.entry(&EntryName::new("lake", "raw", "v")), Some(Entry::View(_))));
    assert!(third.entry(&EntryName::new("lake", "main", "v")).is_none());
}

#[test]
fn what_is_missing_or_there_is_named() {
    use ErrorKind::{AlreadyExists, NotFound};
    let base = store().snapshot();
    let exists = "exists already; choose another name, or drop it first";
    refused(base.create_catalog("bowshot"), AlreadyExists, &format!("catalog `bowshot` {exists}"));
    refused(base.create_schema("bowshot", "main"), AlreadyExists, &format!("schema `bowshot.main` {exists}"));
    refused(base.create_schema("lake", "raw"), NotFound, "catalog `lake` does not exist");
    refused(base.drop_catalog("lake", true), NotFound, "catalog `lake` does not exist");
    refused(base.drop_schema("lake", "raw", true), NotFound, "catalog `lake` does not exist");
    refused(base.drop_schema("bowshot", "raw", true), NotFound, "schema `bowshot.raw` does not exist");
    refused(base.without_entry(&name("t")), NotFound, "table `bowshot.main.t` does not exist");
    let far = EntryName::new("bowshot", "raw", "t");
    refused(base.with_entry(&far, empty_table()), NotFound, "schema `bowshot.raw` does not exist");
}

#[test]
fn what_is_not_empty_needs_cascade() {
    let base = store().snapshot().create_catalog("lake").unwrap().create_schema("lake", "raw").unwrap();
    let full = base.with_entry(&EntryName::new("lake", "raw", "t"), empty_table()).unwrap();
    let hint = "is not empty; drop what is in it first, or add CASCADE";
    refused(full.drop_schema("lake", "raw", false), ErrorKind::Invalid, &format!("schema `lake.raw` {hint}"));
    refused(full.drop_catalog("lake", false), ErrorKind::Invalid, &format!("catalog `lake` {hint}"));
    refused(base.drop_catalog("lake", false), ErrorKind::Invalid, &format!("catalog `lake` {hint}"));
    assert_eq!(full.drop_schema("lake", "raw", true).unwrap().schemas("lake"), ["main"]);
    assert_eq!(full.drop_catalog("lake", true).unwrap().catalogs(), ["bowshot"]);
    let empty = base.drop_schema("lake", "raw", false).unwrap();
    assert_eq!(empty.drop_catalog("lake", false).unwrap().catalogs(), ["bowshot"]);
}

#[test]
fn the_defaults_stay() {
    let base = store().snapshot().create_catalog("lake").unwrap();
    let hint = "drop its tables and views one by one";
    let text = format!("catalog `bowshot` cannot be dropped: it is the default catalog; {hint}");
    refused(base.drop_catalog("bowshot", true), ErrorKind::Invalid, &text);
    let text = format!("schema `bowshot.main` cannot be dropped: it is the default schema; {hint}");
    refused(base.drop_schema("bowshot", "main", true), ErrorKind::Invalid, &text);
    assert!(base.drop_schema("lake", "main", false).is_ok());
}
