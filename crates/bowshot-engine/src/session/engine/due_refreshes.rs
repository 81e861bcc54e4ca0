//! The materialized views that the server is to refresh by itself.

use super::Engine;
use bowshot_api::{Error, ErrorKind, Principal, Result};
use bowshot_policy::rules::{Rules, place_of};
use bowshot_tables::{EntryName, Materialized, Snapshot, Table};
use chrono::{DateTime, Utc};
use std::time::Duration;
use uuid::Uuid;

/// A view whose rows are older than it allows.
#[derive(Debug)]
pub struct DueRefresh {
    id: Uuid,
    name: EntryName,
    owner: Result<Principal>,
    dialect: String,
}

impl DueRefresh {
    /// Whose rights the refresh has: the view shows what its owner may read.
    ///
    /// # Errors
    /// `Denied` where nobody who can log in owns it.
    pub fn owner(&self) -> Result<Principal> {
        match &self.owner {
            Ok(owner) => Ok(owner.clone()),
            Err(error) => Err(error.duplicate()),
        }
    }

    /// The dialect of its query, in which it is refreshed.
    pub fn dialect(&self) -> &str {
        &self.dialect
    }

    /// The statement that refreshes it.
    pub fn sql(&self) -> String {
        let EntryName { catalog, schema, name } = &self.name;
        let quoted = [catalog, schema, name].map(|part| format!("\"{}\"", part.replace('"', "\"\"")));
        format!("REFRESH MATERIALIZED VIEW {}", quoted.join("."))
    }
}

impl Engine {
    /// The views that are to be refreshed now.
    pub fn due_refreshes(&self) -> Vec<DueRefresh> {
        let store = &self.shared.parts.tables;
        let (snapshot, now) = (store.snapshot(), Utc::now());
        let is_due = |table: &Table, view: &Materialized, every: Duration| {
            let failed = store.refresh_failure(table.id()).map(|(when, _)| when.elapsed());
            failed.is_none_or(|rest| rest >= every)
                && is_older(view, every, now)
                && !shows_all(&snapshot, view)
        };
        let due = snapshot.tables().filter_map(|(name, table)| {
            let view = table.definition().materialized.as_ref()?;
            if !is_due(table, view, view.every?) {
                return None;
            }
            let (owner, dialect) = (self.owner(&snapshot, &name), view.dialect.clone());
            Some(DueRefresh { id: table.id(), owner, dialect, name })
        });
        due.collect()
    }

    /// Notes how a refresh has ended, which `system.materialized_views` shows.
    pub fn note_refresh(&self, due: &DueRefresh, outcome: Result<()>) {
        if let Err(error) = &outcome {
            tracing::warn!(view = %due.name, %error, "a materialized view cannot be refreshed");
        }
        self.shared.parts.tables.note_refresh(due.id, outcome.err().map(|error| error.to_string()));
    }

    fn owner(&self, snapshot: &Snapshot, name: &EntryName) -> Result<Principal> {
        let rules = snapshot.notes().read(Rules::of);
        match rules.owners.get(&place_of(name)) {
            Some(owner) if self.has_user(owner) => Ok(Principal::user(owner)),
            None if !self.is_guarded() => Ok(Principal::anonymous()),
            Some(owner) => {
                Err(Error::new(ErrorKind::Denied, format!("`{owner}`, who owns the view, is no user"))
                    .with_hint(format!("give it to a user: `ALTER MATERIALIZED VIEW {name} OWNER TO …`")))
            }
            None => Err(Error::new(ErrorKind::Denied, "nobody owns the view")
                .with_hint(format!("give it to a user: `ALTER MATERIALIZED VIEW {name} OWNER TO …`"))),
        }
    }
}

/// Whether the last refresh was long enough ago.
fn is_older(view: &Materialized, every: Duration, now: DateTime<Utc>) -> bool {
    let ended = view.last.as_ref().and_then(|last| DateTime::from_timestamp_micros(last.ended_us));
    ended.is_none_or(|ended| (now - ended).to_std().is_ok_and(|age| age >= every))
}

fn shows_all(snapshot: &Snapshot, view: &Materialized) -> bool {
    snapshot.is_fresh(view) == Some(true)
}
