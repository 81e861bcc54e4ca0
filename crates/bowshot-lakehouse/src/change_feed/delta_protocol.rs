//! What a table is in one of its versions: its columns, what they are called in its files, and whether changes are kept.

use crate::columns::numbered;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use deltalake_core::kernel::{
    DataType as DeltaType, Metadata, MetadataValue, PrimitiveType, Protocol, StructField, StructType,
};
use std::collections::HashMap;
use std::sync::Arc;

/// What a table must have been set for changes to be kept.
const ENABLED: &str = "delta.enableChangeDataFeed";
const MAPPING: &str = "delta.columnMapping.mode";
const NAME: &str = "delta.columnMapping.physicalName";
const NUMBER: &str = "delta.columnMapping.id";

const KNOWN: [&str; 7] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
];

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    columns: Arc<StructType>,
    partitions: Vec<String>,
    mapping: Mapping,
    pub(super) keeps_changes: bool,
    /// A feature that is not known here.
    pub(super) unknown: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    /// By the names that they have in the table.
    Names,
    /// By names of their own, which stay.
    OwnNames,
    Numbers,
}

#[derive(Debug, Clone)]
pub(super) struct ChangeColumn {
    /// Name and type in the table. It may be NULL: it may have been added later, and rules on it may be newer than rows.
    pub(super) field: FieldRef,
    /// The same with the names of files; numbers are in the metadata, where columns have some.
    pub(super) in_files: Field,
    /// Whether files are grouped by it, and do not hold it.
    pub(super) is_partition: bool,
}

/// The first feature that is not known here.
pub(super) fn unknown<'a>(mut features: impl Iterator<Item = &'a str>) -> Option<String> {
    features.find(|feature| !KNOWN.contains(feature)).map(str::to_owned)
}

impl Shape {
    pub(super) fn new(
        columns: Arc<StructType>,
        partitions: &[String],
        configuration: &HashMap<String, String>,
    ) -> Result<Self, String> {
        let mapping = match configuration.get(MAPPING).map(|mode| mode.to_lowercase()).as_deref() {
            None | Some("none") => Mapping::Names,
            Some("name") => Mapping::OwnNames,
            Some("id") => Mapping::Numbers,
            Some(other) => return Err(format!("unknown column mapping mode `{other}`")),
        };
        let keeps_changes =
            configuration.get(ENABLED).is_some_and(|enabled| enabled.eq_ignore_ascii_case("true"));
        Ok(Self { columns, partitions: partitions.to_vec(), mapping, keeps_changes, unknown: None })
    }

    pub(crate) fn of_library(metadata: &Metadata, protocol: &Protocol) -> Result<Self, String> {
        let columns = metadata.parse_schema().map_err(|error| error.to_string())?;
        let shape = Self::new(Arc::new(columns), metadata.partition_columns(), metadata.configuration())?;
        let features = protocol.reader_features().unwrap_or_default();
        Ok(Self { unknown: unknown(features.iter().map(AsRef::as_ref)), ..shape })
    }

    /// The decimal columns that files are grouped by, by their names in the log, and the digits that they have behind the point.
    pub(crate) fn decimal_partitions(&self) -> HashMap<String, u8> {
        let columns = self.partitions.iter().filter_map(|name| self.columns.field(name));
        let decimals = columns.filter_map(|field| match &field.data_type {
            DeltaType::Primitive(PrimitiveType::Decimal(decimal)) => {
                Some((in_files(field, self.mapping).to_owned(), decimal.scale()))
            }
            _ => None,
        });
        decimals.collect()
    }

    pub(super) fn is_numbered(&self) -> bool {
        self.mapping == Mapping::Numbers
    }

    /// The columns of the changes; `fields` are those of the table, as ordinary reads have them.
    ///
    /// # Errors
    /// Says which column is not as the log has it.
    pub(super) fn change_columns(&self, fields: &Fields) -> Result<Vec<ChangeColumn>, String> {
        let of_one = |field: &FieldRef| {
            let known = self.columns.field(field.name());
            let known = known.ok_or_else(|| format!("the column `{}` is not in the log", field.name()))?;
            let is_partition = self.partitions.contains(field.name());
            let plain = Field::new(field.name(), nullable(field.data_type()), true);
            let in_files = self.in_files(&plain, known);
            Ok(ChangeColumn { field: Arc::new(plain), in_files, is_partition })
        };
        fields.iter().map(of_one).collect()
    }

    /// Whether a version whose columns were these had the columns of now, and no others.
    ///
    /// # Errors
    /// Says why rows of then are none of now.
    pub(super) fn takes_rows_of(&self, then: &Self) -> Result<bool, String> {
        holds_fields((&self.columns, self.mapping), (&then.columns, then.mapping))?;
        let (now, before) = (self.columns.fields(), then.columns.fields());
        let is_same = |(now, before): (&StructField, &StructField)| {
            now.name == before.name
                && now.data_type == before.data_type
                && in_files(now, self.mapping) == in_files(before, then.mapping)
        };
        Ok(now.len() == before.len() && self.partitions == then.partitions && now.zip(before).all(is_same))
    }

    fn in_files(&self, field: &Field, known: &StructField) -> Field {
        let data_type = self.type_in_files(field.data_type(), &known.data_type);
        let named = Field::new(in_files(known, self.mapping), data_type, field.is_nullable());
        match known.metadata.get(NUMBER) {
            Some(MetadataValue::Number(number)) if self.mapping != Mapping::Names => {
                named.with_metadata(i32::try_from(*number).map(numbered).unwrap_or_default())
            }
            _ => named,
        }
    }

    fn type_in_files(&self, data_type: &DataType, known: &DeltaType) -> DataType {
        let of_item = |item: &FieldRef, known: &DeltaType| {
            let data_type = self.type_in_files(item.data_type(), known);
            Arc::new(Field::new(item.name(), data_type, item.is_nullable()))
        };
        match (data_type, known) {
            (DataType::Struct(fields), DeltaType::Struct(known)) => {
                let pairs = fields.iter().zip(known.fields());
                DataType::Struct(pairs.map(|(field, known)| self.in_files(field, known)).collect())
            }
            (DataType::List(item), DeltaType::Array(known)) => {
                DataType::List(of_item(item, &known.element_type))
            }
            (DataType::Map(entries, sorted), DeltaType::Map(known)) => {
                let DataType::Struct(pair) = entries.data_type() else { return data_type.clone() };
                let types = [&known.key_type, &known.value_type];
                let pair = pair.iter().zip(types).map(|(item, known)| of_item(item, known)).collect();
                let pair = entries.as_ref().clone().with_data_type(DataType::Struct(pair));
                DataType::Map(Arc::new(pair), *sorted)
            }
            _ => data_type.clone(),
        }
    }
}

fn in_files(field: &StructField, mapping: Mapping) -> &str {
    match field.metadata.get(NAME) {
        Some(MetadataValue::String(name)) if mapping != Mapping::Names => name,
        _ => &field.name,
    }
}

/// The same type with fields that may be NULL: what is NOT NULL now may have been NULL then.
fn nullable(data_type: &DataType) -> DataType {
    let of_field = |field: &FieldRef| Arc::new(Field::new(field.name(), nullable(field.data_type()), true));
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of_field).collect()),
        DataType::List(item) => DataType::List(of_field(item)),
        DataType::Map(entries, sorted) => {
            let DataType::Struct(pair) = entries.data_type() else { return data_type.clone() };
            // Keys are never NULL.
            let of_part = |(place, field): (usize, &FieldRef)| match place {
                0 => Arc::new(Field::new(field.name(), nullable(field.data_type()), false)),
                _ => of_field(field),
            };
            let pair = DataType::Struct(pair.iter().enumerate().map(of_part).collect());
            DataType::Map(Arc::new(Field::new(entries.name(), pair, false)), *sorted)
        }
        other => other.clone(),
    }
}

fn holds_fields(
    (now, mapping): (&StructType, Mapping),
    (then, mapping_then): (&StructType, Mapping),
) -> Result<(), String> {
    let by_name: HashMap<&str, &StructField> =
        now.fields().map(|field| (in_files(field, mapping), field)).collect();
    for before in then.fields() {
        let found = by_name.get(in_files(before, mapping_then));
        let found = found.ok_or_else(|| format!("the column `{}`, which was dropped later", before.name))?;
        holds((&found.data_type, mapping), (&before.data_type, mapping_then)).map_err(
            |other| match other {
                Some(nested) => nested,
                None => format!("the column `{}` of another type", before.name),
            },
        )?;
    }
    Ok(())
}

/// Whether values of a type are values of another one; a nested field that is none is told.
fn holds(
    (now, mapping): (&DeltaType, Mapping),
    (then, mapping_then): (&DeltaType, Mapping),
) -> Result<(), Option<String>> {
    match (now, then) {
        (DeltaType::Primitive(now), DeltaType::Primitive(then)) => {
            (now == then || widens(then, now)).then_some(()).ok_or(None)
        }
        (DeltaType::Struct(now), DeltaType::Struct(then)) => {
            holds_fields((now, mapping), (then, mapping_then)).map_err(Some)
        }
        (DeltaType::Array(now), DeltaType::Array(then)) => {
            holds((&now.element_type, mapping), (&then.element_type, mapping_then))
        }
        (DeltaType::Map(now), DeltaType::Map(then)) => {
            holds((&now.key_type, mapping), (&then.key_type, mapping_then))?;
            holds((&now.value_type, mapping), (&then.value_type, mapping_then))
        }
        _ => Err(None),
    }
}

/// Whether the protocol lets a column become one of the wider type (Delta protocol, "Type Widening").
fn widens(from: &PrimitiveType, to: &PrimitiveType) -> bool {
    use PrimitiveType as T;
    match (from, to) {
        (T::Byte, T::Short | T::Integer | T::Long | T::Double)
        | (T::Short, T::Integer | T::Long | T::Double)
        | (T::Integer, T::Long | T::Double)
        | (T::Float, T::Double)
        | (T::Date, T::TimestampNtz) => true,
        (T::Byte | T::Short | T::Integer, T::Decimal(to)) => whole_digits(to.precision(), to.scale()) >= 10,
        (T::Long, T::Decimal(to)) => whole_digits(to.precision(), to.scale()) >= 20,
        (T::Decimal(from), T::Decimal(to)) => {
            to.scale() >= from.scale()
                && whole_digits(to.precision(), to.scale()) >= whole_digits(from.precision(), from.scale())
        }
        _ => false,
    }
}

fn whole_digits(precision: u8, scale: u8) -> u8 {
    precision.saturating_sub(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(fields: &str, configuration: &[(&str, &str)]) -> Shape {
        let columns =
            serde_json::from_str(&format!(r#"{{"type": "struct", "fields": [{fields}]}}"#)).unwrap();
        let configuration =
            configuration.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Shape::new(Arc::new(columns), &[], &configuration).unwrap()
    }

    fn field(name: &str, data_type: &str, metadata: &str) -> String {
        format!(r#"{{"name": "{name}", "type": {data_type}, "nullable": true, "metadata": {{{metadata}}}}}"#)
    }

    fn plain(name: &str, data_type: &str) -> String {
        field(name, &format!("\"{data_type}\""), "")
    }

    fn mapped(name: &str, data_type: &str, own: &str, number: i32) -> String {
        let metadata = format!(r#""{NAME}": "{own}", "{NUMBER}": {number}"#);
        field(name, data_type, &metadata)
    }

    const BY_NAME: [(&str, &str); 1] = [(MAPPING, "name")];

    #[test]
    fn columns_that_were_renamed_are_the_same() {
        let nested = |name: &str| {
            let inner = mapped(name, "\"long\"", "col-2", 2);
            mapped("s", &format!(r#"{{"type": "struct", "fields": [{inner}]}}"#), "col-1", 1)
        };
        let then = shape(&nested("old"), &BY_NAME);
        assert_eq!(shape(&nested("new"), &BY_NAME).takes_rows_of(&then), Ok(false));
        assert_eq!(shape(&nested("old"), &BY_NAME).takes_rows_of(&then), Ok(true));
        let again = shape(&mapped("a", "\"long\"", "col-9", 9), &BY_NAME);
        assert!(again.takes_rows_of(&shape(&mapped("a", "\"long\"", "col-1", 1), &BY_NAME)).is_err());
        // Names were those of files before they became names of their own.
        let upgraded = shape(&mapped("b", "\"long\"", "a", 1), &BY_NAME);
        assert_eq!(upgraded.takes_rows_of(&shape(&plain("a", "long"), &[])), Ok(false));
    }

    #[test]
    fn files_have_names_of_their_own_on_all_levels() {
        let inner = mapped("x", "\"long\"", "col-2", 2);
        let of_structs = format!(
            r#"{{"type": "array", "containsNull": true, "elementType": {{"type": "struct", "fields": [{inner}]}}}}"#
        );
        let shape = shape(&mapped("l", &of_structs, "col-1", 1), &BY_NAME);
        let list = |name: &str, metadata: HashMap<String, String>, nullable| {
            let field = Field::new(name, DataType::Int64, nullable).with_metadata(metadata);
            DataType::List(Arc::new(Field::new("element", DataType::Struct(vec![field].into()), nullable)))
        };
        let fields = Fields::from(vec![Field::new("l", list("x", HashMap::new(), false), false)]);
        let columns = shape.change_columns(&fields).unwrap();
        assert_eq!(columns[0].field.as_ref(), &Field::new("l", list("x", HashMap::new(), true), true));
        let wanted = Field::new("col-1", list("col-2", numbered(2), true), true).with_metadata(numbered(1));
        assert_eq!(columns[0].in_files, wanted);
        assert!(shape.change_columns(&Fields::from(vec![Field::new("y", DataType::Int64, true)])).is_err());
    }
}
