//! Exit codes and words of the command line: 0 good, 1 failed, 2 wrong usage; data on stdout only.

use crate::program::{describe, run, run_with_input, sample_folder};
use expect_test::{Expect, expect};

fn check(args: &[&str], expected: Expect) {
    let folder = sample_folder();
    expected.assert_eq(&run(folder.path(), args));
}

#[test]
fn version_goes_to_stdout() {
    let folder = sample_folder();
    let output = run_with_input(folder.path(), &["--version"], "");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("bowshot {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_names_every_flag_that_is_a_setting() {
    let folder = sample_folder();
    let help = run(folder.path(), &["serve", "--help"]);
    let settings = run(folder.path(), &["docs", "settings"]);
    for flag in settings.split('`').filter(|word| word.starts_with("--") && !word.contains(' ')) {
        assert!(help.contains(flag), "{flag} is not in\n{help}");
    }
}

#[test]
fn unknown_commands_and_flags_are_wrong_usage() {
    let folder = sample_folder();
    for args in [&["serv"][..], &["serve", "--fligth", "x"], &["check", "--flight"], &[]] {
        let output = run_with_input(folder.path(), args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn an_open_server_stays_on_its_machine() {
    check(
        &["serve", "--flight", "0.0.0.0:0", "--http", "off"],
        expect![[r#"
        exit 2
        error: `--flight 0.0.0.0:0` reaches beyond this machine, and no users are configured
        hint: configure users (`bowshot hash-password`), listen on 127.0.0.1, or say `--insecure`
    "#]],
    );
    check(
        &["check", "--flight", "127.0.0.1:0", "--http", "[::]:0"],
        expect![[r#"
        exit 2
        error: `--http [::]:0` reaches beyond this machine, and no users are configured
        hint: configure users (`bowshot hash-password`), listen on 127.0.0.1, or say `--insecure`
    "#]],
    );
}

#[test]
fn a_taken_port_is_a_failure_and_no_wrong_usage() {
    let folder = sample_folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = taken.local_addr().expect("address").to_string();
    let output = run_with_input(folder.path(), &["serve", "--flight", &address, "--http", "off"], "");
    let said = describe(&output, folder.path()).replace(&address, "ADDRESS");
    expect![[r#"
        exit 1
        error: cannot listen on `ADDRESS` (`--flight`); another program may use the port: Address already in use (os error 98)
    "#]].assert_eq(&said);
}

#[test]
fn check_prints_what_would_be_served() {
    check(
        &["check", "orders.csv", "who=people.json"],
        expect![[r#"
            exit 0
            table   format  files  size  from
            orders  csv         1  61 B  orders.csv
            who     json        1  54 B  people.json

            table `orders` is read as: delim=,, header=true (its first record is no record of these types)

            table `who` is read as: one object on each line

            Flight SQL  127.0.0.1:50051
            HTTP        127.0.0.1:8080
            PostgreSQL  off
            MySQL       off
            users       none: every caller is anonymous
        "#]],
    );
}

#[test]
fn check_fails_when_a_table_is_broken() {
    let folder = sample_folder();
    std::fs::write(folder.path().join("bad.parquet"), "this is no Parquet file").expect("write");
    expect![[r#"
        exit 1
        table   format  files  size  from
        bad     broken               bad.parquet
        orders  csv         1  61 B  orders.csv

        table `bad` cannot be read: `bad.parquet` cannot be read: Parquet error: Invalid Parquet file. Corrupt footer; repair or replace the file

        table `orders` is read as: delim=,, header=true (its first record is no record of these types)

        Flight SQL  127.0.0.1:50051
        HTTP        127.0.0.1:8080
        PostgreSQL  off
        MySQL       off
        users       none: every caller is anonymous
        error: one table cannot be read
    "#]].assert_eq(&run(folder.path(), &["check", "orders.csv", "bad.parquet"]));
}

#[test]
fn missing_sources_are_wrong_usage() {
    check(
        &["check", "missing.parquet"],
        expect![[r#"
        exit 2
        error: `missing.parquet` does not exist
        hint: check the path; relative paths start at the server's working directory
    "#]],
    );
    check(
        &["serve", "missing.parquet", "--flight", "127.0.0.1:0", "--http", "off"],
        expect![[r#"
        exit 2
        error: `missing.parquet` does not exist
        hint: check the path; relative paths start at the server's working directory
    "#]],
    );
}

#[test]
fn hash_password_reads_stdin_and_prints_a_hash() {
    let folder = sample_folder();
    let output = run_with_input(folder.path(), &["hash-password"], "lovelace\n");
    let hash = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && hash.starts_with("$argon2id$") && hash.ends_with('\n'), "{output:?}");
    expect![[r#"
        exit 2
        error: a password has 1 to 1024 bytes
        hint: choose a password of 1 to 1024 bytes without line breaks
    "#]]
    .assert_eq(&run(folder.path(), &["hash-password"]));
}
