//! JSON as it comes: layouts, orders, and types that disagree.

use super::{World, write};
use tempfile::tempdir;

#[tokio::test]
async fn layouts_of_every_kind() {
    let folder = tempdir().unwrap();
    for (name, text) in [
        ("pretty", "{\n  \"b\": 1,\n  \"a\": \"x\"\n}\n{\n  \"b\": 2,\n  \"a\": \"y\"\n}\n"),
        ("one_line", "{\"b\":1,\"a\":\"x\"} {\"b\":2,\"a\":\"y\"}"),
        ("glued", "{\"b\":1,\"a\":\"x\"}{\"b\":2,\"a\":\"y\"}\n"),
        ("marked", "\u{feff}{\"b\":1,\"a\":\"x\"}\n{\"b\":2,\"a\":\"y\"}\n"),
        ("list", "\u{feff}[\n{\"b\":1,\"a\":\"x\"},\n{\"b\":2,\"a\":\"y\"}\n]"),
    ] {
        let path = folder.path().join(format!("{name}.json"));
        write(&path, text);
        let world = World::open(&[&path]);
        assert_eq!(world.types(name).await, "b Int64, a Utf8", "{name}");
        let sql = format!("select sum(b) || ' ' || string_agg(a, ',' order by a) from {name}");
        assert_eq!(world.value(&sql).await, "3 x,y", "{name}");
    }
}

#[tokio::test]
async fn types_that_disagree_are_kept() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    write(
        &path,
        "{\"id\":1,\"v\":{\"x\":1},\"n\":1}\n{\"id\":2,\"v\":\"text\",\"n\":2.5}\n{\"id\":3,\"v\":[1,2],\"n\":null}\n{\"id\":4}\n",
    );
    let world = World::open(&[&path]);
    assert_eq!(world.types("t").await, "id Int64, v Utf8, n Float64");
    assert_eq!(
        world.value("select string_agg(coalesce(v, '-'), ' ' order by id) from t").await,
        "{\"x\":1} \"text\" [1,2] -"
    );
    assert_eq!(world.value("select sum(n) from t").await, "3.5");
    let mut text = String::from("{\"a\":1}\n");
    text.push_str(&"{\"a\":2}\n".repeat(20_000));
    write(&path, &text);
    assert_eq!(World::open(&[&path]).value("select sum(a) from t").await, "40001");
}
