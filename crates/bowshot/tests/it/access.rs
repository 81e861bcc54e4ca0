//! Users, tokens and those who have neither, over Flight.

use crate::program::{TestServer, describe, run_with_input, sample_folder, show};
use bowshot_api::Secret;
use bowshot_flight::client::Login;
use std::path::Path;

/// A server with the user `ada` (password `lovelace`) and the token `s3cret` of `robot`.
fn server_with_users() -> TestServer {
    let folder = sample_folder();
    let output = run_with_input(folder.path(), &["hash-password"], "lovelace\n");
    assert!(output.status.success(), "{}", describe(&output, folder.path()));
    let hash = String::from_utf8(output.stdout).expect("text");
    let users = format!(
        "[[users]]\nname = 'ada'\npassword_hash = '{}'\n[[tokens]]\nuser = 'robot'\nsha256 = '{}'\n",
        hash.trim(),
        "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0"
    );
    std::fs::write(folder.path().join("users.toml"), users).expect("write");
    TestServer::start_in(folder, &["orders.csv", "--users-file", "users.toml"])
}

fn password(user: &str, password: &str) -> Login {
    Login::Password { user: user.to_owned(), password: Secret::new(password) }
}

#[tokio::test]
async fn users_and_tokens_come_in_and_nobody_else() {
    let server = server_with_users();
    for login in [password("ada", "lovelace"), Login::Token(Secret::new("s3cret"))] {
        let client = server.connect(login.clone()).await.expect("login");
        let answer = show(&client, "SELECT count(*) FROM orders").await;
        assert!(answer.contains("| 4 "), "{login:?}: {answer}");
    }
    for login in [
        Login::Anonymous,
        password("ada", "wrong"),
        password("eve", "lovelace"),
        password("", ""),
        Login::Token(Secret::new("wrong")),
        Login::Token(Secret::new("None")),
    ] {
        let outcome = match server.connect(login.clone()).await {
            Ok(client) => show(&client, "SELECT count(*) FROM orders").await,
            Err(error) => format!("error: {error}"),
        };
        assert!(outcome.starts_with("error: "), "{login:?} came in: {outcome}");
        assert!(!outcome.contains("orders"), "{login:?} learnt of a table: {outcome}");
    }
    assert_eq!(server.get("/ready").0, 200, "probes need no credentials");
    let log = server.log();
    for secret in ["lovelace", "s3cret", "wrong"] {
        assert!(!log.contains(secret), "the log holds a secret:\n{log}");
    }
}

#[tokio::test]
async fn a_server_without_users_takes_any_credentials() {
    let server = TestServer::start(&[]);
    for login in [Login::Anonymous, password("ada", "x"), Login::Token(Secret::new("None"))] {
        let client = server.connect(login.clone()).await.expect("login");
        let answer = show(&client, "SELECT 1 AS one").await;
        assert!(answer.contains("| 1 "), "{login:?}: {answer}");
    }
}

#[test]
fn users_that_are_not_understood_stop_the_server() {
    let folder = sample_folder();
    let refuse = |text: &str| {
        std::fs::write(folder.path().join("users.toml"), text).expect("write");
        serve_with_users(folder.path())
    };
    for (text, word) in [
        ("", "lists nobody"),
        ("[[users]]\nname = 'ada'\npassword = 'lovelace'\n", "unknown field `password`"),
        ("[[users]]\nname = 'ada'\npassword_hash = 'lovelace'\n", "password hash of user `ada`"),
        ("[[users]\n", "line 1"),
    ] {
        let said = refuse(text);
        assert!(said.starts_with("exit 2\nerror: ") && said.contains(word), "{text}: {said}");
        assert!(!said.contains("lovelace"), "a secret is shown: {said}");
    }
    std::fs::remove_file(folder.path().join("users.toml")).expect("remove");
    let said = serve_with_users(folder.path());
    assert!(said.starts_with("exit 2\nerror: cannot read the users file"), "{said}");
}

fn serve_with_users(folder: &Path) -> String {
    crate::program::run(
        folder,
        &["serve", "--users-file", "users.toml", "--flight", "127.0.0.1:0", "--http", "off"],
    )
}
