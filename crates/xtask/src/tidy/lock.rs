//! One version each of crates whose types cross our borders, and only crates of crates.io.

use super::Tree;
use anyhow::{Context, Result};
use toml::Table;

const SINGLE: &[&str] = &["arrow", "arrow-array", "datafusion", "object_store", "prost", "tonic", "rustls"];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn complaints(tree: &Tree) -> Result<Vec<String>> {
    let lock: Table = tree.read("Cargo.lock")?.parse().context("`Cargo.lock` is not TOML")?;
    Ok(in_lock(&lock))
}

fn in_lock(lock: &Table) -> Vec<String> {
    let packages = lock.get("package").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text =
        |package: &toml::Value, key: &str| package.get(key).and_then(|v| v.as_str()).map(str::to_owned);
    let mut found = Vec::new();
    for package in packages {
        if let Some(source) = text(package, "source").filter(|source| source != CRATES_IO) {
            let name = text(package, "name").unwrap_or_default();
            found.push(format!("Cargo.lock: `{name}` comes from {source}, not from crates.io"));
        }
    }
    for name in SINGLE {
        let versions: Vec<String> = packages
            .iter()
            .filter(|package| text(package, "name").as_deref() == Some(*name))
            .filter_map(|package| text(package, "version"))
            .collect();
        if versions.len() > 1 {
            found.push(format!(
                "Cargo.lock: {} versions of `{name}`: {}",
                versions.len(),
                versions.join(", ")
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_version_is_found() {
        let one = "[[package]]\nname = \"tonic\"\nversion = \"1.0.0\"\n";
        assert!(in_lock(&one.parse().unwrap()).is_empty());
        let two = format!("{one}{}", one.replace("1.0.0", "2.0.0"));
        assert_eq!(in_lock(&two.parse().unwrap()).len(), 1);
        let elsewhere = format!("{one}source = \"git+https://example.org/tonic\"\n");
        assert_eq!(in_lock(&elsewhere.parse().unwrap()).len(), 1);
    }
}
