//! `information_schema`: the standard's tables about tables, over what the statement sees.

mod columns;
mod keys;
mod mysql;
mod privileges;
mod tables;

pub(crate) use columns::type_name;
pub(crate) use keys::{KeyKind, key_name, keys as keys_of, reference_name, references};

use crate::CatalogView;
use crate::lazy_table::{Defined, columns, nothing};
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{MemoryCatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use std::sync::Arc;

/// The tables that are made here.
static DEFINED: &[&Defined] = &[
    &tables::TABLES,
    &tables::VIEWS,
    &tables::SCHEMATA,
    &tables::CHARACTER_SETS,
    &tables::COLLATIONS,
    &tables::CATALOG_NAME,
    &tables::ROLES,
    &columns::COLUMNS,
    &keys::TABLE_CONSTRAINTS,
    &keys::KEY_COLUMN_USAGE,
    &keys::STATISTICS,
    &keys::CONSTRAINT_COLUMN_USAGE,
    &keys::CHECK_CONSTRAINTS,
    &keys::REFERENTIAL_CONSTRAINTS,
    &privileges::TABLE_PRIVILEGES,
    &privileges::COLUMN_PRIVILEGES,
    &TRIGGERS,
    &mysql::COLLATIONS_OF_SETS,
    &mysql::COLUMN_STATISTICS,
    &mysql::ENGINES,
    &mysql::EVENTS,
    &mysql::FILES,
    &mysql::KEYWORDS,
    &mysql::PARTITIONS,
    &mysql::PLUGINS,
    &mysql::PROCESSLIST,
    &mysql::PROFILING,
    &mysql::SCHEMA_PRIVILEGES,
    &mysql::USER_PRIVILEGES,
];

/// The tables about functions are DataFusion's.
const OF_FUNCTIONS: [&str; 2] = ["parameters", "routines"];

/// There are no triggers.
static TRIGGERS: Defined = Defined {
    name: "triggers",
    columns: columns![
        trigger_catalog Text, trigger_schema Text, trigger_name Text, event_manipulation Text,
        event_object_catalog Text, event_object_schema Text, event_object_table Text, action_order Long,
        action_condition Text, action_statement Text, action_orientation Text, action_timing Text,
        action_reference_old_table Text, action_reference_new_table Text, action_reference_old_row Text,
        action_reference_new_row Text, created Text, sql_mode Text, definer Text, character_set_client Text,
        collation_connection Text, database_collation Text
    ],
    rows: nothing,
};

/// Names of all tables.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    DEFINED.iter().map(|defined| defined.name).chain(OF_FUNCTIONS)
}

/// See the module.
#[derive(Debug)]
pub struct InformationSchema(pub Arc<CatalogView>);

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = names().map(str::to_owned).collect();
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if OF_FUNCTIONS.contains(&name) {
            let functions = self.0.context.state_ref().read().table_functions().clone();
            let catalogs = Arc::new(MemoryCatalogProviderList::new());
            let provider = InformationSchemaProvider::new(catalogs).with_table_functions(functions);
            let found = provider.table(name).await?;
            return found
                .map(|found| if name == "routines" { mysql::with_comments(found) } else { Ok(found) })
                .transpose();
        }
        let defined = DEFINED.iter().find(|defined| defined.name == name);
        Ok(defined.map(|defined| defined.provider(&self.0)))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::View))
    }

    fn table_exist(&self, name: &str) -> bool {
        names().any(|there| there == name)
    }
}
