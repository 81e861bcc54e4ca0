//! The metadata commands of Flight SQL. Schemas equal those of the C++ and Go implementations in names, types and
//! nullability, since clients compare them. Rows come from the [`Session`], which lists only what its principal may
//! see, or from the static tables in `sql_info`, `type_info` and `table_keys`.

mod catalog;
mod table_schema;

use crate::{sql_info, table_keys, type_info};
use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::Command;
use bowshot_api::{About, Error, Limits, Result, Session};

/// The schema of a metadata command; `None` for other commands.
pub(crate) fn schema_of(command: &Command) -> Option<SchemaRef> {
    let schema = match command {
        Command::CommandGetCatalogs(_) => catalog::catalogs_schema(),
        Command::CommandGetDbSchemas(_) => catalog::schemas_schema(),
        Command::CommandGetTables(tables) => catalog::tables_schema(tables.include_schema),
        Command::CommandGetTableTypes(_) => catalog::table_types_schema(),
        Command::CommandGetPrimaryKeys(_) => table_keys::primary_schema(),
        Command::CommandGetExportedKeys(_)
        | Command::CommandGetImportedKeys(_)
        | Command::CommandGetCrossReference(_) => table_keys::foreign_schema(),
        Command::CommandGetXdbcTypeInfo(_) => type_info::schema(),
        Command::CommandGetSqlInfo(_) => sql_info::schema(),
        _ => return None,
    };
    Some(schema)
}

pub(crate) async fn answer(
    session: &dyn Session,
    about: &About,
    limits: &Limits,
    command: &Command,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let batch = match command {
        Command::CommandGetCatalogs(_) => catalog::catalogs(session).await?,
        Command::CommandGetDbSchemas(schemas) => catalog::schemas(session, schemas).await?,
        Command::CommandGetTables(tables) => catalog::tables(session, tables).await?,
        Command::CommandGetTableTypes(_) => catalog::table_types()?,
        Command::CommandGetPrimaryKeys(wanted) => table_keys::primary(session, wanted).await?,
        Command::CommandGetExportedKeys(_)
        | Command::CommandGetImportedKeys(_)
        | Command::CommandGetCrossReference(_) => RecordBatch::new_empty(table_keys::foreign_schema()),
        Command::CommandGetXdbcTypeInfo(types) => type_info::answer(types.data_type)?,
        Command::CommandGetSqlInfo(info) => sql_info::answer(about, limits, &info.info)?,
        other => return Err(Error::unsupported(format!("`{}` is not a metadata command", other.type_url()))),
    };
    Ok((batch.schema(), vec![batch]))
}

/// Puts columns under a schema; a mismatch is a defect of this crate.
pub(crate) fn batch(schema: SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema, columns)
        .map_err(|error| Error::internal("a metadata answer does not fit its schema").with_source(error))
}
