//! `cargo xtask tidy`: rules that no compiler checks. Each rule is a function from the repository to a list of complaints.

mod build_budget;
mod features;
mod import_cycles;
mod links;
mod lock;
mod manifests;
mod new_names;
mod source;

use crate::machine;
use crate::suite::seconds;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Files of the repository as the rules see them: tracked or new, never ignored.
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<String>,
}

impl Tree {
    fn open(root: PathBuf) -> Result<Self> {
        let listed = machine::read("git", &["ls-files", "--cached", "--others", "--exclude-standard"])
            .context("tidy asks git which files belong to the repository")?;
        let files = listed.lines().filter(|path| root.join(path).is_file()).map(str::to_owned).collect();
        Ok(Self { root, files })
    }

    fn with_extension<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.iter().map(String::as_str).filter(move |path| {
            Path::new(path).extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
        })
    }

    fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read `{path}`"))
    }

    /// A file that may be no text.
    fn read_lossy(&self, path: &str) -> Result<String> {
        let content = fs::read(self.root.join(path)).with_context(|| format!("cannot read `{path}`"))?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    fn size(&self, path: &str) -> u64 {
        fs::metadata(self.root.join(path)).map_or(0, |metadata| metadata.len())
    }
}

pub(crate) fn run() -> Result<bool> {
    let tree = Tree::open(machine::root())?;
    let mut complaints = Vec::new();
    complaints.extend(manifests::complaints(&tree)?);
    complaints.extend(lock::complaints(&tree)?);
    complaints.extend(import_cycles::complaints(&tree)?);
    complaints.extend(source::complaints(&tree)?);
    complaints.extend(links::complaints(&tree)?);
    complaints.extend(features::complaints()?);
    complaints.extend(seconds::complaints(&tree.root)?);
    complaints.extend(build_budget::complaints(&tree.root)?);
    complaints.extend(new_names::complaints(&tree)?);
    for complaint in &complaints {
        machine::say(complaint);
    }
    machine::say(&format!("tidy: {} files, {} complaints", tree.files.len(), complaints.len()));
    Ok(complaints.is_empty())
}
