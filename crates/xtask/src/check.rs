//! `cargo xtask check`: formatting, lints, tidy and the tests of the light crates. All run even when one fails.

use crate::{docs, machine, tidy};
use anyhow::Result;

/// Crates that link the query engine: their tests run in `cargo xtask test`, on the release build.
const HEAVY: [&str; 19] = [
    "bowshot",
    "bowshot-cluster",
    "bowshot-databases",
    "bowshot-engine",
    "bowshot-files",
    "bowshot-formats",
    "bowshot-functions",
    "bowshot-kernels",
    "bowshot-lakehouse",
    "bowshot-object-store",
    "bowshot-optimizer",
    "bowshot-policy",
    "bowshot-query-task",
    "bowshot-reuse",
    "bowshot-session",
    "bowshot-system-catalog",
    "bowshot-tables",
    "bowshot-testkit",
    "bowshot-types",
];

pub(crate) fn run() -> Result<bool> {
    let formatted = machine::show("cargo", &["fmt", "--all", "--check"])?;
    let tidy = tidy::run()?;
    let documented = docs::check_made_here()?;
    let light = light_tests()?;
    let linted = lints()?;
    for (name, good) in [
        ("format", formatted),
        ("tidy", tidy),
        ("docs", documented),
        ("light tests", light),
        ("lints", linted),
    ] {
        machine::say(&format!("{} {name}", if good { "ok    " } else { "FAILED" }));
    }
    Ok(formatted && tidy && documented && light && linted)
}

/// Lints of all crates. From nothing those of the heavy ones read the query engine for a quarter of an hour that CI does not
/// have, so there they are left to whoever commits.
fn lints() -> Result<bool> {
    // The release profile shares its build scripts and procedural macros with the build that `cargo xtask test` needs.
    let mut args = vec!["clippy", "--release", "--workspace", "--all-targets"];
    if machine::is_ci() {
        machine::say(&format!("lints: without {}, which are linted before a commit", HEAVY.join(", ")));
        HEAVY.iter().for_each(|name| args.extend(["--exclude", *name]));
    }
    args.extend(["--", "-D", "warnings"]);
    machine::show("cargo", &args)
}

/// In CI the suite `rust` of `cargo xtask test` runs them with all others, so that nothing is compiled a third time.
fn light_tests() -> Result<bool> {
    if machine::is_ci() {
        machine::say("light tests: run by the suite `rust`");
        return Ok(true);
    }
    let mut args = vec!["test", "--workspace"];
    for name in HEAVY {
        args.extend(["--exclude", name]);
    }
    machine::show("cargo", &args)
}
