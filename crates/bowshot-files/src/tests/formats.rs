//! Each format: rows, types and compressions.

use super::{World, says, write, write_parquet};
use crate::{SourceSpec, StorageOptions};
use arrow::array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow::datatypes::{DataType, Field};
use bowshot_api::ErrorKind;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

pub(super) const ORDERS: &str = "id,name,price,day,at,ok\n\
    1,apple,1.5,2024-01-31,2024-01-31T10:00:00,true\n\
    2,\"pear, green\",2.25,2024-02-01,2024-02-01T11:30:00,false\n\
    3,,,,,\n";

#[tokio::test]
async fn text_is_read_through_every_compression() {
    let folder = tempdir().unwrap();
    let zstd = |bytes: &[u8]| {
        // Two frames, as parallel compressors write them.
        let (head, tail) = bytes.split_at(20);
        [head, tail].map(|part| compress(FileCompressionType::ZSTD, part)).concat()
    };
    let gzip = |bytes: &[u8]| {
        let (head, tail) = bytes.split_at(20);
        [head, tail].map(|part| compress(FileCompressionType::GZIP, part)).concat()
    };
    write(&folder.path().join("a.csv.gz"), gzip(ORDERS.as_bytes()));
    write(&folder.path().join("b.csv.zst"), zstd(ORDERS.as_bytes()));
    write(&folder.path().join("c.csv.bz2"), compress(FileCompressionType::BZIP2, ORDERS.as_bytes()));
    write(&folder.path().join("d.csv.xz"), compress(FileCompressionType::XZ, ORDERS.as_bytes()));
    write(&folder.path().join("e.jsonl.gz"), gzip(b"{\"id\":1,\"price\":1.5}\n{\"id\":2,\"price\":2.25}\n"));
    let world = World::open(&[folder.path()]);
    assert_eq!(world.names(), ["a", "b", "c", "d", "e"]);
    for table in world.names() {
        assert_eq!(world.value(&format!("select sum(price) from {table}")).await, "3.75", "{table}");
    }
}

pub(super) fn compress(kind: FileCompressionType, bytes: &[u8]) -> Vec<u8> {
    let bytes = bytes.to_vec();
    let stream = futures::stream::once(async move { Ok(bytes::Bytes::from(bytes)) });
    let compressed = kind.convert_to_compress_stream(futures::StreamExt::boxed(stream)).unwrap();
    let runtime = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            let parts: Vec<bytes::Bytes> = futures::TryStreamExt::try_collect(compressed).await.unwrap();
            parts.concat()
        })
    });
    runtime.join().unwrap()
}

#[tokio::test]
async fn csv_files_of_one_table_go_by_column_name() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("t/1.csv"), "a,b\n1,x\n2,y\n");
    write(&folder.path().join("t/2.csv"), "c,b,a\ntrue,z,2.5\n");
    write(&folder.path().join("t/3.csv"), "");
    write(&folder.path().join("t/4.csv"), "b\nonly\n");
    let world = World::open(&[folder.path()]);
    assert_eq!(world.types("t").await, "a Float64, b Utf8, c Boolean");
    assert_eq!(
        world.table("select * from t order by b").await,
        "+-----+------+------+\n\
         | a   | b    | c    |\n\
         +-----+------+------+\n\
         |     | only |      |\n\
         | 1.0 | x    |      |\n\
         | 2.0 | y    |      |\n\
         | 2.5 | z    | true |\n\
         +-----+------+------+"
    );
}

#[tokio::test]
async fn large_csv_is_cut_into_ranges_without_loss() {
    let folder = tempdir().unwrap();
    let mut text = String::from("id,text\n");
    for id in 0..200_000 {
        text.push_str(&format!("{id},row {id} with some text to make it long enough to be cut\n"));
    }
    let path = folder.path().join("long.csv");
    write(&path, &text);
    let world = World::open(&[&path]);
    assert!(world.table("explain select sum(id) from long").await.contains("file_groups={4 groups"));
    assert_eq!(
        world.value("select count(*) || ' ' || sum(id) || ' ' || count(text) from long").await,
        "200000 19999900000 200000"
    );
    // One quoted line end anywhere forbids cutting.
    text.push_str("200000,\"two\nlines\"\n");
    write(&path, &text);
    let world = World::open(&[&path]);
    assert_eq!(world.value("select count(*) || ' ' || max(id) from long").await, "200001 200000");
    assert!(!world.table("explain select sum(id) from long").await.contains("4 groups"));
    // The line of a bad value is the line in the file, also behind a cut.
    let broken = text.replace("\n150000,", "\nx,").replace("\"two\nlines\"", "one");
    write(&path, &broken);
    let error = World::open(&[&path]).error("select sum(id) from long").await;
    says(&error, ErrorKind::Corrupt, &["long.csv", "line 150002", "`id`"]);
}

pub(super) fn people(from: i64, to: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((from..to).map(|id| format!("name {id}"))));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

#[tokio::test]
async fn parquet_has_exact_counts_and_prunes() {
    let folder = tempdir().unwrap();
    write_parquet(&folder.path().join("people.parquet"), &people(0, 1000));
    let world = World::open(&[folder.path()]);
    assert_eq!(world.value("select count(*) from people where id >= 990").await, "10");
    // Answered from the footer: no scan is left in the plan.
    let plan = world.table("explain select count(*), min(id), max(id), count(name) from people").await;
    assert!(!plan.contains("DataSourceExec: file_groups"), "{plan}");
    assert_eq!(
        world.value("select min(id) || ' ' || max(id) || ' ' || count(name) from people").await,
        "0 999 1000"
    );
}

#[tokio::test]
async fn parquet_views_come_out_plain() {
    let folder = tempdir().unwrap();
    let views: ArrayRef =
        Arc::new(StringViewArray::from_iter_values(["a", "bb", "a rather long string that is not inlined"]));
    let inner = Arc::new(Field::new("s", DataType::Utf8View, true));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(inner, Arc::clone(&views))]));
    let batch = RecordBatch::try_from_iter([("v", views), ("n", nested)]).unwrap();
    write_parquet(&folder.path().join("views.parquet"), &batch);
    let world = World::open(&[folder.path()]);
    let batches = world.rows("select * from views").await.unwrap();
    assert_eq!(batches[0].column(0).data_type(), &DataType::Utf8);
    assert_eq!(batches[0].column(1).data_type().to_string(), "Struct(\"s\": Utf8)");
    // The reader makes plain arrays at once: no cast is planned.
    let plan = world.table("explain select v from views where v > 'b'").await;
    assert!(!plan.contains("CAST"), "{plan}");
    assert_eq!(world.value("select count(*) from views where v like 'a%'").await, "2");
    assert_eq!(world.value("select count(n) from views").await, "3");
}

#[tokio::test]
async fn parquet_files_with_different_columns_are_united() {
    let folder = tempdir().unwrap();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("id", narrow)]).unwrap();
    write_parquet(&folder.path().join("t/a.parquet"), &batch);
    write_parquet(&folder.path().join("t/b.parquet"), &people(10, 12));
    let world = World::named("t", &folder.path().join("t"));
    assert_eq!(world.types("t").await, "id Int64, name Utf8");
    assert_eq!(world.value("select sum(id) from t").await, "24");
    assert_eq!(world.value("select count(name) || ' ' || count(*) from t").await, "2 4");
    assert_eq!(world.value("select max(id) from t").await, "11");
    assert_eq!(world.value("select sum(id) from t where name is null").await, "3");
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    write_parquet(&folder.path().join("t/c.parquet"), &RecordBatch::try_from_iter([("id", text)]).unwrap());
    says(
        &world.error("select * from t").await,
        ErrorKind::Corrupt,
        &["c.parquet", "a.parquet", "`id`", "Utf8"],
    );
}

pub(super) fn write_arrow(path: &std::path::Path, batches: &[RecordBatch], stream: bool) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let schema = batches[0].schema();
    if stream {
        let mut writer = arrow::ipc::writer::StreamWriter::try_new(file, &schema).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = arrow::ipc::writer::FileWriter::try_new(file, &schema).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
}

#[tokio::test]
async fn arrow_files_and_streams_are_read() {
    let folder = tempdir().unwrap();
    let batches = [people(0, 1000), people(1000, 1001), people(1001, 5000)];
    for (name, stream) in
        [("a.arrow", false), ("b.feather", false), ("c.ipc", false), ("d.arrows", true), ("e.arrow", true)]
    {
        write_arrow(&folder.path().join(name), &batches, stream);
    }
    let world = World::open(&[folder.path()]);
    for table in world.names() {
        let sql = format!("select sum(id) || ' ' || max(name) || ' ' || count(*) from {table} where id <> 7");
        assert_eq!(world.value(&sql).await, "12497493 name 999 4999", "{table}");
        assert_eq!(world.value(&format!("select count(*) from {table}")).await, "5000", "{table}");
        assert_eq!(
            world.value(&format!("select name from {table} where id = 1000")).await,
            "name 1000",
            "{table}"
        );
        let limited = world.rows(&format!("select id from {table} limit 1500")).await.unwrap();
        assert_eq!(limited.iter().map(RecordBatch::num_rows).sum::<usize>(), 1500, "{table}");
    }
    // The number of rows is known before any row is touched.
    let plan = world.table("explain select count(*) from a").await;
    assert!(!plan.contains("DataSourceExec: file_groups"), "{plan}");
}

#[tokio::test]
async fn arrow_batches_are_the_mapped_memory() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.arrow");
    write_arrow(&path, &[people(0, 100_000), people(100_000, 200_000)], false);
    // Looked at once: a file this new would otherwise be mapped anew each time.
    let options = StorageOptions { refresh: Duration::from_secs(3600), ..StorageOptions::default() };
    let world = World::with(vec![SourceSpec::new(None, path.clone())], options);
    let address = |batches: &[RecordBatch]| {
        let column = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batches[0].column(1));
        column.values().inner().as_ptr()
    };
    // Two queries see the same memory: neither copied it, and a projection does not move it.
    let one = world.rows("select name, id from a").await.unwrap();
    let other = world.rows("select name, id from a").await.unwrap();
    assert_eq!(address(&one), address(&other));
    assert_eq!(one.iter().map(RecordBatch::num_rows).sum::<usize>(), 200_000);
}

#[tokio::test]
async fn arrow_files_are_read_by_several_partitions() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.arrow");
    let batches: Vec<RecordBatch> =
        (0..100).map(|part| people(part * 10_000, part * 10_000 + 10_000)).collect();
    write_arrow(&path, &batches, false);
    let world = World::open(&[&path]);
    let plan = world.table("explain select sum(id) from a").await;
    assert!(plan.contains("file_groups={4 groups"), "{plan}");
    assert_eq!(world.value("select sum(id) || ' ' || count(name) from a").await, "499999500000 1000000");
}

#[tokio::test]
async fn arrow_files_with_different_columns_are_united() {
    let folder = tempdir().unwrap();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("id", narrow)]).unwrap();
    write_arrow(&folder.path().join("t/k=1/a.arrow"), &[batch], false);
    write_arrow(&folder.path().join("t/k=2/b.arrow"), &[people(10, 12)], true);
    let world = World::open(&[&folder.path().join("t")]);
    assert_eq!(world.types("t").await, "id Int64, name Utf8, k Int64");
    assert_eq!(world.value("select sum(id) || ' ' || count(name) || ' ' || sum(k) from t").await, "24 2 6");
    assert_eq!(world.value("select count(*) from t where k = 2").await, "2");
}

#[tokio::test]
async fn avro_of_other_things_than_records_is_one_column() {
    let folder = tempdir().unwrap();
    let mut bytes = b"Obj\x01\x02\x16avro.schema\x0c\"long\"\x00".to_vec();
    bytes.extend_from_slice(&[7; 16]);
    // Three values in three bytes: 1, -1 and 21.
    bytes.extend_from_slice(&[6, 6, 2, 1, 42]);
    bytes.extend_from_slice(&[7; 16]);
    let path = folder.path().join("numbers.avro");
    write(&path, &bytes);
    let world = World::open(&[&path]);
    assert_eq!(world.types("numbers").await, "value Int64");
    assert_eq!(world.value("select sum(value) || ' ' || count(*) from numbers").await, "21 3");
}

#[tokio::test]
async fn avro_is_read() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("people.avro");
    let batch = people(0, 5000);
    let file = std::fs::File::create(&path).unwrap();
    let mut writer =
        datafusion::arrow_avro::writer::AvroWriter::new(file, batch.schema().as_ref().clone()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let world = World::open(&[&path]);
    assert_eq!(world.value("select sum(id) || ' ' || max(name) from people").await, "12497500 name 999");
    assert_eq!(world.value("select count(*) from people").await, "5000");
    assert_eq!(world.value("select name from people where id = 4999").await, "name 4999");
    // A file that ends within a block is not a shorter table.
    let whole = std::fs::read(&path).unwrap();
    write(&path, &whole[..whole.len() - 100]);
    says(
        &world.error("select * from people").await,
        ErrorKind::Corrupt,
        &["people.avro", "ends within a block"],
    );
    // A block with more bytes than its rows need once kept a query busy for ever.
    let mut longer = whole.clone();
    let count = whole.windows(2).position(|two| two == [0x90, 0x4e]).expect("5000 as a number");
    longer[count] = 0x8e;
    write(&path, &longer);
    assert_eq!(world.value("select count(*) from people").await, "4999");
}

#[tokio::test]
async fn json_strings_that_are_dates_or_times_get_those_types() {
    let folder = tempdir().unwrap();
    write(
        &folder.path().join("t.jsonl"),
        "{\"d\":\"2024-01-31\",\"t\":\"2024-01-31T10:00:00.5\",\"z\":\"2024-01-31T10:00:00Z\",\"s\":\"2024-01-31\",\"m\":\"2024-01-31T10:00:00Z\"}\n\
         {\"d\":null,\"t\":\"2024-02-01 11:30:00\",\"z\":\"2024-01-31T12:00:00+02:00\",\"s\":\"soon\",\"m\":\"2024-01-31T10:00:00\"}\n",
    );
    let world = World::open(&[folder.path()]);
    assert_eq!(world.types("t").await, "d Date32, t Timestamp(ms), z Timestamp(s, \"UTC\"), s Utf8, m Utf8");
    assert_eq!(world.value("select count(*) from t where d = date '2024-01-31'").await, "1");
    assert_eq!(world.value("select count(distinct z) from t").await, "1");
    assert_eq!(world.value("select max(t) from t").await, "2024-02-01T11:30:00");
}

#[tokio::test]
async fn big_endian_arrow_is_refused_as_what_it_is() {
    let mut builder = flatbuffers::FlatBufferBuilder::new();
    let fields = builder.create_vector::<flatbuffers::ForwardsUOffset<arrow_ipc::Field<'_>>>(&[]);
    let mut schema = arrow_ipc::SchemaBuilder::new(&mut builder);
    schema.add_endianness(arrow_ipc::Endianness::Big);
    schema.add_fields(fields);
    let schema = schema.finish();
    let mut message = arrow_ipc::MessageBuilder::new(&mut builder);
    message.add_version(arrow_ipc::MetadataVersion::V5);
    message.add_header_type(arrow_ipc::MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    let message = message.finish();
    builder.finish(message, None);
    let mut header = builder.finished_data().to_vec();
    header.resize(header.len().next_multiple_of(8), 0);
    let length = u32::try_from(header.len()).unwrap();
    let stream = [u32::MAX.to_le_bytes().as_slice(), &length.to_le_bytes(), &header].concat();
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.arrows");
    write(&path, stream);
    let error = World::open(&[&path]).error("select * from t").await;
    says(&error, ErrorKind::Unsupported, &["t.arrows", "big-endian"]);
}
