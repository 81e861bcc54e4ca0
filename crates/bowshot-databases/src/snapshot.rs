//! A snapshot of PostgreSQL that several connections read: one transaction exports it, the others import it.

use crate::cancellation::Cancellation;
use crate::error::DatabaseError;
use crate::pool::{Lease, Permit, Pool};
use std::sync::Arc;
use std::thread;

/// Begins and ends a transaction that only reads.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
pub(crate) const END: &str = "COMMIT";

/// The transaction that exports the snapshot of a scan. It ends when all partitions have imported it.
pub(crate) struct SharedSnapshot {
    lease: Option<Lease>,
    pub(crate) snapshot: String,
}

impl SharedSnapshot {
    /// Exports a snapshot. May block.
    pub(crate) fn begin(pool: &Arc<Pool>, permit: Permit) -> Result<Self, DatabaseError> {
        let mut lease = pool.lease(permit)?;
        let mut snapshot = export(&mut lease);
        if matches!(snapshot, Err(DatabaseError::Unreachable(_))) && lease.reused {
            lease = lease.reconnect()?;
            snapshot = export(&mut lease);
        }
        Ok(Self { snapshot: snapshot?, lease: Some(lease) })
    }

    pub(crate) fn import_statements(&self) -> Vec<String> {
        vec![BEGIN.to_owned(), format!("SET TRANSACTION SNAPSHOT '{}'", self.snapshot)]
    }
}

fn export(lease: &mut Lease) -> Result<String, DatabaseError> {
    let (settings, cancellation) = (lease.settings(), Cancellation::new());
    let connection = lease.connection()?;
    connection.execute(BEGIN, &cancellation, &settings)?;
    let sql = "SELECT pg_catalog.pg_export_snapshot()::text";
    let rows = connection.query_texts(sql, &cancellation, &settings)?;
    let snapshot = rows.into_iter().flatten().flatten().next();
    let plain = |snapshot: &String| snapshot.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    snapshot.filter(plain).ok_or_else(|| DatabaseError::Unexpected("it has exported no snapshot".to_owned()))
}

impl Drop for SharedSnapshot {
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take() else { return };
        // Drivers block.
        let end = move || {
            let settings = lease.settings();
            let ended = lease
                .connection()
                .and_then(|connection| connection.execute(END, &Cancellation::new(), &settings));
            if ended.is_ok() {
                lease.give_back();
            }
        };
        let _ = thread::Builder::new().name("database".to_owned()).spawn(end);
    }
}
