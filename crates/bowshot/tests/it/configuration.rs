//! The configuration file and the environment, seen through the program.

use crate::program::{Signal, TestServer, command, describe, run, sample_folder};
use expect_test::expect;

#[test]
fn an_unknown_key_stops_the_server_before_it_listens() {
    let folder = sample_folder();
    std::fs::write(folder.path().join("b.toml"), "[limits]\nmax_sesions = 3\n").expect("write");
    expect![[r#"
        exit 2
        error: unknown key `limits.max_sesions` in `b.toml`
        hint: did you mean `limits.max_sessions`?
    "#]]
    .assert_eq(&run(folder.path(), &["serve", "--config", "b.toml"]));
}

#[test]
fn a_missing_configuration_file_stops_the_server() {
    let folder = sample_folder();
    expect![[r#"
        exit 2
        error: cannot read the configuration file `missing.toml`: No such file or directory (os error 2)
        hint: check the path given by `--config` or `BOWSHOT_CONFIG`
    "#]]
    .assert_eq(&run(folder.path(), &["serve", "--config", "missing.toml"]));
}

#[test]
fn a_mistyped_variable_stops_the_server() {
    let folder = sample_folder();
    let output =
        command(folder.path(), &["check"]).env("BOWSHOT_LIMITS_MAX_SESIONS", "3").output().expect("run");
    expect![[r#"
        exit 2
        error: unknown environment variable `BOWSHOT_LIMITS_MAX_SESIONS`
        hint: did you mean `BOWSHOT_LIMITS_MAX_SESSIONS`?
    "#]]
    .assert_eq(&describe(&output, folder.path()));
}

#[test]
fn a_bad_log_filter_stops_the_server() {
    let folder = sample_folder();
    let said = run(folder.path(), &["check", "--log", "bowshot=loud"]);
    assert!(said.starts_with("exit 2\nerror: the log filter `bowshot=loud` cannot be used"), "{said}");
}

#[test]
fn an_exchange_folder_that_is_not_there_stops_the_server() {
    let folder = sample_folder();
    expect![[r#"
        exit 2
        error: the exchange folder `none` cannot be used: No such file or directory (os error 2)
        hint: make the folder, or correct `storage.exchange_folder`
    "#]]
    .assert_eq(&run(folder.path(), &["serve", "--set", "storage.exchange_folder=none"]));
}

#[tokio::test]
async fn sources_and_limits_come_from_the_file() {
    let folder = sample_folder();
    let file = "paths = ['orders.csv', 'who=people.json']\n[limits]\nmax_sessions = 1\n";
    std::fs::write(folder.path().join("b.toml"), file).expect("write");
    let server = TestServer::start_in(folder, &["--config", "b.toml"]);
    let first = server.client().await;
    let counted = crate::program::show(&first, "SELECT count(*) AS people FROM who").await;
    expect![[r#"
        +--------+
        | people |
        +--------+
        | 2      |
        +--------+"#]]
    .assert_eq(&counted);
    let refused = server.query("SELECT 1").await;
    assert!(refused.contains("sessions"), "{refused}");
}

#[test]
fn the_json_log_is_json_from_the_first_line() {
    let folder = sample_folder();
    let server = TestServer::start_in(folder, &["orders.csv", "--log-format", "json"]);
    let log = server.log();
    let messages: Vec<String> = log
        .lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            record["fields"]["message"].as_str().expect("a message").to_owned()
        })
        .collect();
    assert!(messages.contains(&"table served".to_owned()) && messages.contains(&"ready".to_owned()), "{log}");
}

#[test]
fn a_data_folder_is_made_only_when_named_and_has_one_user() {
    let folder = sample_folder();
    let server = TestServer::start_in(folder, &["--data", "store"]);
    assert!(server.path("store").is_dir());
    let second =
        run(server.folder.path(), &["serve", "--data", "store", "--flight", "127.0.0.1:0", "--http", "off"]);
    expect![[r#"
        exit 1
        error: another server uses the data folder `store`
    "#]]
    .assert_eq(&second);
}

#[test]
fn nothing_is_made_by_default() {
    let folder = sample_folder();
    let before = names(folder.path());
    let mut server = TestServer::start_in(folder, &["orders.csv"]);
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait(), Some(0));
    assert_eq!(names(server.folder.path()), before);
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
