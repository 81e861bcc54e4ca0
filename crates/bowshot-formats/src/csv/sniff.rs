//! Finds out how a text of separated values is written: each way that is common is tried on the beginning of the text, and
//! the one that gives the most even table is taken. What was asked for is not tried otherwise.

use super::dialect::Dialect;
use super::header::{self, Head};
use super::record::{Fault, Record, Step, Text};
use crate::read_options::{ReadOptions, Said};

const MAX_RECORDS: usize = 1_000;
/// Lines above the header that may be titles.
const MAX_TITLES: usize = 50;
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Separates nothing: no text in UTF-8 has it.
pub(crate) const NO_DELIMITER: u8 = 0xff;

#[derive(Debug, Clone)]
pub(crate) struct Sniffed {
    pub dialect: Dialect,
    /// Lines above the header or the first record.
    pub skip: u64,
    pub header: bool,
    /// Names of the header, or as many empty ones as the records have values.
    pub names: Vec<String>,
    /// Whether the text shows that there is a header, or that there is none.
    pub certain: bool,
    pub notes: Vec<String>,
    /// A line above what may be the header, of which nothing shows that it is no row.
    pub doubtful: Option<Doubtful>,
}

/// See [`Sniffed::doubtful`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubtful {
    pub line: u64,
    pub values: usize,
    pub columns: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'a> {
    pub bytes: &'a [u8],
    /// Whether it is the whole text.
    pub whole: bool,
}

/// Values of a record, and the line that it begins in.
pub(super) struct Row {
    pub line: u64,
    pub values: Vec<Vec<u8>>,
}

impl Row {
    pub(crate) fn filled(&self) -> usize {
        self.values.iter().filter(|value| !value.trim_ascii().is_empty()).count()
    }
}

struct Survey {
    dialect: Dialect,
    rows: Vec<Row>,
    columns: usize,
    /// Whether a quoted value is never closed.
    unclosed: bool,
    score: f64,
}

pub(crate) fn sniff(sample: Sample<'_>, options: &ReadOptions, tabs: bool) -> Sniffed {
    let line_end = line_end(sample.bytes);
    let skipped = options.skip.unwrap_or(0);
    let start = after_lines(sample.bytes, line_end, skipped);
    let mut best: Option<Survey> = None;
    for dialect in candidates(sample.bytes.get(start..).unwrap_or_default(), options, tabs, line_end) {
        let survey = Survey::new(sample, start, dialect);
        if best.as_ref().is_none_or(|best| survey.score > best.score + 1e-9) {
            best = Some(survey);
        }
    }
    let Some(mut best) = best else {
        return nothing(Dialect::new(options.delimiter.unwrap_or(b',')));
    };
    if best.dialect.quote.is_none() && options.quote == Said::Nothing && !best.has_quotes_as_characters() {
        let dialect = Dialect { quote: Some(b'"'), escape: Some(b'"'), ..best.dialect.clone() };
        let quoted = Survey::new(sample, start, dialect);
        if quoted.unclosed {
            // Who reads the records will say where the quote opens.
            best = quoted;
        }
    }
    if best.columns <= 1 && options.delimiter.is_none() && !tabs && best.has_stray_delimiters(sample, start) {
        best = Survey::new(sample, start, Dialect { delimiter: NO_DELIMITER, ..best.dialect });
    }
    finish(best, skipped, options)
}

fn nothing(dialect: Dialect) -> Sniffed {
    let (names, notes) = (Vec::new(), Vec::new());
    Sniffed { dialect, skip: 0, header: false, names, certain: false, notes, doubtful: None }
}

/// A text whose lines end with returns alone comes from an old machine.
fn line_end(bytes: &[u8]) -> u8 {
    let feeds = memchr::memchr(b'\n', bytes).is_some();
    if !feeds && memchr::memchr(b'\r', bytes).is_some() { b'\r' } else { b'\n' }
}

fn after_lines(bytes: &[u8], line_end: u8, lines: u64) -> usize {
    let mut at = 0;
    for _ in 0..lines {
        match bytes.get(at..).and_then(|rest| memchr::memchr(line_end, rest)) {
            Some(found) => at += found + 1,
            None => return bytes.len(),
        }
    }
    at
}

/// Ways to read the text, from the one that is most common.
fn candidates(bytes: &[u8], options: &ReadOptions, tabs: bool, line_end: u8) -> Vec<Dialect> {
    let delimiters = match options.delimiter {
        Some(delimiter) => vec![delimiter],
        None if tabs => vec![b'\t'],
        None => DELIMITERS.to_vec(),
    };
    let hash = bytes.trim_ascii_start().first() == Some(&b'#');
    let comments = match options.comment {
        Said::Some(comment) => vec![Some(comment)],
        Said::Nothing if hash => vec![None, Some(b'#')],
        Said::None | Said::Nothing => vec![None],
    };
    let mut all = Vec::new();
    for (quote, escape) in quotes(bytes, options) {
        for delimiter in &delimiters {
            let spaced =
                quote.is_some_and(|quote| memchr::memmem::find(bytes, &[*delimiter, b' ', quote]).is_some());
            for comment in &comments {
                let plain = Dialect {
                    delimiter: *delimiter,
                    quote,
                    escape,
                    comment: *comment,
                    skip_space: false,
                    line_end,
                };
                if spaced {
                    all.push(Dialect { skip_space: true, ..plain.clone() });
                }
                all.push(plain);
            }
        }
    }
    all
}

fn quotes(bytes: &[u8], options: &ReadOptions) -> Vec<(Option<u8>, Option<u8>)> {
    let escapes = |quote: u8| match options.escape {
        Said::Some(escape) => vec![Some(escape)],
        Said::None => vec![None],
        Said::Nothing if memchr::memmem::find(bytes, &[b'\\', quote]).is_some() => {
            vec![Some(quote), Some(b'\\')]
        }
        Said::Nothing => vec![Some(quote)],
    };
    let with =
        |quote: u8| escapes(quote).into_iter().map(move |escape| (Some(quote), escape)).collect::<Vec<_>>();
    match options.quote {
        Said::Some(quote) => with(quote),
        Said::None => vec![(None, None)],
        Said::Nothing => {
            let mut all = with(b'"');
            let double = memchr::memchr(b'"', bytes).is_some();
            if double {
                all.push((None, None));
            } else if memchr::memchr(b'\'', bytes).is_some() {
                all.extend(with(b'\''));
            }
            all
        }
    }
}

impl Survey {
    fn new(sample: Sample<'_>, start: usize, dialect: Dialect) -> Self {
        let text = Text { bytes: sample.bytes, last: sample.whole, dialect: &dialect };
        let (mut record, mut rows, mut at, mut line) = (Record::default(), Vec::new(), start, 1);
        let (mut odd, mut broken, mut quoted, mut comments) = (0, false, 0, Vec::new());
        let mut unclosed = false;
        while rows.len() < MAX_RECORDS {
            match text.record(at, &mut record) {
                Step::Record(next) => {
                    odd += usize::from(record.odd > 0);
                    quoted += usize::from((0..record.len()).any(|place| record.is_quoted(place)));
                    let values =
                        (0..record.len()).map(|place| record.value(sample.bytes, place).to_vec()).collect();
                    rows.push(Row { line, values });
                    (at, line) = (next, line + record.lines);
                }
                Step::Blank(next) => (at, line) = (next, line + 1),
                Step::Comment(next) => {
                    let delimiters = memchr::memchr_iter(dialect.delimiter, &sample.bytes[at..next]).count();
                    comments.push(delimiters + 1);
                    (at, line) = (next, line + 1);
                }
                Step::Broken(fault) => {
                    (broken, unclosed) = (true, fault == Fault::Unclosed);
                    break;
                }
                // The end of the sample is in the middle of a record, which tells nothing, unless it is all one value.
                Step::More => {
                    let usual = (at - start) / rows.len().max(1);
                    broken = rows.is_empty() || sample.bytes.len() - at > (256 << 10).max(2 * usual);
                    break;
                }
                Step::End => break,
            }
        }
        let columns = most_common(&rows);
        let mut survey = Self { dialect, rows, columns, unclosed, score: 0.0 };
        survey.score = survey.score(odd, broken) + survey.bonus(quoted, &comments) - survey.wrapped();
        survey
    }

    fn score(&self, odd: usize, broken: bool) -> f64 {
        if self.rows.is_empty() {
            return -1.0;
        }
        let all = self.rows.len() as f64;
        let even = self.rows.iter().filter(|row| row.values.len() == self.columns).count() as f64 / all;
        let ragged = if self.columns < 2 { 0.2 } else { even };
        let headed = self.rows.first().is_some_and(|row| row.values.len() == self.columns);
        ragged + if headed && self.columns > 1 { 0.1 } else { 0.0 } + 0.001 * (self.columns.min(20) as f64)
            - 0.5 * (odd as f64 / all)
            - if broken { 0.6 } else { 0.0 }
    }

    /// Single quotes and comments have to show that they are some: `#id,name` above records of two values is a header.
    fn bonus(&self, quoted: usize, comments: &[usize]) -> f64 {
        let rows = self.rows.len().max(1) as f64;
        let quotes =
            if self.dialect.quote == Some(b'\'') { 0.05 * (quoted as f64 / rows - 0.5) } else { 0.0 };
        let a_record = |columns: &usize| *columns == self.columns && self.columns > 1;
        let comments = match self.dialect.comment {
            Some(_) if comments.iter().any(a_record) => -0.4,
            Some(_) => 0.02,
            None => 0.0,
        };
        quotes + comments
    }

    /// Values between quotes that are read as if the quotes were theirs.
    fn wrapped(&self) -> f64 {
        if self.dialect.quote.is_some() || self.rows.is_empty() {
            return 0.0;
        }
        let wrapped = |value: &Vec<u8>| value.len() > 1 && value.starts_with(b"\"") && value.ends_with(b"\"");
        let rows = self.rows.iter().filter(|row| row.values.iter().any(wrapped)).count();
        0.5 * (rows as f64 / self.rows.len() as f64)
    }

    /// Whether there are quotes within values, as in `6" pipe`; or tabs between them, where quotes are rarely more.
    fn has_quotes_as_characters(&self) -> bool {
        let within = |value: &Vec<u8>| {
            let (value, quotes) = (value.trim_ascii(), memchr::memchr_iter(b'"', value).count());
            quotes > usize::from(value.starts_with(b"\""))
        };
        self.dialect.delimiter == b'\t' || self.rows.iter().any(|row| row.values.iter().any(within))
    }

    /// Whether lines hold separators though they are no columns.
    fn has_stray_delimiters(&self, sample: Sample<'_>, start: usize) -> bool {
        let bytes = sample.bytes.get(start..).unwrap_or_default();
        let first = bytes.split(|byte| *byte == self.dialect.line_end).next().unwrap_or_default();
        let stray = |bytes: &[u8]| bytes.contains(&self.dialect.delimiter);
        !stray(first) && stray(bytes)
    }
}

/// The number of values that most records have; of numbers that are as common the larger one.
fn most_common(rows: &[Row]) -> usize {
    let mut counts = std::collections::BTreeMap::new();
    for row in rows {
        *counts.entry(row.values.len()).or_insert(0_usize) += 1;
    }
    counts.into_iter().max_by_key(|(columns, count)| (*count, *columns)).map_or(0, |(columns, _)| columns)
}

fn finish(survey: Survey, skipped: u64, options: &ReadOptions) -> Sniffed {
    let Survey { dialect, mut rows, columns, .. } = survey;
    let titles = if options.skip.is_some() { 0 } else { titles(&rows, columns) };
    let (mut notes, mut doubtful) = (Vec::new(), None);
    let mut skip = skipped;
    let mut head = header::find(rows.get(titles..).unwrap_or_default(), columns, options);
    if titles > 0 && !head.header {
        // Short lines above records are records, if nothing says that a table begins behind them.
        head = header::find(&rows, columns, options);
    } else if titles > 0 {
        let first = rows.get(titles).map_or(0, |row| row.line - 1);
        doubtful = doubtful_line(&rows, titles, columns).filter(|_| !head.certain);
        skip += first;
        notes.push(format!("{first} lines above the header left out"));
        rows.drain(..titles);
    }
    notes.insert(0, dialect.to_string());
    let Head { header, certain, why } = head;
    notes.push(format!("header={header} ({why})"));
    let names = header::names(&rows, columns, header, options);
    Sniffed { dialect, skip, header, names, certain, notes, doubtful }
}

/// The last line above what may be the header, if no empty line is between them.
fn doubtful_line(rows: &[Row], titles: usize, columns: usize) -> Option<Doubtful> {
    let (last, header) = (rows.get(titles.checked_sub(1)?)?, rows.get(titles)?);
    let apart = last.line + 1 < header.line;
    (!apart).then_some(Doubtful { line: last.line, values: last.values.len(), columns })
}

/// How many records above the table are titles: they have fewer values than it has columns.
fn titles(rows: &[Row], columns: usize) -> usize {
    let is_full = |row: &Row| {
        let filled = row.filled();
        row.values.len() >= columns && (columns < 3 || filled > 1 || filled == row.values.len())
    };
    // A header without a name for the row names that R writes is one value short.
    let short =
        |row: &Row| columns >= 3 && row.values.len() + 1 == columns && row.filled() == row.values.len();
    if columns < 2 {
        return 0;
    }
    rows.iter().take(MAX_TITLES).position(|row| is_full(row) || short(row)).unwrap_or_default()
}
