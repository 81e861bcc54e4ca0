//! A file that comes under a running server.

use crate::program::{TestServer, sample_folder};
use std::path::Path;
use std::time::{Duration, Instant};

/// Files are looked at again once a second; many times that is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

async fn wait_for_answer(server: &TestServer, sql: &str, expected: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = server.query(sql).await;
        if expected(&answer) {
            return answer;
        }
        assert!(Instant::now() < end, "the answer stayed\n{answer}");
    }
}

/// Puts a file into its place as careful writers do.
fn replace(path: &Path, content: &str) {
    let fresh = path.with_extension("tmp");
    std::fs::write(&fresh, content).expect("write");
    std::fs::rename(&fresh, path).expect("rename");
}

#[tokio::test]
async fn a_file_that_comes_under_the_name_of_a_table_is_hidden_by_it() {
    let folder = sample_folder();
    let server = TestServer::start_in(folder, &["."]);
    server.query("CREATE TABLE late AS SELECT 7 AS mine").await;
    replace(&server.path("late.csv"), "x\n1\n");
    replace(&server.path("later.csv"), "x\n1\n");
    wait_for_answer(&server, "SELECT x FROM later", |answer| answer.contains("| 1 |")).await;
    assert!(server.query("SELECT mine FROM late").await.contains("| 7 "));
    let listed = "SELECT count(*) AS n FROM information_schema.tables WHERE table_name = 'late'";
    assert!(server.query(listed).await.contains("| 1 |"));
}
