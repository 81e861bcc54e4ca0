//! Answers the catalog questions of front ends from the catalogs of a session.

use crate::error::classify;
use bowshot_api::catalog_names::SYSTEM_SCHEMA;
use bowshot_api::{Layout, Result, TableEntry, TableFilter, TableKind, like};
use bowshot_types::result_metadata::table_schema;
use datafusion::catalog::information_schema::{
    INFORMATION_SCHEMA, INFORMATION_SCHEMA_TABLES, InformationSchemaProvider,
};
use datafusion::catalog::{CatalogProviderList, SchemaProvider};
use datafusion::logical_expr::TableType;
use std::sync::Arc;

pub(crate) fn catalogs(list: &Arc<dyn CatalogProviderList>) -> Vec<String> {
    let mut names = list.catalog_names();
    names.sort();
    names
}

/// Pairs of catalog and schema, sorted.
pub(crate) fn schemas(
    list: &Arc<dyn CatalogProviderList>,
    catalog: Option<&str>,
    pattern: Option<&str>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in catalogs(list) {
        if catalog.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let Some(provider) = list.catalog(&name) else { continue };
        let mut schemas = provider.schema_names();
        schemas.push(INFORMATION_SCHEMA.to_owned());
        schemas.sort();
        schemas.dedup();
        schemas.retain(|schema| pattern.is_none_or(|pattern| like(schema, pattern)));
        found.extend(schemas.into_iter().map(|schema| (name.clone(), schema)));
    }
    found
}

/// Tables, sorted by catalog, schema, name and kind. One that cannot be read is listed with the reason as remarks.
pub(crate) async fn tables(
    list: &Arc<dyn CatalogProviderList>,
    filter: &TableFilter,
    layout: Layout,
) -> Result<Vec<TableEntry>> {
    let mut found = Vec::new();
    for (catalog, schema_name) in schemas(list, filter.catalog.as_deref(), filter.schema_pattern.as_deref()) {
        let Some((schema, names)) = tables_of(list, &catalog, &schema_name) else { continue };
        for name in names {
            if filter.table_pattern.as_deref().is_some_and(|pattern| !like(&name, pattern)) {
                continue;
            }
            let system = schema_name == SYSTEM_SCHEMA || schema_name == INFORMATION_SCHEMA;
            let wanted = Wanted { filter, layout, system };
            if let Some(entry) = entry(schema.as_ref(), &wanted, (&catalog, &schema_name, &name)).await {
                found.push(entry);
            }
        }
    }
    Ok(found)
}

fn tables_of(
    list: &Arc<dyn CatalogProviderList>,
    catalog: &str,
    schema: &str,
) -> Option<(Arc<dyn SchemaProvider>, Vec<String>)> {
    if schema == INFORMATION_SCHEMA {
        // Scratch catalogs have none of their own.
        let own = list.catalog(catalog)?.schema(schema);
        if let Some(own) = own {
            let names = own.table_names();
            return Some((own, names));
        }
        let provider = InformationSchemaProvider::new(Arc::clone(list));
        let mut names: Vec<String> =
            INFORMATION_SCHEMA_TABLES.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        return Some((Arc::new(provider), names));
    }
    let provider = list.catalog(catalog)?.schema(schema)?;
    let mut names = provider.table_names();
    names.sort();
    Some((provider, names))
}

struct Wanted<'a> {
    filter: &'a TableFilter,
    layout: Layout,
    system: bool,
}

async fn entry(
    schema: &dyn SchemaProvider,
    wanted: &Wanted<'_>,
    name: (&str, &str, &str),
) -> Option<TableEntry> {
    let (catalog, schema_name, table) = name;
    let (kind, arrow, remarks) = if wanted.system && !wanted.filter.include_schema {
        (TableKind::System, None, None)
    } else {
        match schema.table(table).await {
            Ok(Some(provider)) => {
                let arrow = wanted
                    .filter
                    .include_schema
                    .then(|| wanted.layout.schema(&table_schema(provider.as_ref())));
                (kind_of(provider.table_type(), wanted.system), arrow, None)
            }
            Ok(None) => return None,
            Err(error) => (TableKind::Table, None, Some(classify(error).to_string())),
        }
    };
    if wanted.filter.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&kind)) {
        return None;
    }
    Some(TableEntry {
        catalog: catalog.to_owned(),
        schema_name: schema_name.to_owned(),
        name: table.to_owned(),
        kind,
        schema: arrow,
        remarks,
    })
}

fn kind_of(table_type: TableType, system: bool) -> TableKind {
    match table_type {
        _ if system => TableKind::System,
        TableType::View => TableKind::View,
        TableType::Base | TableType::Temporary => TableKind::Table,
    }
}
