//! The dependency rule, read from the manifests: front ends see only the server API, few crates see the engine, and versions are chosen in
//! the workspace manifest alone.

use super::Tree;
use anyhow::{Context, Result};
use toml::Table;

/// What each crate may depend on among ours: a line for each. A crate that is not listed must be added here when it is born.
const OURS: &str = "\
bowshot-api:
bowshot-ipc: bowshot-api
bowshot-orc:
bowshot-kernels: bowshot-api
bowshot-models:
bowshot-access: bowshot-api
bowshot-object-store: bowshot-api
bowshot-formats: bowshot-api bowshot-ipc bowshot-kernels bowshot-object-store bowshot-orc
bowshot-lakehouse: bowshot-api bowshot-formats bowshot-kernels bowshot-object-store
bowshot-tables: bowshot-api bowshot-formats bowshot-object-store
bowshot-files: bowshot-api bowshot-formats bowshot-lakehouse bowshot-object-store
bowshot-sql: bowshot-api
bowshot-functions: bowshot-api bowshot-kernels
bowshot-query-task: bowshot-api bowshot-ipc
bowshot-types: bowshot-api bowshot-functions bowshot-sql bowshot-formats bowshot-tables
bowshot-policy: bowshot-api bowshot-kernels bowshot-sql bowshot-object-store bowshot-tables
bowshot-system-catalog: bowshot-api bowshot-policy bowshot-query-task bowshot-sql bowshot-files \
    bowshot-formats bowshot-object-store bowshot-tables bowshot-types
bowshot-optimizer: bowshot-api bowshot-functions bowshot-kernels bowshot-query-task bowshot-sql \
    bowshot-formats bowshot-tables bowshot-types
bowshot-engine: bowshot-api bowshot-sql bowshot-functions bowshot-kernels bowshot-ipc bowshot-models \
    bowshot-files bowshot-formats bowshot-lakehouse bowshot-object-store bowshot-optimizer bowshot-policy \
    bowshot-query-task bowshot-system-catalog bowshot-tables bowshot-types
bowshot-reuse: bowshot-api bowshot-engine bowshot-ipc bowshot-kernels bowshot-optimizer bowshot-query-task \
    bowshot-sql bowshot-files bowshot-formats bowshot-tables
bowshot-session: bowshot-api bowshot-engine bowshot-access bowshot-optimizer bowshot-policy \
    bowshot-query-task bowshot-system-catalog
bowshot-flight: bowshot-api bowshot-ipc
bowshot-http: bowshot-api bowshot-ipc
bowshot-rowwire: bowshot-api
bowshot-postgres: bowshot-api bowshot-rowwire bowshot-sql
bowshot-mysql: bowshot-api bowshot-rowwire bowshot-sql
bowshot-test-server: bowshot-api
bowshot-cluster: bowshot-api bowshot-engine bowshot-files bowshot-formats bowshot-query-task
bowshot-databases: bowshot-api bowshot-engine bowshot-kernels bowshot-files bowshot-formats \
    bowshot-lakehouse bowshot-object-store bowshot-tables
bowshot: bowshot-access bowshot-api bowshot-cluster bowshot-databases bowshot-engine bowshot-flight \
    bowshot-functions bowshot-http bowshot-ipc bowshot-mysql bowshot-policy bowshot-postgres bowshot-reuse \
    bowshot-rowwire bowshot-session bowshot-sql bowshot-files bowshot-formats bowshot-lakehouse \
    bowshot-object-store bowshot-system-catalog bowshot-tables
bowshot-testkit: bowshot-access bowshot-api bowshot-engine bowshot-flight bowshot-ipc bowshot-session \
    bowshot-tables
xtask:
";

/// Who may know a heavy dependency; the name stands for every crate that begins with it. The program itself knows tonic only
/// for the collector of traces.
const HEAVY: &str = "\
datafusion: bowshot-engine bowshot-functions bowshot-kernels bowshot-optimizer bowshot-policy \
    bowshot-query-task bowshot-reuse bowshot-files bowshot-formats bowshot-lakehouse bowshot-object-store \
    bowshot-system-catalog bowshot-tables bowshot-types bowshot-cluster bowshot-databases bowshot-testkit
deltalake: bowshot-lakehouse bowshot-tables
object_store: bowshot-files bowshot-formats bowshot-lakehouse bowshot-object-store bowshot-tables
rusqlite: bowshot-lakehouse bowshot-tables
arrow-flight: bowshot-flight bowshot-cluster bowshot-testkit
tonic: bowshot bowshot-flight bowshot-cluster bowshot-testkit
";

fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let rows = table.lines().filter_map(|line| line.split_once(':'));
    rows.map(|(name, others)| (name, others.split_whitespace().collect()))
}

pub(super) fn complaints(tree: &Tree) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in tree.with_extension("toml").filter(|path| is_crate_manifest(path)) {
        let manifest: Table = tree.read(path)?.parse().with_context(|| format!("`{path}` is not TOML"))?;
        found.extend(in_manifest(path, &manifest));
    }
    Ok(found)
}

fn is_crate_manifest(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with("/Cargo.toml")
}

fn in_manifest(path: &str, manifest: &Table) -> Vec<String> {
    let package = manifest.get("package").and_then(toml::Value::as_table);
    let name =
        package.and_then(|package| package.get("name")).and_then(toml::Value::as_str).unwrap_or_default();
    let mut found = Vec::new();
    let Some((_, ours)) = rows(OURS).find(|(listed, _)| *listed == name) else {
        return vec![format!(
            "{path}: `{name}` has no row in the dependency rule (xtask, tidy/manifests.rs)"
        )];
    };
    let inherits = |table: Option<&toml::Value>| table.and_then(|lints| lints.get("workspace")).is_some();
    if !inherits(manifest.get("lints")) {
        found.push(format!("{path}: add `[lints] workspace = true`"));
    }
    for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
        let Some(entries) = manifest.get(section).and_then(toml::Value::as_table) else { continue };
        for (dependency, value) in entries {
            if value.get("workspace").is_none() {
                found.push(format!(
                    "{path}: `{dependency}` must take its version from the workspace manifest"
                ));
            }
            if section != "dev-dependencies" {
                found.extend(forbidden(path, name, &ours, dependency));
            }
        }
    }
    found
}

fn forbidden(path: &str, name: &str, ours: &[&str], dependency: &str) -> Option<String> {
    if dependency.starts_with("bowshot") && !ours.contains(&dependency) {
        return Some(format!("{path}: `{name}` must not depend on `{dependency}` (tidy/manifests.rs)"));
    }
    let (heavy, allowed) = rows(HEAVY).find(|(heavy, _)| dependency.starts_with(*heavy))?;
    (!allowed.contains(&name)).then(|| format!("{path}: only {} may depend on `{heavy}`", allowed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        in_manifest("m", &text.parse().unwrap())
    }

    #[test]
    fn front_ends_see_only_the_door() {
        let head = "lints.workspace = true\npackage.name = \"bowshot-http\"\n";
        assert!(check(&format!("{head}dependencies.bowshot-api.workspace = true")).is_empty());
        assert_eq!(check(&format!("{head}dependencies.bowshot-engine.workspace = true")).len(), 1);
        assert_eq!(check(&format!("{head}dependencies.datafusion-common.workspace = true")).len(), 1);
        assert!(check(&format!("{head}dev-dependencies.bowshot-testkit.workspace = true")).is_empty());
        assert_eq!(check(&format!("{head}dependencies.serde = \"1\"")).len(), 1);
        assert_eq!(check("package.name = \"bowshot-http\"").len(), 1);
        assert_eq!(check("package.name = \"bowshot-new\"").len(), 1);
    }
}
