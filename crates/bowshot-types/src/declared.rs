//! What a declaration says of a column beyond its Arrow type: lengths, digits, that a text is JSON. It is in the metadata of the
//! field. A value that does not fit is an error on its way into a table, and is cut off by an explicit cast, as the standard says.

use super::enums::EnumType;
use super::uuids::read_uuid;
use bowshot_api::{Error, Reason, Result};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, FixedSizeListArray, ListArray, StringArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowNativeType, DataType, Field, FieldRef, Fields, Int64Type, Schema, SchemaRef,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bowshot_formats::extension_types::EXTENSION;
/// Key of the metadata.
pub use bowshot_tables::DECLARED;
use bowshot_tables::{ENUM, PADDED};

/// Whether an entry of the metadata of a field belongs to its values: others say how a file or a server keeps them, or are for
/// operators alone.
pub fn is_kept(key: &str, value: &str) -> bool {
    !(key.starts_with("bowshot:") || key.starts_with("PARQUET:") || (key == EXTENSION && value == ENUM))
}

/// The declared type of a column beyond its Arrow type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Declared {
    /// Text of so many characters at most.
    Varchar(u64),
    /// Text of any length. It is nothing more than a text, and called otherwise by PostgreSQL.
    PlainVarchar,
    /// The same, without the blanks at its end, which count for nothing; it is not filled up with them.
    Char(u64),
    /// Bytes, so many at most.
    Varbinary(u64),
    /// One of the labels of an enumerated type.
    Enum(EnumType),
    Json,
    /// JSON in its normal form: each key once and in order, so that equal values are equal texts.
    Jsonb,
    /// In its canonical text form.
    Uuid,
    /// So many digits of a second, fewer than the type has.
    Timestamp(u32),
    TimestampTz(u32),
    Time(u32),
    /// An array, of whose items this is declared.
    Items(Box<Self>),
}

impl Declared {
    /// What is declared for a field.
    pub fn of(field: &Field) -> Option<Self> {
        Self::parse(field.metadata().get(DECLARED)?)
    }

    /// A field of this declaration.
    pub fn field(&self, data_type: DataType) -> Field {
        Field::new("", data_type, true)
            .with_metadata(HashMap::from([(DECLARED.to_owned(), self.to_string())]))
    }

    /// The reverse of its text.
    fn parse(text: &str) -> Option<Self> {
        if let Some(item) = text.strip_suffix("[]") {
            return Some(Self::Items(Box::new(Self::parse(item)?)));
        }
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let inner = rest.split_once(')').map_or("", |(inner, _)| inner);
        Some(match name {
            "JSON" => Self::Json,
            "JSONB" => Self::Jsonb,
            "UUID" => Self::Uuid,
            "VARCHAR" if rest.is_empty() => Self::PlainVarchar,
            "VARCHAR" => Self::Varchar(inner.parse().ok()?),
            "CHAR" => Self::Char(inner.parse().ok()?),
            "VARBINARY" => Self::Varbinary(inner.parse().ok()?),
            "TIME" => Self::Time(inner.parse().ok()?),
            "TIMESTAMP" if text.ends_with("ZONE") => Self::TimestampTz(inner.parse().ok()?),
            "TIMESTAMP" => Self::Timestamp(inner.parse().ok()?),
            "ENUM" | "ENUM_OF" => {
                Self::Enum(EnumType::from_texts(texts(rest.strip_suffix(')')?)?, name == "ENUM_OF")?)
            }
            _ => return None,
        })
    }

    /// The same for an array of such items, if they are changed by it.
    pub(super) fn of_items(self) -> Option<Self> {
        match self {
            Self::PlainVarchar | Self::Enum(_) | Self::Json | Self::Jsonb => None,
            Self::Uuid
            | Self::Varchar(_)
            | Self::Char(_)
            | Self::Varbinary(_)
            | Self::Timestamp(_)
            | Self::TimestampTz(_)
            | Self::Time(_)
            | Self::Items(_) => Some(Self::Items(Box::new(self))),
        }
    }

    /// Values of a column that go into a table.
    ///
    /// # Errors
    /// `Invalid` for the first that does not fit.
    pub fn assign(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.fitted(values, false)
    }

    /// Values that are cast to the type.
    ///
    /// # Errors
    /// `Invalid` for one that is none of the type at all.
    pub fn cast(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.fitted(values, true)
    }

    fn fitted(&self, values: &ArrayRef, cut: bool) -> Result<ArrayRef> {
        match self {
            Self::PlainVarchar => Ok(Arc::clone(values)),
            Self::Varchar(length) => texts_of(values, |text| self.shortened(text, *length, cut)),
            Self::Char(length) => texts_of(values, |text| {
                let trimmed = text.trim_end_matches(' ');
                let shortened = self.shortened(trimmed, *length, cut)?;
                let kept = shortened.as_deref().unwrap_or(trimmed).trim_end_matches(' ');
                Ok((kept.len() < text.len()).then(|| kept.to_owned()))
            }),
            Self::Varbinary(length) => self.bytes(values, *length, cut),
            Self::Enum(of) => check_labels(values, of).map(|()| Arc::clone(values)),
            Self::Json => texts_of(values, |text| json(text).map(|()| None)),
            Self::Jsonb => texts_of(values, |text| {
                json(text)?;
                let normal = bowshot_functions::normal_jsonb(text)
                    .map_err(|error| Error::invalid(error.strip_backtrace()).with_source(error))?;
                Ok((normal != text).then_some(normal))
            }),
            Self::Uuid => texts_of(values, |text| {
                let canonical = read_uuid(text)?.hyphenated().to_string();
                Ok((canonical != text).then_some(canonical))
            }),
            Self::Timestamp(digits) | Self::TimestampTz(digits) | Self::Time(digits) => {
                rounded(values, *digits)
            }
            Self::Items(of) => each_item(values, |items| of.fitted(items, cut)),
        }
    }

    /// Spaces at the end may go; anything else only where the user casts.
    fn shortened(&self, text: &str, length: u64, cut: bool) -> Result<Option<String>> {
        let limit = usize::try_from(length).unwrap_or(usize::MAX);
        if text.len() <= limit {
            return Ok(None);
        }
        let Some((end, _)) = text.char_indices().nth(limit) else { return Ok(None) };
        let (kept, rest) = text.split_at(end);
        if cut || rest.chars().all(|c| c == ' ') {
            return Ok(Some(kept.to_owned()));
        }
        let name = if matches!(self, Self::Char(_)) { "character" } else { "character varying" };
        Err(Error::invalid(format!("value too long for type {name}({length})"))
            .with_reason(Reason::ValueTooLong)
            .with_hint("shorten it, or declare a longer column"))
    }

    fn bytes(&self, values: &ArrayRef, length: u64, cut: bool) -> Result<ArrayRef> {
        let limit = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(bytes) = values.as_binary_opt::<i32>() else { return Ok(Arc::clone(values)) };
        if bytes.iter().flatten().all(|value| value.len() <= limit) {
            return Ok(Arc::clone(values));
        }
        if !cut {
            return Err(Error::invalid(format!("value too long for type {self}"))
                .with_reason(Reason::ValueTooLong)
                .with_hint("shorten it, or declare a longer column"));
        }
        let cut: BinaryArray =
            bytes.iter().map(|value| value.map(|value| value.get(..limit).unwrap_or(value))).collect();
        Ok(Arc::new(cut))
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainVarchar => f.write_str("VARCHAR"),
            Self::Varchar(length) => write!(f, "VARCHAR({length})"),
            Self::Char(length) => write!(f, "CHAR({length})"),
            Self::Varbinary(length) => write!(f, "VARBINARY({length})"),
            Self::Json => f.write_str("JSON"),
            Self::Jsonb => f.write_str("JSONB"),
            Self::Uuid => f.write_str("UUID"),
            Self::Timestamp(digits) => write!(f, "TIMESTAMP({digits})"),
            Self::TimestampTz(digits) => write!(f, "TIMESTAMP({digits}) WITH TIME ZONE"),
            Self::Time(digits) => write!(f, "TIME({digits})"),
            Self::Enum(of) => write!(f, "{of}"),
            Self::Items(of) => write!(f, "{of}[]"),
        }
    }
}

fn json(text: &str) -> Result<()> {
    serde_json::from_str::<serde_json::Value>(text).map(|_| ()).map_err(|error| {
        Error::invalid(format!("invalid input syntax for type json: {error}"))
            .with_reason(Reason::InvalidText)
    })
}

/// The texts of `'a', 'it''s'`.
fn texts(list: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = list.trim_start();
    while let Some(start) = rest.strip_prefix('\'') {
        let (mut text, mut after) = (String::new(), start);
        loop {
            let (part, behind) = after.split_once('\'')?;
            text.push_str(part);
            match behind.strip_prefix('\'') {
                Some(more) => {
                    text.push('\'');
                    after = more;
                }
                None => {
                    after = behind;
                    break;
                }
            }
        }
        found.push(text);
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    rest.is_empty().then_some(found)
}

/// Refuses a text that is no label, also within arrays.
fn check_labels(values: &ArrayRef, of: &EnumType) -> Result<()> {
    if let Some(lists) = values.as_list_opt::<i32>() {
        return lists.iter().flatten().try_for_each(|list| check_labels(&list, of));
    }
    if let Some(lists) = values.as_fixed_size_list_opt() {
        return lists.iter().flatten().try_for_each(|list| check_labels(&list, of));
    }
    let texts = values.as_string_opt::<i32>().into_iter().flatten().flatten();
    texts.map(|text| of.position(text)).try_for_each(|found| found.map(drop))
}

/// Arrays whose items are others of the same type.
fn each_item(values: &ArrayRef, fit: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let failed = |error| Error::internal("the items of an array were not put back").with_source(error);
    if let (Some(lists), DataType::List(item)) = (values.as_list_opt::<i32>(), values.data_type()) {
        // Items of rows that are cut off do not count.
        let offsets = lists.value_offsets();
        let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        let items = fit(&lists.values().slice(first.as_usize(), (last - first).as_usize()))?;
        let offsets = OffsetBuffer::new(offsets.iter().map(|offset| offset - first).collect());
        let lists = ListArray::try_new(Arc::clone(item), offsets, items, lists.nulls().cloned());
        return Ok(Arc::new(lists.map_err(failed)?));
    }
    if let (Some(lists), DataType::FixedSizeList(item, length)) =
        (values.as_fixed_size_list_opt(), values.data_type())
    {
        let items = fit(lists.values())?;
        let lists = FixedSizeListArray::try_new(Arc::clone(item), *length, items, lists.nulls().cloned());
        return Ok(Arc::new(lists.map_err(failed)?));
    }
    Ok(Arc::clone(values))
}

/// Texts, each as it is or as it has to be instead.
fn texts_of(values: &ArrayRef, fit: impl Fn(&str) -> Result<Option<String>>) -> Result<ArrayRef> {
    let Some(texts) = values.as_string_opt::<i32>() else { return Ok(Arc::clone(values)) };
    let mut changed = false;
    let mut fitted = Vec::with_capacity(texts.len());
    for text in texts {
        fitted.push(match text {
            None => None,
            Some(text) => match fit(text)? {
                Some(other) => {
                    changed = true;
                    Some(std::borrow::Cow::Owned(other))
                }
                None => Some(std::borrow::Cow::Borrowed(text)),
            },
        });
    }
    if !changed {
        return Ok(Arc::clone(values));
    }
    Ok(Arc::new(fitted.iter().map(Option::as_deref).collect::<StringArray>()))
}

/// Microseconds with fewer digits, halves away from zero.
fn rounded(values: &ArrayRef, digits: u32) -> Result<ArrayRef> {
    let step = 10_i64.pow(6_u32.saturating_sub(digits));
    let failed = |error| Error::internal("a time was not rounded").with_source(error);
    let numbers = cast(values, &DataType::Int64).map_err(failed)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    if numbers.iter().flatten().all(|number| number % step == 0) {
        return Ok(Arc::clone(values));
    }
    let nearest = numbers.unary::<_, Int64Type>(|number| {
        let down = number - number.rem_euclid(step);
        if number - down >= step - (number - down) { down.saturating_add(step) } else { down }
    });
    cast(&nearest, values.data_type()).map_err(failed)
}

/// A field without what only operators ask for. What a cast makes of JSONB, or of an enumerated type, has no extension type any
/// more, and is none.
pub fn without_marks(field: &FieldRef) -> FieldRef {
    let is_text = !field.metadata().contains_key(EXTENSION)
        && matches!(Declared::of(field), Some(Declared::Jsonb | Declared::Enum(_)));
    if !is_text && !field.metadata().contains_key(PADDED) {
        return Arc::clone(field);
    }
    let mut metadata = field.metadata().clone();
    metadata.remove(PADDED);
    if is_text {
        metadata.remove(DECLARED);
    }
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// A field of an enumerated type as clients have it: a text.
pub(crate) fn without_labels(field: &FieldRef) -> FieldRef {
    if EnumType::of(field).is_none() {
        return Arc::clone(field);
    }
    let mut metadata = field.metadata().clone();
    metadata.remove(DECLARED);
    metadata.remove(EXTENSION);
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// The same as [`without_marks`], without labels, for all columns of a schema, of rows that go into a file.
pub fn schema_without_marks(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(|field| without_labels(&without_marks(field))).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_survives_its_text() {
        for declared in [
            Declared::Varchar(10),
            Declared::PlainVarchar,
            Declared::Char(1),
            Declared::Varbinary(16),
            Declared::Enum(EnumType { name: None, labels: vec!["a".to_owned(), "it's, (b)".to_owned()] }),
            Declared::Json,
            Declared::Jsonb,
            Declared::Uuid,
            Declared::Timestamp(0),
            Declared::TimestampTz(3),
            Declared::Time(2),
            Declared::Items(Box::new(Declared::Items(Box::new(Declared::TimestampTz(3))))),
        ] {
            assert_eq!(Declared::parse(&declared.to_string()), Some(declared));
        }
    }
}
