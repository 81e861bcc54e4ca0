//! The objects of a text as batches in the types of its table. A row is read anew from its beginning when it turns out not to
//! be there to its end yet, and taken back when it is wrong.

use super::columns::{Column, Wrong};
use super::cursor::{Cursor, Trouble, Unfit};
use super::input_buffer::{Stop, Window};
use super::object::Object;
use super::{JsonFacts, Strange};
use crate::batches::{self, Request};
use crate::data_file::DataFile;
use crate::rejects::Reject;
use crate::text::LineNumbers;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, SchemaRef};
use bowshot_object_store::Error;
use std::collections::HashSet;
use std::io::Read;
use std::sync::{Arc, OnceLock};

/// Bytes of the text that a batch takes at most.
const MAX_BATCH_BYTES: usize = 64 << 20;

pub(super) struct Rows {
    file: Arc<DataFile>,
    facts: Arc<JsonFacts>,
    fault: Arc<OnceLock<Error>>,
    window: Window,
    top: Object,
    schema: SchemaRef,
    batch_rows: usize,
    line_numbers: LineNumbers,
    /// Lines before each row of the batch.
    lines: Vec<u64>,
    layout: Layout,
}

/// How rows follow one another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// They are the elements of a list.
    pub(super) array: bool,
    /// Whether a row of the list was read.
    pub(super) begun: bool,
}

impl Layout {
    /// Goes to where the next row begins; false if there is none. `last`: the text ends with the cursor's bytes.
    pub(super) fn to_row(self, cursor: &mut Cursor<'_>, last: bool) -> Result<bool, Trouble> {
        let is_at_end = |cursor: &mut Cursor<'_>| match cursor.peek() {
            Ok(_) => Ok(false),
            Err(Trouble::End) if last => Ok(true),
            Err(trouble) => Err(trouble),
        };
        let there = match (self.array, self.begun) {
            (false, _) => !is_at_end(cursor)?,
            (true, false) => cursor.peek()? == b'[' && cursor.enter(b']')?,
            (true, true) => cursor.more(b']')?,
        };
        if !there {
            return match is_at_end(cursor)? {
                true => Ok(false),
                false => Err(Trouble::Syntax("something follows the end of the list")),
            };
        }
        match cursor.peek()? {
            b'{' => Ok(true),
            _ => Err(Trouble::Syntax("a row is not an object")),
        }
    }
}

pub(super) struct Opened {
    pub(super) bytes: Box<dyn Read + Send>,
    pub(super) fault: Arc<OnceLock<Error>>,
    pub(super) start: u64,
}

enum Outcome {
    /// A row, from where to where.
    Row(usize, usize),
    End,
    /// What is wrong, and where.
    Failed(Trouble, usize),
}

impl Rows {
    pub(super) fn new(
        file: &Arc<DataFile>,
        facts: &Arc<JsonFacts>,
        opened: Opened,
        request: &Request,
    ) -> Self {
        let columns = columns(facts, &request.schema);
        let names = facts.shape.names();
        Self {
            file: Arc::clone(file),
            facts: Arc::clone(facts),
            fault: opened.fault,
            window: Window::new(opened.bytes, facts.max_bytes()),
            batch_rows: batches::rows_of(request.batch_size, columns.len()),
            top: Object::new(columns, names, matches!(facts.strange, Strange::LeftOut)),
            schema: Arc::clone(&request.schema),
            line_numbers: LineNumbers::new(opened.start),
            lines: Vec::new(),
            layout: Layout { array: facts.array, begun: false },
        }
    }

    pub(super) fn batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        self.lines.clear();
        let mut bytes = 0;
        while self.lines.len() < self.batch_rows && bytes < MAX_BATCH_BYTES {
            match self.row()? {
                Some(taken) => bytes += taken,
                None => break,
            }
        }
        if self.lines.is_empty() {
            return Ok(None);
        }
        let rows = self.lines.len();
        let (wanted, checked) = self.top.columns.split_at_mut(self.schema.fields().len());
        checked.iter_mut().for_each(|column| column.truncate(0));
        let columns = wanted.iter_mut().map(|column| column.finish(rows)).collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(|wrong| self.wrong_column(&wrong))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        batch.map(Some).map_err(|error| Error::corrupt(self.file.path(), error))
    }

    /// Takes the next row, and gives its length in bytes; `None` behind the last.
    fn row(&mut self) -> Result<Option<usize>, Error> {
        loop {
            let row = self.lines.len();
            let (trouble, place) = match self.attempt(row) {
                Outcome::Row(begin, end) => {
                    let bytes = end - self.window.at;
                    self.lines.push(self.window.lines_before(begin));
                    self.window.advance(end);
                    self.layout.begun = true;
                    return Ok(Some(bytes));
                }
                Outcome::End => return Ok(None),
                Outcome::Failed(trouble, place) => (trouble, place),
            };
            self.top.truncate(row);
            if matches!(trouble, Trouble::End) && !self.window.last {
                self.window.fill().map_err(|stop| self.stopped(stop))?;
            } else if !self.leave_out(&trouble)? {
                return Err(self.explain(trouble, place));
            }
        }
    }

    fn attempt(&mut self, row: usize) -> Outcome {
        let mut cursor = Cursor::new(self.window.bytes(), self.window.at);
        match self.layout.to_row(&mut cursor, self.window.last) {
            Ok(true) => {}
            Ok(false) => return Outcome::End,
            Err(trouble) => return Outcome::Failed(trouble, cursor.at()),
        }
        let begin = cursor.at();
        match self.top.take(&mut cursor, row) {
            Ok(()) => Outcome::Row(begin, cursor.at()),
            Err(trouble) => Outcome::Failed(trouble, cursor.at()),
        }
    }

    /// Goes behind a row that cannot be read, if such rows are to be left out and its end can be told.
    fn leave_out(&mut self, trouble: &Trouble) -> Result<bool, Error> {
        if !self.facts.ignores_errors() || self.outgrows(trouble) {
            return Ok(false);
        }
        let mut cursor = Cursor::new(self.window.bytes(), self.window.at);
        match self.layout.to_row(&mut cursor, self.window.last) {
            Ok(true) => {}
            // A line that is no object.
            Err(Trouble::Syntax(_)) if self.facts.lines => {}
            _ => return Ok(false),
        }
        let begin = cursor.at();
        let end = match cursor.skip() {
            Ok(_) => cursor.at(),
            Err(_) if self.facts.lines => match self.window.line_end(begin) {
                Some(end) => end,
                None => return Ok(false),
            },
            Err(_) => return Ok(false),
        };
        let line = self.line(self.window.lines_before(begin));
        let reason = reason(trouble);
        let (column, value) = match trouble {
            Trouble::Unfit(unfit) => (Some(unfit.column.clone()), Some(unfit.value.clone())),
            _ => (None, None),
        };
        self.facts.rejects.add(Reject { line, column, value, reason });
        self.window.advance(end);
        self.layout.begun = true;
        Ok(true)
    }

    /// Whether the first rows have not shown what is met now, and all rows are to be looked at for that.
    fn outgrows(&self, trouble: &Trouble) -> bool {
        let told = matches!(self.facts.strange, Strange::Outgrows(_)) && !self.facts.whole;
        told && match trouble {
            Trouble::Unfit(unfit) => !unfit.asked,
            Trouble::Unknown(_) => true,
            Trouble::End | Trouble::Syntax(_) => false,
        }
    }

    fn explain(&self, trouble: Trouble, place: usize) -> Error {
        if let Some(fault) = self.fault.get() {
            return fault.clone();
        }
        let (path, detail) = (self.file.path().to_path_buf(), reason(&trouble));
        let line = self.line(self.window.lines_before(place));
        if self.outgrows(&trouble) {
            self.facts.outgrow();
            return Error::Outgrown { path, line, detail };
        }
        Error::Value { path, line, detail }
    }

    fn stopped(&self, stop: Stop) -> Error {
        let fault = self.fault.get().cloned();
        fault.unwrap_or_else(|| stopped(&self.file, stop, self.line(self.window.lines)))
    }

    fn wrong_column(&self, wrong: &Wrong) -> Error {
        let before = wrong.row.and_then(|row| self.lines.get(row)).or(self.lines.first());
        let line = self.line(before.copied().unwrap_or(0));
        let here = if wrong.row.is_some() { "" } else { ", here or below" };
        Error::Value { path: self.file.path().to_path_buf(), line, detail: format!("{}{here}", wrong.detail) }
    }

    /// The number of a line of the text in its file.
    fn line(&self, before: u64) -> u64 {
        self.line_numbers.number(&self.file, before)
    }
}

/// The wanted columns in order, and behind them those that are only checked: a wrong value leaves the row out.
fn columns(facts: &JsonFacts, wanted: &SchemaRef) -> Vec<Column> {
    let column = |field: &Arc<Field>| {
        Column::new(
            field.name(),
            field.data_type(),
            facts.shape.member(field.name()),
            &facts.reading(field.name()),
        )
    };
    let mut columns: Vec<Column> = wanted.fields().iter().map(column).collect();
    if facts.ignores_errors() {
        let there: HashSet<&str> = wanted.fields().iter().map(|field| field.name().as_str()).collect();
        let others = facts.columns.fields().iter().filter(|field| !there.contains(field.name().as_str()));
        columns.extend(others.map(column));
    }
    columns
}

/// Why there is no more of a text.
pub(super) fn stopped(file: &DataFile, stop: Stop, line: u64) -> Error {
    let path = file.path().to_path_buf();
    match stop {
        Stop::Reading(error) => Error::corrupt(&path, error),
        Stop::TooLong(bytes) => Error::Record {
            path,
            line,
            detail: format!("an object has more than {bytes} bytes"),
            hint: "raise `maximum_object_size`, if the object is meant to be that long",
        },
    }
}

pub(super) fn reason(trouble: &Trouble) -> String {
    match trouble {
        Trouble::End => "the file ends within a value".to_owned(),
        Trouble::Syntax(what) => (*what).to_owned(),
        Trouble::Unknown(key) => format!("the key `{key}` is not a column"),
        Trouble::Unfit(unfit) => {
            let Unfit { column, value, data_type, .. } = unfit.as_ref();
            format!("`{value}` in column `{column}` is not a value of type {data_type}")
        }
    }
}
