//! Separated values as they come: dialects, headers, types, and lines that do not fit.

use super::{World, says, write};
use crate::{ReadOptions, SourceSpec, StorageOptions};
use bowshot_api::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tempfile::tempdir;

pub(super) fn with_options(path: &Path, options: &str) -> World {
    let options = ReadOptions::parse(options).unwrap();
    let source = SourceSpec { name: Some("t".to_owned()), path: path.to_path_buf(), options };
    World::with(
        vec![source],
        StorageOptions { refresh: Duration::from_secs(60), ..StorageOptions::default() },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn dialects_are_found_out() {
    let folder = tempdir().unwrap();
    for (name, text, types, count) in [
        ("title", "Report of May\n\nid,price\n1,2.5\n2,3.5\n", "id Int64, price Float64", "2"),
        ("comments", "# made by us\n# today\nid;price\n1;2,5\n2;3\n", "id Int64, price Float64", "2"),
        ("hash_header", "#id\tname\n1\ta\n2\tb\n", "#id Int64, name Utf8", "2"),
        (
            "headless",
            "1,a,2024-01-01\n2,b,2024-01-02\n",
            "column_1 Int64, column_2 Utf8, column_3 Date32",
            "2",
        ),
        ("years", "country,2019,2020\nAT,1,2\nDE,3,4\n", "country Utf8, 2019 Int64, 2020 Int64", "2"),
        ("rownames", "a,b\n\"1\",5,6\n\"2\",7,8\n", "column_1 Int64, a Int64, b Int64", "2"),
        ("trailing", "a,b,\n1,2,\n3,4,\n", "a Int64, b Int64", "2"),
        ("single_quotes", "a,b\n'x, y',1\n'z',2\n", "a Utf8, b Int64", "2"),
        ("backslash", "a,b\n\"x \\\"y\\\", z\",1\n\"w\",2\n", "a Utf8, b Int64", "2"),
        ("literal_quotes", "id\ttext\n1\t\"5 inch\n2\tok\n3\t6\" pipe\n", "id Int64, text Utf8", "3"),
        ("spaces", "a, b\n\"x, y\", \"1, 2\"\n\"z\", \"w\"\n", "a Utf8, b Utf8", "2"),
        ("old_mac", "a,b\r1,2\r3,4\r", "a Int64, b Int64", "2"),
        ("sentences", "text\nHello, world\nno commas\nand, here, two\n", "text Utf8", "3"),
        ("short", "a,b,c\n1,2,3\n4\n5,6\n", "a Int64, b Int64, c Int64", "3"),
        ("one_column", "a\n1\n\n3\n\n", "a Int64", "3"),
        ("zips", "zip,n\n01234,1\n56789,2\n", "zip Utf8, n Int64", "2"),
        ("nulls", "a,b\n1,NA\nNULL,2.5\n", "a Int64, b Float64", "2"),
        ("dates", "a,b\n31/12/2024,01/02/2024\n01/01/2025,03/04/2024\n", "a Date32, b Date32", "2"),
        ("big", "a\n18446744073709551616\n1\n", "a Decimal128(38, 0)", "2"),
        ("zoned", "a\n2024-01-01T10:00:00+02:00\n", "a Timestamp(s, \"UTC\")", "1"),
        ("grouped", "a,b\n\"1,234\",1\n\"12,345,678\",2\n", "a Float64, b Int64", "2"),
    ] {
        write(&folder.path().join(format!("{name}.csv")), text);
        let world = World::open(&[&folder.path().join(format!("{name}.csv"))]);
        assert_eq!(world.types(name).await, types, "{name}");
        assert_eq!(world.value(&format!("select count(*) from {name}")).await, count, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_read_as_they_are_meant() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("de.csv"), "tag;wert;gross\n31.01.2024;2,5;1.234,50\n01.02.2024;3;0,25\n");
    write(&folder.path().join("latin.csv"), b"name,n\ncaf\xe9,1\n\x80uro,2\n");
    let wide: Vec<u8> = "\u{feff}a\tb\n1\tä\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    write(&folder.path().join("wide.csv"), wide);
    write(&folder.path().join("quotes.csv"), "a,b\n\"say \"\"hi\"\"\",1\n\"x\"y,2\nin\"side,3\n");
    let world = World::open(&[folder.path()]);
    assert_eq!(world.value("select sum(wert) + sum(gross) from de").await, "1240.25");
    assert_eq!(world.value("select cast(min(tag) as varchar) from de").await, "2024-01-31");
    assert_eq!(world.value("select string_agg(name, ' ' order by n) from latin").await, "café €uro");
    assert_eq!(world.value("select b from wide where a = 1").await, "ä");
    assert_eq!(
        world.value("select string_agg(a, '|' order by b) from quotes").await,
        "say \"hi\"|xy|in\"side"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_table_agree_on_headers() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("t/1.csv"), "a,b\n1,x\n2,y\n");
    write(&folder.path().join("t/2.csv"), "3,z\n4,w\n");
    let world = World::open(&[folder.path()]);
    assert_eq!(world.value("select sum(a) || ' ' || count(b) from t").await, "10 4");
    write(&folder.path().join("u/1.csv"), "1,x\n2,y\n");
    write(&folder.path().join("u/2.csv"), "p,z\nq,w\n");
    let world = World::open(&[folder.path()]);
    assert_eq!(world.value("select count(*) from u").await, "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused_with_its_line() {
    let folder = tempdir().unwrap();
    let mut long = String::from("a,b\n");
    (0..100).for_each(|n| long.push_str(&format!("{n},x\n")));
    let path = folder.path().join("t.csv");
    write(&path, format!("{long}1,2,3\n"));
    let world = World::open(&[&path]);
    let error = world.error("select * from t").await;
    says(&error, ErrorKind::Corrupt, &["t.csv", "line 102", "3 values for 2 columns"]);
    assert!(error.hint().is_some_and(|hint| hint.contains("ignore_errors=true")));
    let world = with_options(&path, "ignore_errors=true");
    assert_eq!(world.value("select count(*) from t").await, "100");
    let rejects = &tokio::task::block_in_place(|| world.catalog.describe())[0].rejects;
    assert_eq!(rejects.iter().map(|reject| reject.line).collect::<Vec<_>>(), [102]);
    let world = with_options(&path, "null_padding=true&sample_size=-1");
    assert_eq!(world.value("select column_3 from t where column_3 is not null").await, "3");
    // A quote that opens a value and is never closed, far behind what is looked at.
    write(&path, format!("{}9,\"open\n{}", "1,x\n".repeat(30_000), "2,y\n".repeat(10)));
    let error = with_options(&path, "quote=%22&header=false").error("select * from t").await;
    says(&error, ErrorKind::Corrupt, &["line 30001", "never closed"]);
    assert_eq!(with_options(&path, "quote=").value("select count(*) from t").await, "30011");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_that_is_never_closed_is_no_value() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for text in ["a,b\n1,\"x\n2,y\n", "a;b\n1;\"x\n2;y\n3;z\n", "a\n\"x\ny\n"] {
        write(&path, text);
        let error = with_options(&path, "").error("select * from t").await;
        says(&error, ErrorKind::Corrupt, &["t.csv", "line 2", "never closed"]);
        assert!(error.hint().is_some_and(|hint| hint.contains("quote=")));
        assert_ne!(with_options(&path, "quote=").value("select count(*) from t").await, "0");
    }
    write(&path, "a,b\n1,\"x\n2,6\" pipe\n");
    assert_eq!(with_options(&path, "").value("select min(b) from t").await, "\"x");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_cannot_be_obeyed_are_refused() {
    let folder = tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    write(&csv, "a,b\n1,2\n3,4\n");
    let json = folder.path().join("t.json");
    write(&json, "{\"a\":1}\n");
    for (path, options, told) in [
        (&csv, "types=c:INT", "`types` names the column `c`"),
        (&csv, "types=INT,INT,INT", "3 types for 2 columns"),
        (&csv, "thousands=.", "cannot be both"),
        (&json, "header=true", "`header` is no option of json files"),
        (&json, "types=z:INT", "`types` names the column `z`"),
    ] {
        says(&with_options(path, options).error("select * from t").await, ErrorKind::Invalid, &[told]);
    }
    for path in [&csv, &json] {
        let error = with_options(path, "encoding=utf-16").error("select * from t").await;
        says(&error, ErrorKind::Corrupt, &["is no text in UTF-16"]);
    }
    let world = with_options(&csv, "auto_detect=false");
    assert_eq!(world.types("t").await, "column_1 Utf8, column_2 Utf8");
    assert_eq!(world.value("select count(*) from t").await, "3");
    let world = with_options(&csv, "store_rejects=true&types=a:DATE");
    assert_eq!(world.value("select count(*) from t").await, "0");
    assert_eq!(tokio::task::block_in_place(|| world.catalog.describe())[0].rejects.len(), 2);
    // What is said of a folder concerns those of its files that have such an option.
    let source = SourceSpec {
        name: None,
        path: folder.path().to_path_buf(),
        options: ReadOptions::parse("header=false&types=column_1:VARCHAR").unwrap(),
    };
    std::fs::rename(&json, folder.path().join("u.json")).unwrap();
    let world = World::with(vec![source], StorageOptions::default());
    assert_eq!(world.types("t").await, "column_1 Utf8, column_2 Utf8");
    assert_eq!(world.types("u").await, "a Int64");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_obeyed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("data.txt");
    write(&path, "skipped\n1|x|3/4/2024|n.a.\n2|y|5/6/2024|7\n");
    let options = "format=csv&skip=1&header=false&delim=|&names=id,name,day,n&types=id:INT,n:SMALLINT&nullstr=n.a.&\
                   dateformat=%25m/%25d/%25Y&filename=true";
    let world = with_options(&path, options);
    assert_eq!(world.types("t").await, "id Int32, name Utf8, day Date32, n Int16, filename Utf8");
    assert_eq!(
        world.value("select cast(max(day) as varchar) || ' ' || sum(n) || ' ' || count(*) from t").await,
        "2024-05-06 7 2"
    );
    let world = with_options(&path, "format=csv&skip=1&header=false&delim=|&all_varchar=true");
    assert_eq!(world.types("t").await, "column_1 Utf8, column_2 Utf8, column_3 Utf8, column_4 Utf8");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_tells_how_it_is_read() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.csv");
    write(&path, "Title\na;b\n1;2,5\n2;3,5\n");
    let world = World::open(&[&path]);
    let told = tokio::task::block_in_place(|| world.catalog.describe())[0].read_as.clone().unwrap();
    for part in ["delim=;", "header=true", "1 lines above the header", "b: decimal comma"] {
        assert!(told.contains(part), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_name_files_of_the_served_places_only() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("served/a.csv"), "a\n1\n");
    write(&folder.path().join("served/year=2024/b.csv"), "a\n2\n");
    write(&folder.path().join("secret.csv"), "a\n3\n");
    std::os::unix::fs::symlink(folder.path().join("secret.csv"), folder.path().join("served/link.csv"))
        .unwrap();
    let world = World::open(&[&folder.path().join("served")]);
    let named = |paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let catalog = std::sync::Arc::clone(&world.catalog);
        async move { catalog.named(&paths.join(","), paths, ReadOptions::default()).await }
    };
    assert!(named(&["a.csv"]).await.is_ok());
    assert_eq!(named(&["**/b.csv"]).await.unwrap().schema().fields().len(), 2);
    assert!(named(&[&folder.path().join("served/a.csv").display().to_string()]).await.is_ok());
    for path in ["../secret.csv", "link.csv", "/etc/passwd", "none.csv", "x/../a.csv", ".hidden.csv"] {
        says(&named(&[path]).await.unwrap_err(), ErrorKind::NotFound, &["no file"]);
    }
    says(&named(&["ftp://a/b.csv"]).await.unwrap_err(), ErrorKind::Invalid, &["names no files"]);
    says(&named(&["s3://a/b.csv"]).await.unwrap_err(), ErrorKind::Denied, &["in no place"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_lines_of_one_column_are_rows_wherever_they_are() {
    let folder = tempdir().unwrap();
    // Larger than a file has to be to be read in ranges, mostly of empty lines, and with more of them behind the last row.
    let block = format!("7\n{}", "\n".repeat(999));
    let text = format!("a\n{}1\n{}", block.repeat(20_000), "\n".repeat(300_000));
    write(&folder.path().join("sparse.csv"), &text);
    let world = World::open(&[&folder.path().join("sparse.csv")]);
    assert_eq!(world.value("select count(*) from sparse").await, "20000001");
    assert_eq!(world.value("select count(a) from sparse").await, "20001");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_left_out_for_the_same_reasons_whatever_is_asked_for() {
    let folder = tempdir().unwrap();
    let files = folder.path().join("t");
    std::fs::create_dir(&files).unwrap();
    write(&files.join("a.csv"), "x,y\n1,1\n2,2\nabc,3\n4,4\n");
    write(&files.join("b.csv"), "x,y\nzz,1\nyy,2\n");
    let world = with_options(&files, "ignore_errors=true&sample_size=2");
    for what in ["count(*)", "count(x)", "count(y)"] {
        assert_eq!(world.value(&format!("select {what} from t")).await, "5", "{what}");
    }
}
