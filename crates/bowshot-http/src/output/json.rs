//! JSON: one object for the result, or one for each row.

use super::json_values::{JsonValues, check, options};
use super::{BatchSlicer, Encoder, PIECE_BYTES, refused, unencoded};
use arrow::datatypes::Schema;
use arrow::json::EncoderOptions;
use arrow::record_batch::RecordBatch;
use bowshot_api::variant::is_variant_type;
use bowshot_api::{Answer, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::HashSet;

/// `{"query_id": …, "columns": […], "rows": [[…], …], "row_count": …}`; after a failure `error` replaces the count.
pub(super) struct Json {
    /// Pending bytes before the next row.
    before: Vec<u8>,
    options: EncoderOptions,
    batches: BatchSlicer,
    rows: u64,
}

/// `[{"name": …, "type": …}, …]`, as answers describe columns.
pub(crate) fn columns(schema: &Schema) -> Value {
    let columns = schema.fields().iter();
    columns
        .map(|field| {
            let is_variant = is_variant_type(field.data_type());
            let data_type = if is_variant { "Variant".to_owned() } else { field.data_type().to_string() };
            json!({ "name": field.name(), "type": data_type, "nullable": field.is_nullable() })
        })
        .collect()
}

impl Json {
    pub(super) fn new(answer: &Answer) -> Result<Self> {
        let batches = BatchSlicer::plain(answer);
        check(&batches.schema).map_err(|error| refused("JSON", error))?;
        let head = format!(
            "{{\"query_id\":\"{}\",\"columns\":{},\"rows\":[\n",
            answer.query,
            columns(&batches.schema)
        );
        Ok(Self { before: head.into_bytes(), options: options(), batches, rows: 0 })
    }
}

impl Encoder for Json {
    bowshot_api::delegate! { batches: fn take(&mut self, batch: RecordBatch); }

    fn more(&mut self) -> Result<Option<Bytes>> {
        let Some(batch) = self.batches.slice(PIECE_BYTES)? else { return Ok(None) };
        let mut cells = JsonValues::new(&batch, &self.options).map_err(unencoded)?;
        let mut out = Vec::with_capacity(2 * PIECE_BYTES);
        for row in 0..batch.num_rows() {
            out.append(&mut self.before);
            out.push(b'[');
            for column in 0..batch.num_columns() {
                if column > 0 {
                    out.push(b',');
                }
                cells.put(column, row, &mut out);
            }
            out.push(b']');
            self.before.extend_from_slice(b",\n");
            self.rows += 1;
        }
        Ok(Some(out.into()))
    }

    fn end(&mut self) -> Result<Bytes> {
        let mut out = if self.rows == 0 { std::mem::take(&mut self.before) } else { b"\n".to_vec() };
        out.extend_from_slice(format!("],\"row_count\":{}}}\n", self.rows).as_bytes());
        Ok(out.into())
    }

    fn failed(&mut self, error: &Value) -> Option<Bytes> {
        let mut out = if self.rows == 0 { std::mem::take(&mut self.before) } else { b"\n".to_vec() };
        let error = error.get("error").cloned().unwrap_or_default();
        out.extend_from_slice(format!("],\"error\":{error}}}\n").as_bytes());
        Some(out.into())
    }
}

/// One object per row and line; after a failure, the last line is `{"error": …}`.
pub(super) struct Lines {
    /// Column names with separators.
    names: Vec<Vec<u8>>,
    options: EncoderOptions,
    batches: BatchSlicer,
}

impl Lines {
    pub(super) fn new(answer: &Answer) -> Result<Self> {
        let batches = BatchSlicer::plain(answer);
        check(&batches.schema).map_err(|error| refused("JSON", error))?;
        let names = unique(&batches.schema).into_iter().enumerate().map(|(index, name)| {
            let before = if index == 0 { "" } else { "," };
            format!("{before}{}:", Value::String(name)).into_bytes()
        });
        Ok(Self { names: names.collect(), options: options(), batches })
    }
}

/// Column names, with numbers that make them unique.
fn unique(schema: &Schema) -> Vec<String> {
    let mut taken: HashSet<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut given = HashSet::new();
    let names = schema.fields().iter().map(|field| {
        let mut name = field.name().clone();
        let mut number: u64 = 2;
        while !given.insert(name.clone()) {
            name = format!("{}_{number}", field.name());
            number += 1;
            if !taken.insert(name.clone()) {
                name.clone_from(field.name());
            }
        }
        name
    });
    names.collect()
}

impl Encoder for Lines {
    bowshot_api::delegate! { batches: fn take(&mut self, batch: RecordBatch); }

    fn more(&mut self) -> Result<Option<Bytes>> {
        let Some(batch) = self.batches.slice(PIECE_BYTES)? else { return Ok(None) };
        let mut cells = JsonValues::new(&batch, &self.options).map_err(unencoded)?;
        let mut out = Vec::with_capacity(2 * PIECE_BYTES);
        for row in 0..batch.num_rows() {
            out.push(b'{');
            for (column, name) in self.names.iter().enumerate() {
                out.extend_from_slice(name);
                cells.put(column, row, &mut out);
            }
            out.extend_from_slice(b"}\n");
        }
        Ok(Some(out.into()))
    }

    fn end(&mut self) -> Result<Bytes> {
        Ok(Bytes::new())
    }

    fn failed(&mut self, error: &Value) -> Option<Bytes> {
        Some(format!("{error}\n").into())
    }
}
