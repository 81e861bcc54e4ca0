//! Commits of tables that have materialized views with REFRESH ON COMMIT: what the transaction has changed is put on the newest state, the
//! rows of the views are computed over that with the rights of their owners, and all is committed together. One such commit follows
//! the other, so that none computes over what another one is about to change.

use super::Engine;
use super::due_refreshes::refresh_statement;
use crate::authorize::Action;
use crate::catalog::materialized_query;
use crate::session::EngineSession;
use crate::write::Write;
use crate::write::refresh::Extent;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::Access;
use bowshot_policy::rules::has_same_things;
use bowshot_policy::snapshot::Pinned;
use bowshot_query_task::QueryTask;
use bowshot_sql::Privilege;
use bowshot_tables::{EntryName, Snapshot, Table};
use std::future::Future;
use std::sync::Arc;
use uuid::Uuid;

/// Others that need no turn, such as those that make tables, may be first so often.
const MAX_ATTEMPTS: usize = 100;

/// A view whose turn has not come, with the tables that it reads.
struct Waiting {
    name: EntryName,
    table: Arc<Table>,
    reads: Vec<Uuid>,
}

impl EngineSession {
    /// Whether views may have to be refreshed in the commit of these changes.
    pub(in crate::session) fn touches_views(&self, base: &Pinned, changed: &Pinned) -> bool {
        let (base, changed) = (base.shared(), changed.shared());
        if Arc::ptr_eq(base, changed) {
            return false;
        }
        let (newest, views) = (self.tables.shared.snapshot().commit_views(), changed.commit_views());
        let is_known = |id: Uuid| views.iter().any(|(_, view)| view.id() == id);
        newest.iter().any(|(_, view)| !is_known(view.id()))
            || views.iter().any(|(_, view)| !shows_all(changed, view))
            || !views.is_empty() && is_redefined(base, changed)
    }

    /// Commits changes together with the rows of the views that they concern. To be called on the query runtime.
    ///
    /// # Errors
    /// As [`EngineSession::commit`], and for a view whose rows cannot be computed.
    pub(in crate::session) async fn commit_with_views(&self, base: &Pinned, changed: &Pinned) -> Result<()> {
        let _turn = while_wanted(async { Ok(self.shared.commit_turn.lock().await) }).await?;
        let store = &self.tables.shared;
        for _ in 0..MAX_ATTEMPTS {
            self.gate.check_commit(base)?;
            let [head, rebased] = store.rebased(base.shared(), changed.shared(), &base.reads())?;
            let access = self.gate.access(changed);
            let refreshing = Box::pin(self.refreshed_views(&head, rebased, &access));
            let refreshed = while_wanted(refreshing).await?;
            let from = Pinned::new(Arc::clone(&head), Arc::clone(base.own())).noting_as(base);
            let to = Pinned::new(refreshed, Arc::clone(changed.own())).noting_as(base);
            match self.commit_as_is(&from, &to).await {
                Err(error)
                    if error.kind() == ErrorKind::Conflict && !Arc::ptr_eq(&head, &store.snapshot()) => {}
                done => return done,
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("the commit conflicted with other writers {MAX_ATTEMPTS} times"),
        )
        .with_hint("run the transaction again"))
    }

    /// The state in which the views show their tables, those before others that read them.
    async fn refreshed_views(
        &self,
        head: &Snapshot,
        rebased: Arc<Snapshot>,
        access: &Access,
    ) -> Result<Arc<Snapshot>> {
        let redefined = is_redefined(head, &rebased);
        let mut now = Pinned::new(rebased, Arc::clone(&self.shared.parts.nothing));
        let mut waiting = Vec::new();
        for (name, table) in now.shared().commit_views() {
            let reads = Box::pin(self.tables_of_view((&name, &table), redefined, &now)).await;
            let reads = reads.map_err(|error| cannot_refresh(&name, error, access))?;
            waiting.push(Waiting { name, table, reads });
        }
        while !waiting.is_empty() {
            let is_read = |view: &Waiting| {
                let waits_for = |id: &Uuid| waiting.iter().any(|other| other.table.id() == *id);
                view.reads.iter().any(waits_for)
            };
            let Some(next) = waiting.iter().position(|view| !is_read(view)) else {
                return Err(Error::invalid(
                    "materialized views that are refreshed on commit depend on one another in a cycle",
                )
                .with_hint("set one of them to `REFRESH MANUAL` first"));
            };
            let Waiting { name, table, .. } = waiting.remove(next);
            if redefined || !shows_all(now.shared(), &table) {
                let refreshed = Box::pin(self.refreshed_view((&name, &table), now)).await;
                now = refreshed.map_err(|error| cannot_refresh(&name, error, access))?;
            }
        }
        Ok(Arc::clone(now.shared()))
    }

    /// The tables that a view reads. They are others than before only where something was defined anew.
    async fn tables_of_view(
        &self,
        (name, table): (&EntryName, &Table),
        redefined: bool,
        now: &Pinned,
    ) -> Result<Vec<Uuid>> {
        let Some(view) = &table.definition().materialized else { return Ok(Vec::new()) };
        if !redefined && !view.sources.is_empty() {
            return Ok(view.sources.iter().map(|source| source.table).collect());
        }
        let owner = self.engine().session_of_owner(name, view, now.shared())?;
        let query = Box::pin(materialized_query::query(view, &owner.visible(now))).await?;
        let tables = materialized_query::tables(&query).unwrap_or_default();
        Ok(tables.iter().map(|table| table.id()).collect())
    }

    /// The state in which a view shows its tables.
    async fn refreshed_view(&self, (name, table): (&EntryName, &Table), now: Pinned) -> Result<Pinned> {
        let Some(view) = &table.definition().materialized else { return Ok(now) };
        let owner = self.engine().session_of_owner(name, view, now.shared())?;
        let sql = refresh_statement(name);
        let plan = Box::pin(owner.plan(&sql, &now)).await?;
        let Action::Write(change) = plan.action() else { return Err(no_refresh()) };
        let Write::Refresh(refresh) = change.write.as_ref() else { return Err(no_refresh()) };
        if refresh.extent == Extent::Nothing && shows_all(now.shared(), table) {
            return Ok(now);
        }
        Ok(Box::pin(owner.write(&sql, &plan, &[])).await?.pinned)
    }

    fn engine(&self) -> Engine {
        Engine { shared: Arc::clone(&self.shared) }
    }
}

/// What comes before a commit takes effect, for as long as its statement may run and somebody waits for it.
async fn while_wanted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let Some(task) = QueryTask::current() else { return work.await };
    tokio::select! {
        biased;
        done = work => done,
        _ = task.until_stopped() => {
            task.check()?;
            Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"))
        }
    }
}

fn no_refresh() -> Error {
    Error::internal("REFRESH MATERIALIZED VIEW was planned as something else")
}

/// Whether the rows of a view are those of its tables.
fn shows_all(snapshot: &Snapshot, table: &Table) -> bool {
    table.definition().materialized.as_ref().is_some_and(|view| snapshot.is_fresh(view) == Some(true))
}

/// Whether queries may mean something else in the second state. What only gives or takes rights changes no query: a view whose owner
/// may not read its tables any more is found by the next commit that changes them, and keeps nobody from taking the rights away.
fn is_redefined(one: &Snapshot, other: &Snapshot) -> bool {
    !one.has_definitions_of(other) || !has_same_things(one.notes(), other.notes())
}

/// What whoever commits is told: the reason is the owner's, and the name is for those who may know of the view.
fn cannot_refresh(name: &EntryName, error: Error, access: &Access) -> Error {
    let kind = match error.kind() {
        ErrorKind::Syntax
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Unauthenticated
        | ErrorKind::Denied
        | ErrorKind::Unsupported => ErrorKind::Invalid,
        other => other,
    };
    let failure = Error::new(
        kind,
        if access.may_table(Privilege::Own, name) {
            format!("cannot refresh materialized view `{name}` on commit: {}", error.message())
        } else if access.sees(name) {
            format!("cannot refresh materialized view `{name}` on commit")
        } else {
            "cannot refresh a materialized view on commit".to_owned()
        },
    );
    let failure = if error.kind() == ErrorKind::NotFound {
        failure.with_reason(Reason::DependentObjects)
    } else {
        failure
    };
    failure.with_hint("its owner can drop it, or set it to `REFRESH MANUAL`: `ALTER MATERIALIZED VIEW … SET REFRESH MANUAL`")
        .with_source(error)
}
