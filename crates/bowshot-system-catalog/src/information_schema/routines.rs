//! `routines`: the built-in functions as DataFusion lists them, and those that SQL has made, with the columns that MySQL has beside.

use crate::CatalogView;
use crate::sql_functions;
use bowshot_policy::FunctionNote;
use bowshot_tables::EntryName;
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
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
    let text = |value: &dyn Fn(&EntryName, &FunctionNote) -> Option<String>| -> ArrayRef {
        Arc::new(made.iter().map(|(name, note)| value(name, note)).collect::<StringArray>())
    };
    let always = |value: &'static str| text(&|_, _| Some(value.to_owned()));
    let catalog = text(&|name, _| Some(name.catalog.clone()));
    let schema = text(&|name, _| Some(name.schema.clone()));
    let name = text(&|name, _| Some(name.name.clone()));
    let stable = made.iter().map(|(_, note)| Some(note.volatility.letter() == "i")).collect::<BooleanArray>();
    let kind = |note: &FunctionNote| if note.gives_rows() { "TABLE" } else { "SCALAR" };
    let columns = vec![
        ("specific_catalog", Arc::clone(&catalog)),
        ("specific_schema", Arc::clone(&schema)),
        ("specific_name", Arc::clone(&name)),
        ("routine_catalog", catalog),
        ("routine_schema", schema),
        ("routine_name", name),
        ("routine_type", always("FUNCTION")),
        ("is_deterministic", Arc::new(stable) as ArrayRef),
        ("data_type", text(&|_, note| note.result_type())),
        ("function_type", text(&|_, note| Some(kind(note).to_owned()))),
        ("description", text(&|_, _| None)),
        ("syntax_example", text(&|_, _| None)),
        ("routine_body", always("SQL")),
        ("routine_definition", text(&|_, note| Some(note.body.clone()))),
        ("external_language", always("SQL")),
        ("security_type", always("INVOKER")),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
