//! `cargo xtask release`: builds the program and runs `packaging/release.py`.

use crate::machine;
use anyhow::{Context, Result};

pub(crate) fn run(args: &[String]) -> Result<bool> {
    if !machine::show("cargo", &["build", "--release", "-p", "bowshot"])? {
        return Ok(false);
    }
    let release = machine::target_dir().join("release");
    let status = machine::command(machine::python()?)
        .arg(machine::root().join("packaging/release.py"))
        .arg("--program")
        .arg(release.join("bowshot"))
        .arg("--out")
        .arg(machine::target_dir().join("packages"))
        .args(args)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .context("packaging/release.py could not be started")?;
    Ok(status.success())
}
