//! What a scan asks of a table, and its text in the SQL of the database.

use crate::columns::Column;
use crate::kind::Kind;
use datafusion::arrow::datatypes::SchemaRef;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) struct ScanRequest {
    pub(crate) relation: String,
    pub(crate) columns: Vec<Arc<Column>>,
    pub(crate) schema: SchemaRef,
    /// Filters, all of which must hold.
    pub(crate) conditions: Vec<String>,
    pub(crate) limit: Option<usize>,
}

impl ScanRequest {
    /// Whether only the number of rows is needed.
    pub(crate) fn counts(&self) -> bool {
        self.columns.is_empty()
    }

    /// The statement, with a range of the table if one is given.
    pub(crate) fn sql(&self, kind: Kind, part: Option<&str>) -> String {
        let conditions =
            self.conditions.iter().map(String::as_str).chain(part).collect::<Vec<_>>().join(" AND ");
        let mut from = format!("FROM {}", self.relation);
        if !conditions.is_empty() {
            from = format!("{from} WHERE {conditions}");
        }
        if self.counts() {
            return match self.limit {
                None => format!("SELECT count(*) {from}"),
                Some(limit) => format!("SELECT count(*) FROM (SELECT 1 AS one {from} LIMIT {limit}) AS few"),
            };
        }
        let sent = self.columns.iter().map(|column| column.sent.as_str()).collect::<Vec<_>>().join(", ");
        let limit = |limit: Option<usize>| limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        if kind == Kind::Sqlite {
            // The first row shows the types to the driver, and is removed afterwards.
            let witness = self.columns.iter().map(|column| column.witness).collect::<Vec<_>>().join(", ");
            let limit = limit(self.limit.map(|limit| limit.saturating_add(1)));
            return format!("SELECT 1, {witness} UNION ALL SELECT 0, {sent} {from}{limit}");
        }
        format!("SELECT {sent} {from}{}", limit(self.limit))
    }
}
