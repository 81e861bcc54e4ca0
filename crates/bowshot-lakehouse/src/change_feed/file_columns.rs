//! The columns of one file as those of the table: what they are called in it, and whether its values are values of theirs.

use super::delta_protocol::ChangeColumn;
use super::{LATER, refused};
use crate::columns::{expect_same_names, number};
use arrow::datatypes::{DataType, FieldRef, Schema};
use bowshot_api::ErrorKind;
use bowshot_object_store::Error;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Begins a name that no column has in a file.
pub(super) const NOWHERE: char = '\u{1}';

pub(super) fn names_in(
    file: &Schema,
    columns: &[ChangeColumn],
    (by_number, path): (bool, &Path),
) -> Result<Vec<String>, Error> {
    let has_numbers = by_number && file.fields().iter().any(|field| number(field).is_some());
    let by_name: HashMap<&str, &FieldRef> =
        file.fields().iter().map(|field| (field.name().as_str(), field)).collect();
    let of_column = |column: &ChangeColumn| {
        let wanted = &column.in_files;
        let named = by_name.get(wanted.name().as_str()).copied();
        let found = match has_numbers {
            true => {
                file.fields().iter().find(|field| number(field).is_some() && number(field) == number(wanted))
            }
            false => named,
        };
        let Some(found) = found else {
            // Another column of this name is not it.
            let name = wanted.name();
            return Ok(if named.is_some() { format!("{NOWHERE}{name}") } else { name.clone() });
        };
        if has_numbers {
            let same = expect_same_names(wanted, found, &HashSet::new());
            same.map_err(|detail| Error::Unsupported { path: path.to_path_buf(), detail })?;
        }
        if !is_read_as(found.data_type(), wanted.data_type(), Lacking::Null) {
            let detail = format!(
                "column `{}` is {} in it and {} in the table",
                column.field.name(),
                found.data_type(),
                column.field.data_type()
            );
            return Err(refused(path, ErrorKind::Unsupported, detail, LATER));
        }
        Ok(found.name().clone())
    };
    columns.iter().filter(|column| !column.is_partition).map(of_column).collect()
}

/// What becomes of nested fields that a file lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lacking {
    Null,
    /// Within maps, where fields may be taken by their places.
    Refused,
}

/// Whether values of a type in a file are values of a type of the table.
pub(super) fn is_read_as(file: &DataType, table: &DataType, lacking: Lacking) -> bool {
    use DataType as T;
    let of_field =
        |file: &FieldRef, table: &FieldRef| is_read_as(file.data_type(), table.data_type(), lacking);
    match (file, table) {
        _ if file == table => true,
        (T::Dictionary(_, file), _) => is_read_as(file, table, lacking),
        (T::Decimal128(_, file), T::Decimal128(_, table)) => file <= table,
        (T::Null, _)
        | (T::Utf8 | T::LargeUtf8 | T::Utf8View, T::Utf8)
        | (T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_), T::Binary)
        | (T::Int8, T::Int16 | T::Int32 | T::Int64 | T::Float64)
        | (T::Int16, T::Int8 | T::Int32 | T::Int64 | T::Float64)
        | (T::Int32, T::Int8 | T::Int16 | T::Int64 | T::Float64)
        | (T::Float32, T::Float64)
        | (T::Int8 | T::Int16 | T::Int32 | T::Int64, T::Decimal128(..))
        | (T::Timestamp(..) | T::Date32, T::Timestamp(..)) => true,
        (T::Struct(file), T::Struct(table)) => table.iter().all(|wanted| {
            let found = file.iter().find(|field| field.name() == wanted.name());
            found.map_or(lacking == Lacking::Null, |found| of_field(found, wanted))
        }),
        (T::List(file) | T::LargeList(file), T::List(table)) => of_field(file, table),
        (T::Map(file, _), T::Map(table, _)) => match (file.data_type(), table.data_type()) {
            (T::Struct(file), T::Struct(table)) => {
                let mut parts = file.iter().zip(table);
                let of_part = |(file, table): (&FieldRef, &FieldRef)| {
                    is_read_as(file.data_type(), table.data_type(), Lacking::Refused)
                };
                file.len() == table.len() && parts.all(of_part)
            }
            _ => false,
        },
        _ => false,
    }
}
