//! Codes for repeated texts. NULL has no code; combined with other codes, it counts as one more.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, LargeStringArray, LargeStringDictionaryBuilder, UInt16Array,
    UInt16Builder, UInt32Array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::eq;
use arrow::datatypes::{DataType, UInt16Type};
use arrow::error::ArrowError;

/// Adds the codes of one more column to the numbers that those before it are put together to: `number * count + code`. `count`
/// is how many codes there are, with the one for none.
pub fn put_together(numbers: &mut [u32], codes: &UInt16Array, count: u32) {
    let rows = numbers.iter_mut().zip(codes.values());
    match codes.nulls() {
        None => rows.for_each(|(all, code)| *all = *all * count + u32::from(*code)),
        Some(nulls) => rows.zip(nulls.iter()).for_each(|((all, code), valid)| {
            *all = *all * count + if valid { u32::from(*code) } else { count - 1 };
        }),
    }
}

/// One column of the codes that were put together: `stride` is the product of the counts of all columns behind it.
pub fn taken_apart(numbers: &UInt32Array, stride: u32, count: u32) -> UInt16Array {
    numbers
        .values()
        .iter()
        .map(|number| number / stride % count)
        .map(|code| u16::try_from(code).ok().filter(|_| code + 1 < count))
        .collect()
}

/// For each row, whether its code is one of those at whose places `wanted` is true.
pub fn are_in(codes: &UInt16Array, wanted: &BooleanBuffer) -> Result<BooleanArray, ArrowError> {
    let is_in = |code: &u16| {
        let code = usize::from(*code);
        code < wanted.len() && wanted.value(code)
    };
    let mut places = wanted.set_indices();
    match (places.next(), places.next()) {
        (Some(code), None) => eq(codes, &UInt16Array::new_scalar(u16::try_from(code).unwrap_or(u16::MAX))),
        _ => Ok(BooleanArray::new(codes.values().iter().map(is_in).collect(), codes.nulls().cloned())),
    }
}

/// The different texts of a column so far, each at the place that is its code.
pub struct Dictionary {
    builder: LargeStringDictionaryBuilder<UInt16Type>,
    count: usize,
    bytes: usize,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self { builder: LargeStringDictionaryBuilder::new(), count: 0, bytes: 0 }
    }
}

impl Dictionary {
    /// One that begins with these texts, which keep their places.
    pub fn of(texts: &LargeStringArray) -> Result<Self, ArrowError> {
        let builder = LargeStringDictionaryBuilder::new_with_dictionary(0, texts)?;
        Ok(Self { builder, count: texts.len(), bytes: texts.value_data().len() })
    }

    /// How many texts there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the codes of the texts of a column; `false` if that has none, or if there are more texts than codes.
    pub fn append(&mut self, column: &ArrayRef, codes: &mut UInt16Builder) -> bool {
        match column.data_type() {
            DataType::Utf8 => self.append_all(column.as_string::<i32>(), codes),
            DataType::LargeUtf8 => self.append_all(column.as_string::<i64>(), codes),
            DataType::Utf8View => self.append_all(column.as_string_view(), codes),
            _ => false,
        }
    }

    fn append_all<'a>(
        &mut self,
        texts: impl IntoIterator<Item = Option<&'a str>>,
        codes: &mut UInt16Builder,
    ) -> bool {
        for text in texts {
            let Some(text) = text else {
                codes.append_null();
                continue;
            };
            let Ok(code) = self.builder.append(text) else { return false };
            if usize::from(code) == self.count {
                (self.count, self.bytes) = (self.count + 1, self.bytes + text.len());
            }
            codes.append_value(code);
        }
        true
    }

    /// The texts.
    pub fn finish(mut self) -> LargeStringArray {
        self.builder.finish().values().as_string::<i64>().clone()
    }
}
