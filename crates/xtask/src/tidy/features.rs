//! `cargo run -p bowshot`, `cargo build --workspace` and `cargo test --workspace` must resolve the same features of shared dependencies, or
//! DataFusion is compiled once for each of them.

use crate::machine;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Package with version, and the feature sets it is compiled with: one for the product, perhaps one for build scripts.
type Resolved = BTreeMap<String, BTreeSet<String>>;

pub(super) fn complaints() -> Result<Vec<String>> {
    let product = resolve(&["--package", "bowshot", "--edges", "no-dev"])?;
    let mut found = Vec::new();
    for (selection, args) in
        [("the workspace", &["--workspace", "--edges", "no-dev"][..]), ("the tests", &["--workspace"][..])]
    {
        found.extend(differences(&product, &resolve(args)?, selection));
    }
    Ok(found)
}

fn resolve(selection: &[&str]) -> Result<Resolved> {
    let mut args = vec!["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"];
    // Named, so that a crate for build scripts and the same crate for the product are two nodes of the tree; else only
    // the first that is met shows what lies below it.
    args.extend(["--target", "host-tuple"]);
    args.extend(selection);
    Ok(parse(&machine::read("cargo", &args)?))
}

fn parse(tree: &str) -> Resolved {
    let mut resolved = Resolved::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('|')) {
        let features = features.trim_end_matches("(*)").trim().to_owned();
        resolved.entry(package.to_owned()).or_default().insert(features);
    }
    resolved
}

fn differences(product: &Resolved, other: &Resolved, selection: &str) -> Vec<String> {
    product
        .iter()
        .filter_map(|(package, features)| {
            let others = other.get(package)?;
            (features != others).then(|| {
                format!(
                    "Cargo.toml: `{package}` has features {features:?} in the product but {others:?} in {selection}; \
                     name it in the workspace manifest with the features of both"
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_packages_with_other_features_differ() {
        let product = parse("a v1|x,y\nb v1|\na v1|x,y (*)");
        assert!(differences(&product, &parse("a v1|x,y (*)\nb v1|\nc v1|z"), "s").is_empty());
        assert_eq!(differences(&product, &parse("a v1|x\nb v1|"), "s").len(), 1);
    }
}
