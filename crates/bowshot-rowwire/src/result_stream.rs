//! The result of a statement, batch by batch: the next one is asked for when its client has taken the last one.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Delivery, Endpoints, QueryId, Request, Result, Server, Session};
use futures::StreamExt;
use std::sync::Arc;

/// A result that is being read. Dropping it stops the work behind it.
pub struct ResultStream {
    server: Arc<dyn Server>,
    session: Arc<dyn Session>,
    query: QueryId,
    schema: SchemaRef,
    partitions: usize,
    next_partition: usize,
    stream: Option<BatchStream>,
}

impl ResultStream {
    /// Starts a statement that returns rows.
    pub async fn start(
        server: Arc<dyn Server>,
        session: Arc<dyn Session>,
        request: &Request,
    ) -> Result<Self> {
        let request = Request {
            endpoints: Some(Endpoints::Exactly(1)),
            delivery: Some(Delivery::Stream),
            at_once: true,
            ..request.clone()
        };
        let answer = session.start(&request).await?;
        let schema = SchemaRef::clone(&answer.schema);
        let stream = answer.batches.map(|batches| BatchStream::from_batches(schema, batches));
        Ok(Self {
            server,
            session,
            query: answer.query,
            schema: answer.schema,
            partitions: answer.partitions,
            next_partition: if stream.is_some() { answer.partitions } else { 0 },
            stream,
        })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(stream) = &mut self.stream else {
                if self.next_partition == self.partitions {
                    return Ok(None);
                }
                let attached = self.server.attach(self.session.principal(), self.query, self.next_partition);
                self.stream = Some(attached.await?);
                self.next_partition += 1;
                continue;
            };
            match stream.next().await.transpose()? {
                Some(batch) => return Ok(Some(batch)),
                None => self.stream = None,
            }
        }
    }
}

impl Drop for ResultStream {
    /// A partition that nobody has begun to read would wait for its reader.
    fn drop(&mut self) {
        if self.next_partition == self.partitions {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (server, session, query) = (Arc::clone(&self.server), Arc::clone(&self.session), self.query);
            runtime.spawn(async move { _ = server.cancel(session.principal(), query).await });
        }
    }
}

bowshot_api::debug_fields!(ResultStream { query });
