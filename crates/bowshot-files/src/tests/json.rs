//! JSON as it comes: layouts, orders, and types that disagree.

use super::csv::with_options;
use super::{World, says, write};
use bowshot_api::ErrorKind;
use tempfile::tempdir;

#[tokio::test(flavor = "multi_thread")]
async fn values_that_lose_nothing_are_taken() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.json");
    write(
        &path,
        "{\"a\":1,\"b\":0.5}\n{\"a\":1.0,\"b\":3}\n{\"a\":1e3,\"b\":-2e-1,\"a\":5}\n{\"a\":\"\\u00e9\",\"b\":null}\n",
    );
    // The key that comes twice has its last value.
    let world = with_options(&path, "sample_size=-1");
    assert_eq!(world.types("t").await, "a Utf8, b Float64");
    assert_eq!(world.value("select string_agg(a, ' ') from t").await, "1 1.0 5 é");
    assert_eq!(world.value("select sum(b) from t").await, "3.3");
    let world = with_options(&path, "types=a:BIGINT");
    says(
        &world.error("select a from t").await,
        ErrorKind::Corrupt,
        &["line 4", "`\"\\u00e9\"` in column `a` is not a value of type Int64"],
    );
    let world = with_options(&path, "types=a:BIGINT&ignore_errors=true");
    assert_eq!(world.value("select sum(a) from t").await, "7");
    assert_eq!(world.value("select count(*) from t").await, "3");
    let rejects = &tokio::task::block_in_place(|| world.catalog.describe())[0].rejects;
    assert_eq!(rejects.iter().map(|(_, reject)| reject.line).collect::<Vec<_>>(), [4]);
    let world = with_options(&path, "columns=b:DOUBLE,other:DATE");
    assert_eq!(world.types("t").await, "b Float64, other Date32");
    assert_eq!(world.value("select count(b) from t").await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_every_length_are_read_whole() {
    let folder = tempdir().unwrap();
    let text = |n: usize| "é\\\"\\\\x".repeat(n * n % 977 * if n.is_multiple_of(500) { 200 } else { 1 });
    let object = |n: usize| format!("{{\"n\": {n}, \"t\": \"{}\", \"l\": [{n}, {{\"d\": {n}}}]}}", text(n));
    let objects: Vec<String> = (0..2_000).map(object).collect();
    let length: usize =
        (0..2_000_usize).map(|n| n * n % 977 * if n.is_multiple_of(500) { 200 } else { 1 } * 4).sum();
    for (name, text) in [
        ("lines", objects.join("\n")),
        ("glued", objects.concat()),
        ("list", format!("[{}]", objects.join(" ,\n"))),
    ] {
        let path = folder.path().join(format!("{name}.json"));
        write(&path, &text);
        let world = World::open(&[&path]);
        let sql = format!("select sum(n) || ' ' || sum(length(t)) || ' ' || count(*) from {name}");
        assert_eq!(world.value(&sql).await, format!("1999000 {length} 2000"), "{name}");
        assert_eq!(world.value(&format!("select count(*) from {name}")).await, "2000", "{name}");
    }
    let wide: Vec<u8> =
        format!("\u{feff}{}", objects.join("\n")).encode_utf16().flat_map(u16::to_le_bytes).collect();
    write(&folder.path().join("wide.json"), wide);
    let world = World::open(&[&folder.path().join("wide.json")]);
    assert_eq!(world.value("select sum(length(t)) from wide").await, length.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_texts_are_refused_with_their_line() {
    let folder = tempdir().unwrap();
    let usual = "{\"a\":1}\n".repeat(30_000);
    for (name, text, told) in [
        ("cut", format!("{usual}{{\"a\":"), &["line 30001", "ends within a value"][..]),
        ("wrong", format!("{usual}{{\"a\" 1}}\n"), &["line 30001", "colon"]),
        ("bare", format!("{usual}5\n"), &["line 30001", "not an object"]),
        ("open_list", format!("[{}", usual.trim_end().replace('\n', ",\n")), &["ends within a value"]),
        ("more", format!("[{}] x", usual.trim_end().replace('\n', ",\n")), &["follows the end"]),
        ("number", format!("{}{{\"a\":2}}\n", usual.replace('1', "\"x\"")), &[]),
    ] {
        let path = folder.path().join(format!("{name}.json"));
        write(&path, &text);
        let world = with_options(&path, "");
        if told.is_empty() {
            assert_eq!(world.value("select count(a) from t").await, "30001");
            continue;
        }
        says(&world.error("select sum(a) from t").await, ErrorKind::Corrupt, told);
        let world = with_options(&path, "ignore_errors=true");
        if !text.starts_with('[') {
            assert_eq!(world.value("select sum(a) from t").await, "30000", "{name}");
        }
    }
    let path = folder.path().join("latin.json");
    write(&path, [usual.replace('1', "\"x\"").as_bytes(), b"{\"a\":\"\xe9\"}\n"].concat());
    says(
        &with_options(&path, "").error("select * from t").await,
        ErrorKind::Corrupt,
        &["line 30001", "UTF-8"],
    );
    assert_eq!(with_options(&path, "encoding=latin-1").value("select max(a) from t").await, "é");
}
