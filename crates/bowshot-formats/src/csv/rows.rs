//! The records of a file as batches in the types of its table.

use super::CsvFacts;
use super::columns::{Column, Typing, Wrong};
use super::header;
use super::reader::{RecordReader, Trouble};
use crate::batches::{self, Request};
use crate::data_file::DataFile;
use crate::rejects::Reject;
use crate::text::{LineNumbers, shown};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bowshot_object_store::Error;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Bytes of the text that a batch takes at most.
const MAX_BATCH_BYTES: u64 = 64 << 20;

pub(super) struct Rows {
    pub(super) file: Arc<DataFile>,
    pub(super) facts: Arc<CsvFacts>,
    pub(super) reader: RecordReader,
    pub(super) fault: Arc<OnceLock<Error>>,
    line_numbers: LineNumbers,
    columns: Vec<(usize, Column)>,
    /// Columns that are only checked: a line that is left out for one of them is left out of every statement.
    checked: Vec<(usize, Column)>,
    schema: SchemaRef,
    batch_rows: usize,
    /// Lines before each row of the batch.
    lines: Vec<u64>,
}

impl Rows {
    pub(super) fn new(
        file: &Arc<DataFile>,
        facts: &Arc<CsvFacts>,
        (reader, fault, start): (RecordReader, Arc<OnceLock<Error>>, u64),
        request: &Request,
    ) -> Self {
        let batch_rows = batches::rows_of(request.batch_size, request.schema.fields().len());
        let by_name: HashMap<&str, &Field> =
            request.schema.fields().iter().map(|field| (field.name().as_str(), field.as_ref())).collect();
        let mut fields = Vec::with_capacity(by_name.len());
        let (mut columns, mut checked) = (Vec::with_capacity(by_name.len()), Vec::new());
        for (place, (name, typed)) in facts.names.iter().zip(&facts.types).enumerate() {
            let wanted = by_name.get(name.as_str());
            let other = wanted.is_none_or(|field| *field.data_type() != typed.data_type);
            let typing = match facts.options.type_of(name, place) {
                Some(_) => Typing::Asked,
                None => Typing::Guessed,
            };
            let column = |data_type: &DataType, rows: usize| {
                (place, Column::new((data_type, typing), &typed.notation, &facts.nulls, rows))
            };
            if facts.options.ignore_errors && other && typed.data_type != DataType::Null {
                checked.push(column(&typed.data_type, 0));
            }
            let Some(wanted) = wanted else { continue };
            fields.push(Field::new(name, wanted.data_type().clone(), true));
            columns.push(column(wanted.data_type(), batch_rows.min(8 << 10)));
        }
        Self {
            file: Arc::clone(file),
            facts: Arc::clone(facts),
            reader,
            fault,
            line_numbers: LineNumbers::new(start),
            columns,
            checked,
            schema: Arc::new(Schema::new(fields)),
            batch_rows,
            lines: Vec::new(),
        }
    }

    pub(super) fn batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        self.lines.clear();
        let begins = self.reader.position();
        while self.lines.len() < self.batch_rows && self.advance()? {
            self.take()?;
            // Without a row it would be the last batch, however many lines were left out.
            if !self.lines.is_empty() && self.reader.position() - begins > MAX_BATCH_BYTES {
                break;
            }
        }
        if self.lines.is_empty() {
            return Ok(None);
        }
        self.finish().map(Some)
    }

    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            let trouble = match self.reader.advance() {
                Ok(there) => return Ok(there),
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Broken(fault) if self.facts.options.ignore_errors => {
                    self.reject(None, fault.text());
                    self.reader.skip_lines(1).map_err(|trouble| self.explain(&trouble))?;
                }
                trouble => return Err(self.explain(&trouble)),
            }
        }
    }

    fn take(&mut self) -> Result<(), Error> {
        let width = self.facts.names.len();
        if self.reader.len() > width || self.facts.options.exact {
            let extra = (width..self.reader.len()).any(|place| !self.reader.value(place).is_empty());
            if extra || (self.facts.options.exact && self.reader.len().max(1) < width) {
                let detail = format!("{} values for {width} columns", self.reader.len());
                if self.facts.options.ignore_errors {
                    self.reject(None, &detail);
                    return Ok(());
                }
                return Err(self.ragged(detail));
            }
        }
        if self.facts.options.ignore_errors {
            let wrong = self
                .columns
                .iter()
                .chain(&self.checked)
                .find(|(place, column)| !column.takes(self.reader.value(*place)));
            if let Some((place, column)) = wrong {
                let detail = format!("not a value of type {}", column.data_type());
                self.reject(Some(*place), &detail);
                return Ok(());
            }
        }
        for (place, column) in &mut self.columns {
            if !column.push(self.reader.value(*place)) {
                let data_type = column.data_type().clone();
                let place = *place;
                return Err(self.wrong_value(place, &data_type));
            }
        }
        self.lines.push(self.reader.lines_before());
        Ok(())
    }

    fn finish(&mut self) -> Result<RecordBatch, Error> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            let (place, column) = &mut self.columns[at];
            let (place, data_type) = (*place, column.data_type().clone());
            match column.finish() {
                Ok(array) => arrays.push(array),
                Err(error) => return Err(self.wrong_column(place, &data_type, &error)),
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.lines.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| Error::corrupt(self.file.path(), error))
    }

    fn line(&self, before: u64) -> u64 {
        self.line_numbers.number(&self.file, before)
    }

    fn wrong_value(&self, place: usize, data_type: &DataType) -> Error {
        let (value, name) = (self.reader.value(place), self.name(place));
        let asked = self.facts.options.type_of(name, place).is_some();
        let guessed = if asked { "" } else { ", which the first rows of the file show" };
        let detail =
            format!("`{}` in column `{name}` is not a value of type {data_type}{guessed}", shown(value));
        Error::Value {
            path: self.file.path().to_path_buf(),
            line: self.line(self.reader.lines_before()),
            detail,
        }
    }

    /// A column that is cast, or checked, as a whole.
    fn wrong_column(&self, place: usize, data_type: &DataType, wrong: &Wrong) -> Error {
        let name = self.name(place);
        let line = self.line(self.lines.get(wrong.row).copied().unwrap_or(0));
        let path = self.file.path().to_path_buf();
        if let Some(value) = &wrong.value {
            let value = shown(value.as_bytes());
            let detail = format!("`{value}` in column `{name}` is not a value of type {data_type}");
            return Error::Value { path, line, detail };
        }
        if *data_type == DataType::Utf8 {
            let detail = format!("column `{name}` has invalid UTF-8, here or below");
            let hint = "set the option `encoding`, for instance to windows-1252";
            return Error::Record { path, line, detail, hint };
        }
        Error::Value { path, line, detail: format!("column `{name}`, here or below: {}", wrong.error) }
    }

    fn ragged(&self, detail: String) -> Error {
        let hint = match self.facts.options.exact {
            true => "correct the line, or name the columns that the file has",
            false => {
                "correct the line, set `null_padding=true` with `sample_size=-1` for columns that few lines have, or \
                 `ignore_errors=true` to leave such lines out"
            }
        };
        let line = self.line(self.reader.lines_before());
        Error::Record { path: self.file.path().to_path_buf(), line, detail, hint }
    }

    pub(super) fn explain(&self, trouble: &Trouble) -> Error {
        explain(&self.file, &self.fault, trouble, self.line(self.reader.lines_before()))
    }

    fn reject(&self, place: Option<usize>, detail: &str) {
        let value = place.map(|place| shown(self.reader.value(place)));
        self.facts.rejects.add(Reject {
            line: self.line(self.reader.lines_before()),
            column: place.map(|place| self.name(place).to_owned()),
            value,
            reason: detail.to_owned(),
        });
    }

    fn name(&self, place: usize) -> &str {
        self.facts.names.get(place).map_or("", String::as_str)
    }
}

/// What keeps a text from being read, with its place and what to do.
pub(super) fn explain(file: &DataFile, fault: &OnceLock<Error>, trouble: &Trouble, line: u64) -> Error {
    if let Some(fault) = fault.get() {
        return fault.clone();
    }
    let path = file.path().to_path_buf();
    match trouble {
        Trouble::Reading(error) => Error::corrupt(&path, error),
        Trouble::Broken(fault) => Error::Record {
            path,
            line,
            detail: fault.text().to_owned(),
            hint: "correct the line, or set `quote=` (no quotes) if values contain plain quotes",
        },
        Trouble::TooLong(bytes) => Error::Record {
            path,
            line,
            detail: format!("a line is longer than {bytes} bytes"),
            hint: "set `quote=` if an unclosed quote makes it so long, else raise `max_line_size`",
        },
    }
}

pub(super) fn names(found: &[String]) -> Vec<String> {
    header::usable(found)
}
