//! The materialized views that the server is to refresh by itself.

use super::Engine;
use super::server_session::server_principal;
use crate::catalog::materialized_query;
use crate::plan;
use crate::session::EngineSession;
use bowshot_api::{Claims, Error, ErrorKind, Principal, Result};
use bowshot_policy::is_role;
use bowshot_policy::rules::{Rules, place_of};
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Entry, EntryName, Materialized, Snapshot, Table};
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// How long a member of a role may take for one refresh.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A view whose rows are older than it allows.
#[derive(Debug)]
pub struct DueRefresh {
    id: Uuid,
    name: EntryName,
    owner: Result<Principal>,
    dialect: String,
    /// Whether the server has made the view.
    by_server: bool,
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

    /// Whether nobody has asked for the view: its refresh leaves most of the machine to others.
    pub fn is_in_background(&self) -> bool {
        self.by_server
    }

    /// The statement that refreshes it.
    pub fn sql(&self) -> String {
        refresh_statement(&self.name)
    }
}

impl Engine {
    /// The views that are to be refreshed now. To be called on the query runtime.
    pub fn due_refreshes(&self) -> BoxFuture<'_, Vec<DueRefresh>> {
        async move {
            let store = &self.shared.parts.tables;
            let (snapshot, now, mut due) = (store.snapshot(), Utc::now(), Vec::new());
            let is_old = |table: &Table| {
                let view = table.definition().materialized.as_ref();
                let timed = view.and_then(|view| Some((view, self.interval(table.id(), view)?)));
                timed.is_some_and(|(view, every)| {
                    let failed = store.refresh_failure(table.id()).map(|(when, _)| when.elapsed());
                    failed.is_none_or(|rest| rest >= every) && is_older(view, every, now)
                })
            };
            let old = snapshot.tables().filter(|(_, table)| is_old(table));
            let old: Vec<(EntryName, Arc<Table>)> =
                old.map(|(name, table)| (name, Arc::clone(table))).collect();
            for (name, table) in old {
                let Some(view) = &table.definition().materialized else { continue };
                if snapshot.is_fresh(view) != Some(true)
                    || Box::pin(self.means_something_else(&name, &table, &snapshot)).await
                {
                    let (owner, by_server) = (self.owner(&snapshot, &name), self.is_by_server(table.id()));
                    due.push(DueRefresh {
                        id: table.id(),
                        owner,
                        dialect: view.dialect.clone(),
                        name,
                        by_server,
                    });
                }
            }
            due
        }
        .boxed()
    }

    /// How often the server refreshes a view, if it does.
    fn interval(&self, id: Uuid, view: &Materialized) -> Option<Duration> {
        if self.is_by_server(id) { Some(self.server_refresh_interval(view)) } else { view.every }
    }

    fn is_by_server(&self, view: Uuid) -> bool {
        self.shared.parts.tables.view_usage(view).by_server
    }

    /// Whether the query of a view means something else than at the last refresh, since a view or a function that it uses was replaced.
    /// Asked once for each state of the tables.
    pub(super) async fn means_something_else(
        &self,
        name: &EntryName,
        table: &Table,
        snapshot: &Arc<Snapshot>,
    ) -> bool {
        let Some(view) = &table.definition().materialized else { return false };
        if self.shared.views.is_meant(table.id(), snapshot) {
            return false;
        }
        let Ok(owner) = self.session_of_owner(name, view, snapshot) else { return false };
        let pinned = Pinned::new(Arc::clone(snapshot), Arc::clone(&self.shared.parts.nothing));
        let is_meant = materialized_query::is_meant(view, &owner.visible(&pinned)).await;
        if is_meant {
            self.shared.views.note_meant(table.id(), snapshot);
        }
        !is_meant
    }

    /// A session of who owns a view, in the dialect in which it was made: its rows are those that its owner may read.
    pub(super) fn session_of_owner(
        &self,
        name: &EntryName,
        view: &Materialized,
        snapshot: &Snapshot,
    ) -> Result<EngineSession> {
        let session = self.open_session(&self.owner(snapshot, name)?)?;
        if let Some(dialect) = plan::parser_dialect(&view.dialect) {
            session.set_config("datafusion.sql_parser.dialect", &dialect.to_string())?;
        }
        Ok(session)
    }

    /// Notes how a refresh has ended, which `system.materialized_views` shows.
    pub fn note_refresh(&self, due: &DueRefresh, outcome: Result<()>) {
        if let Err(error) = &outcome {
            tracing::warn!(view = %due.name, %error, "a materialized view cannot be refreshed");
        }
        self.shared.parts.tables.note_refresh(due.id, outcome.err().map(|error| error.to_string()));
    }

    fn owner(&self, snapshot: &Snapshot, name: &EntryName) -> Result<Principal> {
        if let Some(Entry::Table(table)) = snapshot.entry(name)
            && self.is_by_server(table.id())
        {
            return Ok(server_principal());
        }
        let rules = snapshot.notes().read(Rules::of);
        match rules.owners.get(&place_of(name)) {
            Some(owner) if self.has_user(owner) => Ok(Principal::user(owner)),
            Some(owner) if is_role(&self.shared.access.now(), &rules, owner) => Ok(member_of(owner)),
            None if !self.is_guarded() => Ok(Principal::anonymous()),
            Some(owner) => Err(Error::new(
                ErrorKind::Denied,
                format!("the owner `{owner}` of the view is not a user or role"),
            )
            .with_hint(format!("give it to one: `ALTER MATERIALIZED VIEW {name} OWNER TO …`"))),
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

/// Somebody who has the rights of a role and no others. Nobody logs in as that: a user of the same name would be refused.
fn member_of(role: &str) -> Principal {
    let claims = Claims {
        issuer: "bowshot".to_owned(),
        roles: BTreeSet::from([role.to_owned()]),
        admin: false,
        local_users: false,
    };
    Principal::claimed(format!("{role} (role)"), claims, SystemTime::now() + LIFETIME)
}

/// The statement that refreshes a view.
pub(super) fn refresh_statement(name: &EntryName) -> String {
    let EntryName { catalog, schema, name } = name;
    let quoted = [catalog, schema, name].map(|part| format!("\"{}\"", part.replace('"', "\"\"")));
    format!("REFRESH MATERIALIZED VIEW {}", quoted.join("."))
}
