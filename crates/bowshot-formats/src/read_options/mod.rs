//! What an operator or a statement says about how files are to be read, under the names that `DuckDB` has for it. What is
//! not said is found out from the files.

use crate::csv::Habits;
use arrow::datatypes::DataType;
use bowshot_api::{Error, Result};
use bowshot_object_store::file_name::{Compression, Format, Kind, kind_of};
use encoding_rs::Encoding;
use named_option::NamedOption;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::path::Path;

mod named_option;
mod option_check;
mod types;

/// The most columns that a statement may name or type.
const MAX_NAMES: usize = 200_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ReadOptions {
    pub format: Option<Format>,
    pub compression: Option<Compression>,
    pub delimiter: Option<u8>,
    pub quote: Said<u8>,
    pub escape: Said<u8>,
    pub comment: Said<u8>,
    pub header: Option<bool>,
    pub skip: Option<u64>,
    pub names: Vec<String>,
    /// Whether names and types were said together: there are these columns and no others.
    pub columns: bool,
    pub types: Types,
    pub nulls: Option<Vec<String>>,
    pub date_format: Option<String>,
    pub stamp_format: Option<String>,
    pub decimal: Option<u8>,
    pub thousands: Option<u8>,
    pub encoding: Option<&'static Encoding>,
    pub all_text: bool,
    pub null_padding: bool,
    pub ignore_errors: bool,
    /// The name of a column that has the path of each row's file.
    pub filename: Option<String>,
    pub hive: Option<bool>,
    /// Whether values of folders are text, whatever they look like.
    pub hive_text: bool,
    /// The columns that folders must give, with their types where these are not found out.
    pub hive_types: Vec<(String, Option<DataType>)>,
    /// Whether what is not said is as usual instead of found out.
    pub plain: bool,
    pub sample_rows: Option<usize>,
    pub max_line_bytes: Option<usize>,
    pub sheet: Option<String>,
    /// Whether a record must have as many values as there are columns: a statement that copies rows into a table says so.
    pub exact: bool,
    /// Whether a value between quotes is text, also if it looks like a number.
    pub quoted_is_text: bool,
    /// How values are written in other files of the table.
    pub habits: Habits,
    /// Whether they are said of all tables of a folder, so that each takes of them what fits it.
    pub shared: bool,
}

/// A character of a dialect: found out, none, or this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Said<T> {
    #[default]
    Nothing,
    None,
    Some(T),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Types {
    #[default]
    Guessed,
    ByName(Vec<(String, DataType)>),
    ByPlace(Vec<DataType>),
}

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

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What the name of a file and the options tell about it.
    pub fn kind(&self, path: &Path) -> Option<Kind> {
        let told = kind_of(path);
        let format = self.format.or_else(|| told.as_ref().map(|kind| kind.format))?;
        let mut kind = told.unwrap_or_else(|| Kind::unknown(path, format));
        kind.format = format;
        kind.compression = match (format, self.compression) {
            (Format::Excel, _) => Compression::Sheet,
            (_, Some(compression)) => compression,
            (_, None) if kind.compression == Compression::Sheet => Compression::None,
            (_, None) => kind.compression,
        };
        Some(kind)
    }

    /// Says one thing more.
    ///
    /// # Errors
    /// `Invalid` for unknown names and values, saying which there are.
    pub fn set(&mut self, name: &str, value: &OptionValue) -> Result<()> {
        let given = NamedOption { name, value };
        match name {
            // Of JSON: the layout is found out.
            "format" if given.is("auto") => {}
            "format" => self.format = Some(given.format()?),
            "compression" => self.compression = given.compression()?,
            "delim" | "sep" | "delimiter" => self.delimiter = Some(given.separator()?),
            "quote" => self.quote = given.character()?,
            "escape" => self.escape = given.character()?,
            "comment" => self.comment = given.character()?,
            "header" => self.header = Some(given.truth()?),
            "skip" => self.skip = Some(given.number()?),
            "names" | "column_names" => (self.names, self.columns) = (given.list()?, false),
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
            "max_line_size" | "maximum_line_size" | "maximum_object_size" => {
                self.max_line_bytes = Some(given.bytes()?)
            }
            "sheet" => self.sheet = Some(given.text()?.to_owned()),
            "store_rejects" => self.ignore_errors |= given.truth()?,
            "hive_types" => self.hive_types = types::of_folders(&given.pairs()?)?,
            "hive_types_autocast" => self.hive_text = !given.truth()?,
            "auto_detect" => self.plain = !given.truth()?,
            "records" => given.one_word(&["auto", "true"])?,
            // What they ask for is so without them: columns go by name, and quotes are read as most readers do.
            "union_by_name" | "strict_mode" | "parallel" | "quoted_newlines" => {
                given.truth()?;
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Names and types together.
    fn columns(&mut self, given: &NamedOption<'_>) -> Result<()> {
        let pairs = given.pairs()?;
        self.names = pairs.iter().map(|(name, _)| name.clone()).collect();
        self.types = Types::ByName(types::typed(&pairs)?);
        self.columns = true;
        Ok(())
    }

    /// The same with what is usual in the place of what would be found out, where that was asked for, or the format says it.
    pub fn settled(&self, format: Format) -> Cow<'_, Self> {
        match format {
            Format::Excel => Cow::Owned(self.of_sheet()),
            Format::Text => Cow::Owned(self.of_lines()),
            _ if self.plain => Cow::Owned(self.without_guesses()),
            _ => Cow::Borrowed(self),
        }
    }

    /// A sheet is written as separated values in one way.
    fn of_sheet(&self) -> Self {
        Self {
            delimiter: Some(b','),
            quote: Said::Some(b'"'),
            escape: Said::Some(b'"'),
            comment: Said::None,
            encoding: Some(encoding_rs::UTF_8),
            sample_rows: self.sample_rows.or(Some(usize::MAX)),
            quoted_is_text: true,
            ..self.clone()
        }
    }

    /// One column that has each line as it is.
    fn of_lines(&self) -> Self {
        Self {
            delimiter: Some(crate::csv::NO_DELIMITER),
            quote: Said::None,
            escape: Said::None,
            comment: Said::None,
            header: Some(false),
            skip: Some(0),
            names: vec!["line".to_owned()],
            nulls: Some(Vec::new()),
            all_text: true,
            ..self.clone()
        }
    }

    fn without_guesses(&self) -> Self {
        let mut options = self.clone();
        let or = |said: Said<u8>, usual: Said<u8>| if said == Said::Nothing { usual } else { said };
        options.delimiter = options.delimiter.or(Some(b','));
        options.quote = or(options.quote, Said::Some(b'"'));
        options.escape = or(options.escape, options.quote);
        options.comment = or(options.comment, Said::None);
        options.header = options.header.or(Some(false));
        options.skip = options.skip.or(Some(0));
        options.encoding = options.encoding.or(Some(encoding_rs::UTF_8));
        options.all_text = true;
        options
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
    Error::invalid(format!("`{name}` is not an option of a file")).with_hint(
        "the options are delim, quote, escape, comment, header, skip, names, types, columns, nullstr, dateformat, \
         timestampformat, decimal_separator, thousands, encoding, all_varchar, null_padding, ignore_errors, \
         union_by_name, filename, hive_partitioning, hive_types, hive_types_autocast, sample_size, max_line_size, auto_detect, \
         sheet, compression and format",
    )
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
            ("heade=true", "`heade` is not an option"),
            ("header=maybe", "invalid value `maybe` for `header`"),
            ("delim=ab", "invalid value `ab` for `delim`"),
            ("types=a:NUMBER", "`NUMBER` is not a column type"),
            ("dateformat=%Q", "invalid value `%Q` for"),
            ("encoding=klingon", "invalid value `klingon` for"),
            ("max_line_size=0", "invalid value `0` for"),
            ("auto_detect=perhaps", "invalid value `perhaps` for `auto_detect`"),
            ("parallel=3", "invalid value `3` for `parallel`"),
            ("records=false", "invalid value `false` for `records`"),
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
