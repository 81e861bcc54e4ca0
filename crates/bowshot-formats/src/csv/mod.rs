//! Separated values: how a file is written, its columns, and its rows as batches.
//!
//! ```text
//! bytes ─ encoding ─▶ text ─ sniff (dialect, header) ─▶ guess (types) ─▶ facts
//!                     text ─ reader, record ─▶ values ─ columns ─▶ batches (rows)
//! ```
//!
//! Columns go by name, so files of one table may order or lack columns differently; each file is read with its own
//! dialect and notations, and the table's types. What of it was asked for ([`ReadOptions`]) is not guessed.

mod columns;
mod dialect;
pub mod encoding;
mod header;
mod ranges;
mod reader;
mod record;
mod rows;
mod sniff;
mod type_inference;
pub mod values;

use crate::batches::{Batches, Request};
use crate::data_file::DataFile;
use crate::excel;
use crate::file_metadata::{Detail, FileFacts};
use crate::read_options::ReadOptions;
use crate::rejects::Rejects;
use crate::text::{MAX_LINE_BYTES, TextReader};
use arrow::datatypes::{DataType, Field, Schema};
use bowshot_object_store::Error;
use bowshot_object_store::file_name::{Compression, Format, Kind};
use columns::Nulls;
use dialect::{Dialect, Preamble};
use encoding::Transcoded;
use reader::{RecordReader, Trouble};
use rows::Rows;
use sniff::{Doubtful, Sample};
use std::io::{Cursor, Read};
use std::sync::{Arc, OnceLock};
use type_inference::{Guess, Typed};
use values::Notation;

pub(crate) use sniff::NO_DELIMITER;
pub use type_inference::Habits;
pub(crate) use values::strptime;

/// Bytes of the text that its dialect is told by.
const SNIFFED_BYTES: u64 = 1 << 20;
/// The same of a text whose lines are so long that these would be few.
const MAX_SNIFFED_BYTES: u64 = 16 << 20;
/// Lines that tell a dialect.
const LEAST_LINES: usize = 4;
/// Bytes that its encoding is told by.
const ENCODING_BYTES: u64 = 1 << 20;

/// How a file is written, and what was found on the way.
#[derive(Debug)]
pub struct CsvFacts {
    pub dialect: Dialect,
    pub preamble: Preamble,
    pub names: Vec<String>,
    pub types: Vec<Typed>,
    pub options: ReadOptions,
    pub notes: Vec<String>,
    /// Whether the file shows that it has a header, or that it has none.
    pub certain: bool,
    pub habits: Habits,
    /// Whether habits of other files may change what values mean.
    pub is_open: bool,
    nulls: Arc<Nulls>,
    /// Bytes before the first row.
    begins: u64,
    quoted_newlines: OnceLock<bool>,
    pub rejects: Rejects,
}

impl CsvFacts {
    /// What was found, in words.
    pub fn story(&self) -> String {
        let mut story = self.notes.join(", ");
        for (name, typed) in self.names.iter().zip(&self.types) {
            if let Some(note) = &typed.note {
                story.push_str(&format!("; {name}: {note}"));
            }
        }
        story
    }

    /// Whether the file may be cut into ranges. May read it once.
    pub fn splittable(&self, file: &Arc<DataFile>) -> Result<bool, Error> {
        // Empty lines are rows in one column, but for those above the first record, which no range knows.
        let blank_rows = self.names.len() == 1;
        if !self.dialect.is_plain()
            || self.preamble.encoding.is_some()
            || self.begins > SNIFFED_BYTES
            || blank_rows
        {
            return Ok(false);
        }
        if let Some(found) = self.quoted_newlines.get() {
            return Ok(!found);
        }
        let found = ranges::quoted_newlines(file, &self.dialect)?;
        Ok(!*self.quoted_newlines.get_or_init(|| found))
    }
}

pub fn facts(
    file: &Arc<DataFile>,
    kind: &Kind,
    options: &ReadOptions,
    sample_rows: usize,
) -> Result<FileFacts, Error> {
    let options = options.settled(kind.format).into_owned();
    let sample_rows = options.sample_rows.unwrap_or(sample_rows);
    let mut opened = Opened::sample(file, kind.compression, &options, sample_rows)?;
    let (begun, whole) = opened.beginning()?;
    if begun.is_empty() {
        return Ok(FileFacts::empty());
    }
    let sniffed = sniff::sniff(Sample { bytes: &begun, whole }, &options, kind.tabs);
    sniffed.doubtful.map_or(Ok(()), |doubtful| Err(title_or_row(file, doubtful)))?;
    let max = options.max_line_bytes.unwrap_or(MAX_LINE_BYTES);
    let mut reader = RecordReader::new(opened.bytes, begun, sniffed.dialect.clone(), max);
    let explain = |reader: &RecordReader, trouble: &Trouble| {
        rows::explain(file, &opened.fault, trouble, reader.lines_before() + 1)
    };
    begin(&mut reader, sniffed.skip, sniffed.header).map_err(|trouble| explain(&reader, &trouble))?;
    let begins = reader.position();
    let names = rows::names(&sniffed.names);
    let mut sampled = Sampled::new(names.len(), &options);
    let mut to_the_end = true;
    match sampled.read(&mut reader, sample_rows) {
        Ok(()) => {}
        Err(Trouble::Broken(_)) if options.ignore_errors => to_the_end = false,
        Err(trouble) => return Err(explain(&reader, &trouble)),
    }
    if names.is_empty() && !whole {
        return Err(too_wide(file, sniffed.skip));
    }
    let habits = Habits::of(&sampled.guesses, sniffed.dialect.delimiter).or(options.habits);
    let is_open = sampled.guesses.iter().any(|guess| guess.is_open(&habits));
    let types = sampled.types(&names, &habits, &options);
    let fields =
        names.iter().zip(&types).map(|(name, typed)| Field::new(name, typed.data_type.clone(), true));
    let columns = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let rows = estimate(file, kind.compression, sampled.rows, reader.position()).filter(|_| to_the_end);
    let preamble = Preamble {
        encoding: opened.encoding,
        mark_bytes: opened.mark_bytes,
        skip: sniffed.skip,
        header: sniffed.header,
    };
    let mut notes = sniffed.notes;
    if kind.format == Format::Excel {
        let story = excel::story(file, options.sheet.as_deref())?;
        // In the place of the dialect, which is always the same.
        notes.first_mut().into_iter().for_each(|first| first.clone_from(&story));
    }
    if let Some(encoding) = opened.encoding {
        notes.insert(0, format!("encoding={}", encoding.name()));
    }
    sampled.notes(&mut notes);
    let facts = CsvFacts {
        dialect: sniffed.dialect,
        preamble,
        names,
        types,
        notes,
        certain: sniffed.certain,
        habits,
        is_open,
        nulls: nulls(&options),
        options,
        begins,
        quoted_newlines: OnceLock::new(),
        rejects: Rejects::default(),
    };
    Ok(FileFacts { columns, rows, detail: Detail::Csv(Arc::new(facts)) })
}

pub fn open(file: &Arc<DataFile>, facts: &Arc<CsvFacts>, request: &Request) -> Result<Batches, Error> {
    let start = request.range.as_ref().map_or(0, |range| range.start);
    let text = match &request.range {
        Some(range) => TextReader::open_range(file, range.clone())?,
        None if request.compression == Compression::Sheet => {
            TextReader::of_sheet(file, facts.options.sheet.as_deref())?
        }
        None => TextReader::open(file, request.compression)?,
    };
    let fault = text.fault();
    let mut bytes = text.into_bytes();
    if start == 0 {
        let mark = bytes.read_exact(&mut vec![0; facts.preamble.mark_bytes]);
        mark.map_err(|error| Error::corrupt(file.path(), error))?;
    }
    let bytes = match facts.preamble.encoding {
        Some(encoding) => Box::new(Transcoded::new(bytes, encoding)) as Box<dyn Read + Send>,
        None => bytes,
    };
    let max = facts.options.max_line_bytes.unwrap_or(MAX_LINE_BYTES);
    let mut reader = RecordReader::new(bytes, Vec::new(), facts.dialect.clone(), max);
    let begun = match start {
        0 => begin(&mut reader, facts.preamble.skip, facts.preamble.header),
        _ => Ok(()),
    };
    if facts.names.len() == 1 {
        reader.blank_rows = true;
    }
    let mut rows = Rows::new(file, facts, (reader, fault, start), request);
    match begun {
        Ok(()) => Ok(Batches::until_end(move || rows.batch())),
        Err(trouble) => Err(rows.explain(&trouble)),
    }
}

fn title_or_row(file: &DataFile, doubtful: Doubtful) -> Error {
    let Doubtful { line, values, columns } = doubtful;
    let values = if values == 1 { "one value".to_owned() } else { format!("{values} values") };
    Error::Record {
        path: file.path().to_path_buf(),
        line,
        detail: format!("{values} above a table of {columns} columns: a title or a row"),
        hint: "set `skip` to the number of lines above the header, or `header=false` if there is none",
    }
}

fn too_wide(file: &DataFile, skipped: u64) -> Error {
    Error::Record {
        path: file.path().to_path_buf(),
        line: skipped + 1,
        detail: "the line is longer than the sample for column types (16 MiB)".to_owned(),
        hint: "name the columns with `columns`, or put fewer of them into one file",
    }
}

/// Whether there are enough lines to tell a dialect by.
fn has_lines(bytes: &[u8]) -> bool {
    let ends = memchr::memchr2_iter(b'\n', b'\r', bytes).take(LEAST_LINES);
    ends.count() == LEAST_LINES
}

/// Goes to the first row.
fn begin(reader: &mut RecordReader, skip: u64, header: bool) -> Result<(), Trouble> {
    reader.skip_lines(skip)?;
    if header {
        reader.advance()?;
    }
    Ok(())
}

fn nulls(options: &ReadOptions) -> Arc<Nulls> {
    Arc::new(match &options.nulls {
        None => Nulls::Usual,
        Some(listed) => Nulls::Listed(listed.iter().map(|text| text.clone().into_bytes()).collect()),
    })
}

struct Opened {
    bytes: Box<dyn Read + Send>,
    fault: Arc<OnceLock<Error>>,
    encoding: Option<&'static encoding_rs::Encoding>,
    mark_bytes: usize,
    path: std::path::PathBuf,
}

impl Opened {
    fn sample(
        file: &Arc<DataFile>,
        compression: Compression,
        options: &ReadOptions,
        rows: usize,
    ) -> Result<Self, Error> {
        let text = match (compression, rows) {
            (Compression::Sheet, _) => TextReader::of_sheet(file, options.sheet.as_deref())?,
            (_, usize::MAX) => TextReader::open(file, compression)?,
            _ => TextReader::sample(file, compression)?,
        };
        let (fault, mut bytes) = (text.fault(), text.into_bytes());
        let mut first = Vec::new();
        let read = bytes.by_ref().take(ENCODING_BYTES).read_to_end(&mut first);
        read.map_err(|error| fault.get().cloned().unwrap_or_else(|| Error::corrupt(file.path(), error)))?;
        let whole = (first.len() as u64) < ENCODING_BYTES;
        let (encoding, mark_bytes) = encoding::resolve(options.encoding, (&first, whole), file.path())?;
        let mut first = Cursor::new(first);
        first.set_position(mark_bytes as u64);
        let all = first.chain(bytes);
        let bytes: Box<dyn Read + Send> = match encoding {
            Some(encoding) => Box::new(Transcoded::new(all, encoding)),
            None => Box::new(all),
        };
        Ok(Self { bytes, fault, encoding, mark_bytes, path: file.path().to_path_buf() })
    }

    /// What the dialect is told by, and whether it is the whole text. Lines of very many columns need more of it.
    fn beginning(&mut self) -> Result<(Vec<u8>, bool), Error> {
        let (mut begun, mut wanted) = (self.read(SNIFFED_BYTES)?, SNIFFED_BYTES);
        while begun.len() as u64 == wanted && wanted < MAX_SNIFFED_BYTES && !has_lines(&begun) {
            begun.extend(self.read(wanted)?);
            wanted *= 2;
        }
        let whole = (begun.len() as u64) < wanted;
        Ok((begun, whole))
    }

    fn read(&mut self, count: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = self.bytes.by_ref().take(count).read_to_end(&mut bytes);
        read.map_err(|error| self.fault.get().cloned().unwrap_or_else(|| Error::corrupt(&self.path, error)))?;
        Ok(bytes)
    }
}

struct Sampled {
    guesses: Vec<Guess>,
    nulls: Arc<Nulls>,
    /// Whether values between quotes are text, also `"7"`.
    quoted_is_text: bool,
    rows: usize,
    short: usize,
    long: usize,
}

impl Sampled {
    fn new(columns: usize, options: &ReadOptions) -> Self {
        let given = Notation {
            decimal: options.decimal.unwrap_or(b'.'),
            thousands: options.thousands,
            date_format: options.date_format.clone(),
            stamp_format: options.stamp_format.clone(),
            ..Notation::default()
        };
        let (guesses, nulls) = (vec![Guess::new(given); columns], nulls(options));
        let quoted_is_text = options.quoted_is_text;
        Self { guesses, nulls, quoted_is_text, rows: 0, short: 0, long: 0 }
    }

    fn read(&mut self, reader: &mut RecordReader, rows: usize) -> Result<(), Trouble> {
        let words = *self.nulls == Nulls::Usual;
        while self.rows < rows && reader.advance()? {
            self.rows += 1;
            self.short += usize::from(reader.len() < self.guesses.len());
            self.long += usize::from(reader.len() > self.guesses.len());
            for (place, guess) in self.guesses.iter_mut().enumerate().take(reader.len()) {
                let value = reader.value(place);
                if self.quoted_is_text && reader.is_quoted(place) {
                    guess.add_text();
                } else if !value.trim_ascii().is_empty() && !self.nulls.lists(value) {
                    guess.add(value, words);
                }
            }
        }
        Ok(())
    }

    fn types(&self, names: &[String], habits: &Habits, options: &ReadOptions) -> Vec<Typed> {
        let typed = self.guesses.iter().zip(names).enumerate().map(|(place, (guess, name))| {
            let mut typed = guess.finish(habits);
            if let Some(asked) = options.type_of(name, place) {
                typed.data_type = asked.clone();
            } else if options.all_text {
                typed.data_type = DataType::Utf8;
            }
            typed
        });
        typed.collect()
    }

    fn notes(&self, notes: &mut Vec<String>) {
        if self.short > 0 {
            notes.push(format!("{} short lines, whose last columns are null", self.short));
        }
        if self.long > 0 {
            notes.push(format!("{} lines with too many values", self.long));
        }
    }
}

fn estimate(file: &DataFile, compression: Compression, rows: usize, bytes: u64) -> Option<usize> {
    if compression != Compression::None || bytes == 0 {
        return None;
    }
    let share = file.size() as f64 / bytes.min(file.size()).max(1) as f64;
    Some((rows as f64 * share) as usize)
}
