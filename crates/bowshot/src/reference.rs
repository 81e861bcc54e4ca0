//! Pages of the reference that are generated from the program.

use crate::cli::Page;
use crate::config::{Config, SETTINGS, Setting};
use anyhow::Result;
use bowshot_api::{COMPATIBILITY_PARAMETERS, SESSION_OPTIONS};

pub(crate) fn print(page: Page) -> Result<()> {
    let text = match page {
        Page::Settings => settings(),
        Page::SessionOptions => session_options(),
        Page::Sql => sql(),
    };
    crate::print(&text)
}

const SETTINGS_HEAD: &str = "\
# Settings of the server

<!-- made by `bowshot docs settings`; do not edit -->

Every setting can be given in three ways, the first of these wins: a flag of `bowshot serve` (those without a flag of
their own through `--set KEY=VALUE`), an environment variable, a key of the configuration file (`--config FILE` or
`BOWSHOT_CONFIG`). The variable of a key is `BOWSHOT_` and the key in capitals, with underscores for dots. An unknown key
is an error.

The file is TOML. `section.key` below is `key` in the table `[section]`; relative paths in the file start at its folder.

```toml
paths = [\"data/orders.parquet\", \"people=data/people.csv\"]
flight = \"127.0.0.1:50051\"

[limits]
max_running_queries = 32
statement_timeout = \"10m\"
query_memory_bytes = \"4GiB\"

[[access.users]]
name = \"ada\"
password_hash = \"$argon2id$v=19$… SCRAM-SHA-256$…\" # printed by `bowshot hash-password`

[[access.tokens]]
user = \"nightly-export\"
sha256 = \"…\" # printed by `printf %s TOKEN | sha256sum`

[[access.jwt]] # an identity provider; the guide to identity has all keys
issuer = \"https://id.example.org/realms/main\"
audiences = [\"bowshot\"]

[[access.ldap]] # a directory; the guide to identity has all keys
url = \"ldaps://ldap.example.org\"
user_dn = \"uid={user},ou=people,dc=example,dc=org\"

[[object_store.places]] # a bucket; the guide to object stores has all keys
url = \"s3://lake\"
endpoint = \"https://storage.example.org\"
secret_access_key = \"env:LAKE_SECRET\" # or file:PATH, never the secret itself
```

Times are written `500ms`, `30s`, `5m`, `1h30m`, `1d`; sizes `4096` (bytes), `64KiB`, `16MiB`, `2GiB`, `1GB`. A list in an
environment variable has `:` between its entries.
";

fn settings() -> String {
    let mut config = Config::default();
    let mut page = SETTINGS_HEAD.to_owned();
    let mut section = None;
    for setting in SETTINGS {
        let own = setting.name.split_once('.').map_or("", |(section, _)| section);
        if section != Some(own) {
            let title = if own.is_empty() { "The server".to_owned() } else { format!("`[{own}]`") };
            page.push_str(&format!(
                "\n## {title}\n\n| key | flag | variable | type | default | what it does |\n|---|---|---|---|---|---|\n"
            ));
            section = Some(own);
        }
        page.push_str(&row(setting, &mut config));
    }
    page
}

fn row(setting: &Setting, config: &mut Config) -> String {
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let default = setting.show(config);
    format!(
        "| {} | {} | {} | {} | {} | {} |\n",
        code(setting.name),
        code(setting.flag.unwrap_or_default()),
        code(&setting.variable()),
        setting.kind(),
        code(&default),
        setting.text,
    )
}

/// The page of the options that clients set for their session.
fn session_options() -> String {
    let mut page = "\
# Options of a session

<!-- made by `bowshot docs session-options`; do not edit -->

A client sets them for its own session: through Flight's `SetSessionOptions`, or with `SET name = value` in SQL. A name
that is not here cannot be set by a client.

| option | type | default | what it does |
|---|---|---|---|
"
    .to_owned();
    for option in SESSION_OPTIONS {
        let default = if option.default.is_empty() { String::new() } else { format!("`{}`", option.default) };
        page.push_str(&format!("| `{}` | {} | {default} | {} |\n", option.name, option.kind, option.text));
    }
    page.push_str(PARAMETERS_HEAD);
    for known in COMPATIBILITY_PARAMETERS {
        let default = if known.default.is_empty() { String::new() } else { format!("`{}`", known.default) };
        page.push_str(&format!("| `{}` | {default} | {} | {} |\n", known.name, known.takes(), known.text));
    }
    page
}

const SQL_HEAD: &str = "\
# SQL

<!-- made by `bowshot docs sql`; do not edit -->

What a statement means, PostgreSQL decides; where it has no such form or function, DuckDB does. The session option
`dialect` chooses between `ansi`, `postgres` and `mysql`.

## Functions

Names are in lower case here and in any case in SQL. An argument that is null gives null where nothing else is said.
";

/// The page of SQL: its functions.
fn sql() -> String {
    SQL_HEAD.to_owned() + &bowshot_functions::page()
}
const PARAMETERS_HEAD: &str = "
In SQL, `SET search_path` is `schema`, `SET TIME ZONE` and `SET timezone` are `time_zone`, and `SET statement_timeout` is
`statement_timeout_ms` in PostgreSQL's units: milliseconds, or `5s`, `2min`. `SET LOCAL` holds until the transaction ends,
`RESET name` and `RESET ALL` go back to the defaults. ROLLBACK undoes what was set in a transaction that `BEGIN` has begun, and
`ROLLBACK TO` what was set after the savepoint, as in PostgreSQL; in dialect `mysql` it stays. `SHOW name`, `SHOW ALL`, `SHOW VARIABLES` and `current_setting('name')`
tell what is in force.

To look for names without a schema in several schemas, as in PostgreSQL:

```sql
SET search_path = a, b;
SELECT * FROM t;            -- a.t if there is one, else b.t
CREATE TABLE u (x INT);     -- a.u
```

The session's temporary tables come first, then the schemas of the list in its order. What you may not see, and a schema that does not
exist, is passed over. New tables are made in the first schema that exists, which is then `schema`; setting `schema` or `USE` ends the
list. In dialect `postgres` none of the schemas needs to exist: only temporary tables and those of `pg_catalog` are found then,
`current_schema()` is null, and nothing can be made. A view goes on reading the tables that were found when it was made. `$user`
stands for no schema.

# Parameters that change nothing

Clients of PostgreSQL, MySQL and DuckDB set these. They are kept for the session and shown, and change nothing: one that would
have to change something takes only the value that Bowshot has anyway.

| parameter | default | takes | what it means here |
|---|---|---|---|
";
