//! Which tables a folder gives, under which names, and what is left out.

use super::{World, says, write, write_parquet};
use crate::{FileCatalog, SourceSpec, StorageOptions};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use bowshot_api::ErrorKind;
use bowshot_formats::decoded_columns::ColumnCache;
use bowshot_formats::read_options::ReadOptions;
use datafusion::execution::runtime_env::RuntimeEnv;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use tempfile::tempdir;

fn numbers(values: impl IntoIterator<Item = i64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

fn refused(spec: &str) -> bowshot_api::Error {
    let source: SourceSpec = spec.parse().unwrap();
    FileCatalog::open(vec![source], StorageOptions::default(), &RuntimeEnv::default(), &ColumnCache::new(0))
        .expect_err(spec)
}

#[test]
fn a_source_is_a_path_or_a_named_path() {
    let folder = tempdir().unwrap();
    let partition = folder.path().join("year=2024");
    std::fs::create_dir(&partition).unwrap();
    for (text, name) in [
        ("orders.csv", None),
        ("orders=data/o.csv", Some("orders")),
        ("/data/year=2024/x.csv", None),
        ("my-orders=x=y.csv", Some("my-orders")),
        (partition.to_str().unwrap(), None),
    ] {
        let source: SourceSpec = text.parse().unwrap();
        assert_eq!(source.name.as_deref(), name, "{text}");
    }
    assert!("".parse::<SourceSpec>().is_err());
    assert!("orders=".parse::<SourceSpec>().is_err());
}

#[test]
fn start_up_refuses_what_is_not_there() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    says(&refused(&path("missing.csv")), ErrorKind::NotFound, &["missing.csv", "check the path"]);
    std::fs::create_dir(folder.path().join("hollow")).unwrap();
    write(&folder.path().join("hollow/README.txt"), "nothing");
    says(&refused(&path("hollow")), ErrorKind::NotFound, &["hollow", ".parquet"]);
    write(&folder.path().join("notes.txt"), "x");
    says(&refused(&path("notes.txt")), ErrorKind::Unsupported, &["notes.txt", ".csv"]);
    let socket = folder.path().join("socket.csv");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    says(&refused(socket.to_str().unwrap()), ErrorKind::Corrupt, &["socket.csv", "not a regular file"]);
}

#[test]
fn two_sources_of_one_name_are_refused() {
    let folder = tempdir().unwrap();
    let (one, other) = (folder.path().join("a/orders.csv"), folder.path().join("b/Orders.json"));
    write(&one, "a\n1\n");
    write(&other, "{}");
    let sources = [&one, &other].map(|path| SourceSpec::new(None, path.clone())).to_vec();
    let error =
        FileCatalog::open(sources, StorageOptions::default(), &RuntimeEnv::default(), &ColumnCache::new(0))
            .expect_err("same");
    says(&error, ErrorKind::AlreadyExists, &["a/orders.csv", "b/Orders.json", "NAME=PATH"]);
}

#[tokio::test]
async fn a_folder_gives_a_table_per_entry() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("Orders 2024.csv"), "a\n1\n");
    write(&at("notes.txt"), "x");
    write(&at(".hidden.csv"), "a\n1\n");
    write(&at("half.csv.tmp"), "a\n1\n");
    write(&at("_SUCCESS"), "");
    write(&at("parts/x.csv"), "a\n1\n");
    write(&at("parts/deep/er/y.csv"), "a\n2\n");
    write(&at("docs/readme.md"), "x");
    write(&at("lake/_delta_log/00000000000000000000.json"), "{}");
    write_parquet(&at("lake/part-0.parquet"), &numbers([1]));
    let world = World::open(&[folder.path()]);
    assert_eq!(world.names(), ["lake", "orders_2024", "parts"]);
    assert_eq!(world.value("select sum(a) from parts").await, "3");
    assert_eq!(world.value("select a from Orders_2024").await, "1");
    // A log that says nothing makes no table.
    says(&world.error("select * from lake").await, ErrorKind::Corrupt, &["lake"]);
}

#[tokio::test]
async fn parts_of_one_data_set_are_one_table() {
    let folder = tempdir().unwrap();
    let events = folder.path().join("Events");
    for part in 0..5 {
        write_parquet(&events.join(format!("part-{part:04}.parquet")), &numbers(part..part + 2));
    }
    let world = World::open(&[&events]);
    assert_eq!(world.names(), ["events"]);
    assert_eq!(world.value("select count(*) from events").await, "10");
    // The first part has come alone.
    let begun = folder.path().join("Begun");
    write_parquet(&begun.join("part-0000.parquet"), &numbers([1]));
    assert_eq!(World::open(&[&begun]).names(), ["begun"]);
    // What is no part is a table of its own: the name of the first stays.
    write(&events.join("other.csv"), "a\n1\n");
    assert_eq!(world.names(), ["events", "other"]);
    assert_eq!(world.value("select count(*) from events").await, "10");
    let world = World::named("all", &events);
    says(
        &world.error("select * from \"all\"").await,
        ErrorKind::Corrupt,
        &["mixes formats", "other.csv", "part-0000.parquet"],
    );
}

#[tokio::test]
async fn names_do_not_change_while_they_are_served() {
    let folder = tempdir().unwrap();
    let numbered = folder.path().join("Numbered");
    write_parquet(&numbered.join("orders-0001.parquet"), &numbers([1]));
    let world = World::open(&[&numbered]);
    assert_eq!(world.names(), ["numbered"]);
    write_parquet(&numbered.join("orders-0002.parquet"), &numbers([2]));
    write_parquet(&numbered.join("old/orders-0000.parquet"), &numbers([4]));
    assert_eq!(world.names(), ["numbered", "old"]);
    assert_eq!(world.value("select sum(n) from numbered").await, "3");
    // The name of the first file alone says that it is a table of its own.
    let years = folder.path().join("years");
    write(&years.join("orders_2024.csv"), "n\n1\n");
    let world = World::open(&[&years]);
    write(&years.join("orders_2025.csv"), "n\n2\n");
    assert_eq!(world.names(), ["orders_2024", "orders_2025"]);
    assert_eq!(World::open(&[&years]).names(), ["years"]);
}

#[tokio::test]
async fn hive_partitions_are_columns_and_prune() {
    let folder = tempdir().unwrap();
    let sales = folder.path().join("sales");
    for (month, day, place, values) in [
        ("01", "2024-01-31", "Z%C3%BCrich", [1, 2]),
        ("02", "2024-02-01", "a b", [3, 4]),
        ("12", "2024-12-24", "__HIVE_DEFAULT_PARTITION__", [5, 6]),
    ] {
        let path = sales.join(format!("month={month}/day={day}/place={place}/data.parquet"));
        write_parquet(&path, &numbers(values));
    }
    let world = World::open(&[&sales]);
    assert_eq!(world.names(), ["sales"]);
    assert_eq!(world.types("sales").await, "n Int64, month Int64, day Date32, place Utf8");
    assert_eq!(world.value("select sum(n) from sales where month = 2").await, "7");
    assert_eq!(world.value("select sum(n) from sales where day >= date '2024-02-01'").await, "18");
    assert_eq!(world.value("select sum(n) from sales where place = 'Zürich'").await, "3");
    assert_eq!(world.value("select sum(n) from sales where place is null").await, "11");
    assert_eq!(world.value("select count(*) from sales where place <> 'a b'").await, "2");
    assert_eq!(world.value("select sum(n) from sales where month + n = 15 or month = 12").await, "11");
    assert_eq!(world.value("select count(*) from sales where month = 7").await, "0");
    assert_eq!(world.value("select max(place) || ' ' || count(place) from sales").await, "a b 4");
    assert_eq!(world.value("select max(month) from sales").await, "12");
    let plan = world.table("explain select * from sales s where s.month = 1").await;
    assert!(
        plan.contains("month=01") && !plan.contains("month=02") && !plan.contains("FilterExec"),
        "{plan}"
    );
    // A partition column wins over a column of the file.
    write(&sales.join("month=01/day=2024-01-31/place=x/stray.csv"), "n\n1\n");
    says(&world.error("select * from sales").await, ErrorKind::Corrupt, &["mixes formats"]);
    std::fs::remove_file(sales.join("month=01/day=2024-01-31/place=x/stray.csv")).unwrap();
    write_parquet(&sales.join("month=03/lost.parquet"), &numbers([1]));
    says(
        &world.error("select * from sales").await,
        ErrorKind::Corrupt,
        &["lost.parquet", "month, day, place"],
    );
}

#[tokio::test]
async fn types_of_partitions_may_be_said() {
    let folder = tempdir().unwrap();
    let sales = folder.path().join("sales");
    write(&sales.join("month=01/1.csv"), "n\n1\n");
    write(&sales.join("month=12/1.csv"), "n\n2\n");
    let world = |options: &str| {
        let options = ReadOptions::parse(options).unwrap();
        let source = SourceSpec { name: Some("sales".to_owned()), path: sales.clone(), options };
        World::with(vec![source], StorageOptions::default())
    };
    for (options, types) in [
        ("hive_types=month:TINYINT", "n Int64, month Int8"),
        ("hive_types=month:VARCHAR", "n Int64, month Utf8"),
        ("hive_types=month:auto", "n Int64, month Int64"),
        ("hive_types=month:SMALLINT&hive_types_autocast=false", "n Int64, month Int16"),
        ("columns=n:INT,month:DOUBLE", "n Int32, month Float64"),
    ] {
        let world = world(options);
        assert_eq!(world.types("sales").await, types);
        let one = if types.ends_with("Utf8") { "'01'" } else { "1" };
        assert_eq!(world.value(&format!("select sum(n) from sales where month = {one}")).await, "1");
    }
    let error = world("hive_types=day:INT").error("select * from sales").await;
    says(&error, ErrorKind::Invalid, &["`day=…`", "month"]);
    let error = world("hive_types=month:DATE").error("select * from sales").await;
    says(&error, ErrorKind::Invalid, &["month=01", "not a value of type"]);
}

#[tokio::test]
async fn partitions_work_for_text_too() {
    let folder = tempdir().unwrap();
    let log = folder.path().join("log");
    write(&log.join("host=a/1.csv"), "n,host\n1,wrong\n");
    write(&log.join("host=b/1.csv"), "n\n2\n");
    let world = World::open(&[&log]);
    assert_eq!(world.types("log").await, "n Int64, host Utf8");
    assert_eq!(world.value("select sum(n) from log where host = 'b'").await, "2");
    assert_eq!(
        world.table("select host, n from log order by n").await,
        "+------+---+\n| host | n |\n+------+---+\n| a    | 1 |\n| b    | 2 |\n+------+---+"
    );
}

#[tokio::test]
async fn names_may_hold_any_character() {
    let folder = tempdir().unwrap();
    for name in [
        "a b",
        "größe",
        "50%",
        "a%20b",
        "x#1",
        "what?",
        "[list]",
        "st*r",
        "{x}",
        "q'uote\"",
        "back\\slash",
        "a=b",
    ] {
        let here = folder.path().join(name);
        write_parquet(&here.join(format!("{name}.parquet")), &numbers([1, 2]));
        write(&here.join(format!("{name} text.csv")), "n\n3\n");
        let parquet = World::named("t", &here.join(format!("{name}.parquet")));
        assert_eq!(parquet.value("select sum(n) from t").await, "3", "{name}");
        let csv = World::named("t", &here.join(format!("{name} text.csv")));
        assert_eq!(csv.value("select sum(n) from t").await, "3", "{name}");
        std::fs::remove_file(here.join(format!("{name} text.csv"))).unwrap();
        let inside = World::named("t", &here);
        assert_eq!(inside.value("select sum(n) from t").await, "3", "{name}");
    }
}

#[tokio::test]
async fn links_are_followed_once() {
    let folder = tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data.join("t/1.csv"), "n\n1\n");
    write(&data.join("t/2.csv"), "n\n2\n");
    symlink(data.join("t/2.csv"), data.join("t/0-latest.csv")).unwrap();
    symlink(&data, data.join("t/loop")).unwrap();
    symlink(folder.path().join("outside.csv"), data.join("t/3.csv")).unwrap();
    write(&folder.path().join("outside.csv"), "n\n4\n");
    let world = World::named("t", &data.join("t"));
    assert_eq!(world.value("select sum(n) from t").await, "7");
    let link = folder.path().join("link.csv");
    symlink(folder.path().join("outside.csv"), &link).unwrap();
    assert_eq!(World::open(&[&link]).value("select n from link").await, "4");
    std::fs::remove_file(folder.path().join("outside.csv")).unwrap();
    says(&world.error("select sum(n) from t").await, ErrorKind::NotFound, &["3.csv"]);
}

#[tokio::test]
async fn pipes_and_locked_files_fail_without_waiting() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("t/pipe.csv");
    write(&folder.path().join("t/good.csv"), "n\n1\n");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let world = World::open(&[folder.path()]);
    says(&world.error("select * from t").await, ErrorKind::Corrupt, &["pipe.csv", "not a regular file"]);
}

#[tokio::test]
async fn limits_are_errors() {
    let folder = tempdir().unwrap();
    for part in 0..5 {
        write(&folder.path().join(format!("t/{part}.csv")), "n\n1\n");
    }
    let deep: std::path::PathBuf = std::iter::repeat_n("d", 10).collect();
    write(&folder.path().join("u").join(deep).join("x.csv"), "n\n1\n");
    let options = StorageOptions { max_files_per_table: 4, max_depth: 5, ..StorageOptions::default() };
    let source = SourceSpec::new(None, folder.path().to_path_buf());
    let world = World::with(vec![source], options);
    says(&world.error("select * from t").await, ErrorKind::LimitReached, &["4 files", "max_files_per_table"]);
    says(&world.error("select * from u").await, ErrorKind::LimitReached, &["5 folders"]);
}
