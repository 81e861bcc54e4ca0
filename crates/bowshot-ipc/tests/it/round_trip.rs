//! Every type in every shape, split and not, compressed and not, read by our decoder and by Arrow's.

use crate::cases::{SHAPES, Shape, batch, columnless, types};
use crate::make::{Numbers, array};
use crate::wire::{assert_same, encode, options, through_flight, through_stream};
use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use arrow::record_batch::RecordBatch;
use bowshot_api::Compression;
use bowshot_ipc::{Encoder, read_schema_bytes, schema_bytes};
use std::sync::Arc;

fn check(batch: &RecordBatch, message_bytes: usize, compression: Compression, context: &str) {
    let messages = encode(std::slice::from_ref(batch), options(message_bytes, compression));
    assert_same(batch, &through_stream(messages.clone()), &format!("{context}, Arrow's reader"));
    assert_same(batch, &through_flight(messages), &format!("{context}, our decoder"));
}

#[test]
fn every_type_in_every_shape_whole_and_split() {
    for (name, data_type) in types() {
        for shape in SHAPES {
            let batch = batch(&data_type, shape);
            for bytes in [2 << 20, 4_000] {
                check(&batch, bytes, Compression::None, &format!("{name} {shape:?} in {bytes} bytes"));
            }
        }
    }
}

#[test]
fn every_type_compressed() {
    let shape = Shape { rows: 300, nulls: true, margin: 5 };
    for (name, data_type) in types() {
        for compression in [Compression::Lz4, Compression::Zstd] {
            let batch = batch(&data_type, shape);
            check(&batch, 2 << 20, compression, &format!("{name} {compression:?}"));
            check(&batch, 700, compression, &format!("{name} {compression:?} split"));
        }
    }
}

#[test]
fn many_columns_at_odd_offsets() {
    let mut numbers = Numbers::new(11);
    let types = types();
    for margin in [1, 64, 100] {
        let columns: Vec<ArrayRef> =
            types.iter().map(|(_, t)| array(t, 300 + 2 * margin, margin % 2 == 1, &mut numbers)).collect();
        let fields: Vec<Field> = types.iter().map(|(name, t)| Field::new(name, t.clone(), true)).collect();
        let whole = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        check(&whole.slice(margin, 300), 40_000, Compression::None, &format!("all columns from {margin}"));
    }
}

#[test]
fn random_batches() {
    let types = types();
    for seed in 0..200 {
        let mut n = Numbers::new(seed);
        let rows = n.below(400);
        let (before, after) = (n.below(70), n.below(70));
        let chosen: Vec<_> = (0..1 + n.below(4)).map(|_| types[n.below(types.len())].1.clone()).collect();
        let nulls = n.below(2) == 0;
        let columns = chosen.iter().map(|t| array(t, before + rows + after, nulls, &mut n)).collect();
        let fields: Vec<Field> = chosen.iter().map(|t| Field::new("c", t.clone(), true)).collect();
        let whole = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let batch = whole.slice(before, rows);
        check(&batch, 64 + n.below(8_000), Compression::None, &format!("seed {seed}"));
    }
}

#[test]
fn rows_without_columns_keep_their_number() {
    for rows in [0, 1, 100_000] {
        let batch = columnless(rows);
        let messages = encode(std::slice::from_ref(&batch), options(1_000, Compression::None));
        assert_eq!(messages.len(), 2);
        let read = through_flight(messages);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].num_rows(), rows);
    }
}

#[test]
fn messages_keep_to_their_size() {
    // Rows of very different size: most are empty, a few are large.
    let texts = (0..20_000).map(|row| if row % 997 == 0 { "x".repeat(9_000) } else { String::new() });
    let batch =
        RecordBatch::try_from_iter([("t", Arc::new(StringArray::from_iter_values(texts)) as ArrayRef)]);
    let batch = batch.unwrap();
    let target = 20_000;
    let messages = encode(std::slice::from_ref(&batch), options(target, Compression::None));
    for message in &messages {
        assert!(message.body_len() <= target + target / 2 + 192, "{}", message.body_len());
    }
    let total: usize = messages.iter().map(|message| message.body_len()).sum();
    assert!(messages.len() <= 4 * total / target, "{} messages for {total} bytes", messages.len());
    assert_same(&batch, &through_flight(messages), "uneven rows");
}

#[test]
fn a_row_larger_than_a_message_goes_alone() {
    let texts = StringArray::from_iter_values(["a".repeat(5_000), "b".repeat(5_000), String::new()]);
    let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
    let messages = encode(std::slice::from_ref(&batch), options(1_000, Compression::None));
    assert_eq!(messages.len(), 4, "schema and three rows");
    assert_same(&batch, &through_flight(messages), "large rows");
}

fn words(words: &[&str], keys: &[i32]) -> RecordBatch {
    let values = Arc::new(StringArray::from(words.to_vec()));
    let column = DictionaryArray::<Int32Type>::try_new(keys.to_vec().into(), values).unwrap();
    RecordBatch::try_from_iter([("d", Arc::new(column) as ArrayRef)]).unwrap()
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let column = batch.column(0).as_dictionary::<Int32Type>();
    column.downcast_dict::<StringArray>().unwrap().into_iter().flatten().map(str::to_owned).collect()
}

#[test]
fn dictionaries_are_sent_again_only_when_they_change() {
    let first = words(&["a", "b"], &[0, 1, 1]);
    let grown = words(&["a", "b", "c"], &[2, 0]);
    let other = words(&["x"], &[0, 0]);
    let batches = [first.clone(), first.slice(1, 1), grown, other];
    let messages = encode(&batches, options(1_000, Compression::None));
    assert_eq!(messages.len(), 1 + 4 + 3, "schema, four batches, three dictionaries");
    for read in [through_flight(messages.clone()), through_stream(messages)] {
        let read: Vec<_> = read.iter().map(texts).collect();
        assert_eq!(read, [vec!["a", "b", "b"], vec!["b"], vec!["c", "a"], vec!["x", "x"]]);
    }
}

#[test]
fn a_dictionary_larger_than_a_message_is_sent_in_parts() {
    // A thousand words of 100 bytes; a null whose key means nothing; a dictionary inside a list.
    let values: Vec<String> = (0..1_000).map(|word| format!("{word:0>100}")).collect();
    let keys = (0..3_000).map(|row| (row % 7 != 3).then_some((row * 7919) % 1_000));
    let keys = arrow::array::Int32Array::from_iter(keys);
    let column: ArrayRef =
        Arc::new(DictionaryArray::try_new(keys, Arc::new(StringArray::from(values))).unwrap());
    let item = Arc::new(Field::new("item", column.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(vec![3; 1_000]);
    let lists = ListArray::new(item, offsets, Arc::clone(&column), None);
    for column in [column.slice(1, 2_900), Arc::new(lists) as ArrayRef] {
        let batch = RecordBatch::try_from_iter([("d", column)]).unwrap();
        let target = 10_000;
        let messages = encode(std::slice::from_ref(&batch), options(target, Compression::None));
        for message in &messages {
            assert!(message.body_len() <= target + target / 2 + 256, "{}", message.body_len());
        }
        for read in [through_flight(messages.clone()), through_stream(messages)] {
            let plain = |batch: &RecordBatch| {
                let t = batch.column(0).data_type().clone();
                let t = if t.is_nested() && !matches!(t, DataType::Dictionary(_, _)) {
                    DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))
                } else {
                    DataType::Utf8
                };
                arrow::compute::cast(batch.column(0), &t).unwrap()
            };
            let read: Vec<ArrayRef> = read.iter().map(plain).collect();
            let read: Vec<&dyn Array> = read.iter().map(|part| part.as_ref()).collect();
            assert_eq!(&arrow::compute::concat(&read).unwrap(), &plain(&batch));
        }
    }
}

#[test]
fn dictionaries_are_refused_where_plain_columns_are_promised() {
    let inner = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let list = DataType::List(Arc::new(Field::new("item", inner, true)));
    let schema = Schema::new(vec![Field::new("plain", DataType::Int8, true), Field::new("deep", list, true)]);
    let error = Encoder::new(Arc::new(schema), Default::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column `deep` is dictionary-encoded, but the reader asked for plain columns"
    );
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let numbers = batch(&DataType::Int32, SHAPES[0]);
    let mut encoder = Encoder::new(numbers.schema(), Default::default()).unwrap();
    let texts = batch(&DataType::Utf8, SHAPES[0]);
    let error = encoder.encode(&texts).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a batch has `column é` as Utf8, but its stream announced `column é` as Int32"
    );
    let error = encoder.encode(&columnless(3)).unwrap_err();
    assert_eq!(error.to_string(), "a batch has 0 columns, but its stream announced 1 columns");
}

#[test]
fn schemas_round_trip() {
    for (name, data_type) in types() {
        let schema = batch(&data_type, SHAPES[2]).schema();
        let bytes = schema_bytes(&schema);
        assert_eq!(bytes.len() % 8, 0);
        assert_eq!(bytes[..4], [0xFF; 4]);
        assert_eq!(&read_schema_bytes(&bytes).unwrap(), schema.as_ref(), "{name}");
        // The older form has no continuation mark.
        assert_eq!(&read_schema_bytes(&bytes[4..]).unwrap(), schema.as_ref(), "{name}");
    }
}
