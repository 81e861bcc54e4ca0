//! Snapshots that nobody reads any more: the catalog forgets them first, and then the files go that only they had.

use super::super::write::Expiry;
use super::catalog::IcebergCatalog;
use super::fault::CatalogFault;
use super::insert::{ATTEMPTS, blocking, gone, made_anew, pause};
use super::names::parts;
use bowshot_api::{Error, ErrorKind, Result};
use chrono::{TimeDelta, Utc};

impl IcebergCatalog {
    /// Expires the snapshots of a table that were current before a time alone; whether there were some.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` for a table that is not written here, or keeps its files; `Conflict` where others change the table all the
    /// time; those of the catalog, and for files that cannot be removed.
    pub async fn vacuum(&self, (schema, table): (&str, &str), retain: TimeDelta) -> Result<bool> {
        let (name, namespace) = (format!("{schema}.{table}"), parts(schema).unwrap_or_default());
        let since = Utc::now().timestamp_millis().saturating_sub(retain.num_milliseconds());
        let mut now = self.writable(schema, table).await?.ok_or_else(|| gone(&name))?;
        let uuid = now.state.uuid().map(str::to_owned);
        for attempt in 0..ATTEMPTS {
            let (names, short) = (namespace.clone(), table.to_owned());
            let expiry = blocking(move || {
                let view = now.folder.view()?;
                let place = (&view, &now.workshop.pool);
                Expiry::new(&now.state, (&names, &short), since, place)
            });
            let Some(expiry) = expiry.await? else { return Ok(false) };
            let fault = self.service().commit(&namespace, table, &expiry.request).await.err();
            let found = self.writable(schema, table).await?.ok_or_else(|| gone(&name))?;
            if found.state.uuid() != uuid.as_deref() {
                return Err(made_anew(&name));
            }
            // Only the catalog knows that nobody is told of the files any more, whatever its answer was.
            if expiry.is_in(&found.state) {
                if expiry.is_continued_in(&found.state) {
                    return Err(continued(&name));
                }
                return blocking(move || expiry.remove_files(&found.folder)).await.map(|()| true);
            }
            match fault {
                Some(CatalogFault::Conflict) => now = found,
                Some(fault) => return Err(fault.of(self.name())),
                None => {
                    let message =
                        format!("the catalog `{}` does not expire the snapshots of `{name}`", self.name());
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
            }
            tokio::time::sleep(pause(attempt + 1)).await;
        }
        Err(CatalogFault::Conflict.of(self.name()))
    }
}

fn continued(name: &str) -> Error {
    let message =
        format!("another writer used a snapshot of `{name}` while it was expired: no files are removed");
    Error::new(ErrorKind::Conflict, message)
        .with_hint("the snapshots are expired; remove unreferenced files with another program")
}
