//! Each format: rows, types, and files that are read together.

use super::{World, says, write, write_parquet};
use crate::{SourceSpec, StorageOptions};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray, StructArray};
use arrow::datatypes::{DataType, Field};
use bowshot_api::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

fn people(from: i64, to: i64) -> RecordBatch {
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

fn write_arrow(path: &std::path::Path, batches: &[RecordBatch]) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = arrow::ipc::writer::FileWriter::try_new(file, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

#[tokio::test]
async fn arrow_batches_are_the_mapped_memory() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.arrow");
    write_arrow(&path, &[people(0, 100_000), people(100_000, 200_000)]);
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
    write_arrow(&path, &batches);
    let world = World::open(&[&path]);
    let plan = world.table("explain select sum(id) from a").await;
    assert!(plan.contains("file_groups={4 groups"), "{plan}");
    assert_eq!(world.value("select sum(id) || ' ' || count(name) from a").await, "499999500000 1000000");
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
