//! JSON: objects on lines of their own, one after the other in any layout, or one array of objects; fields go by name.
//!
//! ```text
//! bytes ─ encoding ─▶ text ─ shape (of the first rows) ─▶ facts
//!                     text ─ window, cursor ─▶ values ─ columns ─▶ batches (rows)
//! ```
//!
//! The first rows tell which columns there are, and of which types. What they have not shown is never dropped: a scan that
//! meets such a key or value says so ([`Error::Outgrown`]), all rows are looked at then, and the statement runs again.

use crate::batches::{Batches, Request};
use crate::csv::encoding::{self, Transcoded};
use crate::csv::values::Notation;
use crate::data_file::DataFile;
use crate::file_metadata::{Detail, FileFacts};
use crate::read_options::ReadOptions;
use crate::rejects::Rejects;
use crate::text::{self, MAX_LINE_BYTES, TextReader};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use bowshot_object_store::Error;
use bowshot_object_store::file_name::{Compression, Kind};
use columns::Reading;
use cursor::{Cursor, Trouble};
use encoding_rs::Encoding;
use input_buffer::{Stop, Window};
use rows::{Layout, Opened, Rows};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use type_inference::Shape;

mod columns;
mod cursor;
mod input_buffer;
mod object;
mod others;
mod rows;
mod texts;
mod type_inference;

/// How the objects of a file lie in it, and what they are.
#[derive(Debug)]
pub struct JsonFacts {
    array: bool,
    /// Each object is on a line of its own, so that the file may be cut between lines.
    pub lines: bool,
    /// `None`: UTF-8.
    encoding: Option<&'static Encoding>,
    columns: SchemaRef,
    shape: Shape,
    /// Whether all rows were looked at.
    whole: bool,
    strange: Strange,
    outgrown: AtomicBool,
    options: ReadOptions,
    asked: HashSet<String>,
    pub rejects: Rejects,
}

/// What becomes of keys and values that the first rows have not shown.
#[derive(Debug, Clone)]
pub enum Strange {
    /// All rows are looked at: the number of files that this has happened to.
    Outgrows(Arc<AtomicU64>),
    Refused,
    LeftOut,
}

#[derive(Debug, Clone)]
pub struct Sampling {
    pub rows: usize,
    pub strange: Strange,
}

impl JsonFacts {
    /// Whether a scan has met what the first rows have not shown.
    pub fn is_outgrown(&self) -> bool {
        self.outgrown.load(Ordering::Acquire)
    }

    /// Whether all rows were looked at because that was asked for, or had to be.
    pub fn is_of_all_rows(&self) -> bool {
        self.options.sample_rows == Some(usize::MAX)
    }

    fn outgrow(&self) {
        self.outgrown.store(true, Ordering::Release);
        if let Strange::Outgrows(count) = &self.strange {
            count.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn ignores_errors(&self) -> bool {
        self.options.ignore_errors
    }

    fn max_bytes(&self) -> usize {
        self.options.max_line_bytes.unwrap_or(MAX_LINE_BYTES)
    }

    fn reading(&self, column: &str) -> Reading {
        let asked = matches!(self.strange, Strange::Refused | Strange::LeftOut)
            || self.options.all_text
            || self.asked.contains(column);
        let notation = match asked {
            true => Notation {
                date_format: self.options.date_format.clone(),
                stamp_format: self.options.stamp_format.clone(),
                ..Notation::default()
            },
            false => Notation::default(),
        };
        Reading { asked, notation, checked: self.ignores_errors() }
    }

    pub fn story(&self) -> String {
        let layout = match (self.array, self.lines) {
            (true, _) => "a list of objects",
            (false, true) => "one object on each line",
            (false, false) => "objects one after the other",
        };
        let encoding = self.encoding.map(|encoding| format!("encoding={}, ", encoding.name()));
        let whole = if self.is_of_all_rows() { ", all rows read" } else { "" };
        format!("{}{layout}{whole}", encoding.unwrap_or_default())
    }
}

pub fn facts(
    file: &Arc<DataFile>,
    kind: &Kind,
    options: &ReadOptions,
    sampling: Sampling,
) -> Result<FileFacts, Error> {
    let most = options.sample_rows.unwrap_or(sampling.rows);
    let text = match most {
        usize::MAX => TextReader::open(file, kind.compression)?,
        _ => TextReader::sample(file, kind.compression)?,
    };
    let fault = text.fault();
    let broken =
        |error: std::io::Error| fault.get().cloned().unwrap_or_else(|| Error::corrupt(file.path(), error));
    let (mut bytes, encoding) = told_by_itself(file, text, options)?;
    let Some(above) = skip_blanks(&mut bytes).map_err(broken)? else {
        return Ok(without_rows(options));
    };
    let first = bytes.fill_buf().map_err(broken)?;
    let array = first.first() == Some(&b'[');
    let lines = !array && is_of_lines(first);
    let look = Look {
        shape: Shape::default(),
        rows: 0,
        most,
        window: Window::new(Box::new(bytes), options.max_line_bytes.unwrap_or(MAX_LINE_BYTES)),
        layout: Layout { array, begun: false },
        by_line: lines && options.ignore_errors,
    };
    let Look { shape, rows, .. } = match look.run() {
        Ok(look) => look,
        Err(stopped) => return Err(fault.get().cloned().unwrap_or_else(|| stopped.explain(file, above))),
    };
    let cut = most != usize::MAX && (kind.compression != Compression::None || text::is_cut(file));
    let Shape::Object(members) = &shape else { return Ok(without_rows(options)) };
    let columns = typed(members.fields(), options);
    let columns = Arc::new(Schema::new(columns));
    // Without a whole row the file is not empty but broken, which its scan says.
    let small = kind.compression == Compression::None && (1..most).contains(&rows);
    let facts = JsonFacts {
        array,
        lines: lines && encoding.is_none(),
        encoding,
        asked: asked(columns.fields(), options),
        columns: Arc::clone(&columns),
        shape,
        whole: rows < most && !cut,
        // Whoever names the columns wants no others.
        strange: if options.columns { Strange::LeftOut } else { sampling.strange },
        outgrown: AtomicBool::new(false),
        options: options.clone(),
        rejects: Rejects::default(),
    };
    Ok(FileFacts { columns, rows: small.then_some(rows), detail: Detail::Json(Arc::new(facts)) })
}

/// Of a text without objects, as `[]`: it has the columns that were asked for.
fn without_rows(options: &ReadOptions) -> FileFacts {
    let columns = if options.columns { typed(Fields::empty(), options) } else { Fields::empty() };
    FileFacts { columns: Arc::new(Schema::new(columns)), ..FileFacts::empty() }
}

/// The types that were asked for in the place of those that were found; only the columns that were asked for, if they were.
fn typed(found: Fields, options: &ReadOptions) -> Fields {
    if options.columns {
        let columns = options.names.iter().enumerate().map(|(place, name)| {
            Field::new(name, options.type_of(name, place).cloned().unwrap_or(DataType::Utf8), true)
        });
        return columns.collect();
    }
    let typed = found.iter().enumerate().map(|(place, field)| match options.type_of(field.name(), place) {
        Some(asked) => Arc::new(field.as_ref().clone().with_data_type(asked.clone())),
        None if options.all_text => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        None => Arc::clone(field),
    });
    typed.collect()
}

fn asked(columns: &Fields, options: &ReadOptions) -> HashSet<String> {
    let asked = columns.iter().enumerate();
    asked
        .filter(|(place, field)| options.type_of(field.name(), *place).is_some())
        .map(|(_, field)| field.name().clone())
        .collect()
}

struct Look {
    shape: Shape,
    rows: usize,
    most: usize,
    window: Window,
    layout: Layout,
    /// Lines that cannot be read are left out.
    by_line: bool,
}

/// Why the first rows cannot be looked at, and in which line of the window.
enum Stopped {
    Within(Trouble, u64),
    Window(Stop, u64),
}

impl Look {
    fn run(mut self) -> Result<Self, Stopped> {
        while self.rows < self.most {
            let seen = if self.by_line { self.line() } else { self.row() };
            match seen {
                Ok(true) => {}
                // The end of the list, of the text, or of the sample within a row: where a text breaks, its scan says.
                Ok(false) => break,
                Err((Trouble::End, _)) if self.window.last => break,
                Err((Trouble::End, _)) => {
                    self.window.fill().map_err(|stop| Stopped::Window(stop, self.window.lines))?;
                }
                Err((trouble, lines)) => return Err(Stopped::Within(trouble, lines)),
            }
        }
        match self.shape {
            Shape::Nothing if self.by_line => {
                Err(Stopped::Within(Trouble::Syntax("no line is an object"), self.window.lines))
            }
            // A list that is never closed is not one without rows.
            Shape::Nothing if self.layout.array && !self.layout.begun => {
                Err(Stopped::Within(Trouble::End, self.window.lines))
            }
            _ => Ok(self),
        }
    }

    /// Takes the next row; false if there is none. What is wrong comes with the number of lines before it.
    fn row(&mut self) -> Result<bool, (Trouble, u64)> {
        let mut cursor = Cursor::new(self.window.bytes(), self.window.at);
        let seen = match self.layout.to_row(&mut cursor, self.window.last) {
            Ok(true) => self.shape.see(&mut cursor, 0).map(|()| true),
            other => other,
        };
        let place = cursor.at();
        let there = seen.map_err(|trouble| (trouble, self.window.lines_before(place)))?;
        self.window.advance(place);
        self.layout.begun = true;
        self.rows += usize::from(there);
        Ok(there)
    }

    /// The same of a line, which is no row if it cannot be read.
    fn line(&mut self) -> Result<bool, (Trouble, u64)> {
        let (begin, bytes) = (self.window.at, self.window.bytes());
        let end = self.window.line_end(begin).ok_or((Trouble::End, self.window.lines))?;
        let mut cursor = Cursor::new(bytes.get(..end).unwrap_or_default(), begin);
        let is_row = matches!(cursor.peek(), Ok(b'{')) && self.shape.see(&mut cursor, 0).is_ok();
        self.rows += usize::from(is_row);
        self.window.advance(end);
        Ok(end > begin)
    }
}

impl Stopped {
    fn explain(self, file: &DataFile, above: u64) -> Error {
        let path = file.path().to_path_buf();
        match self {
            Self::Within(trouble, lines) => {
                Error::Value { path, line: above + lines + 1, detail: rows::reason(&trouble) }
            }
            Self::Window(stop, lines) => rows::stopped(file, stop, above + lines + 1),
        }
    }
}

/// Whether each line of the beginning is an object, as far as its ends tell.
fn is_of_lines(first: &[u8]) -> bool {
    let mut lines = first.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).peekable();
    let mut seen = 0;
    while let Some(line) = lines.next() {
        // The last line of the beginning may be cut.
        let cut = lines.peek().is_none() && seen > 0;
        if line.is_empty() || cut {
            continue;
        }
        if !line.starts_with(b"{") || (!line.ends_with(b"}") && lines.peek().is_some()) {
            return false;
        }
        seen += 1;
    }
    true
}

/// Goes to the first byte that is no blank, and tells how many lines end before it; `None` if there is none.
fn skip_blanks(bytes: &mut impl BufRead) -> std::io::Result<Option<u64>> {
    let mut lines = 0;
    loop {
        let first = bytes.fill_buf()?;
        if first.is_empty() {
            return Ok(None);
        }
        let blanks = first.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        lines += first.iter().take(blanks).filter(|byte| **byte == b'\n').count() as u64;
        let found = blanks < first.len();
        bytes.consume(blanks);
        if found {
            return Ok(Some(lines));
        }
    }
}

type Text = BufReader<Box<dyn Read + Send>>;

/// A text as UTF-8, and the characters that it was written in, if those are others.
fn told_by_itself(
    file: &Arc<DataFile>,
    mut text: TextReader,
    options: &ReadOptions,
) -> Result<(Text, Option<&'static Encoding>), Error> {
    let first = text.peek(file)?;
    let (found, _) = encoding::resolve(options.encoding, (first, false), file.path())?;
    // What is no UTF-8 is damaged rather than of an old machine.
    let encoding = found.filter(|found| *found != encoding_rs::WINDOWS_1252 || options.encoding.is_some());
    let (bytes, _) = as_utf8(text, encoding, true)?;
    Ok((BufReader::with_capacity(64 << 10, bytes), encoding))
}

/// Bytes, and what was wrong where they end too early.
type Utf8 = (Box<dyn Read + Send>, Arc<OnceLock<Error>>);

/// The bytes of a text as UTF-8, without the mark that it may begin with.
fn as_utf8(text: TextReader, encoding: Option<&'static Encoding>, begins: bool) -> Result<Utf8, Error> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let (fault, mut bytes) = (text.fault(), text.bytes);
    if let Some(encoding) = encoding {
        return Ok((Box::new(Transcoded::new(bytes, encoding)), fault));
    }
    let mark = begins && bytes.fill_buf().is_ok_and(|first| first.starts_with(MARK));
    if let Some(fault) = fault.get() {
        return Err(fault.clone());
    }
    bytes.consume(if mark { MARK.len() } else { 0 });
    Ok((Box::new(bytes), fault))
}

pub fn open(file: &Arc<DataFile>, facts: &Arc<JsonFacts>, request: &Request) -> Result<Batches, Error> {
    let start = request.range.as_ref().map_or(0, |range| range.start);
    let text = match &request.range {
        Some(range) => TextReader::open_range(file, range.clone())?,
        None => TextReader::open(file, request.compression)?,
    };
    let (bytes, fault) = as_utf8(text, facts.encoding, start == 0)?;
    let mut rows = Rows::new(file, facts, Opened { bytes, fault, start }, request);
    Ok(Batches::until_end(move || rows.batch()))
}
