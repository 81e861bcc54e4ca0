//! `cargo xtask docs`: writes the reference pages that are generated, or with `--check` tells which of them are old.

use crate::machine;
use crate::suite::conformance;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

pub(crate) fn run(check: bool) -> Result<bool> {
    let root = machine::root();
    let mut good = true;
    for (path, text) in [("docs/reference/conformance.md", conformance::page(&root)?)] {
        let file = root.join(path);
        let current = fs::read_to_string(&file).unwrap_or_default();
        if current == text {
            continue;
        }
        if check {
            machine::say(&format!("{path}: out of date, run `cargo xtask docs`"));
            good = false;
        } else {
            write(&file, &text)?;
            machine::say(&format!("wrote {path}"));
        }
    }
    Ok(good)
}

/// Writes a file and the folders above it.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    }
    fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
}
