//! Materialized views that the server makes by itself, and drops again. Their rows are in memory: nothing of them is in backups or in
//! the data folder, and after a start they are made anew where they are still of use. No table waits for them, and nobody owns them.

use super::Engine;
use super::server_session::server_session;
use super::suggested_views::SuggestedView;
use crate::session::EngineSession;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA, SERVER_VIEWS};
use bowshot_api::{Error, Result};
use bowshot_policy::rules::{Key, place_of};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::DialectName;
use bowshot_tables::{Definition, Entry, EntryName, Materialized, Snapshot};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// Characters of the digest that a name has.
const NAME_CHARACTERS: usize = 16;
/// Views that are not tried again; with more of them the server makes none.
const MAX_REFUSED: usize = 1_000;
/// The shortest time between two refreshes of one of them.
const SHORTEST: Duration = Duration::from_secs(1);

bowshot_api::defaults! {
    /// What the server does about materialized views that nobody asks for.
    #[derive(Debug, Clone)]
    pub struct ViewOptions {
        /// How often it looks for views that would answer queries of the log; never when zero.
        pub suggest_every: Duration = Duration::from_secs(60),
        /// Whether it makes them, and drops them again.
        pub automatic: bool = false,
        /// Bytes of the rows of all of them.
        pub memory_bytes: u64 = 256 << 20,
        /// Percent of its time that the server spends refreshing them.
        pub refresh_percent: usize = 5,
        /// How long one stays that answers no query.
        pub unused_after: Duration = Duration::from_secs(24 * 60 * 60),
    }
}

/// The views that the server has made.
#[derive(Debug, Default)]
pub(crate) struct ServerViews(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    /// The definitions that their tables had then.
    tables: HashMap<Uuid, Vec<(Uuid, Arc<Definition>)>>,
    /// Those that could not be made or refreshed, or were too large: they are not tried again.
    refused: BTreeSet<EntryName>,
}

impl ServerViews {
    /// Whether a table of a view is gone, or is defined otherwise than when the view was made.
    fn has_other_tables(&self, view: Uuid, snapshot: &Snapshot) -> bool {
        let made = self.0.lock();
        let Some(tables) = made.tables.get(&view) else { return true };
        let is_same = |(id, then): &(Uuid, Arc<Definition>)| {
            snapshot.table(*id).is_some_and(|now| Arc::ptr_eq(now.definition(), then))
        };
        !tables.iter().all(is_same)
    }

    fn refuse(&self, name: &EntryName) {
        let mut made = self.0.lock();
        if made.refused.len() < MAX_REFUSED {
            made.refused.insert(name.clone());
        }
    }

    fn refuses(&self, name: &EntryName) -> bool {
        let made = self.0.lock();
        made.refused.len() >= MAX_REFUSED || made.refused.contains(name)
    }

    fn note(&self, (name, view): (&EntryName, Uuid), tables: Vec<(Uuid, Arc<Definition>)>) {
        let mut made = self.0.lock();
        made.tables.insert(view, tables);
        made.refused.remove(name);
    }

    fn retain(&self, is_there: impl Fn(Uuid) -> bool) {
        self.0.lock().tables.retain(|view, _| is_there(*view));
    }

    fn len(&self) -> usize {
        self.0.lock().tables.len()
    }
}

impl Engine {
    /// What the server does about views by itself.
    pub fn view_options(&self) -> &ViewOptions {
        &self.shared.view_options
    }

    /// Drops the views that are of no use any more, and makes the next one that is suggested if there is room for it. To be called on the
    /// query runtime.
    ///
    /// # Errors
    /// From the statements that make and drop them; what cannot be made now is tried again by the next call.
    pub fn keep_views<'a>(&'a self, suggested: &'a [SuggestedView]) -> BoxFuture<'a, Result<()>> {
        async move {
            let store = &self.shared.parts.tables;
            store.forget_dropped_views();
            let snapshot = store.snapshot();
            for name in self.useless_views(&snapshot).await {
                let session = server_session(self, DialectName::Ansi, (DEFAULT_CATALOG, DEFAULT_SCHEMA))?;
                Box::pin(run(&session, &format!("DROP MATERIALIZED VIEW IF EXISTS {name}"))).await?;
            }
            let snapshot = store.snapshot();
            self.shared.server_views.retain(|view| snapshot.table(view).is_some());
            let own = snapshot.tables().filter(|(_, table)| store.view_usage(table.id()).by_server);
            let taken: u64 = own.map(|(_, table)| table.bytes()).sum();
            let room = self.view_options().memory_bytes.saturating_sub(taken);
            let next = suggested.iter().find(|view| {
                let name = name_of(view);
                view.bytes <= room
                    && snapshot.entry(&name).is_none()
                    && !self.shared.server_views.refuses(&name)
            });
            match next {
                Some(view) if store.has_folder() => Box::pin(self.make_view(view, room)).await,
                _ => Ok(()),
            }
        }
        .boxed()
    }

    /// The names of the server's views that are to go.
    async fn useless_views(&self, snapshot: &Arc<Snapshot>) -> Vec<EntryName> {
        let (store, options) = (&self.shared.parts.tables, self.view_options());
        let is_used = |last: Option<SystemTime>| {
            let unused = last.and_then(|last| last.elapsed().ok()).unwrap_or_default();
            unused < options.unused_after
        };
        let mut views: Vec<_> = snapshot.tables().collect();
        views.retain(|(_, table)| store.view_usage(table.id()).by_server);
        // Those that were used last stay.
        views.sort_by_key(|(_, table)| store.view_usage(table.id()).last);
        let (mut useless, mut bytes) = (Vec::new(), 0_u64);
        for (name, table) in views.into_iter().rev() {
            let kept = bytes.saturating_add(table.bytes());
            let is_outdated = self.shared.server_views.has_other_tables(table.id(), snapshot)
                || Box::pin(self.means_something_else(&name, table, snapshot)).await;
            let has_failed = store.refresh_failure(table.id()).is_some();
            if has_failed && !is_outdated {
                self.shared.server_views.refuse(&name);
            }
            let is_worth_it = kept <= options.memory_bytes && is_used(store.view_usage(table.id()).last);
            if is_outdated || has_failed || !is_worth_it {
                useless.push(name);
            } else {
                bytes = kept;
            }
        }
        useless
    }

    async fn make_view(&self, view: &SuggestedView, room: u64) -> Result<()> {
        let session = server_session(self, view.dialect, (DEFAULT_CATALOG, DEFAULT_SCHEMA))?;
        Box::pin(run(&session, &format!("CREATE SCHEMA IF NOT EXISTS {SERVER_VIEWS}"))).await?;
        let name = name_of(view);
        self.shared.server_views.refuse(&name);
        if self.counted_bytes(&session, view).await.is_none_or(|bytes| bytes > room) {
            return Ok(());
        }
        let sql = format!("CREATE MATERIALIZED VIEW {name} WITH (storage = 'memory') AS {}", view.definition);
        let (base, made) = Box::pin(written(&session, &sql)).await?;
        let Some(Entry::Table(table)) = made.entry(&name) else {
            return Err(Error::internal("a materialized view was made under no name"));
        };
        let known = table.definition().materialized.as_ref();
        let sources = known.map(|view| view.sources.as_slice()).unwrap_or_default();
        if sources.is_empty() || table.bytes() > room {
            // It cannot answer anything, or its rows are larger than they were estimated.
            return Ok(());
        }
        let tables = sources.iter().filter_map(|source| made.shared().table(source.table));
        let tables = tables.map(|table| (table.id(), Arc::clone(table.definition()))).collect();
        self.shared.server_views.note((&name, table.id()), tables);
        self.shared.parts.tables.note_made(table.id());
        tracing::info!(view = %name, rows = table.rows(), bytes = table.bytes(), "made a materialized view");
        session.commit(&base, &without_owner(&made, &name)?).await
    }

    /// The least time between two refreshes of a view of the server: all of them together take their part of the time, and no more.
    pub(super) fn server_refresh_interval(&self, view: &Materialized) -> Duration {
        let views = u32::try_from(self.shared.server_views.len()).unwrap_or(u32::MAX).max(1);
        let percent = u32::try_from(self.view_options().refresh_percent).unwrap_or(u32::MAX).max(1);
        let took = view.last.as_ref().map(|last| last.took).unwrap_or_default();
        (took.saturating_mul(views).saturating_mul(100) / percent).max(SHORTEST)
    }
}

/// The same text has the same name.
fn name_of(view: &SuggestedView) -> EntryName {
    let digest = Materialized::digest(&format!("{}\n{}", view.dialect.as_str(), view.definition));
    let digest: String = digest.chars().take(NAME_CHARACTERS).collect();
    EntryName::new(DEFAULT_CATALOG, SERVER_VIEWS, format!("v_{digest}"))
}

/// The state in which nobody owns a view: a user who has the name of the server by accident would read it.
fn without_owner(made: &Pinned, name: &EntryName) -> Result<Pinned> {
    let place = place_of(name);
    let schema = place.get(..2).unwrap_or_default();
    let mut gone = vec![Key::Owner(&place).text(), Key::Owner(schema).text()];
    gone.retain(|key| made.shared().notes().texts().contains_key(key));
    if gone.is_empty() {
        return Ok(made.clone());
    }
    made.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(gone.into_iter().map(|key| (key, None))))
}

/// The state before a statement, and that after it, which is not committed.
async fn written(session: &EngineSession, sql: &str) -> Result<(Pinned, Pinned)> {
    let pinned = session.pin();
    let plan = Box::pin(session.plan(sql, &pinned)).await?;
    let written = Box::pin(session.write(sql, &plan, &[])).await?;
    Ok((plan.pinned().clone(), written.pinned))
}

async fn run(session: &EngineSession, sql: &str) -> Result<()> {
    let (base, changed) = Box::pin(written(session, sql)).await?;
    session.commit(&base, &changed).await
}
