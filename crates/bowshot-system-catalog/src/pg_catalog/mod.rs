//! `pg_catalog`: what clients of PostgreSQL ask about tables, over what the statement sees. One file for each group of
//! tables. Names without a schema are looked for here last, as PostgreSQL does.

mod activity;
pub(crate) mod attributes;
mod builtin_objects;
mod classes;
pub(crate) mod constraints;
mod duckdb;
mod empty_tables;
mod keywords;
pub mod oids;
mod procedures;
mod relation_numbers;
pub(crate) mod sequences;
mod server;
mod types;

pub use relation_numbers::RelationNumbers;

use crate::CatalogView;
use crate::lazy_table::Defined;
use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use std::sync::Arc;

static GROUPS: [&[Defined]; 13] = [
    empty_tables::TABLES,
    activity::TABLES,
    attributes::TABLES,
    classes::TABLES,
    constraints::TABLES,
    duckdb::FUNCTIONS,
    duckdb::SQLITE,
    builtin_objects::TABLES,
    procedures::TABLES,
    sequences::TABLES,
    server::SETTINGS,
    server::TABLES,
    types::TABLES,
];

/// Tables that are functions without arguments.
pub fn functions() -> impl Iterator<Item = &'static Defined> {
    duckdb::FUNCTIONS.iter().chain(keywords::FUNCTIONS).chain(server::FUNCTIONS)
}

fn all() -> impl Iterator<Item = &'static Defined> {
    GROUPS.into_iter().flatten()
}

/// Names of all tables.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().map(|defined| defined.name)
}

/// A table by its name.
pub fn find(name: &str) -> Option<&'static Defined> {
    all().find(|defined| defined.name == name)
}

/// The schema `pg_catalog`.
#[derive(Debug)]
pub struct PgCatalog(pub Arc<CatalogView>);

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = names().map(str::to_owned).collect();
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(find(name).map(|defined| defined.provider(&self.0)))
    }

    fn table_exist(&self, name: &str) -> bool {
        find(name).is_some()
    }
}
