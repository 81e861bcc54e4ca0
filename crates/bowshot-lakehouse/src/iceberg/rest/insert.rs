//! Rows for a table of a catalog: files first, then a snapshot that names them, committed on top of whatever is the current one. A
//! snapshot keeps its number over all attempts, and after each that was not confirmed the table is asked whether it has it: rows are
//! there once or not at all, whatever became of the answers.

use super::super::write::{Append, NewFiles, RowWriter, TableState};
use super::catalog::{IcebergCatalog, Writable};
use super::fault::CatalogFault;
use super::names::parts;
use arrow::array::RecordBatch;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use uuid::Uuid;

const AHEAD: usize = 2;
/// Attempts to commit, and the first pause between two; each later one is twice as long.
pub(super) const ATTEMPTS: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

enum Message {
    Rows(RecordBatch),
    /// The end of the rows, without which nothing is committed.
    End,
}

impl IcebergCatalog {
    /// Adds rows to a table, all of them or none; the columns go by their names. The number of rows.
    ///
    /// # Errors
    /// Those of the rows and of the catalog; `Conflict` where others commit all the time; `Unavailable` where it cannot be determined
    /// whether the rows are there.
    pub async fn insert(
        &self,
        schema: &str,
        table: &str,
        rows: BoxStream<'static, Result<RecordBatch>>,
    ) -> Result<u64> {
        let name = format!("{schema}.{table}");
        let writable = self.writable(schema, table).await?.ok_or_else(|| gone(&name))?;
        let writer = RowWriter::new(writable.state.target(&name)?, NewFiles::new(&writable.folder)?);
        let writer = written(writer, rows).await?;
        let Some(append) = blocking(move || Append::new(writer, None)).await? else { return Ok(0) };
        let rows = append.rows();
        self.commit(schema, table, (writable, append)).await?;
        Ok(rows)
    }

    /// Commits a snapshot; whoever reads next sees it, or asks anew.
    pub(super) async fn commit(&self, schema: &str, table: &str, change: (Writable, Append)) -> Result<()> {
        self.attempt(schema, table, change).await?;
        if self.writable(schema, table).await.is_err() {
            self.forget(schema, table).await;
        }
        Ok(())
    }

    async fn attempt(
        &self,
        schema: &str,
        table: &str,
        (mut now, mut append): (Writable, Append),
    ) -> Result<()> {
        let (name, namespace) = (format!("{schema}.{table}"), parts(schema).unwrap_or_default());
        let (id, mut undetermined) = (append.id(), false);
        let uuid = now.state.uuid().map(str::to_owned);
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(pause(attempt)).await;
            }
            let (again, state, snapshot) = match snapshot(append, now).await {
                Ok(made) => made,
                Err(_) if undetermined => return Err(self.undetermined(&name, id)),
                Err(error) => return Err(error),
            };
            append = again;
            // From the request on the table may name the files, even if nobody waits for the answer any more.
            append.share_files();
            let change = change((&namespace, table), (&state, &snapshot));
            let fault = match self.service().commit(&namespace, table, &change).await {
                Ok(()) => return finished(append, None).await,
                Err(fault) => fault,
            };
            undetermined |= fault.is_undetermined();
            // A client that asks again after a broken connection may hear of a conflict with itself.
            now = match self.writable(schema, table).await {
                Ok(Some(now)) if append.is_in(&now.state) => {
                    return finished(append, Some(now.state)).await;
                }
                Ok(Some(now)) => now,
                Ok(None) | Err(_) => return Err(self.undetermined(&name, id)),
            };
            match (undetermined, now.state.uuid() == uuid.as_deref()) {
                (true, true) => continue,
                (true, false) => return Err(self.undetermined(&name, id)),
                (false, true) => {}
                (false, false) => {
                    append.reclaim_files();
                    return Err(discarded(append, made_anew(&name)).await);
                }
            }
            append.reclaim_files();
            if !matches!(fault, CatalogFault::Conflict) {
                return Err(discarded(append, fault.of(self.name())).await);
            }
        }
        if undetermined {
            return Err(self.undetermined(&name, id));
        }
        let conflict = Error::new(
            ErrorKind::Conflict,
            format!("the commit of `{name}` conflicted with other writers {ATTEMPTS} times"),
        );
        Err(discarded(append, conflict.with_hint("run the statement again")).await)
    }

    fn undetermined(&self, name: &str, id: i64) -> Error {
        let message = format!(
            "cannot determine whether the catalog `{}` has committed the change of `{name}`",
            self.name()
        );
        Error::new(ErrorKind::Unavailable, message).with_hint(format!(
            "check whether the table has the snapshot {id} before you run the statement again"
        ))
    }
}

pub(super) async fn written(
    writer: RowWriter,
    rows: BoxStream<'static, Result<RecordBatch>>,
) -> Result<RowWriter> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let writing = tokio::task::spawn_blocking(move || write_all(writer, receiver));
    let sent = send(rows, sender).await;
    // A part of a file goes before whoever waits hears of an error.
    let written = writing.await.map_err(interrupted)?;
    sent.and(written)
}

/// Sends the rows. A writer that has failed reports its own error.
async fn send(
    mut rows: BoxStream<'static, Result<RecordBatch>>,
    sender: mpsc::Sender<Message>,
) -> Result<()> {
    while let Some(rows) = rows.try_next().await? {
        if sender.send(Message::Rows(rows)).await.is_err() {
            return Ok(());
        }
    }
    let _ = sender.send(Message::End).await;
    Ok(())
}

fn write_all(mut writer: RowWriter, mut rows: mpsc::Receiver<Message>) -> Result<RowWriter> {
    loop {
        match rows.blocking_recv() {
            Some(Message::Rows(rows)) => writer.write(&rows)?,
            Some(Message::End) => return Ok(writer),
            None => return Err(Error::new(ErrorKind::Cancelled, "the rows have ended before their end")),
        }
    }
}

/// The append, and its snapshot on top of a state.
async fn snapshot(mut append: Append, now: Writable) -> Result<(Append, TableState, Value)> {
    blocking(move || {
        let folder = now.folder.view()?;
        let snapshot = append.snapshot(&now.state, (&folder, &now.workshop.pool))?;
        Ok((append, now.state, snapshot))
    })
    .await
}

fn change((namespace, table): (&[String], &str), (state, snapshot): (&TableState, &Value)) -> Value {
    json!({
        "identifier": {"namespace": namespace, "name": table},
        "requirements": [
            {"type": "assert-table-uuid", "uuid": state.uuid()},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": state.current()},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]},
        ],
    })
}

pub(super) fn pause(attempt: u32) -> Duration {
    let pause = LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(attempt));
    let [random, ..] = Uuid::new_v4().into_bytes();
    pause / 2 + pause / 2 * u32::from(random) / 255
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(interrupted)?
}

fn interrupted(error: tokio::task::JoinError) -> Error {
    Error::internal("writing to a table was interrupted").with_source(error)
}

/// Leaves the files to the table: the last snapshot was committed, or the one that this state has.
async fn finished(append: Append, state: Option<TableState>) -> Result<()> {
    blocking(move || {
        append.finish(state.as_ref());
        Ok(())
    })
    .await
}

/// Removes the files, and gives the error back.
async fn discarded(append: Append, error: Error) -> Error {
    let removed = blocking(move || {
        drop(append);
        Ok(())
    });
    removed.await.err().unwrap_or(error)
}

pub(super) fn made_anew(name: &str) -> Error {
    let message = format!("`{name}` was replaced by another table while the statement ran");
    Error::new(ErrorKind::Conflict, message).with_hint("run the statement again")
}

pub(super) fn gone(name: &str) -> Error {
    Error::not_found(format!("table `{name}` not found")).with_reason(Reason::UndefinedTable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_an_end() {
        assert!(pause(1) <= FIRST_PAUSE * 2 && pause(1) >= FIRST_PAUSE);
        assert!(pause(40) <= LONGEST_PAUSE && pause(40) >= LONGEST_PAUSE / 2);
    }
}
