//! Sessions that clients make.

use super::{Running, choices};
use bowshot_api::Limits;
use std::time::Duration;

const SQL: (&str, &str) = ("content-type", "text/plain");

#[tokio::test]
async fn a_session_that_works_is_not_idle() {
    let limits = Limits { session_timeout: Duration::from_millis(1), ..Limits::default() };
    let running = Running::open(limits, false, choices()).await;
    for sql in ["hang", "wait"] {
        let waiting =
            super::send(running.address, &super::request("POST", "/v1/sql", &[SQL], sql.as_bytes())).await;
        let mut found = running.server.found.subscribe();
        let before = *found.borrow();
        tokio::time::timeout(super::PATIENCE, found.wait_for(|found| *found > before + 1))
            .await
            .unwrap()
            .unwrap();
        drop(waiting);
    }
    running.server.until(|counts| counts.sessions == 0).await;
    running.stop().await;
}
