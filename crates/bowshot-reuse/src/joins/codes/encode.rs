//! Codes for the texts of a computed join.

use super::{code_name, is_code};
use bowshot_kernels::codes::Dictionary;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, LargeStringArray, RecordBatch, UInt16Array, UInt16Builder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt16Type};
use datafusion::common::Result;
use std::sync::Arc;

/// A text has to stand in so many rows on the mean: with fewer, grouping codes saves little.
const ROWS_PER_TEXT: usize = 4;
/// Different texts of a column at most. One code stays free: arrow takes no dictionary up again that has used all.
const MAX_TEXTS: usize = u16::MAX as usize;
/// Bytes of the different texts of a column at most.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Rows between two pauses: little enough that nobody waits for them.
const ROWS_OF_A_STEP: usize = 8 << 10;
/// Bytes of one row's text at most, on the mean of a batch.
const MAX_ROW_BYTES: usize = 256;

/// The batches with the codes of their texts, and the bytes that these add.
///
/// Those of an earlier version, which have codes already, keep them: only the texts of the others are looked at. Batches
/// begin with the same plain columns; codes stand behind them. `pause` is called every few thousand rows of a
/// column.
pub(in crate::joins) fn add_codes(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    pause: &dyn Fn(),
) -> Result<(SchemaRef, Vec<RecordBatch>, u64)> {
    let (schema, plain) = without_codes(schema, batches)?;
    let rows = plain.iter().map(RecordBatch::num_rows).sum();
    let mut columns: Vec<Vec<ArrayRef>> = plain.iter().map(|batch| batch.columns().to_vec()).collect();
    let (mut fields, mut bytes) = (schema.fields().to_vec(), 0);
    for place in 0..schema.fields().len() {
        let Some(codes) = Codes::of(batches, place, (rows, pause))? else { continue };
        let Some((field, name)) = fields.get(place).and_then(|field| Some((field, code_name(field.name())?)))
        else {
            continue;
        };
        let codes = codes.arrays(field.data_type())?;
        bytes += codes.bytes;
        fields.push(Arc::new(Field::new(name, codes.data_type, field.is_nullable())));
        columns.iter_mut().zip(codes.arrays).for_each(|(columns, codes)| columns.push(codes));
    }
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let batches = columns.into_iter().map(|columns| RecordBatch::try_new(Arc::clone(&schema), columns));
    let batches = batches.collect::<Result<_, _>>()?;
    Ok((schema, batches, bytes))
}

/// The batches with their plain columns only.
pub(in crate::joins) fn without_codes(
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let plain: Vec<usize> =
        (0..schema.fields().len()).filter(|place| !is_code(schema.field(*place))).collect();
    let batches = batches.iter().map(|batch| batch.project(&plain)).collect::<Result<_, _>>()?;
    Ok((Arc::new(schema.project(&plain)?), batches))
}

/// The codes of one column, batch by batch, and what they stand for.
struct Codes {
    keys: Vec<UInt16Array>,
    texts: LargeStringArray,
}

/// The same as columns.
struct Arrays {
    data_type: DataType,
    arrays: Vec<ArrayRef>,
    bytes: u64,
}

impl Codes {
    /// `None` for a column that is no text, or whose texts are too many or too long.
    fn of(batches: &[RecordBatch], place: usize, (rows, pause): (usize, &dyn Fn())) -> Result<Option<Self>> {
        let most = MAX_TEXTS.min(rows / ROWS_PER_TEXT);
        let mut texts = match batches.iter().find_map(|batch| earlier(batch, place)) {
            Some(codes) => Dictionary::of(cast(codes.values(), &DataType::LargeUtf8)?.as_string())?,
            None => Dictionary::default(),
        };
        let mut keys = Vec::with_capacity(batches.len());
        for batch in batches {
            if let Some(codes) = earlier(batch, place) {
                keys.push(codes.keys().clone());
                continue;
            }
            let column = batch.column(place);
            if column.get_array_memory_size() > column.len().max(1 << 10) * MAX_ROW_BYTES {
                return Ok(None);
            }
            let mut codes = UInt16Builder::with_capacity(column.len());
            for at in (0..column.len()).step_by(ROWS_OF_A_STEP) {
                pause();
                let step = column.slice(at, ROWS_OF_A_STEP.min(column.len() - at));
                let have_codes = texts.append(&step, &mut codes);
                if !have_codes || texts.count() > most || texts.bytes() > MAX_TEXT_BYTES {
                    return Ok(None);
                }
            }
            keys.push(codes.finish());
        }
        let texts = texts.finish();
        Ok((!texts.is_empty()).then_some(Self { keys, texts }))
    }

    fn arrays(self, data_type: &DataType) -> Result<Arrays> {
        let keys = self.keys.iter().map(|keys| keys.len() * 2 + keys.nulls().map_or(0, |_| keys.len() / 8));
        let bytes = (keys.sum::<usize>() + self.texts.len() * 16 + self.texts.value_data().len()) as u64;
        let texts = cast(&self.texts, data_type)?;
        let arrays = self.keys.into_iter().map(|keys| {
            let codes = DictionaryArray::<UInt16Type>::try_new(keys, Arc::clone(&texts))?;
            Ok(Arc::new(codes) as ArrayRef)
        });
        let data_type = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(data_type.clone()));
        Ok(Arrays { data_type, arrays: arrays.collect::<Result<_>>()?, bytes })
    }
}

/// The codes that a batch has for a column.
fn earlier(batch: &RecordBatch, place: usize) -> Option<&DictionaryArray<UInt16Type>> {
    let name = code_name(batch.schema_ref().fields().get(place)?.name())?;
    batch.column_by_name(&name)?.as_dictionary_opt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, StringArray, StringViewArray};

    fn batch(texts: ArrayRef) -> RecordBatch {
        let numbers = Arc::new(Int64Array::from_iter_values(0..texts.len() as i64)) as ArrayRef;
        RecordBatch::try_from_iter_with_nullable([("#0.n", numbers, false), ("#0.t", texts, true)])
            .expect("a batch")
    }

    fn add(batches: &[RecordBatch]) -> (SchemaRef, Vec<RecordBatch>, u64) {
        add_codes(&batches[0].schema(), batches, &|| {}).expect("codes")
    }

    fn decoded(batch: &RecordBatch) -> ArrayRef {
        let texts = batch.column_by_name("#0.t").expect("texts");
        cast(batch.column_by_name("@0.t").expect("codes"), texts.data_type()).expect("texts again")
    }

    fn repeated<'a>(texts: &[Option<&'a str>]) -> Vec<Option<&'a str>> {
        texts.iter().copied().cycle().take(64).collect()
    }

    #[test]
    fn codes_are_the_texts_in_each_type() {
        let texts = repeated(&[Some("a"), None, Some("größe of more than twelve bytes"), Some("")]);
        for texts in [
            Arc::new(StringArray::from(texts.clone())) as ArrayRef,
            Arc::new(LargeStringArray::from(texts.clone())),
            Arc::new(StringViewArray::from(texts.clone())),
        ] {
            let (schema, coded, bytes) = add(&[batch(Arc::clone(&texts)), batch(texts.slice(3, 11))]);
            assert_eq!(schema.fields().len(), 3);
            assert!(bytes > 0);
            for batch in &coded {
                assert_eq!(&decoded(batch), batch.column(1));
            }
        }
    }

    #[test]
    fn what_is_added_keeps_the_codes_that_are_there() {
        let first: ArrayRef = Arc::new(StringViewArray::from(repeated(&[Some("x"), Some("y")])));
        let second: ArrayRef = Arc::new(StringViewArray::from(repeated(&[Some("z"), None, Some("x")])));
        let (schema, mut batches, _) = add(&[batch(first)]);
        let keys = |batch: &RecordBatch| batch.column(2).as_dictionary::<UInt16Type>().keys().clone();
        let before = keys(&batches[0]);
        batches.push(batch(second));
        let (_, coded, _) = add_codes(&schema, &batches, &|| {}).expect("codes");
        assert_eq!(keys(&coded[0]), before);
        for batch in &coded {
            assert_eq!(&decoded(batch), batch.column(1));
            assert_eq!(batch.column(2).as_any_dictionary().values().len(), 3);
        }
    }

    #[test]
    fn what_codes_take_does_not_grow_by_looking_at_them_again() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(repeated(&[Some("x"), None, Some("yy")])));
        let (schema, batches, bytes) = add(&[batch(texts)]);
        assert_eq!(add_codes(&schema, &batches, &|| {}).expect("codes").2, bytes);
    }

    #[test]
    fn all_codes_but_one_are_used() {
        let rows = |count: usize| -> ArrayRef {
            let texts = (0..count * ROWS_PER_TEXT).map(|row| (row % count).to_string());
            Arc::new(StringArray::from_iter_values(texts))
        };
        let (schema, mut batches, _) = add(&[batch(rows(65_535))]);
        assert_eq!(schema.fields().len(), 3);
        batches.push(batch(rows(10)));
        assert_eq!(add_codes(&schema, &batches, &|| {}).expect("codes").0.fields().len(), 3);
        assert_eq!(add(&[batch(rows(65_536))]).0.fields().len(), 2);
    }

    #[test]
    fn too_many_or_too_long_texts_have_none() {
        let different = StringViewArray::from_iter_values((0..64).map(|number| number.to_string()));
        assert_eq!(add(&[batch(Arc::new(different))]).0.fields().len(), 2);
        let long = "x".repeat(64 << 10);
        let long = StringArray::from_iter_values(repeated(&[Some(&long)]).into_iter().flatten());
        assert_eq!(add(&[batch(Arc::new(long))]).0.fields().len(), 2);
        let none = StringArray::new_null(64);
        assert_eq!(add(&[batch(Arc::new(none))]).0.fields().len(), 2);
    }
}
