//! What CSV and JSON lines share: decompression, the lines of a byte range, and the line number of a byte.

use crate::data_file::{DataFile, FileReader};
use crate::{excel, zip};
use bowshot_object_store::Error;
use bowshot_object_store::file_name::Compression;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Bytes that a sample may take after decompression: a file without a single line end must not fill the memory.
const MAX_SAMPLE_BYTES: u64 = 256 << 20;

const BROTLI_BYTES: usize = 64 << 10;

/// Characters of a wrong value that an error shows.
const SHOWN_CHARS: usize = 64;

pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// Bytes of a text, and the error of the file below if reading it failed.
pub(crate) struct TextReader {
    pub bytes: BufReader<Box<dyn Read + Send>>,
    fault: Arc<OnceLock<Error>>,
}

impl TextReader {
    pub(crate) fn open(file: &Arc<DataFile>, compression: Compression) -> Result<Self, Error> {
        if compression == Compression::Zip {
            return Ok(Self::of(zip::open_only(file)?));
        }
        let reader = file.reader(0);
        let fault = reader.fault();
        let bytes: Box<dyn Read + Send> = match compression {
            Compression::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(reader)),
            Compression::Brotli => Box::new(brotli::Decompressor::new(reader, BROTLI_BYTES)),
            other => match variant(other) {
                None => Box::new(reader),
                Some(variant) => {
                    variant.convert_read(reader).map_err(|error| Error::corrupt(file.path(), error))?
                }
            },
        };
        Ok(Self { bytes: BufReader::with_capacity(256 << 10, bytes), fault })
    }

    /// A sheet of a workbook as separated values: the one of that name, or the first.
    pub(crate) fn of_sheet(file: &Arc<DataFile>, name: Option<&str>) -> Result<Self, Error> {
        Ok(Self::of(excel::open(file, name)?))
    }

    fn of((bytes, fault): (Box<dyn Read + Send>, Arc<OnceLock<Error>>)) -> Self {
        Self { bytes: BufReader::with_capacity(256 << 10, bytes), fault }
    }

    /// The lines that begin in `range` of an uncompressed text.
    pub(crate) fn open_range(file: &Arc<DataFile>, range: Range<u64>) -> Result<Self, Error> {
        let start = first_line_at(file, range.start)?;
        let reader = file.reader(start);
        let fault = reader.fault();
        let lines = LinesUntil { reader, at: start, end: range.end, done: start >= range.end };
        let bytes: Box<dyn Read + Send> = Box::new(lines);
        Ok(Self { bytes: BufReader::with_capacity(256 << 10, bytes), fault })
    }

    /// The beginning of the text, for guessing its shape.
    pub(crate) fn sample(file: &Arc<DataFile>, compression: Compression) -> Result<Self, Error> {
        let Self { bytes, fault } = Self::open(file, compression)?;
        let bytes: Box<dyn Read + Send> = Box::new(bytes.take(MAX_SAMPLE_BYTES));
        Ok(Self { bytes: BufReader::new(bytes), fault })
    }

    /// The bytes alone, for readers that have a buffer of their own.
    pub(crate) fn into_bytes(self) -> Box<dyn Read + Send> {
        Box::new(self.bytes)
    }

    pub(crate) fn fault(&self) -> Arc<OnceLock<Error>> {
        Arc::clone(&self.fault)
    }

    /// The first bytes, up to a few kilobytes, left in place.
    pub(crate) fn peek(&mut self, file: &DataFile) -> Result<&[u8], Error> {
        let fault = Arc::clone(&self.fault);
        self.bytes
            .fill_buf()
            .map_err(|error| fault.get().cloned().unwrap_or_else(|| Error::corrupt(file.path(), error)))
    }
}

/// The first line that begins at or behind `at`: a line that begins before belongs to the range before.
pub(crate) fn first_line_at(file: &Arc<DataFile>, at: u64) -> Result<u64, Error> {
    if at == 0 {
        return Ok(0);
    }
    let mut position = at - 1;
    while position < file.size() {
        let end = file.size().min(position + (64 << 10));
        let bytes = file.read(position..end)?;
        if let Some(found) = memchr::memchr(b'\n', &bytes) {
            return Ok(position + found as u64 + 1);
        }
        position = end;
    }
    Ok(file.size())
}

/// Reads on to the end of the line that holds the byte before `end`.
struct LinesUntil {
    reader: FileReader,
    at: u64,
    end: u64,
    done: bool,
}

impl Read for LinesUntil {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.done || into.is_empty() {
            return Ok(0);
        }
        let read = self.reader.read(into)?;
        let last = self.end - 1;
        let from = usize::try_from(last.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let kept = match into[..read].get(from..).and_then(|tail| memchr::memchr(b'\n', tail)) {
            Some(found) => {
                self.done = true;
                from + found + 1
            }
            None => read,
        };
        self.done |= read == 0;
        self.at += read as u64;
        Ok(kept)
    }
}

/// Whether a sample of an uncompressed text is not all of it.
pub(crate) fn is_cut(file: &DataFile) -> bool {
    file.size() > MAX_SAMPLE_BYTES
}

/// Numbers the lines of a text that begins at or behind `start` in its file.
#[derive(Debug)]
pub(crate) struct LineNumbers {
    start: u64,
    /// Lines above the text. Counting them reads the file up to there.
    above: OnceLock<u64>,
}

impl LineNumbers {
    pub(crate) fn new(start: u64) -> Self {
        Self { start, above: OnceLock::new() }
    }

    /// The number in the file of the line behind so many others of the text.
    pub(crate) fn number(&self, file: &Arc<DataFile>, before: u64) -> u64 {
        let above = self.above.get_or_init(|| match self.start {
            0 => 0,
            start => first_line_at(file, start).map_or(0, |first| lines_before(file, first)),
        });
        above + before + 1
    }
}

/// The beginning of a wrong value, for an error.
pub(crate) fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// How many line ends lie before a byte.
fn lines_before(file: &Arc<DataFile>, at: u64) -> u64 {
    let mut reader = BufReader::with_capacity(1 << 20, file.reader(0)).take(at);
    let mut lines = 0;
    loop {
        let count = match reader.fill_buf() {
            Ok(bytes) if !bytes.is_empty() => {
                lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
                bytes.len()
            }
            _ => return lines,
        };
        reader.consume(count);
    }
}

fn variant(compression: Compression) -> Option<FileCompressionType> {
    match compression {
        Compression::None
        | Compression::Zip
        | Compression::Sheet
        | Compression::Lz4
        | Compression::Brotli => None,
        Compression::Gzip => Some(FileCompressionType::GZIP),
        Compression::Zstd => Some(FileCompressionType::ZSTD),
        Compression::Bzip2 => Some(FileCompressionType::BZIP2),
        Compression::Xz => Some(FileCompressionType::XZ),
    }
}
