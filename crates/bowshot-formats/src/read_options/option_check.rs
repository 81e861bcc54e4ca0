//! Refuses options that have no effect on a file format or contradict one another.

use super::{ReadOptions, Said, Types};
use arrow::datatypes::Schema;
use bowshot_object_store::Error;
use bowshot_object_store::file_name::{Compression, Format};

const CSV: &[Format] = &[Format::Csv];
const EXCEL: &[Format] = &[Format::Excel];
const SHEETS: &[Format] = &[Format::Csv, Format::Excel];
const TEXT: &[Format] = &[Format::Csv, Format::Json];
const VALUES: &[Format] = &[Format::Csv, Format::Json, Format::Excel];
const LINES: &[Format] = &[Format::Csv, Format::Json, Format::Text];

impl ReadOptions {
    /// Whether the options can be obeyed for files of a format.
    ///
    /// # Errors
    /// Says which cannot, and what to do.
    pub fn check(&self, format: Format) -> Result<(), Error> {
        let strange = self.said().into_iter().find(|(_, formats)| !formats.contains(&format));
        if let (Some((name, formats)), false) = (strange, self.shared) {
            let formats: Vec<&str> = formats.iter().map(|format| format.name()).collect();
            let detail = format!("`{name}` is not an option of {format} files");
            return Err(refused(
                detail,
                format!("it is one of {} files; leave it out", formats.join(" and ")),
            ));
        }
        if format == Format::Csv {
            self.check_characters()?;
        }
        if format == Format::Json && self.plain && !self.columns && !self.shared {
            let hint = "name them: columns = {'a': 'INTEGER', 'b': 'VARCHAR'}, or leave `auto_detect` out";
            return Err(refused(
                "`auto_detect=false` needs column names and types".to_owned(),
                hint.to_owned(),
            ));
        }
        let formatted = self.date_format.is_some() || self.stamp_format.is_some();
        if format == Format::Json && formatted && self.types == Types::Guessed && !self.shared {
            let hint = "set the types of date and time columns: types = {'day': 'DATE'}";
            let detail = "in JSON, `dateformat` and `timestampformat` need columns with a declared type";
            return Err(refused(detail.to_owned(), hint.to_owned()));
        }
        Ok(())
    }

    /// Whether the columns that types are said of are there.
    ///
    /// # Errors
    /// Names one that is not.
    pub fn check_columns(&self, columns: &Schema) -> Result<(), Error> {
        let there = || columns.fields().iter().map(|field| field.name().as_str());
        let missing = match &self.types {
            _ if self.shared || self.columns => None,
            Types::Guessed => None,
            Types::ByName(types) => types
                .iter()
                .find(|(name, _)| !there().any(|known| known.eq_ignore_ascii_case(name)))
                .map(|(name, _)| format!("column `{name}` of `types` does not exist")),
            Types::ByPlace(types) if types.len() > columns.fields().len() => {
                Some(format!("`types` has {} types for {} columns", types.len(), columns.fields().len()))
            }
            Types::ByPlace(_) => None,
        };
        match missing {
            None => Ok(()),
            Some(detail) => {
                let shown: Vec<&str> = there().take(20).collect();
                Err(refused(detail, format!("the columns are {}", shown.join(", "))))
            }
        }
    }

    fn check_characters(&self) -> Result<(), Error> {
        let decimal = self.decimal.unwrap_or(b'.');
        if self.thousands == Some(decimal) {
            let sign = char::from(decimal);
            return Err(refused(
                format!("`{sign}` cannot be both the decimal and the thousands separator"),
                "set `decimal_separator` and `thousands` to different characters".to_owned(),
            ));
        }
        let some = |said: Said<u8>| if let Said::Some(byte) = said { Some(byte) } else { None };
        let characters =
            [("delim", self.delimiter), ("quote", some(self.quote)), ("comment", some(self.comment))];
        for (place, (name, character)) in characters.iter().enumerate() {
            let same = |(_, other): &&(&str, Option<u8>)| other.is_some() && other == character;
            if let Some((other, _)) = characters.iter().skip(place + 1).find(same) {
                let detail = format!("`{name}` and `{other}` are the same character");
                return Err(refused(detail, "set them to different characters".to_owned()));
            }
        }
        Ok(())
    }

    /// What is said that not every format has.
    fn said(&self) -> Vec<(&'static str, &'static [Format])> {
        let compressed = self.compression.is_some_and(|compression| compression != Compression::None);
        let all: [(bool, &'static str, &'static [Format]); 23] = [
            (self.delimiter.is_some(), "delim", CSV),
            (self.quote != Said::Nothing, "quote", CSV),
            (self.escape != Said::Nothing, "escape", CSV),
            (self.comment != Said::Nothing, "comment", CSV),
            (self.decimal.is_some(), "decimal_separator", CSV),
            (self.thousands.is_some(), "thousands", CSV),
            (self.header.is_some(), "header", SHEETS),
            (self.skip.is_some(), "skip", SHEETS),
            (!self.names.is_empty() && !self.columns, "names", SHEETS),
            (self.nulls.is_some(), "nullstr", SHEETS),
            (self.null_padding, "null_padding", SHEETS),
            (self.columns, "columns", VALUES),
            (self.types != Types::Guessed, "types", VALUES),
            (self.all_text, "all_varchar", VALUES),
            (self.date_format.is_some(), "dateformat", VALUES),
            (self.stamp_format.is_some(), "timestampformat", VALUES),
            (self.ignore_errors, "ignore_errors", VALUES),
            (self.sample_rows.is_some(), "sample_size", VALUES),
            (self.plain, "auto_detect", TEXT),
            (self.encoding.is_some(), "encoding", LINES),
            (self.max_line_bytes.is_some(), "max_line_size", LINES),
            (compressed, "compression", LINES),
            (self.sheet.is_some(), "sheet", EXCEL),
        ];
        all.into_iter().filter(|(said, ..)| *said).map(|(_, name, formats)| (name, formats)).collect()
    }
}

fn refused(detail: String, hint: String) -> Error {
    Error::Options { detail, hint }
}

#[cfg(test)]
mod tests {
    use crate::read_options::ReadOptions;
    use bowshot_object_store::file_name::Format;

    #[test]
    fn what_has_no_effect_is_refused() {
        for (options, format, told) in [
            ("header=true", Format::Parquet, "`header` is not an option of parquet files"),
            ("delim=;", Format::Json, "`delim` is not an option of json files"),
            ("types=a:INT", Format::Arrow, "`types` is not an option of arrow files"),
            ("compression=gzip", Format::Avro, "`compression` is not an option of avro files"),
            ("names=a,b", Format::Json, "`names` is not an option of json files"),
            ("dateformat=%25d.%25m.%25Y", Format::Json, "with a declared type"),
            ("auto_detect=false", Format::Json, "needs column names"),
            ("decimal=,&thousands=,", Format::Csv, "cannot be both"),
            ("thousands=.", Format::Csv, "cannot be both"),
            ("delim=|&quote=|", Format::Csv, "`delim` and `quote` are the same"),
            ("sheet=a", Format::Csv, "`sheet` is not an option of csv files"),
            ("delim=;", Format::Excel, "`delim` is not an option of xlsx files"),
            ("types=INT", Format::Text, "`types` is not an option of text files"),
            ("quote=!&comment=!", Format::Csv, "`quote` and `comment` are the same"),
        ] {
            let mut options = ReadOptions::parse(options).unwrap();
            let error = options.check(format).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
            options.shared = true;
            // Of a folder is said what some of its files have.
            assert_eq!(
                options.check(format).is_ok(),
                told.contains("not an option") || format == Format::Json,
                "{told}"
            );
        }
        for (options, format) in [
            ("header=true&delim=;&thousands=.&decimal=,", Format::Csv),
            ("columns=a:DATE&dateformat=%25d.%25m.%25Y&auto_detect=false", Format::Json),
            ("filename=true&hive_partitioning=false&union_by_name=true&compression=none", Format::Parquet),
            ("store_rejects=true&maximum_object_size=1000&format=auto", Format::Json),
        ] {
            ReadOptions::parse(options).unwrap().check(format).unwrap();
        }
    }
}
