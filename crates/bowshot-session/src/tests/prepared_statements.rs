//! Prepared statements: rows of parameters, their types, and the memory that they hold.

use super::{server, small, with_session};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::DataType;
use bowshot_api::{ErrorKind, Limits, Request, Server, Statement};
use futures::TryStreamExt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Rows of one parameter.
fn values(name: &str, numbers: RangeInclusive<i64>) -> Vec<RecordBatch> {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    vec![RecordBatch::try_from_iter_with_nullable([(name, column, true)]).expect("a batch")]
}

#[tokio::test]
async fn every_row_of_parameters_is_one_execution() {
    let (server, session) = with_session(server(small())).await;
    let prepared = session.prepare("SELECT CAST(? AS BIGINT) * 2 AS twice", None).await.expect("prepares");
    assert_eq!(prepared.description.parameters.fields().len(), 1);
    let missing = session.start(&Request::prepared(prepared.id)).await.expect_err("nothing is bound");
    assert_eq!(missing.kind(), ErrorKind::Invalid);
    session.bind(prepared.id, values("$1", 1..=3)).await.expect("binds");
    let answer = session.start(&Request::prepared(prepared.id)).await.expect("starts");
    let stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    let batches: Vec<RecordBatch> = stream.try_collect().await.expect("reads");
    let values: Vec<i64> = batches
        .iter()
        .flat_map(|batch| {
            let column = batch.column(0).as_any().downcast_ref::<Int64Array>().expect("whole numbers");
            column.values().to_vec()
        })
        .collect();
    assert_eq!(values, [2, 4, 6]);
}

#[tokio::test]
async fn a_parameter_without_a_type_takes_the_type_of_its_value() {
    let (server, session) = with_session(server(small())).await;
    let prepared = session.prepare("SELECT $1 AS value", None).await.expect("prepares");
    session.bind(prepared.id, values("0", 7..=7)).await.expect("binds");
    let description = session.describe(&Statement::Prepared(prepared.id)).await.expect("describes");
    assert_eq!(description.schema.field(0).data_type(), &DataType::Int64);
    let answer = session.start(&Request::prepared(prepared.id)).await.expect("starts");
    assert_eq!(answer.schema, description.schema);
    let stream = server.attach(session.principal(), answer.query, 0).await.expect("attaches");
    let batches: Vec<RecordBatch> = stream.try_collect().await.expect("reads");
    assert_eq!(batches[0].column(0).as_any().downcast_ref::<Int64Array>().expect("numbers").value(0), 7);
}

#[tokio::test]
async fn what_prepared_statements_hold_is_bounded() {
    let (_server, session) = with_session(server(Limits { max_prepared_bytes: 20_000, ..small() })).await;
    let prepared = session.prepare("SELECT $1::bigint", None).await.expect("prepares");
    session.bind(prepared.id, values("$1", 1..=2_000)).await.expect("fits");
    let error =
        session.prepare(&format!("SELECT '{}'", "x".repeat(5_000)), None).await.expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    session.bind(prepared.id, values("$1", 1..=2_001)).await.expect("in place of the others");
    let error = session.bind(prepared.id, values("$1", 1..=3_000)).await.expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.to_string().contains("limits.max_prepared_bytes"), "{error}");
}
