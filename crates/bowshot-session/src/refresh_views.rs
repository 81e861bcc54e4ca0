//! Refreshes materialized views that say how often (`REFRESH EVERY '…'`), one after the other, each as a statement of its owner.

use crate::server::Shared;
use crate::session::ClientSession;
use crate::task;
use bowshot_api::{Lifecycle, OptionValue, Request, Result, Session};
use bowshot_engine::DueRefresh;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often it looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs until the server is dropped.
pub(crate) async fn refresh_views(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(server) = shared.upgrade().filter(|server| server.lifecycle() == Lifecycle::Ready) else {
            if shared.strong_count() == 0 {
                return;
            }
            continue;
        };
        let engine = server.engine.clone();
        let due = task::run(server.engine.runtime(), async move { Ok(engine.due_refreshes().await) }).await;
        for due in due.unwrap_or_default() {
            let outcome = refresh(&server, &due).await;
            server.engine.note_refresh(&due, outcome);
        }
    }
}

/// The statement is admitted, logged and authorized as one of a client.
async fn refresh(server: &Arc<Shared>, due: &DueRefresh) -> Result<()> {
    let owner = due.owner()?;
    let engine = server.engine.open_session(&owner)?;
    let session = ClientSession::new(owner, engine, Arc::clone(server));
    let dialect = OptionValue::String(due.dialect().to_owned());
    let done = match session.set_option("dialect", Some(dialect)).await {
        Ok(()) => session.update(&Request::sql(due.sql())).await,
        Err(error) => Err(error),
    };
    session.close().await;
    done.map(drop)
}
