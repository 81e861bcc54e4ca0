//! Enumerated types: a list of labels, ordered as written. One made by `CREATE TYPE` has a name; a column may also have labels of
//! its own, as MySQL's and DuckDB's `ENUM('a', 'b')`. Values are stored as texts, so that everybody can read the files of a
//! table; the labels are in the declaration of the column.

use super::declared::Declared;
use super::names::quoted;
use super::planner::{Types, refused};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_api::{Error, Reason};
use bowshot_formats::extension_types::EXTENSION;
use bowshot_tables::{ENUM, EntryName};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, EnumMember, Expr, ObjectName, Value};
use std::fmt;

/// An enumerated type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EnumType {
    pub name: Option<EntryName>,
    pub labels: Vec<String>,
}

impl EnumType {
    /// That of a column, as queries have it.
    pub fn of(field: &Field) -> Option<Self> {
        let is_enum = field.metadata().get(EXTENSION).is_some_and(|name| name == ENUM);
        if !is_enum || !field.data_type().is_string() {
            return None;
        }
        Self::declared(field)
    }

    /// That of a column, as its definition has it.
    pub fn declared(field: &Field) -> Option<Self> {
        match Declared::of(field)? {
            // An array has the labels of its elements.
            Declared::Enum(of) if !field.data_type().is_nested() => Some(of),
            _ => None,
        }
    }

    /// A field of this type, as queries have it.
    pub fn field(&self) -> Field {
        let field = Declared::Enum(self.clone()).field(DataType::Utf8);
        let mut metadata = field.metadata().clone();
        metadata.insert(EXTENSION.to_owned(), ENUM.to_owned());
        field.with_metadata(metadata)
    }

    /// The place of a label.
    ///
    /// # Errors
    /// `Invalid` for a text that is none.
    pub fn position(&self, text: &str) -> bowshot_api::Result<usize> {
        self.labels.iter().position(|label| label == text).ok_or_else(|| self.no_label(text))
    }

    fn no_label(&self, text: &str) -> Error {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" {}", name.name));
        Error::invalid(format!("invalid input value for enum{name}: \"{text}\""))
            .with_reason(Reason::InvalidText)
            .with_hint(format!("it takes {}", self.labels.join(", ")))
    }

    /// The name as it is written in SQL, with the schema where that is not the default one; the labels without a name.
    pub fn sql(&self) -> String {
        let Some(name) = &self.name else { return listed("ENUM", self.labels.iter()) };
        let parts = match (name.catalog == DEFAULT_CATALOG, name.schema == DEFAULT_SCHEMA) {
            (true, true) => vec![&name.name],
            (true, false) => vec![&name.schema, &name.name],
            (false, _) => vec![&name.catalog, &name.schema, &name.name],
        };
        parts.into_iter().map(|part| quoted(part)).collect::<Vec<_>>().join(".")
    }

    /// The type in a syntax tree, so that its text means the same wherever it is read: the name stands before the labels, with a
    /// number behind it.
    pub fn syntax(&self) -> SqlType {
        let name = self.name.iter().map(|name| {
            let parts = serde_json::json!([name.catalog, name.schema, name.name]).to_string();
            EnumMember::NamedValue(parts, Expr::value(Value::Number("0".to_owned(), false)))
        });
        let labels = self.labels.iter().map(|label| EnumMember::Name(label.clone()));
        SqlType::Enum(name.chain(labels).collect(), None)
    }

    /// The reverse of [`EnumType::syntax`].
    pub(super) fn from_members(members: &[EnumMember]) -> Self {
        let (name, rest) = match members.split_first() {
            Some((EnumMember::NamedValue(first, _), rest)) => {
                match serde_json::from_str::<[String; 3]>(first) {
                    Ok([catalog, schema, name]) => (Some(EntryName { catalog, schema, name }), rest),
                    Err(_) => (None, members),
                }
            }
            _ => (None, members),
        };
        let labels = rest.iter().map(|member| match member {
            EnumMember::Name(name) | EnumMember::NamedValue(name, _) => name.clone(),
        });
        Self { name, labels: labels.collect() }
    }

    /// The reverse of its text, of which this is the list: with a name, its parts come first.
    pub(super) fn from_texts(mut texts: Vec<String>, is_named: bool) -> Option<Self> {
        if !is_named {
            return Some(Self { name: None, labels: texts });
        }
        if texts.len() < 3 {
            return None;
        }
        let labels = texts.split_off(3);
        let mut parts = texts.into_iter();
        let (catalog, schema, name) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { name: Some(EntryName { catalog, schema, name }), labels })
    }
}

impl fmt::Display for EnumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => f.write_str(&listed("ENUM", self.labels.iter())),
            Some(EntryName { catalog, schema, name }) => {
                f.write_str(&listed("ENUM_OF", [catalog, schema, name].into_iter().chain(&self.labels)))
            }
        }
    }
}

fn listed<'a>(keyword: &str, texts: impl Iterator<Item = &'a String>) -> String {
    let quoted = texts.map(|text| format!("'{}'", text.replace('\'', "''")));
    format!("{keyword}({})", quoted.collect::<Vec<_>>().join(", "))
}

/// Refuses a name that a type has already which is no enumerated one: the name would mean that one.
///
/// # Errors
/// `Invalid`.
pub fn check_name(name: &ObjectName) -> Result<()> {
    match Types.field(&SqlType::Custom(name.clone(), Vec::new()), 0) {
        Ok(_) => Err(refused(
            Error::invalid(format!("there is a type `{name}` already")).with_hint("choose another name"),
        )),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_survives_its_text_and_its_syntax() {
        for name in [None, Some(EntryName::new("c", "s", "it's, (b)"))] {
            let of = EnumType { name, labels: vec!["a".to_owned(), "b', (c".to_owned()] };
            assert_eq!(EnumType::of(&of.field()), Some(of.clone()));
            let SqlType::Enum(members, None) = of.syntax() else { unreachable!("it is one") };
            assert_eq!(EnumType::from_members(&members), of);
        }
    }
}
