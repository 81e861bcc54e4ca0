//! The columns of a Parquet file as Arrow has them. A column whose values cannot be read as what they are is marked, and refused
//! where it is asked for; the others are read.

use crate::variants::are_parts;
use arrow::datatypes::{Field, Fields, Schema};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bowshot_object_store::Error;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema};
use parquet::basic::LogicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::schema::types::Type;
use std::path::Path;
use std::sync::Arc;

/// In the metadata of a field: why it is not read.
pub(crate) const UNREAD: &str = "bowshot:unread";
const VARIANT: &str = "it has the type VARIANT without the fields of that type";
const WIDE: &str = "its values are integers of more than 64 bits";

pub struct Written {
    pub schema: Schema,
    /// Whether what the file says of its columns itself cannot be read, so that readers have to be told.
    pub is_told: bool,
}

pub fn written(metadata: &Arc<ParquetMetaData>) -> Result<Written, ParquetError> {
    let file = metadata.file_metadata();
    let (leaves, pairs) = (file.schema_descr(), file.key_value_metadata());
    let said = pairs.and_then(|pairs| without_wide(pairs));
    let schema = match &said {
        None => parquet_to_arrow_schema(leaves, pairs)?,
        Some(said) => with_said(metadata, said)?,
    };
    let wide = |place: usize| said.as_ref().is_some_and(|said| said.get(place).is_some_and(Option::is_none));
    let roots = leaves.root_schema().get_fields();
    let fields = schema.fields().iter().zip(roots).enumerate().map(|(place, (field, root))| {
        let why = match root {
            _ if wide(place) => WIDE,
            root if is_variant(root) && !are_parts(field.data_type()) => VARIANT,
            _ => return Arc::clone(field),
        };
        let mut metadata = field.metadata().clone();
        metadata.insert(UNREAD.to_owned(), why.to_owned());
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    });
    let schema = Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone());
    Ok(Written { schema, is_told: said.is_some() })
}

/// Whether all columns that are asked for can be read.
///
/// # Errors
/// Names the first one that cannot, and why.
pub fn check<'a>(asked: impl Iterator<Item = &'a Field>, path: &Path) -> Result<(), Error> {
    let mut unread = asked.filter_map(|field| Some((field.name(), field.metadata().get(UNREAD)?)));
    match unread.next() {
        None => Ok(()),
        Some((name, why)) => {
            Err(Error::Column { path: path.to_path_buf(), column: name.clone(), why: why.clone() })
        }
    }
}

pub(crate) fn is_variant(column: &Type) -> bool {
    matches!(column.get_basic_info().logical_type_ref(), Some(LogicalType::Variant(_)))
}

/// The fields of the Arrow schema that a file has of itself, without those of integers that Arrow does not have (Polars writes
/// some); none if all are types of Arrow, or there is no such schema.
fn without_wide(pairs: &[KeyValue]) -> Option<Vec<Option<Field>>> {
    let text = pairs.iter().find(|pair| pair.key == ARROW_SCHEMA_META_KEY)?.value.as_ref()?;
    let bytes = STANDARD.decode(text).ok()?;
    let message = match bytes.as_slice() {
        [0xff, 0xff, 0xff, 0xff, _, _, _, _, message @ ..] => message,
        message => message,
    };
    let schema = arrow_ipc::root_as_message(message).ok()?.header_as_schema()?;
    let fields = schema.fields()?;
    fields
        .iter()
        .any(is_wide)
        .then(|| fields.iter().map(|field| (!is_wide(field)).then(|| Field::from(field))).collect())
}

fn is_wide(field: arrow_ipc::Field<'_>) -> bool {
    let bits = field.type_as_int().map(|int| int.bitWidth());
    bits.is_some_and(|bits| !matches!(bits, 8 | 16 | 32 | 64))
        || field.children().is_some_and(|children| children.iter().any(is_wide))
}

/// The columns in the types that a file says of them, where it says some that Arrow has.
fn with_said(metadata: &Arc<ParquetMetaData>, said: &[Option<Field>]) -> Result<Schema, ParquetError> {
    let plain = parquet_to_arrow_schema(metadata.file_metadata().schema_descr(), None)?;
    let fields = plain.fields().iter().enumerate().map(|(place, field)| match said.get(place) {
        Some(Some(said)) => Arc::new(field.as_ref().clone().with_data_type(said.data_type().clone())),
        _ => Arc::clone(field),
    });
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields.collect::<Fields>())));
    let read = ArrowReaderMetadata::try_new(Arc::clone(metadata), options)?;
    Ok(read.schema().as_ref().clone())
}
