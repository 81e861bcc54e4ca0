//! What the configuration takes, what it refuses and in which words.

use super::*;
use expect_test::{Expect, expect};

/// Loads a file's text, variables and flags; the file is named `bowshot.toml` in a folder of its own.
fn load(
    file: &str,
    environment: &[(&str, &str)],
    values: &[(&str, &str)],
) -> (tempfile::TempDir, Result<Config, Usage>) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("bowshot.toml");
    std::fs::write(&path, file).expect("write");
    let flags = Flags {
        file: Some(path),
        paths: Vec::new(),
        values: values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let environment = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let loaded = Config::load(&flags, environment);
    (folder, loaded)
}

fn refused(file: &str, environment: &[(&str, &str)], values: &[(&str, &str)]) -> String {
    let (folder, loaded) = load(file, environment, values);
    let usage = loaded.expect_err("a mistake");
    let text = match usage.hint() {
        Some(hint) => format!("{usage}\n    {hint}\n"),
        None => format!("{usage}\n"),
    };
    text.replace(&folder.path().display().to_string(), "FOLDER")
}

fn check_files(files: &[&str], expected: Expect) {
    let lines: Vec<String> = files.iter().map(|file| refused(file, &[], &[])).collect();
    expected.assert_eq(&lines.concat());
}

#[test]
fn flags_win_over_variables_over_the_file_over_defaults() {
    let file = "flight = '127.0.0.1:1'\nhttp = '127.0.0.1:1'\ndialect = 'mysql'\n[limits]\nmax_sessions = 1\nmax_endpoints = 1\n";
    let environment = [
        ("BOWSHOT_FLIGHT", "127.0.0.1:2"),
        ("BOWSHOT_HTTP", "127.0.0.1:2"),
        ("BOWSHOT_LIMITS_MAX_SESSIONS", "2"),
    ];
    let (_folder, loaded) = load(file, &environment, &[("flight", "127.0.0.1:3")]);
    let config = loaded.expect("good");
    assert_eq!(config.flight.to_string(), "127.0.0.1:3");
    assert_eq!(config.http.to_string(), "127.0.0.1:2");
    assert_eq!(config.dialect, DialectName::MySql);
    assert_eq!((config.limits.max_sessions, config.limits.max_endpoints), (2, 1));
    assert_eq!(config.limits.max_running_queries, Limits::default().max_running_queries);
}

#[test]
fn every_setting_takes_what_it_shows() {
    let mut config = Config::default();
    for setting in SETTINGS {
        let shown = setting.show(&mut config);
        if shown.is_empty() {
            continue;
        }
        setting.set(&mut config, &Raw::One(shown.clone()), None).expect(setting.name);
        assert_eq!(setting.show(&mut config), shown, "{}", setting.name);
    }
}

#[test]
fn names_of_settings_and_variables_are_unique() {
    let mut variables: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), SETTINGS.len());
}

#[test]
fn every_limit_has_a_key() {
    let fields = format!("{:?}", Limits::default());
    for field in fields.trim_start_matches("Limits { ").trim_end_matches(" }").split(", ") {
        let (name, _) = field.split_once(": ").expect("a field");
        assert!(find(&format!("limits.{name}")).is_some(), "`limits.{name}` is missing");
    }
}

#[test]
fn paths_of_the_file_start_at_its_folder() {
    let file = "paths = ['a.parquet', 'b=c/d.csv', '/abs.csv']\nports_file = 'ports.json'\ndata = 'store'\n";
    let (folder, loaded) = load(file, &[], &[]);
    let config = loaded.expect("good");
    let at = |name: &str| folder.path().join(name);
    let paths: Vec<_> = config.sources.iter().map(|source| source.path.clone()).collect();
    assert_eq!(paths, [at("a.parquet"), at("c/d.csv"), PathBuf::from("/abs.csv")]);
    assert_eq!(
        config.sources.iter().map(|source| source.name.as_deref()).collect::<Vec<_>>(),
        [None, Some("b"), None]
    );
    assert_eq!(config.ports_file, Some(at("ports.json")));
    assert_eq!(config.data, Some(DataFolder::At(at("store"))));
}

#[test]
fn paths_of_the_command_line_and_of_variables_start_at_the_working_folder() {
    let (_folder, loaded) =
        load("paths = ['a.csv']", &[("BOWSHOT_PATHS", "b.csv:c=d.csv")], &[("ports_file", "p.json")]);
    let config = loaded.expect("good");
    let paths: Vec<_> = config.sources.iter().map(|source| source.path.clone()).collect();
    assert_eq!(paths, [PathBuf::from("b.csv"), PathBuf::from("d.csv")]);
    assert_eq!(config.ports_file, Some(PathBuf::from("p.json")));
}

#[test]
fn mistakes_in_the_shape_of_the_file_are_named() {
    check_files(
        &[
            "[limits]\nmax_sesions = 1",
            "[limts]\nmax_sessions = 1",
            "colour = 'red'",
            "limits = 3",
            "[flight]\nport = 1",
            "[limits]\nmax_sessions = 1.5",
            "[limits]\nmax_sessions = [1]",
            "paths = [3]",
            "not toml",
            "flight = '127.0.0.1:1'\nflight = '127.0.0.1:2'",
            "[[access.users]]\nname = 'ada'\npassword = 'lovelace'",
            "[[access.user]]\nname = 'ada'",
            "[access]\nusers = 3",
        ],
        expect![[r#"
            unknown key `limits.max_sesions` in `FOLDER/bowshot.toml`
                did you mean `limits.max_sessions`?
            unknown key `limts.max_sessions` in `FOLDER/bowshot.toml`
                did you mean `limits.max_sessions`?
            unknown key `colour` in `FOLDER/bowshot.toml`
                `bowshot docs settings` lists all settings
            unknown key `limits` in `FOLDER/bowshot.toml`
                `bowshot docs settings` lists all settings
            unknown key `flight.port` in `FOLDER/bowshot.toml`
                `bowshot docs settings` lists all settings
            the configuration file `FOLDER/bowshot.toml` is not valid: `limits.max_sessions` is float, which no setting takes
            the configuration file `FOLDER/bowshot.toml` is not valid: `limits.max_sessions` is not a list of strings
            the configuration file `FOLDER/bowshot.toml` is not valid: `paths` is not a list of strings
            the configuration file `FOLDER/bowshot.toml` is not valid: line 1: key with no value, expected `=`
            the configuration file `FOLDER/bowshot.toml` is not valid: line 2: duplicate key
            the configuration file `FOLDER/bowshot.toml` is not valid: in `access`: unknown field `password`, expected one of `name`, `password_hash`, `roles`, `admin`, `attributes`
            the configuration file `FOLDER/bowshot.toml` is not valid: `access.user` is not a list of strings
            the configuration file `FOLDER/bowshot.toml` is not valid: in `access`: invalid type: integer `3`, expected a sequence
        "#]],
    );
}

#[test]
fn values_of_the_wrong_form_are_named() {
    check_files(
        &[
            "[limits]\nmax_sessions = 0",
            "[limits]\nmax_sessions = -1",
            "[limits]\nstatement_timeout = 30",
            "[limits]\nquery_memory_bytes = '8G'",
            "[limits]\nmessage_bytes = 1",
            "paths = 'a.csv'",
            "flight = 50051",
            "insecure = 'yes'",
            "dialect = 'oracle'",
            "pg = '5432'",
            "mysql = '3306'",
            "flight = 'off'\nhttp = 'off'",
            "[tls]\nkey = 'key.pem'",
            "[tls]\ncertificate = ''\nkey = 'key.pem'",
            "http_origins = 'https://good.example, https://*.example'",
            "http_mcp = 'yes'",
            "[access]\nusers_file = 'missing.toml'",
        ],
        expect![[r#"
            `limits.max_sessions` in `FOLDER/bowshot.toml` cannot be used: expected a whole number from 1 up, not `0`
                `bowshot docs settings` lists all settings with their types and defaults
            `limits.max_sessions` in `FOLDER/bowshot.toml` cannot be used: expected a whole number from 1 up, not `-1`
                `bowshot docs settings` lists all settings with their types and defaults
            `limits.statement_timeout` in `FOLDER/bowshot.toml` cannot be used: expected a length of time such as `30s`, `5m` or `1h30m`, not `30`
                `bowshot docs settings` lists all settings with their types and defaults
            `limits.query_memory_bytes` in `FOLDER/bowshot.toml` cannot be used: expected a size such as `16MiB`, `2GiB` or a number of bytes, not `8G`
                `bowshot docs settings` lists all settings with their types and defaults
            `limits.message_bytes` must lie between 16KiB and 1GiB
            `paths` in `FOLDER/bowshot.toml` cannot be used: expected a list of paths
                `bowshot docs settings` lists all settings with their types and defaults
            `flight` in `FOLDER/bowshot.toml` cannot be used: expected `HOST:PORT` such as `127.0.0.1:50051` or `[::1]:0`, or `off`, not `50051`
                `bowshot docs settings` lists all settings with their types and defaults
            `insecure` in `FOLDER/bowshot.toml` cannot be used: expected `true` or `false`, not `yes`
                `bowshot docs settings` lists all settings with their types and defaults
            `dialect` in `FOLDER/bowshot.toml` cannot be used: expected `ansi`, `postgres` or `mysql`, not `oracle`
                `bowshot docs settings` lists all settings with their types and defaults
            `pg` in `FOLDER/bowshot.toml` cannot be used: expected `HOST:PORT` such as `127.0.0.1:50051` or `[::1]:0`, or `off`, not `5432`
                `bowshot docs settings` lists all settings with their types and defaults
            `mysql` in `FOLDER/bowshot.toml` cannot be used: expected `HOST:PORT` such as `127.0.0.1:50051` or `[::1]:0`, or `off`, not `3306`
                `bowshot docs settings` lists all settings with their types and defaults
            nothing to serve: every front end is off
                enable at least one of `--flight`, `--http`, `--pg` and `--mysql`
            a certificate and its private key must be set together
                set both `tls.certificate` and `tls.key`, or neither
            `tls.certificate` in `FOLDER/bowshot.toml` cannot be used: expected a path
                `bowshot docs settings` lists all settings with their types and defaults
            invalid origin `https://*.example` in `http_origins`
                write scheme and host as browsers do: `https://example.org`, with commas between
            `http_mcp` cannot be `yes`
                it is `auto`, `on` or `off`
            cannot read the users file `FOLDER/missing.toml`: No such file or directory (os error 2)
                check that the file exists and that the server may read it
        "#]],
    );
}

#[test]
fn mistakes_in_variables_and_flags_are_named() {
    let lines = [
        refused("", &[("BOWSHOT_LIMITS_MAX_SESIONS", "1")], &[]),
        refused("", &[("BOWSHOT_LIMITS_COLOUR", "red")], &[]),
        refused("", &[("BOWSHOT_FLIGTH", "127.0.0.1:1")], &[]),
        refused("", &[("BOWSHOT_FLIGHT", "nowhere")], &[]),
        refused("", &[], &[("flight", "nowhere")]),
        refused("", &[], &[("limits.max_sesions", "1")]),
        refused("", &[], &[("limits.max_sessions", "")]),
        refused("", &[], &[("paths", "a.csv")]),
    ];
    expect![[r#"
        unknown environment variable `BOWSHOT_LIMITS_MAX_SESIONS`
            did you mean `BOWSHOT_LIMITS_MAX_SESSIONS`?
        unknown environment variable `BOWSHOT_LIMITS_COLOUR`
            `bowshot docs settings` lists all settings with their variables
        unknown environment variable `BOWSHOT_FLIGTH`
            did you mean `BOWSHOT_FLIGHT`?
        the environment variable `BOWSHOT_FLIGHT` cannot be used: expected `HOST:PORT` such as `127.0.0.1:50051` or `[::1]:0`, or `off`, not `nowhere`
            `bowshot docs settings` lists all settings with their types and defaults
        `--flight` cannot be used: expected `HOST:PORT` such as `127.0.0.1:50051` or `[::1]:0`, or `off`, not `nowhere`
            `bowshot docs settings` lists all settings with their types and defaults
        unknown key `limits.max_sesions`
            did you mean `limits.max_sessions`?
        `limits.max_sessions` cannot be used: expected a whole number from 1 up, not ``
            `bowshot docs settings` lists all settings with their types and defaults
        `paths` cannot be used: expected a list of paths
            `bowshot docs settings` lists all settings with their types and defaults
    "#]].assert_eq(&lines.concat());
}

#[test]
fn variables_of_others_are_let_pass() {
    let environment = [
        ("BOWSHOT_SERVICE_HOST", "10.0.0.1"),
        ("BOWSHOT_PORT_50051_TCP_ADDR", "10.0.0.1"),
        ("BOWSHOT_PORT", "tcp://10.0.0.1:50051"),
        ("BOWSHOT_URI", "grpc://127.0.0.1:1"),
        ("BOWSHOT_CACHE", "/tmp"),
        ("BOWSHOT_BIN", "/usr/bin/bowshot"),
        ("BOWSHOT_DATA", ""),
        ("PATH", "/usr/bin"),
    ];
    let (_folder, loaded) = load("", &environment, &[]);
    assert_eq!(loaded.expect("good").data, None);
}

#[test]
fn users_come_from_the_file_and_from_a_file_of_their_own() {
    let folder = tempfile::tempdir().expect("folder");
    let users = folder.path().join("users.toml");
    std::fs::write(&users, "[[tokens]]\nuser = 'robot'\nsha256 = '00'\n").expect("write");
    let file = "[access]\ntoken_timeout = '1h'\n[[access.users]]\nname = 'ada'\npassword_hash = 'h'\n";
    let (_folder, loaded) = load(file, &[], &[("access.users_file", users.to_str().expect("text"))]);
    let config = loaded.expect("good");
    assert_eq!((config.access.users.len(), config.access.tokens.len()), (1, 1));
    assert_eq!(config.access_options.token_timeout.as_secs(), 3600);
}

#[test]
fn a_cluster_has_one_proof_and_a_port() {
    check_files(
        &[
            "[cluster]\nlisten = '127.0.0.1:0'",
            "[cluster]\njoin = '127.0.0.1:1'",
            "[cluster]\nlisten = '127.0.0.1:0'\nsecret = 'x'\n[cluster.tls]\nkey = 'k'",
            "[cluster]\nlisten = '127.0.0.1:0'\n[cluster.tls]\nkey = 'k'",
            "[cluster.tls]\nkeys = 'k'",
            "[cluster.other]\nkey = 'k'",
        ],
        expect![[r#"
            the cluster has neither certificates nor a shared secret
                make certificates with `bowshot cluster init` and name them in `[cluster.tls]`, or, on one machine, set `BOWSHOT_CLUSTER_SECRET`
            the configuration has cluster settings, but no cluster port
                set the address for other nodes with `--cluster HOST:PORT`
            a cluster has certificates or a shared secret, not both
                remove `cluster.secret`: certificates are stronger
            a node needs its certificate, its key and the authority of its cluster
                set `authority`, `certificate` and `key` of `[cluster.tls]`
            unknown key `cluster.tls.keys` in `FOLDER/bowshot.toml`
                did you mean `cluster.tls.key`?
            the configuration file `FOLDER/bowshot.toml` is not valid: `cluster.other` is table, which no setting takes
        "#]],
    );
    let file = "[cluster]\nlisten = '127.0.0.1:0'\njoin = 'a:1, b:2'\nheartbeat = '2s'\n[cluster.tls]\nauthority = 'a'\ncertificate = 'c'\nkey = 'k'";
    let (folder, loaded) = load(file, &[], &[]);
    let config = loaded.expect("good");
    assert_eq!(config.cluster.join(), ["a:1", "b:2"]);
    assert_eq!(config.cluster.key, Some(folder.path().join("k")));
}

#[test]
fn a_secret_is_not_on_the_command_line() {
    let said = refused("", &[("BOWSHOT_CLUSTER_LISTEN", "127.0.0.1:0")], &[("cluster.secret", "top secret")]);
    assert!(said.contains("every user of this machine") && !said.contains("top secret"), "{said}");
    let environment = [("BOWSHOT_CLUSTER_LISTEN", "127.0.0.1:0"), ("BOWSHOT_CLUSTER_SECRET", "top secret")];
    let (_folder, loaded) = load("", &environment, &[]);
    let mut config = loaded.expect("good");
    assert_eq!(config.cluster.secret.as_ref().map(Secret::expose), Some("top secret"));
    assert!(SETTINGS.iter().all(|setting| !setting.show(&mut config).contains("top secret")));
}
