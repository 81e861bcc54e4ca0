//! `routines`: the built-in functions as DataFusion lists them, and those that SQL has made, with the columns that MySQL has beside.

use crate::CatalogView;
use crate::lazy_table::{Cell, arrays, cells, columns};
use crate::sql_functions;
use bowshot_policy::FunctionNote;
use bowshot_tables::EntryName;
use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::datasource::{MemTable, ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, ident, lit};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Columns that MySQL has for functions with a text, which are null for built-in ones.
const OF_TEXTS: &[&str] = bowshot_api::words! {
    dtd_identifier routine_body routine_definition external_language sql_data_access security_type created
    last_altered sql_mode definer character_set_client database_collation
};

/// All functions, without those that nobody calls by name.
pub(super) fn all(built_in: Arc<dyn TableProvider>, visible: &CatalogView) -> Result<Arc<dyn TableProvider>> {
    let mut rows = routines(built_in)?;
    let made = sql_functions::seen(&visible.pinned, &visible.access);
    if !made.is_empty() {
        let batch = batch(&made)?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        rows = rows.union(routines(Arc::new(table))?.build()?)?;
    }
    Ok(Arc::new(ViewTable::new(rows.build()?, None)))
}

/// The rows of a table with all columns; `routine_comment` is what DataFusion calls a description.
fn routines(table: Arc<dyn TableProvider>) -> Result<LogicalPlanBuilder> {
    let schema = table.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let columns = names.filter(|name| !OF_TEXTS.contains(name)).map(ident);
    let of_texts = OF_TEXTS.iter().map(|name| match schema.field_with_name(name) {
        Ok(_) => ident(*name),
        Err(_) => lit(ScalarValue::Utf8(None)).alias(*name),
    });
    let columns = columns.chain([ident("description").alias("routine_comment")]).chain(of_texts);
    let columns: Vec<Expr> = columns.collect();
    let rows = LogicalPlanBuilder::scan("routines", provider_as_source(table), None)?;
    rows.filter(ident("routine_name").not_like(lit("\\_\\_%")))?.project(columns)
}

fn batch(made: &[(EntryName, Arc<FunctionNote>)]) -> Result<RecordBatch> {
    let rows = made.iter().map(|(EntryName { catalog, schema, name, .. }, note)| {
        let kind = if note.gives_rows() { "TABLE" } else { "SCALAR" };
        let named = cells![catalog, schema, name, catalog, schema, name, "FUNCTION"];
        let told = cells![note.volatility.letter() == "i", note.result_type(), kind, Cell::Null, Cell::Null];
        named.into_iter().chain(told).chain(cells!["SQL", &note.body, "SQL", "INVOKER"])
    });
    let columns = columns![
        specific_catalog Text, specific_schema Text, specific_name Text, routine_catalog Text,
        routine_schema Text, routine_name Text, routine_type Text, is_deterministic Bool, data_type Text,
        function_type Text, description Text, syntax_example Text, routine_body Text, routine_definition Text,
        external_language Text, security_type Text
    ];
    Ok(RecordBatch::try_from_iter(arrays(columns, rows))?)
}
