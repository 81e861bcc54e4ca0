//! Dictionary-encoded columns: where a schema has them, and the values that a stream has sent so far.

use crate::decode::guarded;
use crate::error::{Error, Result};
use crate::slice_size::Measure;
use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, UInt64Array, make_array, new_empty_array,
};
use arrow::compute::{cast, concat, filter};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use std::collections::HashMap;
use std::sync::Arc;

/// The first column that is dictionary-encoded or has a dictionary inside.
pub(crate) fn first_dictionary(schema: &Schema) -> Option<String> {
    let found = schema.fields().iter().find(|field| has_dictionary(field))?;
    Some(found.name().clone())
}

fn has_dictionary(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(_, _) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_dictionary(item),
        DataType::RunEndEncoded(_, values) => has_dictionary(values),
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field)),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_dictionary(field)),
        _ => false,
    }
}

/// For each value of the dictionary whether a row uses it.
fn used(array: &dyn Array) -> Vec<bool> {
    let dictionary = array.as_any_dictionary();
    let mut used = vec![false; dictionary.values().len()];
    for (row, key) in dictionary.normalized_keys().into_iter().enumerate() {
        if array.is_valid(row)
            && let Some(used) = used.get_mut(key)
        {
            *used = true;
        }
    }
    used
}

/// Those values of the dictionary that the rows use.
pub(crate) fn used_values(array: &dyn Array) -> ArrayRef {
    let values = array.as_any_dictionary().values();
    // Arrow filters every type; only a length that differs is an error.
    filter(values, &BooleanArray::from(used(array))).unwrap_or_else(|_| ArrayRef::clone(values))
}

/// The same rows with a dictionary that holds nothing else.
pub(crate) fn shrink(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let dictionary = array.as_any_dictionary();
    let DataType::Dictionary(key_type, value_type) = array.data_type() else {
        return Ok(ArrayRef::clone(array));
    };
    if dictionary.values().is_empty() {
        return Ok(ArrayRef::clone(array));
    }
    let mut next = 0;
    let places: Vec<u64> = used(array)
        .iter()
        .map(|used| {
            let place = next;
            next += u64::from(*used);
            place
        })
        .collect();
    let keys = dictionary.normalized_keys().into_iter().map(|key| places.get(key).copied().unwrap_or(0));
    let keys: Vec<u64> =
        keys.enumerate().map(|(row, key)| if array.is_valid(row) { key } else { 0 }).collect();
    let keys = UInt64Array::new(keys.into(), array.nulls().cloned());
    let values = if next == 0 { new_empty_array(value_type) } else { used_values(array) };
    let keys: ArrayData = cast(&keys, key_type)?.to_data();
    let data =
        keys.into_builder().data_type(array.data_type().clone()).add_child_data(values.to_data()).build()?;
    Ok(make_array(data))
}

#[derive(Debug, Default)]
pub(crate) struct Dictionaries {
    by_id: HashMap<i64, ArrayRef>,
    bytes: HashMap<i64, usize>,
}

impl Dictionaries {
    pub(crate) fn by_id(&self) -> &HashMap<i64, ArrayRef> {
        &self.by_id
    }

    /// A schema of one column for the values of the dictionary with this id.
    pub(crate) fn schema_of(id: i64, schema: &Schema) -> Result<SchemaRef> {
        #[expect(
            deprecated,
            reason = "Arrow deprecates ids in fields but its IPC reader still keeps them there"
        )]
        let fields = schema.fields_with_dict_id(id);
        match fields.first().map(|field| field.data_type()) {
            Some(DataType::Dictionary(_, values)) => {
                Ok(Arc::new(Schema::new(vec![Field::new("values", values.as_ref().clone(), true)])))
            }
            _ => Err(Error::malformed(format!("a dictionary of unknown id: {id}"))),
        }
    }

    /// Sets or extends a dictionary; all of them together may have `max_bytes`.
    pub(crate) fn add(
        &mut self,
        dictionary: arrow_ipc::DictionaryBatch<'_>,
        values: RecordBatch,
        max_bytes: usize,
    ) -> Result<()> {
        let id = dictionary.id();
        let [added] = values.columns() else {
            return Err(Error::malformed("a dictionary with more than one column"));
        };
        let added_bytes = Measure { dictionary_limit: usize::MAX }.bytes(added);
        let old_bytes = self.bytes.get(&id).copied().unwrap_or(0);
        let kept_bytes = if dictionary.isDelta() { old_bytes } else { 0 };
        let total = self.bytes.values().sum::<usize>() - old_bytes + kept_bytes + added_bytes;
        if total > max_bytes {
            let (found, limit) = (total as u64, max_bytes as u64);
            return Err(Error::TooLarge { what: "bytes of dictionaries", found, limit });
        }
        let values = if dictionary.isDelta() {
            let old = self.by_id.get(&id);
            let old = old.ok_or_else(|| Error::malformed("an addition to a dictionary that never came"))?;
            guarded(|| concat(&[old, added]))?
        } else {
            ArrayRef::clone(added)
        };
        self.by_id.insert(id, values);
        self.bytes.insert(id, kept_bytes + added_bytes);
        Ok(())
    }
}
