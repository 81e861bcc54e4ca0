//! The table `system.suggested_views`, and the queries of the log from which it is made.

use super::{Outcome, QueryLog, QueryRecord};
use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, Result};
use bowshot_engine::{LoggedQuery, QueryText, SERVER_NAME, SuggestedView};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) const NAME: &str = "suggested_views";

impl QueryLog {
    /// The queries of the log that read whole tables, those of the same text together.
    pub(crate) fn repeated_queries(&self) -> Vec<LoggedQuery> {
        let records: Vec<Arc<QueryRecord>> = self.records.lock().iter().cloned().collect();
        let mut queries: HashMap<QueryText, LoggedQuery> = HashMap::new();
        for record in records {
            let Some(text) = text_of(&record) else { continue };
            let query = queries.entry(text).or_insert_with_key(|text| {
                let tables = record.facts.tables.iter().map(|(name, _)| name.clone()).collect();
                LoggedQuery { text: text.clone(), tables, runs: 0, took: Duration::ZERO }
            });
            query.runs += 1;
            query.took = query.took.saturating_add(record.duration);
        }
        queries.into_values().collect()
    }

    /// The views that are suggested from now on.
    pub(crate) fn suggest(&self, views: Vec<SuggestedView>) {
        *self.suggested.lock() = views;
    }

    pub(super) fn suggested_rows(&self) -> Result<RecordBatch> {
        let views = self.suggested.lock().clone();
        let texts = |text: &dyn Fn(&SuggestedView) -> String| -> ArrayRef {
            Arc::new(views.iter().map(|view| Some(text(view))).collect::<StringArray>())
        };
        let numbers = |number: fn(&SuggestedView) -> u64| -> ArrayRef {
            Arc::new(views.iter().map(|view| Some(number(view).cast_signed())).collect::<Int64Array>())
        };
        let times = |time: fn(&SuggestedView) -> Duration| -> ArrayRef {
            let times = views.iter().map(|view| time(view).as_secs_f64() * 1e3);
            Arc::new(Float64Array::from_iter_values(times))
        };
        let columns: [(&str, ArrayRef); 8] = [
            ("definition", texts(&|view| view.definition.clone())),
            ("dialect", texts(&|view| view.dialect.as_str().to_owned())),
            ("tables", texts(&|view| view.tables.join(", "))),
            ("queries", numbers(|view| view.queries)),
            ("duration_ms", times(|view| view.took)),
            ("estimated_rows", numbers(|view| view.rows)),
            ("estimated_bytes", numbers(|view| view.bytes)),
            ("saving_ms", times(|view| view.saving)),
        ];
        RecordBatch::try_from_iter(columns)
            .map_err(|error| Error::internal("cannot make the table of suggested views").with_source(error))
    }
}

/// The text of a query of a client that a view might answer: it has ended well, and no policy left it a part of a table.
fn text_of(record: &QueryRecord) -> Option<QueryText> {
    let (facts, language) = (&record.facts, record.facts.language.as_ref()?);
    let is_whole = !facts.tables.is_empty() && facts.tables.iter().all(|(_, in_part)| !in_part);
    let has_ended = record.outcome == Outcome::Finished && record.user != SERVER_NAME;
    (is_whole && has_ended).then(|| QueryText {
        sql: record.sql.clone(),
        catalog: language.catalog.clone(),
        schema: language.schema.clone(),
        dialect: language.dialect,
    })
}
