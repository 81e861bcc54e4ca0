//! `cargo xtask docs`: writes the generated reference pages, or with `--check` lists outdated ones.

mod commands;

use crate::machine;
use crate::suite::conformance;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Pages that the program prints: the argument and the file.
const PRINTED: [(&str, &str); 3] = [
    ("settings", "docs/reference/settings.md"),
    ("session-options", "docs/reference/session-options.md"),
    ("sql", "docs/reference/sql.md"),
];

pub(crate) fn run(check: bool) -> Result<bool> {
    let program = machine::target_dir().join("release/bowshot");
    pages(check, Some(&program).filter(|program| program.exists()))
}

/// Checks the pages that need no program: before anything is built, one that lies about is of another state of the code.
pub(crate) fn check_made_here() -> Result<bool> {
    pages(true, None)
}

fn pages(check: bool, program: Option<&PathBuf>) -> Result<bool> {
    let root = machine::root();
    let mut pages = vec![("docs/reference/conformance.md", conformance::page(&root)?)];
    if let Some(program) = program {
        for (page, path) in PRINTED {
            pages.push((path, machine::read(&program.to_string_lossy(), &["docs", page])?));
        }
    } else {
        machine::say("docs: the pages that the program prints are left out");
    }
    let (mut good, mut old) = (0, 0_usize);
    for (path, text) in &pages {
        let file = root.join(path);
        if fs::read_to_string(&file).is_ok_and(|current| &current == text) {
            good += 1;
        } else if check {
            machine::say(&format!("{path}: out of date, run `cargo xtask docs`"));
            old += 1;
        } else {
            write(&file, text)?;
            machine::say(&format!("wrote {path}"));
            good += 1;
        }
    }
    let wrong = program.map_or(Ok(Vec::new()), |program| commands::complaints(&root, program))?;
    for complaint in &wrong {
        machine::say(complaint);
    }
    machine::say(&format!("docs: {good} passed, {} failed", old + wrong.len()));
    Ok(old == 0 && wrong.is_empty())
}

/// The Markdown files of the repository.
fn tree_of_documents() -> Result<Vec<String>> {
    let listed = machine::read("git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.md"])?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// Writes a file and the folders above it.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    }
    fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
}
