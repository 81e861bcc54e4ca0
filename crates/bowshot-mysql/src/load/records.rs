//! Splits a file into records, in pieces of any size (MySQL manual, "LOAD DATA Statement", field and line handling).

use crate::status::Failure;
use bowshot_sql::mysql::{LoadStatement, unescape_byte};
use bytes::{Buf, BytesMut};

/// How fields and lines end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    field_end: Vec<u8>,
    enclosed: Option<u8>,
    escape: Option<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
}

impl Format {
    /// # Errors
    /// 1083 for more than one character around or before others, 1115 for texts that are not UTF-8.
    pub(super) fn new(load: &LoadStatement) -> Result<Self, Failure> {
        if let Some(name) = &load.character_set
            && !["utf8", "utf8mb3", "utf8mb4", "binary"].iter().any(|known| name.eq_ignore_ascii_case(known))
        {
            return Err(Failure::new(1115, "42000", format!("unknown character set: '{name}'"))
                .with_hint("texts are UTF-8: write the file again in it"));
        }
        Ok(Self {
            field_end: load.field_end.clone().into_bytes(),
            enclosed: character(&load.enclosed)?,
            escape: character(&load.escape)?,
            line_start: load.line_start.clone().into_bytes(),
            line_end: load.line_end.clone().into_bytes(),
        })
    }
}

/// One byte, or none.
fn character(text: &str) -> Result<Option<u8>, Failure> {
    match text.as_bytes() {
        [] => Ok(None),
        [byte] => Ok(Some(*byte)),
        _ => Err(Failure::new(1083, "42000", "field separator argument is not what is expected")
            .with_hint("ENCLOSED BY and ESCAPED BY take one character or none")),
    }
}

/// The fields of a record; `None` is null.
pub(super) type Fields = Vec<Option<Vec<u8>>>;

pub(super) struct Records {
    format: Format,
    pending: BytesMut,
    /// An incomplete record is not parsed again before there are so many bytes, so that each byte is parsed a few times at
    /// most.
    enough: usize,
    longest: usize,
}

impl Records {
    pub(super) fn new(format: Format, longest: usize) -> Self {
        Self { format, pending: BytesMut::new(), enough: 0, longest }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.pending.len().saturating_add(bytes.len()) > self.longest.saturating_mul(2) {
            let message = format!("a record of the file is longer than {} bytes", self.longest);
            return Err(Failure::new(1153, "08S01", message).with_hint("raise `limits.max_message_bytes`"));
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// The next record, if it is complete; `last` says that nothing follows.
    pub(super) fn next(&mut self, last: bool) -> Option<Fields> {
        if self.pending.is_empty() || (!last && self.pending.len() < self.enough) {
            return None;
        }
        let mut reader = Reader { bytes: &self.pending, at: 0, format: &self.format, last };
        let Some(fields) = reader.record() else {
            self.enough = self.pending.len().saturating_mul(2);
            return None;
        };
        let taken = reader.at;
        self.pending.advance(taken);
        self.enough = 0;
        fields
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    format: &'a Format,
    last: bool,
}

/// What ends a field.
enum End {
    Field,
    Line,
}

impl Reader<'_> {
    /// `None` if bytes are missing; `Some(None)` if the rest holds no record.
    fn record(&mut self) -> Option<Option<Fields>> {
        if !self.format.line_start.is_empty() {
            let start = &self.format.line_start;
            match self.rest().windows(start.len()).position(|window| window == start) {
                Some(place) => self.at += place + start.len(),
                None if self.last => {
                    self.at = self.bytes.len();
                    return Some(None);
                }
                None => return None,
            }
        }
        let mut fields = Fields::new();
        loop {
            let (field, end) = self.field()?;
            fields.push(field);
            if matches!(end, End::Line) {
                return Some(Some(fields));
            }
        }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// A field and what has ended it; `None` if bytes are missing.
    fn field(&mut self) -> Option<(Option<Vec<u8>>, End)> {
        let encloser = self.format.enclosed.filter(|quote| self.rest().first() == Some(quote));
        if encloser.is_some() {
            self.at += 1;
        }
        let (mut value, mut is_null) = (Vec::new(), false);
        loop {
            let Some(byte) = self.rest().first().copied() else {
                return self.last.then(|| (self.value(value, is_null, encloser), End::Line));
            };
            if Some(byte) == self.format.escape {
                let Some(next) = self.rest().get(1).copied() else {
                    if !self.last {
                        return None;
                    }
                    self.at += 1;
                    value.push(byte);
                    continue;
                };
                self.at += 2;
                // NULL only if it is the whole field.
                is_null = next == b'N' && value.is_empty() && encloser.is_none();
                value.push(unescape_byte(next));
                continue;
            }
            if Some(byte) == encloser {
                match self.behind_encloser(byte)? {
                    Some(end) => return Some((self.value(value, is_null, encloser), end)),
                    None => value.push(byte),
                }
                continue;
            }
            if encloser.is_none()
                && let Some(end) = self.end(0)?
            {
                return Some((self.value(value, is_null, None), end));
            }
            self.at += 1;
            value.push(byte);
            is_null = false;
        }
    }

    /// Skips a terminator here and returns it; `Some(None)` if there is none, `None` if bytes are missing.
    fn end(&mut self, skip: usize) -> Option<Option<End>> {
        let rest = self.bytes.get(self.at + skip..).unwrap_or_default();
        for (terminator, end) in [(&self.format.field_end, End::Field), (&self.format.line_end, End::Line)] {
            if rest.starts_with(terminator) {
                self.at += skip + terminator.len();
                return Some(Some(end));
            }
        }
        let cut = |terminator: &Vec<u8>| !rest.is_empty() && terminator.starts_with(rest);
        if !self.last && (cut(&self.format.field_end) || cut(&self.format.line_end)) {
            return None;
        }
        Some(None)
    }

    /// After a closing quote: the end of the field, or more of it, as in MySQL.
    fn behind_encloser(&mut self, quote: u8) -> Option<Option<End>> {
        if self.bytes.get(self.at + 1).is_none() {
            if !self.last {
                return None;
            }
            self.at += 1;
            return Some(Some(End::Line));
        }
        if let Some(end) = self.end(1)? {
            return Some(Some(end));
        }
        // A doubled quote is part of the field; so is a single one in the middle.
        self.at += if self.bytes.get(self.at + 1) == Some(&quote) { 2 } else { 1 };
        Some(None)
    }

    fn value(&self, value: Vec<u8>, is_null: bool, encloser: Option<u8>) -> Option<Vec<u8>> {
        let is_word = self.format.enclosed.is_some() && encloser.is_none() && value == b"NULL";
        (!is_null && !is_word).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_sql::mysql::{Statement, StatementKind};

    type Expected<'a> = &'a [&'a [&'a str]];

    /// The format of a LOAD DATA.
    fn format(clauses: &str) -> Result<Format, Failure> {
        let sql = format!("LOAD DATA LOCAL INFILE 'a' INTO TABLE t {clauses}");
        match Statement::parse(&sql).unwrap().kind {
            StatementKind::Load(load) => Format::new(&load),
            other => panic!("{other:?}"),
        }
    }

    fn csv() -> Format {
        format("FIELDS TERMINATED BY ',' ENCLOSED BY '\"'").unwrap()
    }

    #[test]
    fn formats_that_cannot_be_read_are_refused() {
        for (clauses, number) in [
            ("CHARACTER SET latin1", 1115),
            ("FIELDS ENCLOSED BY 'ab'", 1083),
            ("FIELDS ESCAPED BY 'ä'", 1083),
        ] {
            assert_eq!(format(clauses).unwrap_err().code.0, number, "{clauses}");
        }
    }

    /// The records of a text that comes in pieces of so many bytes.
    fn read(format: &Format, text: &[u8], piece: usize) -> Vec<Vec<Option<String>>> {
        let mut records = Records::new(format.clone(), 1 << 20);
        let mut found = Vec::new();
        let pieces: Vec<&[u8]> = text.chunks(piece).collect();
        for piece in pieces {
            records.add(piece).unwrap();
            while let Some(fields) = records.next(false) {
                found.push(fields);
            }
        }
        while let Some(fields) = records.next(true) {
            found.push(fields);
        }
        let text = |field: Option<Vec<u8>>| field.map(|bytes| String::from_utf8(bytes).unwrap());
        found.into_iter().map(|fields| fields.into_iter().map(text).collect()).collect()
    }

    fn some(fields: &[&str]) -> Vec<Option<String>> {
        fields.iter().map(|field| (*field != "<null>").then(|| (*field).to_owned())).collect()
    }

    #[test]
    fn records_are_the_same_in_whatever_pieces_they_come() {
        let tabs = format("").unwrap();
        let lines = Format { line_start: b">>".to_vec(), line_end: b"\r\n".to_vec(), ..csv() };
        let plain = Format { escape: None, enclosed: None, ..csv() };
        let cases: [(&Format, &[u8], Expected<'_>); 8] = [
            (&tabs, b"1\ta\n2\t\\N\n", &[&["1", "a"], &["2", "<null>"]]),
            (&tabs, b"1\t\n\n3\tx", &[&["1", ""], &[""], &["3", "x"]]),
            (&tabs, b"a\\tb\\\nc\t\\Nx\t\\\\N\n", &[&["a\tb\nc", "Nx", "\\N"]]),
            (&csv(), b"\"a,\"\"b\"\"\n\",NULL,\"NULL\"\n", &[&["a,\"b\"\n", "<null>", "NULL"]]),
            (&csv(), b"\"a\\\"b\",c\"d\n\"open", &[&["a\"b", "c\"d"], &["open"]]),
            (&csv(), b"\"a\"x,1\",\n", &[&["a\"x,1", ""]]),
            (&lines, b"head >>a,b\r\nnoise>>\"c\r\n\",d\r\nrest", &[&["a", "b"], &["c\r\n", "d"]]),
            (&plain, b"a\\,NULL\n", &[&["a\\", "NULL"]]),
        ];
        for (format, text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|fields| some(fields)).collect();
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(
                    read(format, text, piece),
                    expected,
                    "{:?} in {piece}",
                    text.escape_ascii().to_string()
                );
            }
        }
    }

    #[test]
    fn long_records_take_time_in_proportion() {
        let mut records = Records::new(csv(), 64 << 20);
        for _ in 0..(32 << 20) / 1024 {
            records.add(&[b'x'; 1024]).unwrap();
            assert!(records.next(false).is_none());
        }
        assert_eq!(records.next(true).unwrap()[0].as_ref().unwrap().len(), 32 << 20);
        assert!(Records::new(csv(), 10).add(&[0; 21]).is_err());
    }
}
