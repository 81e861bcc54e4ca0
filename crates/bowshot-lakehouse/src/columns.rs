//! Where the columns of a table are in one of its files: found by number, so that columns that were renamed, added, dropped
//! or widened after a file was written are read right.

use arrow::array::{ArrayRef, StructArray, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use bowshot_object_store::Error;
use datafusion::common::ScalarValue;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Key of a field's metadata under which Parquet's reader leaves its number.
const NUMBER: &str = "PARQUET:field_id";

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
    Column(String),
    /// The column of this name and type says which rows have no record; the others have this one, of NULLs: all fields were
    /// replaced after the file was written.
    Replaced {
        name: String,
        data_type: DataType,
        record: ScalarValue,
    },
    Constant(ScalarValue),
}

pub(super) fn numbered(number: i32) -> HashMap<String, String> {
    HashMap::from([(NUMBER.to_owned(), number.to_string())])
}

/// The number of a field; none where the writer knew of no numbers.
pub(super) fn number(field: &Field) -> Option<i32> {
    field.metadata().get(NUMBER)?.parse().ok()
}

/// The sources of all columns in a file. `partition` has values by the numbers of columns that the file may lack, and
/// `with_default` the numbers of nested fields whose values of before they were added are not NULL.
///
/// # Errors
/// `Unsupported` for nested fields that were renamed, that lack such a value, and for files without numbers.
pub(super) fn sources(
    columns: &[LakeColumn],
    file: &Schema,
    partition: &HashMap<i32, ScalarValue>,
    with_default: &HashSet<i32>,
    path: &Path,
) -> Result<Vec<Source>, Error> {
    let mut seen = HashSet::new();
    if let Some(twice) = file.fields().iter().find(|field| !seen.insert(field.name())) {
        let detail = format!("two columns `{}`", twice.name());
        return Err(Error::Unsupported { path: path.to_path_buf(), detail });
    }
    if !file.fields().is_empty() && !has_numbers(file) {
        let detail = "its columns have no field ids, and the table has no name mapping".to_owned();
        return Err(Error::Unsupported { path: path.to_path_buf(), detail });
    }
    let by_number: HashMap<i32, &FieldRef> =
        file.fields().iter().filter_map(|field| Some((number(field)?, field))).collect();
    let refused = |detail: String| Error::Unsupported { path: path.to_path_buf(), detail };
    let of_column = |column: &LakeColumn| match by_number.get(&column.number) {
        Some(found) => source(column, found, with_default).map_err(refused),
        None => Ok(Source::Constant(partition.get(&column.number).unwrap_or(&column.default).clone())),
    };
    columns.iter().map(of_column).collect()
}

pub(super) fn has_numbers(file: &Schema) -> bool {
    file.fields().iter().any(|field| number(field).is_some())
}

fn source(column: &LakeColumn, found: &Field, with_default: &HashSet<i32>) -> Result<Source, String> {
    let name = found.name().clone();
    match (column.field.data_type(), found.data_type()) {
        (DataType::Struct(wanted), DataType::Struct(inner)) if is_replaced(wanted, inner) => {
            wanted.iter().try_for_each(|field| expect_no_default(field, with_default))?;
            let array = |field: &FieldRef| -> ArrayRef { new_null_array(field.data_type(), 1) };
            let arrays = wanted.iter().map(array).collect();
            let record = StructArray::try_new(wanted.clone(), arrays, None)
                .map_err(|error| format!("its column `{name}` lacks all fields: {error}"))?;
            let record = ScalarValue::Struct(Arc::new(record));
            Ok(Source::Replaced { name, data_type: found.data_type().clone(), record })
        }
        _ => {
            expect_same_names(&column.field, found, with_default)?;
            Ok(Source::Column(name))
        }
    }
}

/// Whether a record of a file has none of the fields that are wanted; of one without numbers it cannot be told.
fn is_replaced(wanted: &Fields, found: &Fields) -> bool {
    let is_there = |wanted: &FieldRef| found.iter().any(|field| number(field) == number(wanted));
    let has_numbers = found.iter().all(|field| number(field).is_some());
    has_numbers && !wanted.is_empty() && !wanted.iter().any(is_there)
}

/// Nested fields are found by name, so those of one number must have one name.
pub(super) fn expect_same_names(
    wanted: &Field,
    found: &Field,
    with_default: &HashSet<i32>,
) -> Result<(), String> {
    use DataType as T;
    match (wanted.data_type(), found.data_type()) {
        (T::Struct(inner), T::Struct(found)) if is_replaced(inner, found) => {
            Err(format!("all fields of its nested column `{}` were replaced", wanted.name()))
        }
        (T::Struct(wanted), T::Struct(found)) => wanted.iter().try_for_each(|wanted| {
            let by_number = found.iter().find(|field| number(field) == number(wanted));
            let by_name = found.iter().find(|field| field.name() == wanted.name());
            match (by_number, by_name) {
                (Some(one), _) if one.name() == wanted.name() => expect_same_names(wanted, one, with_default),
                (None, None) => expect_no_default(wanted, with_default),
                _ => Err(format!("its nested field `{}` was renamed or replaced", wanted.name())),
            }
        }),
        (T::List(wanted), T::List(found) | T::LargeList(found)) => {
            expect_same_names(wanted, found, with_default)
        }
        (T::Map(wanted, _), T::Map(found, _)) => match (wanted.data_type(), found.data_type()) {
            (T::Struct(wanted), T::Struct(found)) => wanted
                .iter()
                .zip(found)
                .try_for_each(|(wanted, found)| expect_same_names(wanted, found, with_default)),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A nested field that a file lacks is NULL.
fn expect_no_default(wanted: &Field, with_default: &HashSet<i32>) -> Result<(), String> {
    match number(wanted).is_some_and(|number| with_default.contains(&number)) {
        true => Err(format!("it lacks the nested field `{}`, which has an initial default", wanted.name())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, id: i32, data_type: DataType) -> Field {
        Field::new(name, data_type, true).with_metadata(numbered(id))
    }

    fn column(name: &str, id: i32, data_type: DataType) -> LakeColumn {
        let default = ScalarValue::try_from(&data_type).unwrap();
        LakeColumn { field: Arc::new(field(name, id, data_type)), number: id, default }
    }

    fn found(columns: &[LakeColumn], file: Vec<Field>) -> Result<Vec<Source>, Error> {
        sources(columns, &Schema::new(file), &HashMap::new(), &HashSet::from([8]), Path::new("f"))
    }

    #[test]
    fn columns_are_found_by_number() {
        let columns = [column("new", 1, DataType::Int64), column("b", 3, DataType::Int64)];
        let file = vec![field("old", 1, DataType::Int32), field("b", 2, DataType::Int64)];
        let wanted = vec![Source::Column("old".to_owned()), Source::Constant(ScalarValue::Int64(None))];
        assert_eq!(found(&columns, file).unwrap(), wanted);
    }

    fn record(fields: &[(&str, i32)]) -> DataType {
        DataType::Struct(fields.iter().map(|(name, id)| field(name, *id, DataType::Int64)).collect())
    }

    #[test]
    fn nested_fields_that_were_renamed_are_refused() {
        let columns = [column("s", 1, record(&[("x", 2), ("z", 3)]))];
        let found = |fields: &[(&str, i32)]| found(&columns, vec![field("s", 1, record(fields))]);
        assert!(found(&[("x", 2), ("z", 3)]).is_ok());
        assert!(found(&[("z", 3)]).is_ok());
        assert!(found(&[("y", 2), ("z", 3)]).is_err());
        assert!(found(&[("x", 5), ("z", 3)]).is_err());
    }

    #[test]
    fn a_record_of_which_nothing_is_left_has_nulls() {
        let columns = [column("s", 1, record(&[("x", 2)]))];
        let old = record(&[("x", 3)]);
        let sources = found(&columns, vec![field("t", 1, old.clone())]).unwrap();
        let [Source::Replaced { name, data_type, record: value }] = sources.as_slice() else { panic!() };
        assert_eq!((name.as_str(), data_type), ("t", &old));
        assert!(!value.is_null() && value.data_type() == *columns[0].field.data_type());
        let plain = DataType::Struct(vec![Field::new("x", DataType::Int64, true)].into());
        assert!(found(&columns, vec![field("s", 1, plain)]).is_err());
        let list = |inner| DataType::List(Arc::new(field("element", 9, inner)));
        let columns = [column("l", 1, list(record(&[("x", 2)])))];
        let error = found(&columns, vec![field("l", 1, list(old))]).unwrap_err();
        assert!(error.to_string().contains("`element` were replaced"), "{error}");
    }

    #[test]
    fn nested_fields_of_before_are_not_null_where_they_have_a_default() {
        for wanted in [record(&[("x", 2), ("d", 8)]), record(&[("d", 8)])] {
            let file = vec![field("s", 1, record(&[("x", 2)]))];
            let error = found(&[column("s", 1, wanted.clone())], file).unwrap_err();
            assert!(error.to_string().contains("lacks the nested field `d`"), "{error}");
            assert!(found(&[column("s", 1, wanted.clone())], vec![field("s", 1, wanted)]).is_ok());
        }
        // Writers have lists of two kinds.
        let element = |inner| Arc::new(field("element", 9, inner));
        let columns = [column("l", 1, DataType::List(element(record(&[("x", 2), ("d", 8)]))))];
        for list in [DataType::List, DataType::LargeList] {
            let file = vec![field("l", 1, list(element(record(&[("x", 2)]))))];
            let error = found(&columns, file).unwrap_err();
            assert!(error.to_string().contains("lacks the nested field `d`"), "{error}");
            let renamed = vec![field("l", 1, list(element(record(&[("y", 2), ("d", 8)]))))];
            assert!(found(&columns, renamed).is_err());
        }
    }

    #[test]
    fn files_without_numbers_are_refused() {
        let columns = [column("a", 1, DataType::Int64)];
        assert!(found(&columns, vec![Field::new("a", DataType::Int64, true)]).is_err());
        assert!(found(&columns, Vec::new()).is_ok());
    }
}
