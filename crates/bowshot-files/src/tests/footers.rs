//! Parquet whose footers say what is not so: rows are found all the same.

use super::{World, write, write_parquet};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::data_type::ByteArray;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::statistics::Statistics;
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

/// Changes what the footer of a file says of a column in each of its row groups.
pub(super) fn with_statistics(
    path: &Path,
    column: usize,
    change: impl Fn(&ColumnChunkMetaData) -> Option<Statistics>,
) {
    rewrite_footer(path, |metadata| {
        let mut builder = metadata.clone().into_builder();
        let groups = builder.take_row_groups().into_iter().map(|group| {
            let chunks = group.columns().iter().enumerate().map(|(place, chunk)| {
                let builder = chunk.clone().into_builder();
                let builder = builder.set_column_index_offset(None).set_column_index_length(None);
                let builder = match (place == column).then(|| change(chunk)) {
                    None => builder,
                    Some(None) => builder.clear_statistics(),
                    Some(Some(changed)) => builder.set_statistics(changed),
                };
                builder.build().unwrap()
            });
            let chunks = chunks.collect();
            group.into_builder().set_column_metadata(chunks).build().unwrap()
        });
        let groups = groups.collect();
        builder.set_row_groups(groups).set_column_index(None).set_offset_index(None).build()
    });
}

/// Puts another footer below the rows of a file.
pub(super) fn rewrite_footer(path: &Path, change: impl FnOnce(&ParquetMetaData) -> ParquetMetaData) {
    let bytes = std::fs::read(path).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes.clone())).unwrap();
    let footer =
        usize::try_from(u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap())).unwrap();
    let mut written = bytes[..bytes.len() - 8 - footer].to_vec();
    ParquetMetaDataWriter::new(&mut written, &change(&metadata)).finish().unwrap();
    write(path, written);
}

fn table(path: &Path) {
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some("é"), None]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(-7)]));
    write_parquet(path, &RecordBatch::try_from_iter([("name", names), ("number", numbers)]).unwrap());
}

fn text(min: &str, max: &str, deprecated: bool) -> Statistics {
    let bytes = |text: &str| Some(ByteArray::from(text));
    Statistics::byte_array(bytes(min), bytes(max), None, Some(1), deprecated)
}

async fn found(path: &Path, filter: &str) -> String {
    World::open(&[path]).value(&format!("select count(*) from t where {filter}")).await
}

#[tokio::test]
async fn bounds_of_old_writers_rule_out_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    table(&path);
    assert_eq!(found(&path, "name = 'é'").await, "1");
    // Compared as signed bytes, the largest is the smallest.
    with_statistics(&path, 0, |_| Some(text("é", "b", true)));
    assert_eq!(found(&path, "name = 'b'").await, "1");
    assert_eq!(found(&path, "name > 'c'").await, "1");
    assert_eq!(World::open(&[&path]).value("select max(name) from t").await, "é");
    // The only value that the writer has looked at.
    with_statistics(&path, 0, |_| Some(text("b", "b", true)));
    assert_eq!(found(&path, "name = 'é'").await, "1");
    with_statistics(&path, 0, |_| Some(text("z", "a", false)));
    assert_eq!(found(&path, "name = 'b'").await, "1");
    with_statistics(&path, 1, |_| Some(Statistics::int64(Some(9), Some(2), None, Some(1), false)));
    assert_eq!(found(&path, "number = 3").await, "1");
    // What holds is believed: nobody has to read the file for this.
    with_statistics(&path, 1, |_| Some(Statistics::int64(Some(-7), Some(2), None, Some(1), false)));
    assert_eq!(found(&path, "number = 3").await, "0");
}
