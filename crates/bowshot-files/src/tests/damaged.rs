//! Files that are damaged, or that hold what they should not: errors that name the file, and nothing worse.

use super::formats::{ORDERS, compress, people, write_arrow};
use super::{World, ours, says, write, write_parquet};
use bowshot_api::ErrorKind;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use std::io::Write;
use tempfile::tempdir;

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_csv_value_is_found_by_file_line_and_column() {
    let folder = tempdir().unwrap();
    let mut text = String::from("id,price\n");
    for id in 0..50_000 {
        let price = if id == 40_000 { "many".to_owned() } else { id.to_string() };
        text.push_str(&format!("{id},{price}\n"));
    }
    let path = folder.path().join("bad.csv");
    write(&path, &text);
    let world = World::open(&[&path]);
    let error = world.error("select sum(price) from bad").await;
    says(&error, ErrorKind::Corrupt, &["bad.csv", "line 40002", "`price`", "many", "sample_rows"]);
    assert!(!error.to_string().contains("40001,many"), "{error}");
    // The part of the table that is asked for is good.
    assert_eq!(world.value("select count(*) from bad").await, "50000");
    let short = folder.path().join("short.csv");
    write(&short, "a,b\n1,2\n3\n");
    assert_eq!(World::open(&[&short]).value("select count(*) || ' ' || count(b) from short").await, "2 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_json_is_found_by_file_and_line() {
    let folder = tempdir().unwrap();
    let lines: Vec<String> = (0..30_000)
        .map(|id| if id == 25_000 { "{\"id\":\"x\"}".to_owned() } else { format!("{{\"id\":{id}}}") })
        .collect();
    write(&folder.path().join("bad.jsonl"), lines.join("\n"));
    write(&folder.path().join("cut.json"), "[{\"id\": 1}, {\"id\": 2}");
    write(&folder.path().join("late.jsonl"), "{\"id\":1}\n{\"id\":\n");
    let world = World::open(&[folder.path()]);
    // All rows are looked at then, and the column is text.
    says(&world.error("select sum(id) from bad").await, ErrorKind::Conflict, &["bad.jsonl", "line 25001"]);
    assert_eq!(world.value("select max(id) from bad").await, "x");
    says(&world.error("select sum(id) from cut").await, ErrorKind::Corrupt, &["cut.json"]);
    says(&world.error("select sum(id) from late").await, ErrorKind::Corrupt, &["late.jsonl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_files_fail_alone_and_by_name() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("noise.parquet"), b"this is no parquet file at all");
    write(&folder.path().join("empty.parquet"), b"");
    write(&folder.path().join("short.arrow"), b"ARROW1\0\0");
    write(&folder.path().join("noise.avro"), b"Objno");
    write(&folder.path().join("zip.csv.gz"), b"not gzip");
    write(&folder.path().join("good.csv"), "a\n1\n");
    let batch = people(0, 10_000);
    let path = folder.path().join("page.parquet");
    write_parquet(&path, &batch);
    let mut bytes = std::fs::read(&path).unwrap();
    // The footer stays whole, a page does not.
    bytes[4..400].fill(0xff);
    std::fs::File::create(&path).unwrap().write_all(&bytes).unwrap();
    let world = World::open(&[folder.path()]);
    assert_eq!(world.value("select a from good").await, "1");
    for (table, file) in [
        ("empty", "empty.parquet"),
        ("short", "short.arrow"),
        ("zip", "zip.csv.gz"),
        ("page", "page.parquet"),
    ] {
        let error = world.error(&format!("select * from {table}")).await;
        says(&error, ErrorKind::Corrupt, &[file, "repair or replace"]);
    }
    // `noise.parquet` and `noise.avro` claim one name.
    says(
        &world.error("select * from noise").await,
        ErrorKind::AlreadyExists,
        &["noise.avro", "noise.parquet"],
    );
    let summaries = tokio::task::block_in_place(|| world.catalog.describe());
    let bad: Vec<_> = summaries.iter().filter(|s| s.problem.is_some()).map(|s| s.name.as_str()).collect();
    assert_eq!(bad, ["empty", "noise", "short", "zip"]);
}

/// Bytes changed at random places give rows or an error of this crate, and the next query works.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_of_every_format_never_panic() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let batch = people(0, 300);
    write_parquet(&at("p.parquet"), &batch);
    write_arrow(&at("a.arrow"), &[batch.clone(), people(5, 50)], false);
    write_arrow(&at("s.arrows"), &[batch.clone(), people(5, 50)], true);
    let file = std::fs::File::create(at("v.avro")).unwrap();
    let mut writer =
        datafusion::arrow_avro::writer::AvroWriter::new(file, batch.schema().as_ref().clone()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    write(&at("c.csv"), ORDERS.repeat(3));
    write(&at("g.csv.gz"), compress(FileCompressionType::GZIP, ORDERS.as_bytes()));
    write(&at("z.csv.zst"), compress(FileCompressionType::ZSTD, ORDERS.as_bytes()));
    write(
        &at("j.jsonl"),
        "{\"id\":1,\"x\":[1,{\"y\":\"a\"}]}\n{\"id\":2,\"name\":\"ü\"}\n".replace("1,{", "{"),
    );
    write(&at("k.json"), "[{\"id\":1,\"name\":\"a\"},{\"id\":2}]");
    let world = World::open(&[folder.path()]);
    let mut random = 42_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    for summary in tokio::task::block_in_place(|| world.catalog.describe()) {
        assert_eq!(summary.problem, None, "{}", summary.name);
        let whole = std::fs::read(&summary.path).unwrap();
        let mut failed = 0;
        for _ in 0..100 {
            let mut bytes = whole.clone();
            for _ in 0..=next(4) {
                let place = next(bytes.len());
                bytes[place] = u8::try_from(next(256)).unwrap();
            }
            if next(5) == 0 {
                bytes.truncate(next(bytes.len()));
            }
            write(&summary.path, &bytes);
            for sql in ["select * from", "select count(*), max(id) from", "select count(id) from"] {
                let sql = format!("{sql} {}", summary.name);
                let failure = match world.context.sql(&sql).await {
                    Ok(frame) => frame.collect().await.err(),
                    Err(error) => Some(error),
                };
                // A header that lost its `id` makes the statement wrong, not the file.
                let Some(error) = failure.filter(|error| !error.to_string().contains("No field named"))
                else {
                    continue;
                };
                failed += 1;
                says(
                    &ours(&error),
                    ErrorKind::Corrupt,
                    &[summary.path.file_name().unwrap().to_str().unwrap()],
                );
            }
        }
        assert!(failed > 0, "{}", summary.name);
        write(&summary.path, &whole);
        assert_eq!(world.value(&format!("select min(id) <= 1 from {}", summary.name)).await, "true");
    }
}
