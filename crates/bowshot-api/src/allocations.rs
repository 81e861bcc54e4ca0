//! Memory that columns keep alive. Arrays share allocations: slices of one batch, columns that came in one network message, columns
//! that a rewritten table took over. So whole allocations are counted, each once, not arrays.

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::buffer::NullBuffer;
use std::collections::BTreeMap;

/// The allocations behind columns: address and bytes.
pub fn allocations<'a>(columns: impl IntoIterator<Item = &'a ArrayRef>) -> BTreeMap<usize, u64> {
    let mut found = BTreeMap::new();
    for column in columns {
        add(&column.to_data(), &mut found);
    }
    found
}

fn add(array: &ArrayData, found: &mut BTreeMap<usize, u64>) {
    let validity = array.nulls().map(NullBuffer::buffer);
    // Empty buffers have no allocation but a made-up address, which they share.
    for buffer in array.buffers().iter().chain(validity).filter(|buffer| buffer.capacity() > 0) {
        let bytes = found.entry(buffer.data_ptr().as_ptr().addr()).or_insert(0);
        *bytes = (*bytes).max(buffer.capacity() as u64);
    }
    for child in array.child_data() {
        add(child, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, ListArray, RecordBatch, StringArray};
    use arrow::datatypes::Int64Type;
    use std::sync::Arc;

    fn bytes(batches: &[RecordBatch]) -> u64 {
        allocations(batches.iter().flat_map(RecordBatch::columns)).values().sum()
    }

    fn batch(column: impl Array + 'static) -> RecordBatch {
        RecordBatch::try_from_iter([("c", Arc::new(column) as _)]).unwrap()
    }

    #[test]
    fn a_slice_counts_as_what_it_keeps_and_once() {
        let whole = batch(Int64Array::from_iter_values(0..10_000));
        let slices = [whole.slice(0, 1), whole.slice(5, 2)];
        assert!(bytes(&slices) >= 80_000 && bytes(&slices) < 100_000, "{}", bytes(&slices));
        assert_eq!(bytes(&slices), bytes(&[whole]));
        assert_eq!(bytes(&[]), 0);
    }

    #[test]
    fn children_and_validity_count() {
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1); 1_000]), None]);
        assert!(bytes(&[batch(list)]) > 8_000);
        assert!(bytes(&[batch(StringArray::from(vec![Some("x".repeat(5_000)), None]))]) > 5_000);
    }
}
