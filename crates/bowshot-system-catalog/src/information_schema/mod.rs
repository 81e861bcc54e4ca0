//! `information_schema`: the standard's tables about tables, over what the statement sees.

mod columns;
mod keys;
mod mysql;
mod privileges;
mod routines;
mod tables;

pub(crate) use columns::type_name;
pub use keys::{KeyKind, key_name, reference_name};
pub(crate) use keys::{keys as keys_of, references, with_kinds};

use crate::CatalogView;
use crate::lazy_table::{Defined, tables};
use crate::pg_catalog::sequences;
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{MemoryCatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use std::sync::Arc;

/// There are no tablespaces, partitions, events, histograms and triggers.
static ABSENT: &[Defined] = tables! {
    column_statistics: schema_name Text, table_name Text, column_name Text, histogram Text;
    events: event_catalog Text, event_schema Text, event_name Text, definer Text, time_zone Text,
        event_body Text, event_definition Text, event_type Text, execute_at Text, interval_value Text,
        interval_field Text, sql_mode Text, starts Text, ends Text, status Text, on_completion Text,
        created Text, last_altered Text, last_executed Text, event_comment Text, originator Long,
        character_set_client Text, collation_connection Text, database_collation Text;
    files: file_id Long, file_name Text, file_type Text, tablespace_name Text, table_catalog Text,
        table_schema Text, table_name Text, logfile_group_name Text, logfile_group_number Long, engine Text,
        free_extents Long, total_extents Long, extent_size Long, initial_size Long, maximum_size Long,
        autoextend_size Long, data_free Long, status Text, extra Text;
    partitions: table_catalog Text, table_schema Text, table_name Text, partition_name Text,
        subpartition_name Text, partition_ordinal_position Long, subpartition_ordinal_position Long,
        partition_method Text, subpartition_method Text, partition_expression Text,
        subpartition_expression Text, partition_description Text, table_rows Long, avg_row_length Long,
        data_length Long, max_data_length Long, index_length Long, data_free Long, create_time Text,
        update_time Text, check_time Text, checksum Long, partition_comment Text, nodegroup Text,
        tablespace_name Text;
    plugins: plugin_name Text, plugin_version Text, plugin_status Text, plugin_type Text,
        plugin_type_version Text, plugin_library Text, plugin_description Text, plugin_license Text,
        load_option Text;
    profiling: query_id Long, seq Long, state Text, duration Text;
    triggers: trigger_catalog Text, trigger_schema Text, trigger_name Text, event_manipulation Text,
        event_object_catalog Text, event_object_schema Text, event_object_table Text, action_order Long,
        action_condition Text, action_statement Text, action_orientation Text, action_timing Text,
        action_reference_old_table Text, action_reference_new_table Text, action_reference_old_row Text,
        action_reference_new_row Text, created Text, sql_mode Text, definer Text, character_set_client Text,
        collation_connection Text, database_collation Text;
};

/// The tables about functions are DataFusion's.
const OF_FUNCTIONS: [&str; 2] = ["parameters", "routines"];

fn all() -> impl Iterator<Item = &'static Defined> {
    let own = [tables::TABLES, columns::TABLES, keys::TABLES, privileges::TABLES, sequences::STANDARD];
    own.into_iter().chain([mysql::TABLES, ABSENT]).flatten()
}

/// Names of all tables.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().map(|defined| defined.name).chain(OF_FUNCTIONS)
}

/// The schema `information_schema`.
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
                .map(|found| if name == "routines" { routines::all(found, &self.0) } else { Ok(found) })
                .transpose();
        }
        let defined = all().find(|defined| defined.name == name);
        Ok(defined.map(|defined| defined.provider(&self.0)))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::View))
    }

    fn table_exist(&self, name: &str) -> bool {
        names().any(|there| there == name)
    }
}
