//! Looks in the query log for materialized views that would answer more queries, and lets the engine make and drop the server's own. In
//! the background, from time to time, and only where queries have ended since the last look.

use crate::server::Shared;
use crate::task;
use bowshot_api::{Error, ErrorKind, Lifecycle, Result};
use bowshot_engine::{Engine, LoggedQuery, SuggestedView, ViewSuggester};
use std::sync::Weak;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The longest time that one look may take, with the view that is made then.
const LONGEST: Duration = Duration::from_secs(300);
/// The longest rest between two looks of which the first took too long or broke down: the next one may end in the same way.
const LONGEST_REST: Duration = Duration::from_secs(60 * 60);

/// Runs until the server is dropped.
pub(crate) async fn suggest_views(shared: Weak<Shared>) {
    let Some(every) = shared.upgrade().map(|server| server.engine.view_options().suggest_every) else {
        return;
    };
    if every.is_zero() {
        return;
    }
    let (mut suggester, mut seen, mut rest) = (ViewSuggester::default(), 0, every);
    loop {
        sleep(rest).await;
        let Some(server) = shared.upgrade() else { return };
        let log = &server.context.log;
        let ended = log.ended();
        if server.lifecycle() != Lifecycle::Ready
            || (ended == seen && !server.engine.view_options().automatic)
        {
            continue;
        }
        seen = ended;
        let (engine, queries) = (server.engine.clone(), log.repeated_queries());
        let look = task::run(server.engine.runtime(), look(engine, suggester, queries));
        match timeout(LONGEST, look).await.unwrap_or_else(|_| Err(late())) {
            Ok((known, suggested)) => {
                (suggester, rest) = (known, every);
                log.suggest(suggested);
            }
            Err(error) => {
                tracing::warn!(%error, "materialized views cannot be suggested");
                (suggester, rest) = (ViewSuggester::default(), after_failure(rest, every));
            }
        }
    }
}

/// How long it rests after a look that failed, behind `rest`.
fn after_failure(rest: Duration, every: Duration) -> Duration {
    rest.saturating_mul(2).min(LONGEST_REST).max(every)
}

async fn look(
    engine: Engine,
    mut suggester: ViewSuggester,
    queries: Vec<LoggedQuery>,
) -> Result<(ViewSuggester, Vec<SuggestedView>)> {
    let suggested = suggester.suggest(&engine, queries).await;
    if engine.view_options().automatic
        && let Err(error) = engine.keep_views(&suggested).await
    {
        tracing::warn!(%error, "the server cannot make or drop a materialized view of its own");
    }
    Ok((suggester, suggested))
}

fn late() -> Error {
    Error::new(ErrorKind::Timeout, "looking for materialized views took too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_fail_become_rare() {
        let (minute, day) = (Duration::from_secs(60), Duration::from_secs(24 * 60 * 60));
        assert_eq!(after_failure(minute, minute), 2 * minute);
        assert_eq!(after_failure(40 * minute, minute), LONGEST_REST);
        assert_eq!(after_failure(day, day), day);
    }
}
