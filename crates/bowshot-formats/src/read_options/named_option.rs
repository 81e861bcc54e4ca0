//! One option with its name; parses its value.

use super::types::{by_place, typed};
use super::{MAX_NAMES, OptionValue, Said, Types};
use bowshot_api::{Error, Result};
use bowshot_object_store::file_name::{Compression, Format};
use encoding_rs::Encoding;

pub(super) struct NamedOption<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a OptionValue,
}

impl NamedOption<'_> {
    fn wrong(&self, wanted: &str) -> Error {
        let value = match self.value {
            OptionValue::Text(text) => text.clone(),
            OptionValue::List(list) => list.join(","),
            OptionValue::Map(_) => "a map".to_owned(),
        };
        Error::invalid(format!("invalid value `{value}` for `{}`", self.name)).with_hint(wanted.to_owned())
    }

    pub(super) fn text(&self) -> Result<&str> {
        match self.value {
            OptionValue::Text(text) => Ok(text),
            _ => Err(self.wrong("write one text")),
        }
    }

    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self.value, OptionValue::Text(text) if text.eq_ignore_ascii_case(word))
    }

    /// Refuses all but these words.
    pub(super) fn one_word(&self, words: &[&str]) -> Result<()> {
        match words.iter().any(|word| self.is(word)) {
            true => Ok(()),
            false => Err(self.wrong(&format!("write {}", words.join(" or ")))),
        }
    }

    pub(super) fn truth(&self) -> Result<bool> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(true),
            "false" | "0" | "off" | "no" => Ok(false),
            _ => Err(self.wrong("write true or false")),
        }
    }

    pub(super) fn number<N: std::str::FromStr>(&self) -> Result<N> {
        self.text()?.parse().map_err(|_| self.wrong("write a whole number"))
    }

    /// -1 stands for all.
    pub(super) fn rows(&self) -> Result<usize> {
        match self.number::<i64>()? {
            -1 => Ok(usize::MAX),
            rows => usize::try_from(rows)
                .ok()
                .filter(|rows| *rows > 0)
                .ok_or_else(|| self.wrong("write a number of rows, or -1 for all")),
        }
    }

    pub(super) fn bytes(&self) -> Result<usize> {
        let bytes: usize = self.number()?;
        match bytes {
            1..=0x4000_0000 => Ok(bytes),
            _ => Err(self.wrong("write a number of bytes up to 1 GiB")),
        }
    }

    pub(super) fn character(&self) -> Result<Said<u8>> {
        match self.text()?.as_bytes() {
            [] => Ok(Said::None),
            [one] if one.is_ascii() && !b"\r\n\0".contains(one) => Ok(Said::Some(*one)),
            _ => Err(self.wrong("write one character, or nothing for none")),
        }
    }

    pub(super) fn separator(&self) -> Result<u8> {
        match self.text()?.as_bytes() {
            b"\\t" => Ok(b'\t'),
            [one] if one.is_ascii() && !b"\r\n\0\"".contains(one) => Ok(*one),
            _ => Err(self.wrong("it is one character, such as ',', ';' or '\\t'")),
        }
    }

    pub(super) fn one_of(&self, choice: &[u8]) -> Result<u8> {
        match self.text()?.as_bytes() {
            [one] if choice.contains(one) => Ok(*one),
            _ => Err(self.wrong("write one of its characters, such as '.' or ','")),
        }
    }

    pub(super) fn pattern(&self) -> Result<Option<String>> {
        let text = self.text()?;
        if text.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        let format = crate::csv::strptime(text);
        let wrong = chrono::format::StrftimeItems::new(&format)
            .any(|item| matches!(item, chrono::format::Item::Error));
        if wrong || !format.contains('%') {
            return Err(self.wrong("write it as for strptime, such as '%d.%m.%Y'"));
        }
        Ok(Some(format))
    }

    pub(super) fn encoding(&self) -> Result<&'static Encoding> {
        let label = self.text()?;
        let known = match label.to_ascii_lowercase().as_str() {
            "utf-16" => Some(encoding_rs::UTF_16LE),
            "latin-1" | "latin1" | "cp1252" | "windows-1252" | "ansi" => Some(encoding_rs::WINDOWS_1252),
            label => Encoding::for_label(label.as_bytes()),
        };
        known.ok_or_else(|| {
            self.wrong("write utf-8, utf-16, windows-1252 or another name of the encoding standard")
        })
    }

    pub(super) fn format(&self) -> Result<Format> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "csv" | "tsv" => Ok(Format::Csv),
            "json" | "ndjson" | "jsonl" | "newline_delimited" | "array" | "unstructured" => Ok(Format::Json),
            "parquet" => Ok(Format::Parquet),
            "arrow" | "ipc" | "feather" => Ok(Format::Arrow),
            "avro" => Ok(Format::Avro),
            "orc" => Ok(Format::Orc),
            "xlsx" | "excel" => Ok(Format::Excel),
            "text" | "lines" => Ok(Format::Text),
            _ => Err(self.wrong("the formats are csv, json, parquet, arrow, avro, orc, xlsx and text")),
        }
    }

    pub(super) fn compression(&self) -> Result<Option<Compression>> {
        Ok(Some(match self.text()?.to_ascii_lowercase().as_str() {
            "auto" | "infer" => return Ok(None),
            "none" | "uncompressed" => Compression::None,
            "gz" | "gzip" => Compression::Gzip,
            "zst" | "zstd" => Compression::Zstd,
            "bz2" | "bzip2" => Compression::Bzip2,
            "xz" => Compression::Xz,
            "lz4" => Compression::Lz4,
            "br" | "brotli" => Compression::Brotli,
            "zip" => Compression::Zip,
            _ => return Err(self.wrong("write none, gzip, zstd, bzip2, xz, lz4, brotli or zip")),
        }))
    }

    /// A list of names; a text has them between commas.
    pub(super) fn list(&self) -> Result<Vec<String>> {
        let list = match self.value {
            OptionValue::List(list) => list.clone(),
            OptionValue::Text(text) => text.split(',').map(str::to_owned).collect(),
            OptionValue::Map(_) => return Err(self.wrong("write a list, such as ['a', 'b']")),
        };
        if list.len() > MAX_NAMES {
            return Err(Error::invalid(format!("`{}` names more than {MAX_NAMES} columns", self.name)));
        }
        Ok(list)
    }

    /// Names with types; a text has `a:INT,b:VARCHAR`.
    pub(super) fn pairs(&self) -> Result<Vec<(String, String)>> {
        match self.value {
            OptionValue::Map(pairs) => Ok(pairs.clone()),
            OptionValue::Text(text) => {
                let pairs = text
                    .split(',')
                    .map(|pair| pair.split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())));
                pairs.collect::<Option<_>>().ok_or_else(|| self.wrong("write a:INT,b:VARCHAR"))
            }
            OptionValue::List(_) => Err(self.wrong("write names with types, such as {'a': 'INT'}")),
        }
    }

    pub(super) fn types(&self) -> Result<Types> {
        match self.value {
            OptionValue::Text(text) if !text.contains(':') => by_place(text.split(',')),
            OptionValue::List(list) => by_place(list.iter().map(String::as_str)),
            _ => Ok(Types::ByName(typed(&self.pairs()?)?)),
        }
    }

    /// `true`: the column has that name; a text is a name of its own.
    pub(super) fn column(&self, name: &str) -> Result<Option<String>> {
        match self.truth() {
            Ok(true) => Ok(Some(name.to_owned())),
            Ok(false) => Ok(None),
            Err(_) => Ok(Some(self.text()?.to_owned())),
        }
    }
}
