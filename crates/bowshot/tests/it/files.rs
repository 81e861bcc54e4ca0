//! Files that come, go, change and break under a running server.

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
async fn a_replaced_file_is_seen() {
    let server = TestServer::start(&[]);
    assert!(server.query("SELECT count(*) FROM orders").await.contains("| 4 "));
    replace(&server.path("orders.csv"), "id,customer,amount\n7,eve,1.0\n");
    wait_for_answer(&server, "SELECT customer FROM orders", |answer| {
        answer.contains("eve") && !answer.contains("ada")
    })
    .await;
}

#[tokio::test]
async fn a_new_file_in_a_folder_becomes_a_table() {
    let folder = sample_folder();
    let server = TestServer::start_in(folder, &["."]);
    assert!(server.query("SELECT * FROM late").await.starts_with("error: "));
    replace(&server.path("late.csv"), "x\n1\n");
    wait_for_answer(&server, "SELECT x FROM late", |answer| answer.contains("| 1 |")).await;
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

#[tokio::test]
async fn a_broken_file_is_the_problem_of_its_own_table() {
    let folder = sample_folder();
    std::fs::write(folder.path().join("bad.parquet"), "this is no Parquet file").expect("write");
    let server = TestServer::start_in(folder, &["."]);
    assert!(server.log().contains("table `bad` cannot be read"), "{}", server.log());
    let broken = server.query("SELECT * FROM bad").await;
    assert!(broken.starts_with("error: ") && broken.contains("bad.parquet"), "{broken}");
    assert!(server.query("SELECT count(*) FROM orders").await.contains("| 4 "));
    assert_eq!(server.get("/ready").0, 200);
    std::fs::remove_file(server.path("bad.parquet")).expect("remove");
    replace(&server.path("bad.csv"), "x\n1\n");
    wait_for_answer(&server, "SELECT x FROM bad", |answer| answer.contains("| 1 |")).await;
}

#[tokio::test]
async fn a_deleted_file_is_an_error_and_its_return_a_table() {
    let server = TestServer::start(&[]);
    let content = std::fs::read_to_string(server.path("people.json")).expect("read");
    std::fs::remove_file(server.path("people.json")).expect("remove");
    let gone =
        wait_for_answer(&server, "SELECT count(*) FROM people", |answer| answer.starts_with("error: ")).await;
    assert!(gone.contains("people"), "{gone}");
    replace(&server.path("people.json"), &content);
    wait_for_answer(&server, "SELECT count(*) FROM people", |answer| answer.contains("| 2 ")).await;
}
