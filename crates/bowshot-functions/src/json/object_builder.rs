//! Lists of keys and values, built row by row.

use super::value::Json;
use datafusion::arrow::array::{ArrayRef, ListArray, NullBufferBuilder, StringBuilder, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{FieldRef, Fields};
use datafusion::common::Result;
use std::sync::Arc;

pub(crate) struct Pairs {
    element: FieldRef,
    fields: Fields,
    keys: StringBuilder,
    values: StringBuilder,
    lengths: Vec<usize>,
    valid: NullBufferBuilder,
}

impl Pairs {
    pub(crate) fn new(element: FieldRef, fields: Fields) -> Self {
        let (keys, values) = (StringBuilder::new(), StringBuilder::new());
        Self { element, fields, keys, values, lengths: Vec::new(), valid: NullBufferBuilder::new(0) }
    }

    pub(crate) fn null(&mut self) {
        self.lengths.push(0);
        self.valid.append_null();
    }

    /// The members of an object; the elements of an array with their indexes.
    pub(crate) fn of(&mut self, document: &Json<'_>, shown: fn(&Json<'_>) -> Option<String>) {
        let length = match document {
            Json::Object(members) => {
                for (key, value) in members {
                    self.keys.append_value(key);
                    self.values.append_option(shown(value));
                }
                members.len()
            }
            Json::Array(elements) => {
                for (index, value) in elements.iter().enumerate() {
                    self.keys.append_value(index.to_string());
                    self.values.append_option(shown(value));
                }
                elements.len()
            }
            scalar => {
                self.keys.append_null();
                self.values.append_option(shown(scalar));
                1
            }
        };
        self.lengths.push(length);
        self.valid.append_non_null();
    }

    pub(crate) fn finish(mut self) -> Result<ArrayRef> {
        let columns: Vec<ArrayRef> = vec![Arc::new(self.keys.finish()), Arc::new(self.values.finish())];
        let pairs = StructArray::try_new(self.fields, columns, None)?;
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Ok(Arc::new(ListArray::try_new(self.element, offsets, Arc::new(pairs), self.valid.finish())?))
    }
}
