//! PollFlightInfo. The first call starts the statement with a spooled result, so that it runs without a reader. The
//! retry descriptor has the query and the progress seen so far; a call with it waits for more.

use crate::caller::Caller;
use crate::statement::{Wanted, answer_info, metadata_info, timestamp, wanted};
use crate::ticket::PollTicket;
use arrow_flight::{FlightDescriptor, PollInfo};
use bowshot_api::{Delivery, Error, Progress, QueryId, Result};
use std::time::{Duration, Instant, SystemTime};

/// How long the first call waits, so that a short statement is done at once.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// How long a later call waits for news.
const LONG_WAIT: Duration = Duration::from_secs(5);
/// Part of the deadline that is left for the response.
const RETURN_TIME: Duration = Duration::from_millis(100);

/// Answers PollFlightInfo; an error is paired with the query that it is about.
pub(crate) async fn poll(
    caller: &Caller,
    descriptor: FlightDescriptor,
) -> std::result::Result<PollInfo, (Error, Option<QueryId>)> {
    let (seen, wait) = match PollTicket::decode(&descriptor.cmd) {
        Some(ticket) => (ticket.map_err(|error| (error, None))?, LONG_WAIT),
        None => match first(caller, descriptor).await.map_err(|error| (error, None))? {
            First::Started(query) => (PollTicket { query, seen: 0.0 }, FIRST_WAIT),
            First::Done(info) => return Ok(*info),
        },
    };
    poll_once(caller, seen, wait).await.map_err(|error| (error, Some(seen.query)))
}

enum First {
    Started(QueryId),
    Done(Box<PollInfo>),
}

async fn first(caller: &Caller, descriptor: FlightDescriptor) -> Result<First> {
    match wanted(caller, &descriptor).await? {
        Wanted::Statement(runnable) => {
            Ok(First::Started(runnable.start(None, Some(Delivery::Spool)).await?.query))
        }
        Wanted::Metadata(command, ticket) => {
            let info = metadata_info(caller, &command, ticket, descriptor)?;
            let info = PollInfo {
                info: Some(info),
                flight_descriptor: None,
                progress: Some(1.0),
                expiration_time: None,
            };
            Ok(First::Done(Box::new(info)))
        }
        Wanted::Query(_) => {
            Err(Error::invalid("a ticket is not a command").with_hint("redeem tickets with DoGet"))
        }
    }
}

async fn poll_once(caller: &Caller, seen: PollTicket, wait: Duration) -> Result<PollInfo> {
    let server = caller.server();
    let wait = wait.min(time_left(caller, Instant::now()));
    let progress = server.progress(caller.principal(), seen.query, Some(seen.seen), wait).await?;
    if let Some(error) = progress.failed {
        return Err(error);
    }
    let Progress { answer, fraction, done, failed: _ } = progress;
    let expires = answer.expires.unwrap_or_else(|| SystemTime::now() + server.limits().result_timeout);
    let retry = PollTicket { query: answer.query, seen: fraction.clamp(0.0, 1.0) };
    Ok(PollInfo {
        info: Some(answer_info(&answer, None)),
        flight_descriptor: (!done).then(|| FlightDescriptor::new_cmd(retry.encode())),
        progress: Some(if done { 1.0 } else { retry.seen }),
        // Expiry of the descriptor, if there is one.
        expiration_time: (!done).then(|| timestamp(expires)),
    })
}

fn time_left(caller: &Caller, now: Instant) -> Duration {
    match caller.deadline() {
        Some(deadline) => deadline.saturating_duration_since(now).saturating_sub(RETURN_TIME),
        None => Duration::MAX,
    }
}
