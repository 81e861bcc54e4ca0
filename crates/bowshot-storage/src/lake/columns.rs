//! Where the columns of a table are in one of its files: found by number, so that columns that were renamed, added, dropped
//! or widened after a file was written are read right.

use crate::Error;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::ScalarValue;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Key of a field's metadata under which Parquet's reader leaves its number.
const NUMBER: &str = "PARQUET:field_id";

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct LakeColumn {
    /// Name and type; numbers of nested fields are in their metadata.
    pub(super) field: FieldRef,
    pub(super) number: i32,
    /// What rows have that were written before the column was added.
    pub(super) default: ScalarValue,
}

/// Where the values of a column come from in one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// The column of this name.
    Column(String),
    /// All rows have this one.
    Constant(ScalarValue),
}

/// Metadata of a field that has this number.
pub(super) fn numbered(number: i32) -> HashMap<String, String> {
    HashMap::from([(NUMBER.to_owned(), number.to_string())])
}

/// The number of a field; none where the writer knew of no numbers.
pub(super) fn number(field: &Field) -> Option<i32> {
    field.metadata().get(NUMBER)?.parse().ok()
}

/// The sources of all columns in a file. `partition` has values by the numbers of columns that the file may lack, and
/// `names` the numbers of names where the file has no numbers.
///
/// # Errors
/// `Unsupported` for nested fields that were renamed, and for files without numbers of a table without such names.
pub(super) fn sources(
    columns: &[LakeColumn],
    file: &Schema,
    partition: &HashMap<i32, ScalarValue>,
    names: &HashMap<String, i32>,
    path: &Path,
) -> Result<Vec<Source>, Error> {
    let mut seen = HashSet::new();
    if let Some(twice) = file.fields().iter().find(|field| !seen.insert(field.name())) {
        let detail = format!("two columns of the name `{}`", twice.name());
        return Err(Error::Unsupported { path: path.to_path_buf(), detail });
    }
    let has_numbers = file.fields().iter().any(|field| number(field).is_some());
    if !has_numbers && names.is_empty() && !file.fields().is_empty() {
        let detail =
            "its columns have no numbers, and the table does not say which names they had".to_owned();
        return Err(Error::Unsupported { path: path.to_path_buf(), detail });
    }
    let number_of = |field: &Field| match has_numbers {
        true => number(field),
        false => names.get(field.name()).copied(),
    };
    let by_number: HashMap<i32, &FieldRef> =
        file.fields().iter().filter_map(|field| Some((number_of(field)?, field))).collect();
    let of_column = |column: &LakeColumn| match by_number.get(&column.number) {
        Some(found) => {
            if has_numbers {
                expect_same_names(&column.field, found, path)?;
            }
            Ok(Source::Column(found.name().clone()))
        }
        None => Ok(Source::Constant(partition.get(&column.number).unwrap_or(&column.default).clone())),
    };
    columns.iter().map(of_column).collect()
}

/// Nested fields are found by name, so those of one number must have one name.
///
/// # Errors
/// `Unsupported` where they do not.
pub(super) fn expect_same_names(wanted: &Field, found: &Field, path: &Path) -> Result<(), Error> {
    use DataType as T;
    match (wanted.data_type(), found.data_type()) {
        (T::Struct(wanted), T::Struct(found)) => wanted.iter().try_for_each(|wanted| {
            let by_number = found.iter().find(|field| number(field) == number(wanted));
            let by_name = found.iter().find(|field| field.name() == wanted.name());
            match (by_number, by_name) {
                (Some(one), _) if one.name() == wanted.name() => expect_same_names(wanted, one, path),
                (None, None) => Ok(()),
                _ => {
                    let detail =
                        format!("its nested field `{}` had another name, or is another one", wanted.name());
                    Err(Error::Unsupported { path: path.to_path_buf(), detail })
                }
            }
        }),
        (T::List(wanted), T::List(found)) => expect_same_names(wanted, found, path),
        (T::Map(wanted, _), T::Map(found, _)) => match (wanted.data_type(), found.data_type()) {
            (T::Struct(wanted), T::Struct(found)) => wanted
                .iter()
                .zip(found)
                .try_for_each(|(wanted, found)| expect_same_names(wanted, found, path)),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn field(name: &str, id: i32, data_type: DataType) -> Field {
        Field::new(name, data_type, true).with_metadata(numbered(id))
    }

    fn column(name: &str, id: i32, data_type: DataType) -> LakeColumn {
        let default = ScalarValue::try_from(&data_type).unwrap();
        LakeColumn { field: Arc::new(field(name, id, data_type)), number: id, default }
    }

    fn found(columns: &[LakeColumn], file: Vec<Field>) -> Result<Vec<Source>, Error> {
        sources(columns, &Schema::new(file), &HashMap::new(), &HashMap::new(), Path::new("f"))
    }

    #[test]
    fn columns_are_found_by_number() {
        let columns = [column("new", 1, DataType::Int64), column("b", 3, DataType::Int64)];
        let file = vec![field("old", 1, DataType::Int32), field("b", 2, DataType::Int64)];
        let wanted = vec![Source::Column("old".to_owned()), Source::Constant(ScalarValue::Int64(None))];
        assert_eq!(found(&columns, file).unwrap(), wanted);
    }

    #[test]
    fn nested_fields_that_were_renamed_are_refused() {
        let of = |name: &str, id| DataType::Struct(vec![field(name, id, DataType::Int64)].into());
        let columns = [column("s", 1, of("x", 2))];
        assert!(found(&columns, vec![field("s", 1, of("x", 2))]).is_ok());
        assert!(found(&columns, vec![field("s", 1, of("y", 2))]).is_err());
        assert!(found(&columns, vec![field("s", 1, of("x", 5))]).is_err());
    }

    #[test]
    fn files_without_numbers_need_names() {
        let columns = [column("a", 1, DataType::Int64)];
        let file = Schema::new(vec![Field::new("was", DataType::Int64, true)]);
        let names = HashMap::from([("was".to_owned(), 1)]);
        let with = sources(&columns, &file, &HashMap::new(), &names, Path::new("f")).unwrap();
        assert_eq!(with, [Source::Column("was".to_owned())]);
        assert!(sources(&columns, &file, &HashMap::new(), &HashMap::new(), Path::new("f")).is_err());
    }
}
