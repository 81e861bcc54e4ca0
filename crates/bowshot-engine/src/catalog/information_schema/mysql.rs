//! What MySQL has beside the standard, for its clients: tables without rows, since there are no tablespaces and no partitions, and the
//! comments of functions.

use crate::catalog::lazy_table::{Defined, Kind, nothing};
use Kind::{Long, Text};
use datafusion::catalog::TableProvider;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, ident, lit};
use std::sync::Arc;

pub(super) static FILES: Defined = Defined {
    name: "files",
    columns: &[
        ("file_id", Long),
        ("file_name", Text),
        ("file_type", Text),
        ("tablespace_name", Text),
        ("table_catalog", Text),
        ("table_schema", Text),
        ("table_name", Text),
        ("logfile_group_name", Text),
        ("logfile_group_number", Long),
        ("engine", Text),
        ("free_extents", Long),
        ("total_extents", Long),
        ("extent_size", Long),
        ("initial_size", Long),
        ("maximum_size", Long),
        ("autoextend_size", Long),
        ("data_free", Long),
        ("status", Text),
        ("extra", Text),
    ],
    rows: nothing,
};

pub(super) static PARTITIONS: Defined = Defined {
    name: "partitions",
    columns: &[
        ("table_catalog", Text),
        ("table_schema", Text),
        ("table_name", Text),
        ("partition_name", Text),
        ("subpartition_name", Text),
        ("partition_ordinal_position", Long),
        ("subpartition_ordinal_position", Long),
        ("partition_method", Text),
        ("subpartition_method", Text),
        ("partition_expression", Text),
        ("subpartition_expression", Text),
        ("partition_description", Text),
        ("table_rows", Long),
        ("avg_row_length", Long),
        ("data_length", Long),
        ("max_data_length", Long),
        ("index_length", Long),
        ("data_free", Long),
        ("create_time", Text),
        ("update_time", Text),
        ("check_time", Text),
        ("checksum", Long),
        ("partition_comment", Text),
        ("nodegroup", Text),
        ("tablespace_name", Text),
    ],
    rows: nothing,
};

/// `routines` with `routine_comment`, which is what DataFusion calls a description, and without those that nobody calls by name.
pub(super) fn with_comments(routines: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let schema = routines.schema();
    let columns = schema.fields().iter().map(|field| ident(field.name()));
    let columns: Vec<Expr> = columns.chain([ident("description").alias("routine_comment")]).collect();
    let rows = LogicalPlanBuilder::scan("routines", provider_as_source(routines), None)?;
    let named = ident("routine_name").not_like(lit("\\_\\_%"));
    Ok(Arc::new(ViewTable::new(rows.filter(named)?.project(columns)?.build()?, None)))
}
