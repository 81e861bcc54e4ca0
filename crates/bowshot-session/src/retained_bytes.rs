//! Memory that record batches keep alive. A column from a client shares the whole message that it arrived in; each
//! allocation counts once, with its full size.

use arrow::array::{Array, ArrayData};
use arrow::record_batch::RecordBatch;
use std::collections::HashMap;

/// Bytes of all allocations that the batches hold.
pub(crate) fn bytes(batches: &[RecordBatch]) -> usize {
    let mut allocations = HashMap::new();
    for column in batches.iter().flat_map(RecordBatch::columns) {
        collect(&column.to_data(), &mut allocations);
    }
    allocations.values().fold(0, |sum, size| sum.saturating_add(*size))
}

fn collect(data: &ArrayData, allocations: &mut HashMap<usize, usize>) {
    let validity = data.nulls().map(|nulls| nulls.buffer());
    for buffer in data.buffers().iter().chain(validity) {
        let held = allocations.entry(buffer.data_ptr().as_ptr().addr()).or_insert(0);
        *held = buffer.capacity().max(*held);
    }
    for child in data.child_data() {
        collect(child, allocations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int64Type;
    use std::sync::Arc;

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
