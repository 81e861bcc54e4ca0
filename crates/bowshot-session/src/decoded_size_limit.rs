//! Limits the decoded size of batches that clients send: dictionaries and runs may expand to many times their encoded
//! size.

use arrow::array::{Array, ArrayRef, AsArray, RunArray};
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, ErrorKind, Result};

const MAX_BYTES: u64 = 1 << 30;
/// Rows of one batch; each costs something however small.
const MAX_ROWS: usize = 1 << 27;

/// Refuses too large batches.
///
/// # Errors
/// `LimitReached`.
pub(crate) fn check(batch: &RecordBatch) -> Result<()> {
    let bytes = batch.columns().iter().fold(0_u64, |sum, column| sum.saturating_add(bytes(column)));
    if bytes <= MAX_BYTES && batch.num_rows() <= MAX_ROWS {
        return Ok(());
    }
    let message = format!("a batch of {} rows has {bytes} decoded bytes", batch.num_rows());
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint(format!("send at most {MAX_ROWS} rows and {MAX_BYTES} bytes at a time")))
}

fn bytes(array: &ArrayRef) -> u64 {
    match array.data_type() {
        DataType::Dictionary(..) => dictionary_bytes(array),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => run_bytes::<Int16Type>(array),
            DataType::Int32 => run_bytes::<Int32Type>(array),
            _ => run_bytes::<Int64Type>(array),
        },
        DataType::Struct(_) => {
            let columns = array.as_struct_opt().map(|row| row.columns().to_vec()).unwrap_or_default();
            columns.iter().fold(0, |sum, column| sum + bytes(column))
        }
        DataType::List(_) => array.as_list_opt::<i32>().map_or(0, |list| bytes(list.values())),
        DataType::LargeList(_) => array.as_list_opt::<i64>().map_or(0, |list| bytes(list.values())),
        DataType::Map(..) => {
            array.as_map_opt().map_or(0, |map| map.entries().columns().iter().map(bytes).sum())
        }
        // Other types are sent decoded.
        _ => 0,
    }
}

/// Size of the largest value of a column: an exact sum would cost as much as decoding.
fn largest(values: &ArrayRef) -> u64 {
    let size = |at: usize| values.slice(at, 1).to_data().get_slice_memory_size().unwrap_or(0) as u64;
    match values.data_type() {
        DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => {
            (0..values.len()).map(size).max().unwrap_or(0)
        }
        data_type => match data_type.primitive_width() {
            Some(width) => width as u64,
            None => (values.get_array_memory_size() as u64).max(bytes(values)),
        },
    }
}

fn dictionary_bytes(array: &ArrayRef) -> u64 {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return 0 };
    let values = dictionary.values();
    let rows = array.len() as u64;
    if largest(values).saturating_mul(rows) <= MAX_BYTES {
        return largest(values).saturating_mul(rows);
    }
    if values.is_empty() {
        return 0;
    }
    let sizes: Vec<u64> = (0..values.len())
        .map(|at| values.slice(at, 1).to_data().get_slice_memory_size().unwrap_or(0) as u64)
        .collect();
    let keys = dictionary.normalized_keys();
    keys.iter().fold(0, |sum: u64, key| sum.saturating_add(sizes.get(*key).copied().unwrap_or(0)))
}

fn run_bytes<E: RunEndIndexType>(array: &ArrayRef) -> u64 {
    let Some(runs) = array.as_any().downcast_ref::<RunArray<E>>() else { return 0 };
    largest(runs.values()).saturating_mul(array.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, Int8Array, Int32Array, StringArray};
    use std::sync::Arc;

    fn batch(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("c", column)]).unwrap()
    }

    #[test]
    fn few_bytes_that_become_many_are_refused() {
        let words = |length: usize, rows: usize| {
            let values: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(length), "y".to_owned()]));
            let keys = Int8Array::from(vec![0_i8; rows]);
            batch(Arc::new(DictionaryArray::try_new(keys, values).unwrap()))
        };
        assert!(check(&words(10, 1_000_000)).is_ok());
        assert_eq!(check(&words(1 << 20, 5_000)).unwrap_err().kind(), ErrorKind::LimitReached);
        let values: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20), "y".to_owned()]));
        let rare = DictionaryArray::try_new(Int8Array::from(vec![1_i8; 100_000]), values).unwrap();
        assert!(check(&batch(Arc::new(rare))).is_ok(), "the long value is not used");
        let run = |rows: i32, length: usize| {
            let values = StringArray::from(vec!["x".repeat(length)]);
            batch(Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![rows]), &values).unwrap()))
        };
        assert!(check(&run(1_000_000, 10)).is_ok());
        assert!(check(&run(1_000_000, 10_000)).is_err());
        assert!(check(&run(i32::MAX, 1)).is_err());
        assert!(check(&batch(Arc::new(StringArray::from(vec!["x".repeat(1 << 20)])))).is_ok());
    }
}
