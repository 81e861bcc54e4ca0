//! A table of another database as a table provider.

use crate::columns::schema;
use crate::filter_pushdown::{self, PushedFilter};
use crate::key_ranges;
use crate::metadata::TableMetadata;
use crate::request::ScanRequest;
use crate::scan::DatabaseScan;
use crate::source::Source;
use async_trait::async_trait;
use bowshot_storage::tables::EntryName;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct DatabaseTable {
    source: Arc<Source>,
    name: EntryName,
    described: Arc<TableMetadata>,
}

impl DatabaseTable {
    pub(crate) fn new(source: Arc<Source>, name: EntryName, described: Arc<TableMetadata>) -> Self {
        Self { source, name, described }
    }

    fn sent(&self, filter: &Expr) -> Option<PushedFilter> {
        filter_pushdown::push_down(self.source.settings.kind, filter, &self.described.columns)
    }
}

#[async_trait]
impl TableProvider for DatabaseTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.described.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.described.schema);
        statistics.num_rows = Precision::Inexact(usize::try_from(self.described.rows?).ok()?);
        Some(statistics)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = filters.iter().map(|filter| match self.sent(filter) {
            Some(PushedFilter { exact: true, .. }) => TableProviderFilterPushDown::Exact,
            Some(PushedFilter { exact: false, .. }) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        });
        Ok(supported.collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = &self.described.columns;
        let columns: Vec<_> = match projection {
            None => all.clone(),
            Some(places) => places.iter().filter_map(|place| all.get(*place)).cloned().collect(),
        };
        let sent: Vec<Option<PushedFilter>> = filters.iter().map(|filter| self.sent(filter)).collect();
        // A limit may be pushed down only if all filters are exact.
        let exact = sent.iter().all(|sent| sent.as_ref().is_some_and(|sent| sent.exact));
        let limit = limit.filter(|_| exact);
        let plain: Vec<_> = columns.iter().map(|column| column.as_ref().clone()).collect();
        let request = ScanRequest {
            relation: self.described.relation.clone(),
            schema: schema(&plain),
            columns,
            conditions: sent.into_iter().flatten().map(|sent| sent.sql).collect(),
            limit,
        };
        let threads = state.config().target_partitions();
        let ranges = key_ranges::plan_ranges(&self.source, &self.described, &request, threads).await;
        let ranges = self.source.record(ranges).map_err(crate::error::external)?;
        let rows = self.described.rows;
        Ok(Arc::new(DatabaseScan::new(Arc::clone(&self.source), self.name.clone(), (request, ranges), rows)))
    }
}
