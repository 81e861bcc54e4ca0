//! Where queries spill, and which folders must not contain one another.

use crate::config::{Config, DataFolder};
use crate::usage::Usage;
use anyhow::{Context, Result};
use bowshot_object_store::scratch::{Scratch, is_in_memory};
use std::path::{Path, PathBuf};

/// A folder that survives reboots and is on disk on most systems.
const ON_DISK: &str = "/var/tmp";

/// Creates the folder for spilled data; it is removed with the returned value.
pub(crate) fn take_spill(config: &Config) -> Result<Scratch> {
    let mut base = spill_base(config);
    let mut taken = Scratch::take(&base);
    if taken.is_err() && base == Path::new(ON_DISK) {
        base = std::env::temp_dir();
        taken = Scratch::take(&base);
    }
    let scratch =
        taken.with_context(|| format!("cannot make a folder for spilled data in `{}`", base.display()))?;
    if is_in_memory(scratch.path()) {
        tracing::warn!(
            folder = %base.display(),
            "the spill folder is in memory: name a folder on disk with `engine.spill_folder`"
        );
    }
    Ok(scratch)
}

/// Beside the tables, if these have a folder: the operator has made room there.
pub(crate) fn spill_base(config: &Config) -> PathBuf {
    match (&config.spill_folder, &config.data) {
        (Some(folder), _) => folder.clone(),
        (None, Some(DataFolder::At(data))) => data.join("spill"),
        (None, _) if is_on_disk(Path::new(ON_DISK)) => PathBuf::from(ON_DISK),
        (None, _) => std::env::temp_dir(),
    }
}

fn is_on_disk(folder: &Path) -> bool {
    folder.is_dir() && !is_in_memory(folder)
}

/// Refuses an exchange folder through which clients could reach what the server keeps for itself.
///
/// # Errors
/// [`Usage`] when it is, contains or lies in the folder of tables, of spilled data or of cached joins.
pub(crate) fn check_apart(config: &Config, spill: Option<&Path>) -> Result<(), Usage> {
    let Some(exchange) = &config.exchange_folder else { return Ok(()) };
    let data = match &config.data {
        Some(DataFolder::At(path)) => Some(path.as_path()),
        Some(DataFolder::Memory) | None => None,
    };
    let own = [
        ("the data folder", data),
        ("the folder of spilled data", config.spill_folder.as_deref()),
        ("the folder of spilled data", spill),
        ("the cache of object stores", config.remote.cache_folder.as_deref()),
        ("the folder of cached joins", config.reuse.joins.folder.as_deref()),
    ];
    let wanted = resolved(exchange);
    for (what, folder) in own.into_iter().filter_map(|(what, folder)| Some((what, resolved(folder?)))) {
        let how = match (wanted.starts_with(&folder), folder.starts_with(&wanted)) {
            (true, true) => "is",
            (true, false) => "lies in",
            (false, true) => "contains",
            (false, false) => continue,
        };
        return Err(Usage::new(format!(
            "the exchange folder `{}` {how} {what} `{}`",
            exchange.display(),
            folder.display()
        ))
        .with_hint("name another folder with `storage.exchange_folder`: clients read and write its files"));
    }
    Ok(())
}

/// With links resolved, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for there in absolute.ancestors() {
        if let (Ok(found), Ok(rest)) = (there.canonicalize(), absolute.strip_prefix(there)) {
            return found.join(rest);
        }
    }
    absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_folder_lies_apart() {
        let root = tempfile::tempdir().expect("folder");
        let at = |name: &str| root.path().join(name);
        for name in ["data", "data/tables", "other", "spill"] {
            std::fs::create_dir_all(at(name)).expect("folder");
        }
        std::os::unix::fs::symlink(at("data"), at("link")).expect("link");
        let config = |exchange: &str| Config {
            data: Some(DataFolder::At(at("data"))),
            spill_folder: Some(at("spill")),
            exchange_folder: Some(at(exchange)),
            ..Config::default()
        };
        for (exchange, good) in [
            ("other", true),
            ("data-2", true),
            ("data", false),
            ("data/tables", false),
            ("data/new", false),
            ("link/tables", false),
            ("", false),
            ("spill", false),
            ("other/../data", false),
        ] {
            assert_eq!(check_apart(&config(exchange), None).is_ok(), good, "{exchange}");
        }
        let memory = Config { data: None, ..config("other") };
        assert!(check_apart(&memory, Some(&at("other/spill"))).is_err());
    }
}
