//! Actions and polling.

use super::*;
use crate::proto::CloseSessionResult;
use arrow_flight::sql::{ActionCreatePreparedSubstraitPlanRequest, SubstraitPlan};
use arrow_flight::{CancelFlightInfoRequest, Empty};

#[tokio::test]
async fn polling_ends_with_the_query() {
    let (_port, mut client) = Port::open().await.with_client().await;
    let first = client.rpc.poll_flight_info(FlightDescriptor::new_cmd("rows 5")).await.unwrap().into_inner();
    assert_eq!(first.progress, Some(0.5));
    assert!(first.expiration_time.is_some() && first.info.is_some());
    let retry = first.flight_descriptor.unwrap();
    let last = client.rpc.poll_flight_info(retry.clone()).await.unwrap().into_inner();
    assert_eq!((last.progress, &last.flight_descriptor), (Some(1.0), &None));
    let info = last.info.unwrap();
    for _ in 0..2 {
        assert_eq!(rows(&client.get(ticket_of(&info)).await.unwrap()), 5);
    }
    let request = CancelFlightInfoRequest { info: Some(info) }.encode_to_vec();
    client.action("CancelFlightInfo", request).await.unwrap();
    assert_eq!(code_of(client.rpc.poll_flight_info(retry).await), Code::Cancelled);
    let mut forged = b"\xffbowshot.poll\x01".to_vec();
    forged.extend([0; 3]);
    let forged = FlightDescriptor::new_cmd(forged);
    assert_eq!(code_of(client.rpc.poll_flight_info(forged).await), Code::InvalidArgument);
}

#[tokio::test]
async fn actions_that_are_listed_and_those_that_are_not() {
    let (_port, mut client) = Port::open().await.with_client().await;
    let mut listed = client.rpc.list_actions(Empty {}).await.unwrap().into_inner();
    while let Some(action) = listed.message().await.unwrap() {
        // Without a proper body each is refused as malformed, except those whose body is empty.
        let result = client.action(&action.r#type, vec![0xff]).await;
        assert_eq!(code_of(result), Code::InvalidArgument, "{}", action.r#type);
    }
    let plan = SubstraitPlan { plan: Bytes::from_static(&[1]), version: "0.54.0".to_owned() };
    let plan = ActionCreatePreparedSubstraitPlanRequest { plan: Some(plan), transaction_id: None };
    let refused = client.action("CreatePreparedSubstraitPlan", any(&plan)).await;
    assert_eq!(code_of(refused), Code::Unimplemented);
    let empty = any(&ActionCreatePreparedSubstraitPlanRequest::default());
    for malformed in [vec![], empty] {
        let refused = client.action("CreatePreparedSubstraitPlan", malformed).await;
        assert_eq!(code_of(refused), Code::InvalidArgument);
    }
    let unknown = client.action("Dance", vec![]).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
    assert!(unknown.message().contains("ListActions"), "{}", unknown.message());
}

#[tokio::test]
async fn a_closed_session_is_gone_for_its_cookie() {
    let (port, mut client) = Port::open().await.with_client().await;
    assert_eq!(code_of(client.action("CloseSession", vec![]).await), Code::NotFound);
    let cookie = cookie_of(&client.info("rows 1").await.unwrap()).unwrap();
    client.headers = vec![("cookie", cookie.clone())];
    let body = client.action("CloseSession", vec![]).await.unwrap().unwrap();
    assert_eq!(CloseSessionResult::decode(body).unwrap().status, 1);
    port.until(|counts| counts.sessions == 0).await;
    assert_eq!(code_of(client.info("rows 1").await), Code::NotFound);
    assert_eq!(code_of(client.action("GetSessionOptions", vec![]).await), Code::NotFound);
    assert_eq!(code_of(client.action("CloseSession", vec![]).await), Code::NotFound);
    // A client that sets options begins a new session, and learns its cookie.
    let request = client.request(Action { r#type: "SetSessionOptions".to_owned(), body: Bytes::new() });
    let answer = client.rpc.do_action(request).await.unwrap();
    let new = cookie_of(&answer).unwrap();
    assert_ne!(new, cookie);
    client.headers = vec![("cookie", new)];
    assert!(client.info("rows 1").await.is_ok());
}
