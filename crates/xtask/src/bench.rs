//! `cargo xtask bench`: runs `bench/run.py`.

use crate::machine;
use anyhow::{Context, Result};

pub(crate) fn run(args: &[String]) -> Result<bool> {
    let python = machine::python()?;
    let status = machine::command(python)
        .arg(machine::root().join("bench/run.py"))
        .args(args)
        .env("CARGO_TARGET_DIR", machine::target_dir())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .with_context(|| format!("`{python}` could not be started"))?;
    Ok(status.success())
}
