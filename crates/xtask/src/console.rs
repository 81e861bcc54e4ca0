//! `cargo xtask console`: builds the console, whose files the program embeds, or tells whether those that are checked in are of
//! the source that is. The packages come from npm as the lock file pins them, into the cache and never into the repository, and
//! none of their scripts run.

use crate::machine;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// All that a browser has to load.
const MOST_BYTES: u64 = 500_000;

pub(crate) fn run(check: bool) -> Result<bool> {
    for program in ["node", "npm"] {
        if !machine::has(program) {
            bail!("`{program}` not found: install Node.js 20 or later (Debian: nodejs, npm)");
        }
    }
    let source = machine::root().join("clients/console");
    let work = machine::cache_dir()?.join("console");
    copy(&source, &work)?;
    let built = work.join("built");
    for args in [
        &["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"][..],
        &["run", "--silent", "check"],
        &["run", "--silent", "test"],
        &["run", "--silent", "build", "--", "built"],
    ] {
        machine::say(&format!("$ npm {}", args.join(" ")));
        let status = machine::command("npm").args(args).current_dir(&work).status().context("npm")?;
        if !status.success() {
            return Ok(false);
        }
    }
    let dist = source.join("dist");
    if !check {
        copy(&built, &dist)?;
    }
    compare(&built, &dist)
}

/// Tells what differs, and whether the whole is small enough.
fn compare(built: &Path, dist: &Path) -> Result<bool> {
    let mut good = true;
    let mut bytes = 0;
    for name in names(built)? {
        let ours = fs::read(built.join(&name)).with_context(|| name.clone())?;
        bytes += ours.len() as u64;
        if fs::read(dist.join(&name)).ok().as_ref() != Some(&ours) {
            machine::say(&format!(
                "clients/console/dist/{name} is not that of the source: cargo xtask console"
            ));
            good = false;
        }
    }
    let known = names(built)?;
    for name in names(dist)?.iter().filter(|name| !known.contains(name)) {
        machine::say(&format!("clients/console/dist/{name} is made by nobody: delete it"));
        good = false;
    }
    machine::say(&format!("console: {bytes} bytes of {MOST_BYTES}"));
    Ok(good && bytes <= MOST_BYTES)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Copies a folder, but for packages and what was built. What else is there from before is removed.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for name in ["src", "test", "built"] {
        let old: PathBuf = to.join(name);
        if old.is_dir() {
            fs::remove_dir_all(&old)?;
        }
    }
    for name in names(from)? {
        if ["node_modules", "dist", "built"].contains(&name.as_str()) {
            continue;
        }
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to).with_context(|| format!("{} cannot be copied", from.display()))?;
        }
    }
    Ok(())
}
