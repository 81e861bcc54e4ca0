//! `cargo xtask dependencies`: licences of dependencies, crates in several versions, and newer versions in the registry.

use crate::machine;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Licences that ask for no more than to be named beside the program, or for changes of their own files alone (MPL).
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for crates of ours.
    source: Option<String>,
}

/// Reports; says whether all licences are known ones.
pub(crate) fn run() -> Result<bool> {
    let metadata = machine::read("cargo", &["metadata", "--format-version", "1", "--locked"])?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("`cargo metadata` gives no JSON")?;
    let foreign: Vec<&Package> =
        metadata.packages.iter().filter(|package| package.source.is_some()).collect();
    let refused: Vec<&&Package> = foreign
        .iter()
        .filter(|package| !is_allowed(package.license.as_deref().unwrap_or_default()))
        .collect();
    machine::say(&format!("{} crates, {} with a licence that is not known", foreign.len(), refused.len()));
    for package in &refused {
        let licence = package.license.as_deref().unwrap_or("none");
        machine::say(&format!("    {} {}: {licence}", package.name, package.version));
    }
    machine::say("in several versions:");
    for (name, versions) in in_several_versions(&foreign) {
        machine::say(&format!("    {name} {}", versions.join(", ")));
    }
    machine::say("newer in the registry:");
    machine::show("cargo", &["update", "--dry-run"])?;
    Ok(refused.is_empty())
}

fn in_several_versions<'a>(packages: &[&'a Package]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}

/// Whether one of the alternatives of an SPDX expression names known licences alone.
fn is_allowed(expression: &str) -> bool {
    let is_known = |alternative: &str| {
        let names = alternative.split([' ', '(', ')']).filter(|word| !matches!(*word, "" | "AND" | "WITH"));
        names.clone().count() > 0 && names.into_iter().all(|name| LICENCES.contains(&name))
    };
    expression.replace('/', " OR ").split(" OR ").any(is_known)
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn one_known_alternative_is_enough() {
        for known in
            ["MIT", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT OR LGPL-2.1-or-later"]
        {
            assert!(is_allowed(known), "{known}");
        }
        for refused in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0 WITH other"] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }
}
