//! What a table or a view may be, checked once where either is put into a snapshot: every statement that makes one comes
//! through there. A definition is kept as text, written into logs that other programs read, and walked by recursion in many
//! places; one that some of them cannot take back would be known only at the next start.

use super::{Definition, Error, External, View, What};
use arrow::datatypes::{DataType, Field, FieldRef};

/// Types inside one another. Their text nests three times as deep, and readers of JSON stop at 128.
const MAX_TYPE_DEPTH: usize = 32;
const MAX_COLUMNS: usize = 10_000;
/// Fields of all types of a table together, with its columns.
const MAX_FIELDS: usize = 50_000;
/// Bytes of a name. File systems and other programs take no longer ones.
const MAX_NAME_BYTES: usize = 255;
/// Bytes of a text that is kept with a table or view: a view's query, a comment.
const MAX_TEXT_BYTES: usize = 4 << 20;

pub(super) fn check_name(what: What, name: &str) -> Result<(), Error> {
    checked(name).map_err(|reason| Error::TooMuch(format!("{what} `{}` {reason}", shown(name))))
}

pub(super) fn check_table(definition: &Definition) -> Result<(), Error> {
    let columns = definition.columns.len();
    limit(columns, MAX_COLUMNS, "columns")?;
    let mut fields = columns;
    for column in &definition.columns {
        check_column(column.field.name())?;
        check_text(column.default.as_deref().into_iter().chain(column.comment.as_deref()))?;
        let type_fields = measure(column.field.data_type(), 1, &mut 0)
            .map_err(|error| Error::TooMuch(format!("column `{}` {error}", shown(column.field.name()))))?;
        fields = fields.saturating_add(type_fields);
        limit(fields, MAX_FIELDS, "fields in its types")?;
    }
    let checks = definition.checks.iter();
    let texts = checks.map(|check| check.sql.as_str()).chain(definition.comment.as_deref());
    check_text(texts.chain(definition.clauses.as_deref()))?;
    definition.checks.iter().try_for_each(|check| check_constraint(&check.name))?;
    let key = definition.primary_key.as_ref().and_then(|key| key.name.as_ref());
    key.map_or(Ok(()), |name| check_constraint(name))
}

pub(super) fn check_view(view: &View) -> Result<(), Error> {
    limit(view.columns.len(), MAX_COLUMNS, "columns")?;
    view.columns.iter().try_for_each(|name| check_column(name))?;
    check_text(std::iter::once(view.sql.as_str()).chain(view.comment.as_deref()))
}

pub(super) fn check_external(external: &External) -> Result<(), Error> {
    let texts = [external.format.as_str(), external.location.as_str()].into_iter();
    check_text(texts.chain(external.found.as_deref()).chain(external.comment.as_deref()))?;
    let bytes = external.option_texts().map(str::len).sum();
    limit(bytes, MAX_TEXT_BYTES, "bytes in its options")
}

fn check_column(name: &str) -> Result<(), Error> {
    checked(name).map_err(|reason| Error::TooMuch(format!("the name of column `{}` {reason}", shown(name))))
}

fn check_constraint(name: &str) -> Result<(), Error> {
    checked(name)
        .map_err(|reason| Error::TooMuch(format!("the name of constraint `{}` {reason}", shown(name))))
}

fn check_text<'a>(texts: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    texts.map(str::len).try_for_each(|length| limit(length, MAX_TEXT_BYTES, "bytes in one of its texts"))
}

fn checked(name: &str) -> Result<(), String> {
    match name {
        "" => Err("is empty".to_owned()),
        _ if name.len() > MAX_NAME_BYTES => {
            Err(format!("has {} bytes, more than the limit of {MAX_NAME_BYTES}", name.len()))
        }
        _ if name.contains('\0') => Err("contains a NUL character".to_owned()),
        _ => Ok(()),
    }
}

fn limit(found: usize, most: usize, what: &str) -> Result<(), Error> {
    if found <= most {
        return Ok(());
    }
    Err(Error::TooMuch(format!("a table or view has {found} {what}, more than the limit of {most}")))
}

fn shown(name: &str) -> String {
    match name.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// Fields inside a type. Ends at the limits, so that the recursion does too.
fn measure(data_type: &DataType, depth: usize, fields: &mut usize) -> Result<usize, String> {
    if depth > MAX_TYPE_DEPTH {
        return Err(format!("has a type of more than {MAX_TYPE_DEPTH} types inside one another"));
    }
    let mut inside = |parts: &mut dyn Iterator<Item = &FieldRef>| -> Result<(), String> {
        for field in parts {
            *fields += 1;
            if *fields > MAX_FIELDS {
                return Err(format!("has a type of more than {MAX_FIELDS} fields"));
            }
            named(field)?;
            measure(field.data_type(), depth + 1, fields)?;
        }
        Ok(())
    };
    match data_type {
        DataType::Struct(parts) => inside(&mut parts.iter())?,
        DataType::Union(parts, _) => inside(&mut parts.iter().map(|(_, field)| field))?,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => inside(&mut std::iter::once(item))?,
        DataType::RunEndEncoded(ends, values) => inside(&mut [ends, values].into_iter())?,
        DataType::Dictionary(_, values) => {
            measure(values, depth + 1, fields)?;
        }
        _ => {}
    }
    Ok(*fields)
}

/// Fields of structures have names that users choose; an empty one is no more than odd.
fn named(field: &Field) -> Result<(), String> {
    match field.name().as_str() {
        "" => Ok(()),
        name => checked(name).map_err(|reason| format!("has a field `{}` whose name {reason}", shown(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use std::sync::Arc;

    fn lists(depth: usize) -> DataType {
        (1..depth).fold(DataType::Int32, |item, _| DataType::List(Arc::new(Field::new("item", item, true))))
    }

    fn structs(depth: usize) -> DataType {
        (1..depth).fold(DataType::Int32, |item, _| DataType::Struct(vec![Field::new("f", item, true)].into()))
    }

    fn table(columns: Vec<(String, DataType)>) -> Definition {
        let column = |(name, data_type)| Column {
            field: Arc::new(Field::new(name, data_type, true)),
            default: None,
            comment: None,
        };
        Definition { columns: columns.into_iter().map(column).collect(), ..Definition::default() }
    }

    #[test]
    fn a_table_has_bounds() {
        let one = |data_type| table(vec![("a".to_owned(), data_type)]);
        let many = |count| table((0..count).map(|at| (format!("c{at}"), DataType::Int8)).collect());
        for (definition, good) in [
            (one(lists(32)), true),
            (one(lists(33)), false),
            (one(structs(32)), true),
            (one(structs(33)), false),
            (one(lists(2_000)), false),
            (one(DataType::Dictionary(Box::new(DataType::Int8), Box::new(lists(32)))), false),
            (table(vec![(String::new(), DataType::Int8)]), false),
            (table(vec![("x".repeat(255), DataType::Int8)]), true),
            (table(vec![("x".repeat(256), DataType::Int8)]), false),
            (table(vec![("a\0b".to_owned(), DataType::Int8)]), false),
            (many(10_000), true),
            (many(10_001), false),
            (one(DataType::Struct(vec![Field::new("x".repeat(300), DataType::Int8, true)].into())), false),
        ] {
            assert_eq!(check_table(&definition).is_ok(), good, "{:.80}", format!("{definition:?}"));
        }
    }

    #[test]
    fn a_table_of_the_greatest_depth_is_read_back() {
        for data_type in [lists(32), structs(32)] {
            let kept = super::super::durable::durable_type(&data_type).unwrap();
            let definition =
                Definition { storage: crate::Storage::Durable, ..table(vec![("a".to_owned(), kept)]) };
            assert!(super::super::durable::survives(&definition));
        }
    }
}
