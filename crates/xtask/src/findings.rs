//! `cargo xtask findings [NAME]`: runs the scripts in `findings/`, which show faults of other software, and lists those that still do.

use crate::machine;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;

pub(crate) fn run(name: Option<&str>) -> Result<bool> {
    let scripts = scripts(name)?;
    let (mut passed, mut failed) = (0, 0);
    for (name, script) in scripts {
        let done = machine::command("sh").arg(&script).output().context("sh")?;
        if done.status.success() {
            passed += 1;
            machine::say(&format!("passed  {name}"));
            continue;
        }
        failed += 1;
        machine::say(&format!("failed  {name}"));
        for line in [done.stdout, done.stderr].concat().split(|byte| *byte == b'\n') {
            machine::say(&format!("    {}", String::from_utf8_lossy(line)));
        }
    }
    machine::say(&format!("{passed} passed, {failed} failed"));
    Ok(failed == 0)
}

/// Names and files in order: of one, or of all.
fn scripts(wanted: Option<&str>) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(machine::root().join("findings"))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|ending| ending == "sh") && wanted.is_none_or(|wanted| wanted == name)
        {
            found.push((name, path));
        }
    }
    if found.is_empty() {
        bail!("no such finding: `findings/README.md` lists them");
    }
    found.sort();
    Ok(found)
}
