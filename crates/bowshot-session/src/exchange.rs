//! Statements over rows that their client sends while they run. They run like all statements (`query.rs`), but their
//! rows come only once.

use crate::ingest_stream;
use crate::query::{self, Expected};
use crate::running_statements::RunningStatement;
use crate::session::ClientSession;
use bowshot_api::{Answer, Delivery, Endpoints, Error, Input, Request, Result, Statement, SubstraitPlan};
use bowshot_engine::{Action, AuthorizedPlan};
use bowshot_policy::snapshot::input::StreamedTable;
use std::sync::Arc;

/// Starts a statement over rows of its client.
pub(crate) async fn start(
    session: &ClientSession,
    request: &Request,
    input: Input,
    live: &Arc<RunningStatement>,
) -> Result<Answer> {
    match &request.statement {
        Statement::Sql(sql) => one(session, sql)?,
        Statement::Substrait(_) => return Err(SubstraitPlan::unsupported()),
        Statement::Prepared(_) => {
            return Err(Error::unsupported("a prepared statement cannot read rows of its client")
                .with_hint("send the SQL text with the rows"));
        }
    }
    let rows = ingest_stream::paced(input.rows, live);
    live.set_input(StreamedTable::new(Input { rows, ..input })?);
    let (endpoints, delivery) = (Some(Endpoints::Exactly(1)), Some(Delivery::Stream));
    let request = Request { endpoints, delivery, ..request.clone() };
    Ok(query::start(session, &request, (Expected::Anything, live)).await?.answer())
}

fn one(session: &ClientSession, sql: &str) -> Result<()> {
    if session.engine().statements(sql).len() > 1 {
        return Err(Error::invalid("only one statement can read the rows of a stream")
            .with_hint("send one statement"));
    }
    Ok(())
}

/// Refuses statements that do not read the rows, or need them again later.
pub(crate) fn check(live: &RunningStatement, plan: &AuthorizedPlan) -> Result<()> {
    let Some(input) = live.input() else { return Ok(()) };
    if !plan.reads_input() {
        let name = input.name();
        return Err(Error::invalid(format!(
            "the statement does not read `{name}`, the rows that come with it"
        ))
        .with_hint(format!("select from `{name}`, or run the statement without a stream")));
    }
    match plan.action() {
        Action::Write(change) if change.keeps_query() => {
            Err(Error::unsupported("cannot create a materialized view from streamed rows")
                .with_hint("use CREATE TABLE … AS"))
        }
        _ => Ok(()),
    }
}
