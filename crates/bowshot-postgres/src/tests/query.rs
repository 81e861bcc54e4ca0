//! Texts of statements.

use super::{Port, shown};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn statements_of_a_text_run_in_turn() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for (sql, expected) in [
        ("", "I ZI"),
        (" ;-- nothing\n;", "I ZI"),
        ("rows 2", "T[n 20] D[0] D[1] C[ROWS] ZI"),
        ("rows 1; insert; rows 0", "T[n 20] D[0] C[ROWS] C[INSERT 0 3] T[n 20] C[ROWS] ZI"),
        ("rows 1; fail; rows 2", "T[n 20] D[0] C[ROWS] E[22012: divide by zero] ZI"),
        (
            "rows 1; wrong",
            "T[n 20] D[0] C[ROWS] E[42601: syntax error: unexpected `x` at line 1, column 4: 12] ZI",
        ),
    ] {
        assert_eq!(client.query(sql).await, expected, "{sql}");
    }
    let answer = client.query("bad").await;
    assert!(
        answer.starts_with("E[XX000: internal error (request ") && !answer.contains("secret"),
        "{answer}"
    );
}

#[tokio::test]
async fn answers_do_not_wait_for_a_later_statement_that_takes_long() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.0.write_all(b"Q\0\0\0\x0binsert\0Q\0\0\0\x0brows 1\0Q\0\0\0\x09hang\0").await.unwrap();
    assert_eq!(shown(&client.until_ready().await), "C[INSERT 0 3] ZI");
    assert_eq!(shown(&client.until_ready().await), "T[n 20] D[0] C[ROWS] ZI");
}

#[tokio::test]
async fn a_panic_ends_its_connection_alone() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    client.send(b'Q', b"panic\0").await;
    assert_eq!(shown(&[client.next().await.unwrap()]), "E[XX000: the server has a defect]");
    assert_eq!(client.next().await, None);
    port.server.until(|counts| counts.sessions == 0).await;
    assert_eq!(port.connect().await.query("rows 1").await, "T[n 20] D[0] C[ROWS] ZI");
}
