//! Refreshes materialized views that say how often (`REFRESH EVERY '…'`), one after the other, beside them those that the server has
//! made, and loads the files that pipes have found, each as a statement of its owner.

use crate::server::Shared;
use crate::session::ClientSession;
use crate::task;
use bowshot_api::{Lifecycle, OptionValue, Principal, Request, Result, Session};
use bowshot_engine::{DuePipe, DueRefresh};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::JoinSet;

const PAUSE: Duration = Duration::from_secs(1);

/// Runs until the server is dropped.
pub(crate) async fn refresh_views(shared: Weak<Shared>) {
    // Nobody waits for the views of the server, which take long on one thread: they hold up no other.
    let mut own = JoinSet::new();
    while let Some(found) = next(&shared).await {
        while own.try_join_next().is_some() {}
        let Some(server) = found else { continue };
        let engine = server.engine.clone();
        let due = task::run(server.engine.runtime(), async move { Ok(engine.due_refreshes().await) }).await;
        let due = due.unwrap_or_default().into_iter();
        let (unasked, asked): (Vec<_>, Vec<_>) = due.partition(DueRefresh::is_in_background);
        if own.is_empty() && !unasked.is_empty() {
            own.spawn(refresh_all(Arc::clone(&server), unasked));
        }
        refresh_all(server, asked).await;
    }
}

async fn refresh_all(server: Arc<Shared>, all: Vec<DueRefresh>) {
    for due in all {
        let how = How { dialect: Some(due.dialect()), in_background: due.is_in_background() };
        let outcome = run(&server, due.owner(), how, due.sql()).await;
        server.engine.note_refresh(&due, outcome);
    }
}

/// The same for pipes, each in a task of its own: one whose store is slow, or whose files are large, holds up no other.
pub(crate) async fn load_pipes(shared: Weak<Shared>) {
    let (mut tasks, mut at_work) = (JoinSet::new(), HashMap::new());
    while let Some(found) = next(&shared).await {
        while let Some(ended) = tasks.try_join_next_with_id() {
            at_work.remove(&ended.map_or_else(|error| error.id(), |(task, ())| task));
        }
        let Some(server) = found else { continue };
        let due = server.engine.due_pipes(|pipe| at_work.values().any(|busy| *busy == pipe));
        for due in due {
            let pipe = due.id();
            at_work.insert(tasks.spawn(load_pipe(Arc::clone(&server), due)).id(), pipe);
        }
    }
}

async fn load_pipe(server: Arc<Shared>, due: DuePipe) {
    let Some(due) = server.engine.due_load(due).await else { return };
    let outcome = run(&server, due.owner(), How::default(), due.sql()).await;
    server.engine.note_load(&due, outcome);
}

/// The server after a pause, if it is ready; `None` when it is no more.
async fn next(shared: &Weak<Shared>) -> Option<Option<Arc<Shared>>> {
    tokio::time::sleep(PAUSE).await;
    let server = shared.upgrade()?;
    Some(Some(server).filter(|server| server.lifecycle() == Lifecycle::Ready))
}

/// How a statement of the server runs.
#[derive(Default)]
struct How<'a> {
    /// The default one when `None`.
    dialect: Option<&'a str>,
    /// Whether it leaves most of the machine to others.
    in_background: bool,
}

/// The statement is admitted, logged and authorized as one of a client.
async fn run(server: &Arc<Shared>, owner: Result<Principal>, how: How<'_>, sql: String) -> Result<()> {
    let owner = owner?;
    let engine = server.engine.open_session(&owner)?;
    if how.in_background {
        engine.run_in_background()?;
    }
    let session = ClientSession::new(owner, engine, Arc::clone(server));
    let chosen = match how.dialect {
        Some(dialect) => session.set_option("dialect", Some(OptionValue::String(dialect.to_owned()))).await,
        None => Ok(()),
    };
    let done = match chosen {
        Ok(()) => session.update(&Request::sql(sql)).await,
        Err(error) => Err(error),
    };
    session.close().await;
    done.map(drop)
}
