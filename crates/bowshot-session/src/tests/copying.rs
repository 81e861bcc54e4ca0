//! COPY between tables and files of the exchange folder: what comes back, what is refused, what is left behind.

use super::*;
use arrow::array::Int64Array;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::pretty::pretty_format_batches;
use bowshot_api::Error;
use std::path::Path;
use tempfile::{TempDir, tempdir};

struct World {
    folder: TempDir,
    server: Arc<Bowshot>,
    session: Arc<dyn Session>,
}

impl World {
    async fn open() -> Self {
        let folder = tempdir().expect("a folder");
        let exchange_folder = Some(folder.path().join("exchange"));
        std::fs::create_dir(folder.path().join("exchange")).expect("makes the folder");
        Self::with(folder, exchange_folder).await
    }

    async fn with(folder: TempDir, exchange_folder: Option<std::path::PathBuf>) -> Self {
        let config = EngineConfig { threads: 2, exchange_folder, ..EngineConfig::default() };
        let engine = Engine::without_files(&config, None, 256 << 20).expect("the engine starts");
        let log = Arc::new(QueryLog::default());
        let server = Bowshot::new(engine, Authenticator::anonymous(), small(), log);
        server.set_ready();
        let session = session(&server).await;
        Self { folder, server, session }
    }

    fn exchange(&self) -> std::path::PathBuf {
        self.folder.path().join("exchange")
    }

    /// Names in the exchange folder, hidden ones too.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.exchange()).expect("the folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    async fn run(&self, sql: &str) -> u64 {
        let rows = self.session.update(&Request::sql(sql)).await;
        rows.unwrap_or_else(|error| panic!("{sql}: {error} {:?}", error.hint())).unwrap_or(0)
    }

    async fn error(&self, sql: &str) -> Error {
        match self.session.update(&Request::sql(sql)).await {
            Ok(rows) => panic!("{sql} changed {rows:?} rows"),
            Err(error) => error,
        }
    }

    async fn table(&self, sql: &str) -> String {
        let answer = self.session.start(&Request::sql(sql)).await.expect(sql);
        let stream = self.server.attach(self.session.principal(), answer.query, 0).await.expect("attaches");
        let batches: Vec<RecordBatch> = stream.try_collect().await.expect(sql);
        pretty_format_batches(&batches).expect("formats").to_string()
    }

    async fn says(&self, sql: &str, kind: ErrorKind, part: &str) {
        let error = self.error(sql).await;
        assert_eq!(error.kind(), kind, "{sql}: {error}");
        let told = format!("{error} {}", error.hint().unwrap_or_default());
        assert!(told.contains(part), "{sql}: `{told}` lacks `{part}`");
        let hidden = |name: &String| name.starts_with('.');
        assert!(!self.files().iter().any(hidden), "{sql} left {:?}", self.files());
    }
}

const PEOPLE: &str = "CREATE TABLE people (id BIGINT NOT NULL, name TEXT, price DECIMAL(20, 4), day DATE, \
                      at TIMESTAMP, ok BOOLEAN, rate DOUBLE, code TEXT DEFAULT 'none')";

async fn people(world: &World) {
    world.run(PEOPLE).await;
    world
        .run(
            "INSERT INTO people VALUES \
             (1, 'a, \"b\"', 1234567890123456.7891, DATE '2024-01-31', TIMESTAMP '2024-01-31T10:20:30.123456', true, 0.1, '007'), \
             (2, 'line\nbreak', -0.5, NULL, NULL, false, -1e300, '1e5'), \
             (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        )
        .await;
}

#[tokio::test]
async fn what_goes_out_comes_back() {
    let world = World::open().await;
    people(&world).await;
    let all = world.table("SELECT * FROM people ORDER BY id").await;
    for (file, format) in [
        ("p.parquet", ""),
        ("p.csv", ""),
        ("p.json", ""),
        ("p.arrow", ""),
        ("p.data", "FORMAT parquet"),
        ("q.data", "FORMAT CSV, HEADER false, DELIMITER ';'"),
        ("r.csv", "HEADER, DELIMITER '|'"),
    ] {
        let with = if format.is_empty() { String::new() } else { format!(" WITH ({format})") };
        assert_eq!(world.run(&format!("COPY people TO '{file}'{with}")).await, 3, "{file}");
        world.run("CREATE TABLE back AS SELECT * FROM people WHERE false").await;
        assert_eq!(world.run(&format!("COPY back FROM '{file}'{with}")).await, 3, "{file}");
        assert_eq!(world.table("SELECT * FROM back ORDER BY id").await, all, "{file}");
        world.run("DROP TABLE back").await;
    }
    assert_eq!(world.files().len(), 7);
}

#[tokio::test]
async fn schemas_have_the_names_of_postgresql() {
    let world = World::open().await;
    people(&world).await;
    world.run("CREATE TEMPORARY TABLE own AS SELECT * FROM people").await;
    for (table, file) in [("pg_temp.own", "own.csv"), ("public.people", "people.csv")] {
        assert_eq!(world.run(&format!("COPY {table} TO '{file}'")).await, 3, "{table}");
        assert_eq!(world.run(&format!("DELETE FROM {table}")).await, 3, "{table}");
        assert_eq!(world.run(&format!("COPY {table} FROM '{file}'")).await, 3, "{table}");
    }
    assert_eq!(world.run("COPY (SELECT * FROM pg_temp.own WHERE id > 1) TO 'some.csv'").await, 2);
}

#[tokio::test]
async fn some_columns_go_out_and_in() {
    let world = World::open().await;
    people(&world).await;
    assert_eq!(world.run("COPY people (name, id) TO 'names.csv' (HEADER false)").await, 3);
    let text = std::fs::read_to_string(world.exchange().join("names.csv")).expect("the file");
    assert_eq!(text, "\"a, \"\"b\"\"\",1\n\"line\nbreak\",2\n,3\n");
    world.run("TRUNCATE TABLE people").await;
    assert_eq!(world.run("COPY people (name, id) FROM 'names.csv' (HEADER false)").await, 3);
    // What is not in the file is the default.
    let told = world.table("SELECT count(*) AS n FROM people WHERE code = 'none' AND id > 0").await;
    assert!(told.contains("| 3 |"), "{told}");
    world
        .run("CREATE TABLE keyed (u UUID DEFAULT gen_random_uuid() PRIMARY KEY, name TEXT, id BIGINT)")
        .await;
    assert_eq!(world.run("COPY keyed (name, id) FROM 'names.csv' (HEADER false)").await, 3);
    for file in ["part.parquet", "part.json", "part.csv", "part.arrow"] {
        world.run(&format!("COPY (SELECT id + 10 AS id, 1 AS other FROM people) TO '{file}'")).await;
        world.says(&format!("COPY people FROM '{file}'"), ErrorKind::Invalid, "`other`").await;
        assert_eq!(world.run(&format!("COPY people (id) FROM '{file}'")).await, 3, "{file}");
        if file != "part.json" {
            world.says(&format!("COPY people (id, name) FROM '{file}'"), ErrorKind::NotFound, "`name`").await;
        }
        world.run("DELETE FROM people WHERE id > 10").await;
    }
}

#[tokio::test]
async fn files_are_a_target_of_insert() {
    let world = World::open().await;
    people(&world).await;
    let sql = "INSERT INTO FILES ('path' = 'out.parquet', 'format' = 'parquet') SELECT id FROM people";
    assert_eq!(world.run(sql).await, 3);
    world.says(sql, ErrorKind::AlreadyExists, "OVERWRITE").await;
    let sql = "insert into files(path = 'out.csv', format = csv, overwrite = true) SELECT id FROM people WHERE id < 3";
    assert_eq!(world.run(sql).await, 2);
    assert_eq!(world.run(sql).await, 2);
    world.says("INSERT INTO FILES ('format' = 'csv') SELECT 1", ErrorKind::Syntax, "path").await;
    // It is no keyword.
    world.run("CREATE TABLE files (a BIGINT)").await;
    assert_eq!(world.run("INSERT INTO files (a) VALUES (1)").await, 1);
    assert_eq!(world.run("INSERT INTO files SELECT 2").await, 1);
}

#[tokio::test]
async fn a_file_that_is_there_is_replaced_only_on_demand() {
    let world = World::open().await;
    world.run("COPY (SELECT 1 AS a) TO 'f.csv'").await;
    world.says("COPY (SELECT 2 AS a) TO 'f.csv'", ErrorKind::AlreadyExists, "OVERWRITE true").await;
    let read = || std::fs::read_to_string(world.exchange().join("f.csv")).expect("the file");
    assert_eq!(read(), "a\n1\n");
    world.run("COPY (SELECT 2 AS a) TO 'f.csv' WITH (OVERWRITE true)").await;
    assert_eq!(read(), "a\n2\n");
    // Rows or none, the header is there.
    world.run("COPY (SELECT 2 AS a WHERE false) TO 'f.csv' (OVERWRITE)").await;
    assert_eq!(read(), "a\n");
    assert_eq!(world.files(), ["f.csv"]);
}

#[tokio::test]
async fn a_query_that_fails_leaves_nothing() {
    let world = World::open().await;
    world.run("CREATE TABLE t (a TEXT)").await;
    world.run("INSERT INTO t SELECT CASE WHEN value = 90000 THEN 'x' ELSE '1' END FROM generate_series(1, 100000) AS s(value)").await;
    for file in ["f.csv", "f.parquet", "f.json", "f.arrow"] {
        world
            .says(
                &format!("COPY (SELECT CAST(a AS BIGINT) AS a FROM t) TO '{file}'"),
                ErrorKind::Invalid,
                "x",
            )
            .await;
    }
    world.session.set_option("statement_timeout_ms", Some(OptionValue::Int64(50))).await.expect("sets");
    let endless = "COPY (SELECT value FROM generate_series(1, 10000000000000) AS s(value)) TO 'f.csv'";
    let error = world.error(endless).await;
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(becomes(|| world.files().is_empty()).await, "the file goes");
}

#[tokio::test]
async fn nothing_outside_of_the_folder_is_reached() {
    let world = World::open().await;
    world.run("CREATE TABLE t (a BIGINT)").await;
    let outside = world.folder.path().join("secret.csv");
    std::fs::write(&outside, "a\n42\n").expect("writes");
    std::fs::create_dir(world.exchange().join("inner")).expect("makes a folder");
    std::fs::write(world.exchange().join(".hidden.csv"), "a\n42\n").expect("writes");
    link(&outside, "link.csv", &world);
    link(world.folder.path(), "up", &world);
    link(Path::new("/etc"), "etc", &world);
    link(Path::new("/not/there.csv"), "dangling.csv", &world);
    let whole = outside.display().to_string();
    let denied = [
        "../secret.csv",
        "inner/../../secret.csv",
        "inner/../x.csv",
        "/etc/passwd",
        &whole,
        "link.csv",
        "up/secret.csv",
        "etc/passwd.csv",
        "dangling.csv",
        ".hidden.csv",
        "inner/.x.csv",
    ];
    for path in denied {
        let error = world.error(&format!("COPY t FROM '{path}' WITH (FORMAT csv)")).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{path}: {error}");
        if path == "link.csv" || path == "dangling.csv" {
            continue;
        }
        let error = world.error(&format!("COPY t TO '{path}' WITH (FORMAT csv, OVERWRITE true)")).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{path}: {error}");
    }
    // A link that is written over goes; what it led to stays.
    world.run("COPY t TO 'link.csv' WITH (OVERWRITE true)").await;
    assert_eq!(std::fs::read_to_string(&outside).expect("the file"), "a\n42\n");
    assert!(!world.exchange().join("link.csv").symlink_metadata().expect("a file").is_symlink());
    // A link within the folder is as good as what it leads to, and so is the whole path.
    world.run("COPY (SELECT 7 AS a) TO 'inner/seven.csv'").await;
    link(&world.exchange().join("inner"), "same", &world);
    assert_eq!(world.run("COPY t FROM 'same/./seven.csv'").await, 1);
    let whole = world.exchange().join("inner/seven.csv");
    assert_eq!(world.run(&format!("COPY t FROM '{}'", whole.display())).await, 1);
    assert_eq!(world.table("SELECT sum(a) AS a FROM t").await.matches("14").count(), 1);
}

fn link(to: &Path, name: &str, world: &World) {
    std::os::unix::fs::symlink(to, world.exchange().join(name)).expect("links");
}

#[tokio::test]
async fn mistakes_are_told_with_what_to_do() {
    let world = World::open().await;
    world.run("CREATE TABLE t (a BIGINT NOT NULL CHECK (a < 100), b BYTEA)").await;
    std::fs::create_dir(world.exchange().join("inner")).expect("makes a folder");
    std::fs::write(world.exchange().join("bad.csv"), "a\n1\nx\n").expect("writes");
    std::fs::write(world.exchange().join("large.csv"), "a\n1\n100\n").expect("writes");
    std::fs::write(world.exchange().join("null.json"), "{\"a\":1}\n{\"a\":null}\n").expect("writes");
    std::fs::write(world.exchange().join("noise.parquet"), "noise").expect("writes");
    for (sql, kind, part) in [
        ("COPY t TO 'x.txt'", ErrorKind::Invalid, "FORMAT"),
        ("COPY t TO 'x.avro'", ErrorKind::Unsupported, "parquet"),
        ("COPY t TO 'x' WITH (FORMAT orc)", ErrorKind::Unsupported, "`orc`"),
        ("COPY t TO 'x.csv' WITH (COLOUR red)", ErrorKind::Invalid, "`colour`"),
        ("COPY t TO 'x.parquet' WITH (HEADER)", ErrorKind::Invalid, "csv"),
        ("COPY t TO 'x.csv' WITH (DELIMITER 'ab')", ErrorKind::Invalid, "`ab`"),
        ("COPY t TO 'x.csv'", ErrorKind::Unsupported, "`b`"),
        ("COPY t TO 'inner'  WITH (FORMAT parquet, OVERWRITE)", ErrorKind::Invalid, "folder"),
        ("COPY t TO 'none/x.parquet'", ErrorKind::NotFound, "folder"),
        ("COPY t TO 's3://bucket/x.parquet'", ErrorKind::Denied, "object_store.exchange"),
        ("COPY t TO '' WITH (FORMAT parquet)", ErrorKind::Invalid, "no file"),
        ("COPY t TO STDOUT", ErrorKind::Syntax, "STDOUT"),
        ("COPY (SELECT 1 AS a, 2 AS a) TO 'x.csv'", ErrorKind::Invalid, "a"),
        ("COPY nothing TO 'x.csv'", ErrorKind::NotFound, "nothing"),
        ("COPY (DELETE FROM t) TO 'x.csv'", ErrorKind::Unsupported, "DELETE"),
        ("COPY (SELECT 1) FROM 'bad.csv'", ErrorKind::Syntax, "TO"),
        ("COPY t FROM 'bad.csv' WITH (OVERWRITE true)", ErrorKind::Invalid, "TRUNCATE"),
        ("COPY t (a) FROM 'bad.csv'", ErrorKind::Corrupt, "line 3"),
        ("COPY t (a) FROM 'large.csv'", ErrorKind::Invalid, "constraint"),
        ("COPY t (a) FROM 'null.json'", ErrorKind::Invalid, "NULL"),
        ("COPY t (a, a) FROM 'bad.csv'", ErrorKind::Invalid, "twice"),
        ("COPY t (z) FROM 'bad.csv'", ErrorKind::NotFound, "`z`"),
        ("COPY t FROM 'noise.parquet'", ErrorKind::Corrupt, "noise.parquet"),
        ("COPY t (a) FROM 'absent.csv'", ErrorKind::NotFound, "absent.csv"),
        ("COPY t FROM 'inner' WITH (FORMAT parquet)", ErrorKind::Invalid, "no file"),
        ("EXPLAIN COPY t TO 'x.parquet'", ErrorKind::Unsupported, "COPY"),
    ] {
        world.says(sql, kind, part).await;
    }
    assert_eq!(world.table("SELECT count(*) AS n FROM t").await.matches("| 0 |").count(), 1);
}

#[tokio::test]
async fn without_a_folder_it_is_denied() {
    let world = World::with(tempdir().expect("a folder"), None).await;
    for sql in [
        "COPY (SELECT 1 AS a) TO 'x.csv'",
        "COPY t FROM 'x.csv'",
        "INSERT INTO FILES ('path' = 'x.csv', 'format' = 'csv') SELECT 1 AS a",
    ] {
        let error = world.error(sql).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{sql}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("storage.exchange_folder")), "{sql}");
        assert!(world.session.prepare(sql, None).await.is_err(), "{sql}");
    }
    let config = EngineConfig { exchange_folder: Some("/not/there".into()), ..EngineConfig::default() };
    let error = Engine::without_files(&config, None, 0).expect_err("no folder");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn copies_obey_transactions_and_parameters() {
    let world = World::open().await;
    world.run("CREATE TABLE t (a BIGINT PRIMARY KEY)").await;
    world.run("BEGIN").await;
    world.run("INSERT INTO t VALUES (1), (2)").await;
    assert_eq!(world.run("COPY t TO 't.parquet'").await, 2);
    world.run("ROLLBACK").await;
    assert_eq!(world.run("COPY t FROM 't.parquet'").await, 2);
    assert_eq!(world.error("COPY t FROM 't.parquet'").await.kind(), ErrorKind::AlreadyExists);
    world.run("START TRANSACTION READ ONLY").await;
    assert_eq!(world.run("COPY t TO 'again.parquet'").await, 2);
    assert_eq!(world.error("COPY t FROM 't.parquet'").await.kind(), ErrorKind::AlreadyExists);
    world.run("ROLLBACK").await;
    let sql = "COPY (SELECT a FROM t WHERE a > CAST(? AS BIGINT)) TO 'one.csv'";
    let prepared = world.session.prepare(sql, None).await.expect("prepares");
    let schema = Arc::new(Schema::new(vec![Field::new("$1", DataType::Int64, true)]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![1]))]).expect("fits");
    world.session.bind(prepared.id, vec![batch]).await.expect("binds");
    assert_eq!(world.session.update(&Request::prepared(prepared.id)).await.expect("copies"), Some(1));
    assert_eq!(std::fs::read_to_string(world.exchange().join("one.csv")).expect("the file"), "a\n2\n");
}
