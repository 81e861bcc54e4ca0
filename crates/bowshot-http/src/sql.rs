//! `POST /v1/sql`: one or several statements in, the result of the last one out. Several are one transaction.
//!
//! Each statement is planned once, and what its plan tells decides how it is answered: with rows, or with how many rows it has
//! changed.

use crate::answer::{self, Answered, Section};
use crate::caller::Caller;
use crate::form::Wish;
use crate::order::{Order, Parameters};
use crate::parameters;
use crate::rooms::{Kept, Room};
use crate::status::{Failure, Result};
use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use bowshot_api::{
    Answer, Delivery, Description, Endpoints, Error, Notice, Request as Running, TransactionEnd,
};
use futures::StreamExt;
use serde::Deserialize;

/// What may stand in the query of the URL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    format: Option<String>,
}

/// Answers `POST /v1/sql`.
pub(crate) async fn run(
    State(context): State<crate::Context>,
    caller: Caller,
    choice: std::result::Result<Query<Choice>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<Response> {
    let Query(choice) = choice.map_err(|error| unread(&error))?;
    let wish = Wish::read(request.headers(), choice.format.as_deref())?;
    let headers = request.headers().clone();
    let Order { sql, parameters, options } = Order::read(request, context.server.limits()).await?;
    let room = Room::enter_for(caller, &headers, options, &sql).await?;
    let answered = text(&room, &sql, parameters, Delivery::Stream).await?;
    answer::respond(room, answered, wish, Section::default()).await
}

/// The error of a query string that was not understood.
pub(crate) fn unread(error: &axum::extract::rejection::QueryRejection) -> Failure {
    Error::invalid(format!("the query of the URL cannot be read: {}", error.body_text())).into()
}

/// Runs the statements of a text as far as the first rows of the last one. The first error ends it, and undoes those before it as
/// far as none of them begins or ends a transaction (PostgreSQL manual, "Multiple Statements in a Simple Query").
pub(crate) async fn text(
    room: &Room,
    sql: &str,
    parameters: Parameters,
    delivery: Delivery,
) -> Result<Answered> {
    let statements = room.session.statements(sql);
    let Some((last, earlier)) = statements.split_last() else {
        return Err(Error::invalid("the text has no statement").with_hint("send one").into());
    };
    if !earlier.is_empty() && parameters != Parameters::None {
        return Err(Error::invalid("a text with parameters has one statement")
            .with_hint("send the statements one by one, in a session if need be")
            .into());
    }
    let answered = match Box::pin(each(room, sql, (earlier, last), (parameters, delivery))).await {
        Ok(answered) => answered,
        Err(failure) => {
            room.end_implicit(TransactionEnd::Rollback).await?;
            return Err(failure);
        }
    };
    if let Err(error) = room.end_implicit(TransactionEnd::Commit).await {
        if let Answered::Rows(answer) = answered {
            // Its rows are of changes that were not kept.
            _ = room.server.cancel(room.session.principal(), answer.query).await;
        }
        return Err(error.into());
    }
    if room.is_own && room.session.in_transaction() {
        return Err(Error::invalid("the transaction would end with the request, and its changes with it")
            .with_hint("commit it in the same request, or make a session with `POST /v1/sessions`")
            .into());
    }
    Ok(answered)
}

async fn each(
    room: &Room,
    sql: &str,
    (earlier, last): (&[String], &str),
    (parameters, delivery): (Parameters, Delivery),
) -> Result<Answered> {
    let mut place = Place { sql, end: 0 };
    for statement in earlier {
        let before = place.of(statement);
        room.begin_implicit().await?;
        act(room, statement).await.map_err(|failure| failure.placed(statement, before))?;
    }
    let before = place.of(last);
    let started = Box::pin(start(room, last, parameters, delivery)).await;
    started.map_err(|failure| failure.placed(last, before))
}

/// Where statements stand in their text.
struct Place<'a> {
    sql: &'a str,
    end: usize,
}

impl Place<'_> {
    /// The number of characters before the next statement.
    fn of(&mut self, statement: &str) -> usize {
        let rest = self.sql.get(self.end..).unwrap_or_default();
        let start = self.end + rest.find(statement).unwrap_or(0);
        self.end = start + statement.len();
        self.sql.get(..start).unwrap_or_default().chars().count()
    }
}

/// Runs a statement that is not the last one. Rows are read and left out: a query may fail, or call a function that acts.
async fn act(room: &Room, sql: &str) -> Result<()> {
    let (kept, Description { is_update, .. }) = room.prepare(sql).await?;
    if is_update {
        let request = Running::prepared(kept.id);
        room.while_used(room.session.update(&request)).await?;
        return Ok(());
    }
    let answer = begin(room, &kept, Delivery::Stream).await?;
    let read = read(room, &answer, |_| ()).await;
    read.map_err(|error| Failure::from(error).of_query(answer.query))
}

/// Runs a statement as far as its first rows, or, where they are kept, as far as its start.
pub(crate) async fn start(room: &Room, sql: &str, given: Parameters, delivery: Delivery) -> Result<Answered> {
    let (kept, Description { is_update, parameters: wanted, .. }) = room.prepare(sql).await?;
    if let Some(row) = parameters::row(&wanted, given)? {
        room.while_used(room.session.bind(kept.id, vec![row])).await?;
    }
    let delivery = if is_update { Delivery::Stream } else { delivery };
    let answer = begin(room, &kept, delivery).await?;
    if !is_update {
        return Ok(Answered::Rows(Box::new(answer)));
    }
    let query = answer.query;
    let affected = count(room, &answer).await.map_err(|error| Failure::from(error).of_query(query))?;
    let notices = room.session.last_write().notices.iter().map(Notice::message).collect();
    Ok(Answered::Effect { query: Some(query), affected, notices })
}

async fn begin(room: &Room, kept: &Kept, delivery: Delivery) -> Result<Answer> {
    let request = Running {
        endpoints: Some(Endpoints::Exactly(1)),
        delivery: Some(delivery),
        ..Running::prepared(kept.id)
    };
    Ok(room.while_used(room.session.start(&request)).await?)
}

/// How many rows a statement has changed, if it tells: its result is one column with that number.
async fn count(room: &Room, answer: &Answer) -> bowshot_api::Result<Option<u64>> {
    let mut affected: Option<u64> = None;
    read(room, answer, |batch| affected = affected.unwrap_or(0).checked_add(counted(batch))).await?;
    Ok(affected.or(answer.rows.filter(|rows| *rows == 0)))
}

async fn read(room: &Room, answer: &Answer, mut each: impl FnMut(&RecordBatch)) -> bowshot_api::Result<()> {
    for partition in 0..answer.partitions {
        let mut rows = room.attach(answer.query, partition).await?;
        while let Some(batch) = room.while_used(rows.next()).await {
            each(&batch?);
        }
    }
    Ok(())
}

fn counted(batch: &RecordBatch) -> u64 {
    let Some(column) = batch.columns().first() else { return 0 };
    let signed = column.as_primitive_opt::<Int64Type>().and_then(arrow::compute::sum);
    let unsigned = column.as_primitive_opt::<UInt64Type>().and_then(arrow::compute::sum);
    signed.and_then(|count| u64::try_from(count).ok()).or(unsigned).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn statements_are_found_in_their_order() {
        let mut place = Place { sql: "ä; a; a ;b", end: 0 };
        assert_eq!(["ä", "a", "a", "b"].map(|statement| place.of(statement)), [0, 3, 6, 9]);
    }
}
