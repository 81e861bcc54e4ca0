//! What an operator or a statement says about how files are to be read, under the names that `DuckDB` has for it. What is
//! not said is found out from the files.

use crate::format::{Compression, Format, Kind, kind_of};
use arrow::datatypes::{DataType, TimeUnit};
use bowshot_api::{Error, Result};
use encoding_rs::Encoding;
use percent_encoding::percent_decode_str;
use std::path::Path;

/// The most columns that a statement may name or type.
const MAX_NAMES: usize = 200_000;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    pub(crate) format: Option<Format>,
    pub(crate) compression: Option<Compression>,
    pub(crate) delimiter: Option<u8>,
    pub(crate) quote: Said<u8>,
    pub(crate) escape: Said<u8>,
    pub(crate) comment: Said<u8>,
    pub(crate) header: Option<bool>,
    pub(crate) skip: Option<u64>,
    pub(crate) names: Vec<String>,
    pub(crate) types: Types,
    pub(crate) nulls: Option<Vec<String>>,
    pub(crate) date_format: Option<String>,
    pub(crate) stamp_format: Option<String>,
    pub(crate) decimal: Option<u8>,
    pub(crate) thousands: Option<u8>,
    pub(crate) encoding: Option<&'static Encoding>,
    pub(crate) all_text: bool,
    pub(crate) null_padding: bool,
    pub(crate) ignore_errors: bool,
    /// The name of a column that has the path of each row's file.
    pub(crate) filename: Option<String>,
    pub(crate) hive: Option<bool>,
    pub(crate) sample_rows: Option<usize>,
    pub(crate) max_line_bytes: Option<usize>,
    pub(crate) sheet: Option<String>,
    /// Whether a record must have as many values as there are columns: a statement that copies rows into a table says so.
    pub(crate) exact: bool,
}

/// A character of a dialect: found out, none, or this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Said<T> {
    #[default]
    Nothing,
    None,
    Some(T),
}

/// The types of columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum Types {
    #[default]
    Guessed,
    ByName(Vec<(String, DataType)>),
    ByPlace(Vec<DataType>),
}

/// The value of an option, as a text or a statement has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A word, a text or a number.
    Text(String),
    /// `['a', 'b']`
    List(Vec<String>),
    /// `{'a': 'INT'}`
    Map(Vec<(String, String)>),
}

impl ReadOptions {
    /// Options as `header=false&delim=;`, with `%26` for `&` and so on.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    pub fn parse(text: &str) -> Result<Self> {
        let mut options = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            options.set(&name.to_ascii_lowercase(), &OptionValue::Text(value))?;
        }
        Ok(options)
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What the name of a file and the options tell about it.
    pub(crate) fn kind(&self, path: &Path) -> Option<Kind> {
        let told = kind_of(path);
        let format = self.format.or_else(|| told.as_ref().map(|kind| kind.format))?;
        let mut kind = told.unwrap_or_else(|| Kind::unknown(path, format));
        kind.format = format;
        if let Some(compression) = self.compression {
            kind.compression = compression;
        }
        Some(kind)
    }

    /// Says one thing more.
    ///
    /// # Errors
    /// `Invalid` for unknown names and values, saying which there are.
    pub fn set(&mut self, name: &str, value: &OptionValue) -> Result<()> {
        let given = Given { name, value };
        match name {
            "format" => self.format = Some(given.format()?),
            "compression" => self.compression = given.compression()?,
            "delim" | "sep" | "delimiter" => self.delimiter = Some(given.separator()?),
            "quote" => self.quote = given.character()?,
            "escape" => self.escape = given.character()?,
            "comment" => self.comment = given.character()?,
            "header" => self.header = Some(given.truth()?),
            "skip" => self.skip = Some(given.number()?),
            "names" | "column_names" => self.names = given.list()?,
            "types" | "dtypes" | "column_types" => self.types = given.types()?,
            "columns" => self.columns(&given)?,
            "nullstr" | "null" | "na_values" => self.nulls = Some(given.list()?),
            "dateformat" | "date_format" => self.date_format = given.pattern()?,
            "timestampformat" | "timestamp_format" => self.stamp_format = given.pattern()?,
            "decimal_separator" | "decimal" => self.decimal = Some(given.one_of(b".,")?),
            "thousands" => self.thousands = Some(given.one_of(b".,' _")?),
            "encoding" => self.encoding = Some(given.encoding()?),
            "all_varchar" => self.all_text = given.truth()?,
            "null_padding" => self.null_padding = given.truth()?,
            "ignore_errors" => self.ignore_errors = given.truth()?,
            "filename" => self.filename = given.column("filename")?,
            "hive_partitioning" => self.hive = Some(given.truth()?),
            "sample_size" => self.sample_rows = Some(given.rows()?),
            "max_line_size" | "maximum_line_size" => self.max_line_bytes = Some(given.bytes()?),
            "sheet" => self.sheet = Some(given.text()?.to_owned()),
            // What they ask for is so without them: columns go by name, and quotes are read as most readers do.
            "union_by_name"
            | "auto_detect"
            | "strict_mode"
            | "parallel"
            | "store_rejects"
            | "hive_types_autocast"
            | "maximum_object_size"
            | "records"
            | "quoted_newlines" => drop(given.truth_or_text()),
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Names and types together.
    fn columns(&mut self, given: &Given<'_>) -> Result<()> {
        let pairs = given.pairs()?;
        self.names = pairs.iter().map(|(name, _)| name.clone()).collect();
        self.types = Types::ByName(typed(&pairs)?);
        Ok(())
    }

    /// The type that was asked for, for the column of that name at that place.
    pub(crate) fn type_of(&self, name: &str, place: usize) -> Option<&DataType> {
        match &self.types {
            Types::Guessed => None,
            Types::ByName(types) => types
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, data_type)| data_type),
            Types::ByPlace(types) => types.get(place),
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::invalid(format!("`{name}` is no option of a file")).with_hint(
        "the options are delim, quote, escape, comment, header, skip, names, types, columns, nullstr, dateformat, \
         timestampformat, decimal_separator, thousands, encoding, all_varchar, null_padding, ignore_errors, \
         union_by_name, filename, hive_partitioning, sample_size, max_line_size, compression and format",
    )
}

/// An option as it was written.
struct Given<'a> {
    name: &'a str,
    value: &'a OptionValue,
}

impl Given<'_> {
    fn wrong(&self, wanted: &str) -> Error {
        let value = match self.value {
            OptionValue::Text(text) => text.clone(),
            OptionValue::List(list) => list.join(","),
            OptionValue::Map(_) => "a map".to_owned(),
        };
        Error::invalid(format!("`{value}` is no value for `{}`", self.name)).with_hint(wanted.to_owned())
    }

    fn text(&self) -> Result<&str> {
        match self.value {
            OptionValue::Text(text) => Ok(text),
            _ => Err(self.wrong("write one text")),
        }
    }

    fn truth_or_text(&self) -> &OptionValue {
        self.value
    }

    fn truth(&self) -> Result<bool> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(true),
            "false" | "0" | "off" | "no" => Ok(false),
            _ => Err(self.wrong("write true or false")),
        }
    }

    fn number<N: std::str::FromStr>(&self) -> Result<N> {
        self.text()?.parse().map_err(|_| self.wrong("write a whole number"))
    }

    /// -1 stands for all.
    fn rows(&self) -> Result<usize> {
        match self.number::<i64>()? {
            -1 => Ok(usize::MAX),
            rows => usize::try_from(rows)
                .ok()
                .filter(|rows| *rows > 0)
                .ok_or_else(|| self.wrong("write a number of rows, or -1 for all")),
        }
    }

    fn bytes(&self) -> Result<usize> {
        let bytes: usize = self.number()?;
        match bytes {
            1..=0x4000_0000 => Ok(bytes),
            _ => Err(self.wrong("write a number of bytes up to 1 GiB")),
        }
    }

    fn character(&self) -> Result<Said<u8>> {
        match self.text()?.as_bytes() {
            [] => Ok(Said::None),
            [one] if one.is_ascii() && !b"\r\n\0".contains(one) => Ok(Said::Some(*one)),
            _ => Err(self.wrong("write one character, or nothing for none")),
        }
    }

    fn separator(&self) -> Result<u8> {
        match self.text()?.as_bytes() {
            b"\\t" => Ok(b'\t'),
            [one] if one.is_ascii() && !b"\r\n\0\"".contains(one) => Ok(*one),
            _ => Err(self.wrong("it is one character, such as ',', ';' or '\\t'")),
        }
    }

    fn one_of(&self, choice: &[u8]) -> Result<u8> {
        match self.text()?.as_bytes() {
            [one] if choice.contains(one) => Ok(*one),
            _ => Err(self.wrong("write one of its characters, such as '.' or ','")),
        }
    }

    fn pattern(&self) -> Result<Option<String>> {
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

    fn encoding(&self) -> Result<&'static Encoding> {
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

    fn format(&self) -> Result<Format> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "csv" | "tsv" => Ok(Format::Csv),
            "json" | "ndjson" | "jsonl" | "newline_delimited" | "array" | "auto" => Ok(Format::Json),
            "parquet" => Ok(Format::Parquet),
            "arrow" | "ipc" | "feather" => Ok(Format::Arrow),
            "avro" => Ok(Format::Avro),
            _ => Err(self.wrong("the formats are csv, json, parquet, arrow and avro")),
        }
    }

    fn compression(&self) -> Result<Option<Compression>> {
        Ok(Some(match self.text()?.to_ascii_lowercase().as_str() {
            "auto" | "infer" => return Ok(None),
            "none" | "uncompressed" => Compression::None,
            "gz" | "gzip" => Compression::Gzip,
            "zst" | "zstd" => Compression::Zstd,
            "bz2" | "bzip2" => Compression::Bzip2,
            "xz" => Compression::Xz,
            _ => return Err(self.wrong("write none, gzip, zstd, bzip2 or xz")),
        }))
    }

    /// A list of names; a text has them between commas.
    fn list(&self) -> Result<Vec<String>> {
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
    fn pairs(&self) -> Result<Vec<(String, String)>> {
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

    fn types(&self) -> Result<Types> {
        match self.value {
            OptionValue::Text(text) if !text.contains(':') => by_place(text.split(',')),
            OptionValue::List(list) => by_place(list.iter().map(String::as_str)),
            _ => Ok(Types::ByName(typed(&self.pairs()?)?)),
        }
    }

    /// `true`: the column has that name; a text is a name of its own.
    fn column(&self, name: &str) -> Result<Option<String>> {
        match self.truth() {
            Ok(true) => Ok(Some(name.to_owned())),
            Ok(false) => Ok(None),
            Err(_) => Ok(Some(self.text()?.to_owned())),
        }
    }
}

fn by_place<'a>(names: impl Iterator<Item = &'a str>) -> Result<Types> {
    Ok(Types::ByPlace(names.map(type_named).collect::<Result<_>>()?))
}

fn typed(pairs: &[(String, String)]) -> Result<Vec<(String, DataType)>> {
    pairs.iter().map(|(name, text)| Ok((name.clone(), type_named(text)?))).collect()
}

/// The type that SQL has under a name.
fn type_named(text: &str) -> Result<DataType> {
    let upper = text.trim().to_ascii_uppercase();
    if let Some(inside) = upper.strip_prefix("DECIMAL").or_else(|| upper.strip_prefix("NUMERIC")) {
        return decimal(inside).ok_or_else(|| no_type(text));
    }
    Ok(match upper.split('(').next().unwrap_or_default().trim() {
        "BOOLEAN" | "BOOL" | "LOGICAL" => DataType::Boolean,
        "TINYINT" | "INT1" => DataType::Int8,
        "SMALLINT" | "INT2" | "SHORT" => DataType::Int16,
        "INTEGER" | "INT" | "INT4" | "SIGNED" => DataType::Int32,
        "BIGINT" | "INT8" | "LONG" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "HUGEINT" => DataType::Decimal128(38, 0),
        "REAL" | "FLOAT" | "FLOAT4" => DataType::Float32,
        "DOUBLE" | "FLOAT8" | "DOUBLE PRECISION" => DataType::Float64,
        "VARCHAR" | "TEXT" | "STRING" | "CHAR" | "BPCHAR" => DataType::Utf8,
        "BLOB" | "BYTEA" | "BINARY" | "VARBINARY" => DataType::Binary,
        "DATE" => DataType::Date32,
        "TIME" => DataType::Time64(TimeUnit::Microsecond),
        "TIMESTAMP" | "DATETIME" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "TIMESTAMP_S" => DataType::Timestamp(TimeUnit::Second, None),
        "TIMESTAMP_MS" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "TIMESTAMP_NS" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        _ => return Err(no_type(text)),
    })
}

fn no_type(text: &str) -> Error {
    Error::invalid(format!("`{text}` is no type of a column in a file")).with_hint(
        "write BOOLEAN, an integer type, REAL, DOUBLE, DECIMAL(p, s), VARCHAR, BLOB, DATE, TIME, TIMESTAMP or TIMESTAMPTZ",
    )
}

fn decimal(inside: &str) -> Option<DataType> {
    if inside.trim().is_empty() {
        return Some(DataType::Decimal128(18, 3));
    }
    let inside = inside.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
    let (precision, scale) = (precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?);
    let fits = (1..=38).contains(&precision) && scale >= 0 && u8::try_from(scale).ok()? <= precision;
    fits.then_some(DataType::Decimal128(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::{OptionValue, ReadOptions, Said, Types};
    use arrow::datatypes::DataType;

    #[test]
    fn options_are_read_from_a_text() {
        let options =
            ReadOptions::parse("header=false&delim=%3B&quote=&names=a,b&types=a:INT,b:DECIMAL").unwrap();
        assert_eq!(options.header, Some(false));
        assert_eq!(options.delimiter, Some(b';'));
        assert_eq!(options.quote, Said::None);
        assert_eq!(options.names, ["a", "b"]);
        assert_eq!(options.type_of("B", 1), Some(&DataType::Decimal128(18, 3)));
        assert!(ReadOptions::parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("heade=true", "`heade` is no option"),
            ("header=maybe", "`maybe` is no value for `header`"),
            ("delim=ab", "`ab` is no value for `delim`"),
            ("types=a:NUMBER", "`NUMBER` is no type"),
            ("dateformat=%Q", "`%Q` is no value"),
            ("encoding=klingon", "`klingon` is no value"),
            ("max_line_size=0", "`0` is no value"),
        ] {
            let error = ReadOptions::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn types_go_by_place_or_name() {
        let mut options = ReadOptions::default();
        options.set("types", &OptionValue::List(vec!["INT".into(), "decimal(10, 2)".into()])).unwrap();
        assert_eq!(options.types, Types::ByPlace(vec![DataType::Int32, DataType::Decimal128(10, 2)]));
    }
}
