//! Runs the statements on the session itself: SET, RESET, USE, DISCARD, PREPARE, DEALLOCATE, KILL.

use crate::session::ClientSession;
use bowshot_api::{Error, LastWrite, OptionValue, QueryId, Reason, Result, SessionId};
use bowshot_engine::{Assignment, Discarded, Killed, SessionStatement};
use std::sync::Arc;

/// Runs a statement on the session.
///
/// # Errors
/// `NotFound` for names and ids, `Invalid` for values that do not fit, `LimitReached` for too many named statements.
pub(crate) async fn run(session: &ClientSession, statement: &SessionStatement) -> Result<()> {
    match statement {
        SessionStatement::Nothing => Ok(()),
        SessionStatement::Notice(notice) => {
            session.note_write(LastWrite { notices: vec![notice.clone()], ..LastWrite::default() });
            Ok(())
        }
        SessionStatement::Set(assignments) => set(session, assignments),
        SessionStatement::SetLocal(assignments) => {
            if session.transactions().current().is_some() {
                session.set_local(assignments)
            } else {
                // As in PostgreSQL: no effect outside of a transaction.
                Ok(())
            }
        }
        SessionStatement::ResetAll => {
            session.reset_all();
            Ok(())
        }
        SessionStatement::Use { catalog, schema } => session.use_names(catalog, schema),
        SessionStatement::Discard(Discarded::Plans) => Ok(()),
        SessionStatement::Discard(Discarded::Temporary) => session.engine().drop_temporary().await,
        SessionStatement::Discard(Discarded::All) => {
            if session.transactions().is_begun() {
                return Err(Error::invalid("DISCARD ALL cannot run in a transaction")
                    .with_reason(Reason::ActiveTransaction)
                    .with_hint("end it with COMMIT or ROLLBACK"));
            }
            session.engine().drop_temporary().await?;
            session.named().clear();
            session.transactions().cursors().clear();
            session.engine().release_locks();
            session.reset_all();
            Ok(())
        }
        SessionStatement::Prepare { name, sql, types } => {
            session.named().add(name, sql, types, &session.server().context.limits)
        }
        SessionStatement::Deallocate(name) => session.named().remove(name.as_deref()),
        SessionStatement::Kill(killed) => kill(session, killed).await,
    }
}

fn set(session: &ClientSession, assignments: &[Assignment]) -> Result<()> {
    let before = session.current_options();
    for assignment in assignments {
        let value = assignment.value.clone().map(OptionValue::String);
        if let Err(error) = session.set(&assignment.name, value) {
            session.put_back(&before);
            return Err(error);
        }
    }
    Ok(())
}

/// Cancels a statement or a session of the same user; others are reported as missing.
async fn kill(session: &ClientSession, killed: &Killed) -> Result<()> {
    let server = session.server();
    match killed {
        Killed::Query(id) => {
            if let Some(id) = QueryId::parse(id) {
                // A statement without result is queued or being planned.
                let live = server.live.find(session.owner(), id);
                return match live.filter(|statement| statement.result().is_none()) {
                    Some(statement) => {
                        statement.cancel();
                        Ok(())
                    }
                    None => server.results.cancel(session.owner(), id).await.map(drop),
                };
            }
            let other = find(session, id)?;
            stop(session, &other);
            Ok(())
        }
        Killed::Session(id) => {
            let other = find(session, id)?;
            stop(session, &other);
            other.end();
            Ok(())
        }
    }
}

/// Cancels what the session of a number runs; `None` where the user has no such session.
pub(crate) fn stop_by_number(session: &ClientSession, number: i32) -> Option<Arc<ClientSession>> {
    let other = session.server().sessions.find_by_number(number, session.owner())?;
    stop(session, &other);
    Some(other)
}

/// Cancels the statements of a session, except the one that does so.
fn stop(session: &ClientSession, other: &ClientSession) {
    let server = session.server();
    if session.key() != other.key() {
        server.live.by_session(other.key()).iter().for_each(|statement| statement.cancel());
    }
    server.results.cancel_of(other.key());
}

/// Finds a session of the same user by id or number.
///
/// # Errors
/// `Invalid` for what is no id, `NotFound`.
fn find(session: &ClientSession, id: &str) -> Result<Arc<ClientSession>> {
    let sessions = &session.server().sessions;
    let found = match (SessionId::parse(id), id.parse::<i32>()) {
        (Some(id), _) => sessions.find(id, session.owner()).ok(),
        (None, Ok(number)) => sessions.find_by_number(number, session.owner()),
        // Longer numbers are no sessions.
        (None, Err(_)) if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) => None,
        (None, Err(_)) => {
            return Err(Error::invalid(format!(
                "invalid id: expected that of a query or session, got `{id}`"
            ))
            .with_hint("`system.queries` lists your queries with their ids and sessions"));
        }
    };
    found.ok_or_else(|| {
        Error::not_found(format!("session `{id}` not found"))
            .with_reason(Reason::UndefinedQuery)
            .with_hint("ids of your own queries and sessions are in `system.queries`")
    })
}
