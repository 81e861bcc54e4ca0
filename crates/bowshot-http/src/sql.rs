//! `POST /v1/sql`: runs one or several statements and returns the result of the last one. Several are one
//! transaction. Each statement is planned once; its plan determines whether rows or a count are returned.

use crate::caller::Caller;
use crate::media_type::ResponseFormat;
use crate::parameters;
use crate::response::{self, Outcome, RowRange};
use crate::session_scope::{Prepared, SessionScope};
use crate::sql_request::{Parameters, SqlRequest};
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
use std::ops::ControlFlow;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryParameters {
    format: Option<String>,
}

/// Answers `POST /v1/sql`.
pub(crate) async fn run(
    State(context): State<crate::Context>,
    caller: Caller,
    query: std::result::Result<Query<QueryParameters>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<Response> {
    let Query(query) = query.map_err(|error| invalid_query_string(&error))?;
    let format = ResponseFormat::read(request.headers(), query.format.as_deref())?;
    let headers = request.headers().clone();
    let SqlRequest { sql, parameters, options } = SqlRequest::read(request, context.server.limits()).await?;
    let scope = SessionScope::enter_for(caller, &headers, options, &sql).await?;
    let outcome = run_script(&scope, &sql, parameters, Delivery::Stream).await?;
    response::respond(scope, outcome, format, RowRange::default()).await
}

pub(crate) fn invalid_query_string(error: &axum::extract::rejection::QueryRejection) -> Failure {
    Error::invalid(format!("invalid query string: {}", error.body_text())).into()
}

/// Runs a script up to the first rows of its last statement. The first error rolls back earlier statements, unless
/// the script has its own transactions (PostgreSQL manual, "Multiple Statements in a Simple Query").
pub(crate) async fn run_script(
    scope: &SessionScope,
    sql: &str,
    parameters: Parameters,
    delivery: Delivery,
) -> Result<Outcome> {
    let statements = scope.session.statements(sql);
    if statements.len() > 1 && parameters != Parameters::None {
        return Err(Error::invalid("parameters are supported for a single statement only")
            .with_hint("send the statements one by one, in a session if need be")
            .into());
    }
    let outcome = match Box::pin(run_statements(scope, sql, &statements, parameters, delivery)).await {
        Ok(outcome) => outcome,
        Err(failure) => {
            scope.end_implicit(TransactionEnd::Rollback).await?;
            return Err(failure);
        }
    };
    if let Err(error) = scope.end_implicit(TransactionEnd::Commit).await {
        if let Outcome::Rows(answer) = outcome {
            // Its rows may depend on changes that were rolled back.
            _ = scope.server.cancel(scope.session.principal(), answer.query).await;
        }
        return Err(error.into());
    }
    if scope.is_own && scope.session.in_transaction() {
        return Err(Error::invalid("the transaction would be rolled back at the end of the request")
            .with_hint("commit it in the same request, or make a session with `POST /v1/sessions`")
            .into());
    }
    Ok(outcome)
}

async fn run_statements(
    scope: &SessionScope,
    sql: &str,
    statements: &[String],
    parameters: Parameters,
    delivery: Delivery,
) -> Result<Outcome> {
    let Some((last, earlier)) = statements.split_last() else {
        return Err(Error::invalid("the request has no statement").with_hint("send one").into());
    };
    let mut offsets = StatementOffsets { sql, end: 0 };
    for statement in earlier {
        let before = offsets.next(statement);
        scope.begin_implicit().await?;
        run_earlier(scope, statement).await.map_err(|failure| failure.placed(statement, before))?;
    }
    let before = offsets.next(last);
    let started = Box::pin(start(scope, last, parameters, delivery)).await;
    started.map_err(|failure| failure.placed(last, before))
}

struct StatementOffsets<'a> {
    sql: &'a str,
    end: usize,
}

impl StatementOffsets<'_> {
    /// Characters before the next statement.
    fn next(&mut self, statement: &str) -> usize {
        let rest = self.sql.get(self.end..).unwrap_or_default();
        let start = self.end + rest.find(statement).unwrap_or(0);
        self.end = start + statement.len();
        self.sql.get(..start).unwrap_or_default().chars().count()
    }
}

/// Runs an earlier statement of a script. Its rows are read and discarded: queries may fail or have effects.
async fn run_earlier(scope: &SessionScope, sql: &str) -> Result<()> {
    let (prepared, Description { is_update, .. }) = scope.prepare(sql).await?;
    if is_update {
        let request = Running::prepared(prepared.id);
        scope.while_used(scope.session.update(&request)).await?;
        return Ok(());
    }
    let answer = begin(scope, &prepared, Delivery::Stream).await?;
    let read = read(scope, &answer, |_| ControlFlow::Continue(())).await;
    read.map_err(|error| Failure::from(error).with_query(answer.query))
}

/// Starts a statement; streamed results are awaited up to their first rows.
pub(crate) async fn start(
    scope: &SessionScope,
    sql: &str,
    given: Parameters,
    delivery: Delivery,
) -> Result<Outcome> {
    let (prepared, Description { is_update, parameters: wanted, .. }) = scope.prepare(sql).await?;
    if let Some(row) = parameters::row(&wanted, given)? {
        scope.while_used(scope.session.bind(prepared.id, vec![row])).await?;
    }
    let delivery = if is_update { Delivery::Stream } else { delivery };
    let answer = begin(scope, &prepared, delivery).await?;
    if !is_update {
        return Ok(Outcome::Rows(Box::new(answer)));
    }
    let query = answer.query;
    let affected = count(scope, &answer).await.map_err(|error| Failure::from(error).with_query(query))?;
    let notices = scope.session.last_write().notices.iter().map(Notice::message).collect();
    Ok(Outcome::Effect { query: Some(query), affected, notices })
}

pub(crate) async fn begin(scope: &SessionScope, prepared: &Prepared, delivery: Delivery) -> Result<Answer> {
    let request = Running {
        endpoints: Some(Endpoints::Exactly(1)),
        delivery: Some(delivery),
        ..Running::prepared(prepared.id)
    };
    Ok(scope.while_used(scope.session.start(&request)).await?)
}

/// The affected rows: the sum of the result's column.
async fn count(scope: &SessionScope, answer: &Answer) -> bowshot_api::Result<Option<u64>> {
    let mut affected: Option<u64> = None;
    let add = |batch: &RecordBatch| {
        affected = affected.unwrap_or(0).checked_add(affected_rows(batch));
        ControlFlow::Continue(())
    };
    read(scope, answer, add).await?;
    Ok(affected.or(answer.rows.filter(|rows| *rows == 0)))
}

/// Reads a result until `each` has enough.
pub(crate) async fn read(
    scope: &SessionScope,
    answer: &Answer,
    mut each: impl FnMut(&RecordBatch) -> ControlFlow<()>,
) -> bowshot_api::Result<()> {
    for partition in 0..answer.partitions {
        let mut rows = scope.attach(answer.query, partition).await?;
        while let Some(batch) = scope.while_used(rows.next()).await {
            if each(&batch?).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn affected_rows(batch: &RecordBatch) -> u64 {
    let Some(column) = batch.columns().first() else { return 0 };
    let signed = column.as_primitive_opt::<Int64Type>().and_then(arrow::compute::sum);
    let unsigned = column.as_primitive_opt::<UInt64Type>().and_then(arrow::compute::sum);
    signed.and_then(|count| u64::try_from(count).ok()).or(unsigned).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::StatementOffsets;

    #[test]
    fn statements_are_found_in_their_order() {
        let mut offsets = StatementOffsets { sql: "ä; a; a ;b", end: 0 };
        assert_eq!(["ä", "a", "a", "b"].map(|statement| offsets.next(statement)), [0, 3, 6, 9]);
    }
}
