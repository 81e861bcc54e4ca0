//! Rows that are added to a table from one source after the other, and are there together.

use crate::write::apply::{Applied, Keys, Numbers, Place, blocking, finish};
use crate::write::constraints::{Casts, Fit};
use bowshot_api::Result;
use bowshot_tables::{EntryName, SegmentWriter};
use datafusion::arrow::record_batch::RecordBatch;
use futures::{Stream, StreamExt};
use std::sync::Arc;

/// See the module.
pub(crate) struct Insertion {
    added: SegmentWriter,
    fit: Fit,
    numbers: Numbers,
}

impl Insertion {
    pub(crate) fn new(
        name: &EntryName,
        added: SegmentWriter,
        casts: Casts,
        place: &Place<'_>,
    ) -> Result<Self> {
        let fit = Fit::new(name, added.table().definition(), casts, place.state)?;
        Ok(Self { added, fit, numbers: Numbers::default() })
    }

    /// Takes the rows of a source in.
    ///
    /// # Errors
    /// Those of the source, and for rows that do not fit the table.
    pub(crate) async fn add(
        &mut self,
        mut rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
    ) -> Result<()> {
        while let Some(batch) = rows.next().await {
            let fitted = self.fit.fit(&batch?)?;
            self.numbers.add(&self.fit, &fitted);
            self.added.write(fitted).await?;
        }
        Ok(())
    }

    /// The state in which the table has all of them.
    pub(crate) async fn finish(self, name: &EntryName, place: &Place<'_>) -> Result<Applied> {
        let Self { added, fit, numbers } = self;
        let table = Arc::clone(added.table());
        blocking(|| fit.settle(&place.stores.shared))?;
        let applied = finish(name, Keys::New, table.as_ref().clone(), added, place).await?;
        Ok(Applied { numbers: numbers.0, ..applied })
    }
}
