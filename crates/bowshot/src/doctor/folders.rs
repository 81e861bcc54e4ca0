//! Files and folders: there, ours alone, writable, with room.

use super::Line;
use crate::config::{Config, DataFolder};
use crate::serve::{data_folder, folders};
use bowshot_object_store::is_remote;
use bowshot_object_store::scratch::{file_system, free_bytes, is_in_memory};
use bowshot_tables::durable::backup::tables_address;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Free space below which a folder of tables is nearly full.
const LITTLE_ROOM: u64 = 1 << 30;
/// Free space below which commits will soon fail.
const NO_ROOM: u64 = 64 << 20;
/// Network file systems, on which SQLite's write-ahead log does not work.
const OF_OTHERS: [&str; 8] =
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse"];

/// Whether other users can read the configuration file.
pub(super) fn configuration(file: Option<&Path>, config: &Config) -> Line {
    const CHECK: &str = "configuration";
    let Some(file) = file else { return Line::good(CHECK, "flags, variables and defaults; no file") };
    let has_secrets = !config.own_access.users.is_empty() || config.cluster.secret.is_some();
    if has_secrets && others_read(file) {
        let finding =
            format!("other users of this machine can read `{}`, which has hashes or secrets", file.display());
        return Line::doubtful(CHECK, finding, format!("chmod 640 {}", file.display()));
    }
    Line::good(CHECK, format!("`{}` is understood", file.display()))
}

/// Whether a server uses the data folder now.
pub(super) fn is_in_use(config: &Config) -> bool {
    let Some(DataFolder::At(path)) = &config.data else { return false };
    let lock = File::open(path.join("bowshot.lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The folder of durable tables, and its catalog.
pub(super) fn data(config: &Config, in_use: bool) -> Vec<Line> {
    const CHECK: &str = "data";
    let path = match &config.data {
        Some(DataFolder::At(path)) => path,
        Some(DataFolder::Memory) => {
            return vec![Line::good(CHECK, "tables are lost when the server stops: `memory`")];
        }
        None => {
            let remedy = "name a folder with `--data DIR`, or write `--data memory` if that is intended";
            return vec![Line::doubtful(
                CHECK,
                "tables are lost when the server stops: no data folder is set",
                remedy,
            )];
        }
    };
    if let Err(error) = data_folder::examine(config.data.as_ref()) {
        return vec![Line::error(CHECK, &error, "name a folder with `--data`")];
    }
    let shown = path.display();
    let mut lines = vec![if in_use {
        Line::good(CHECK, format!("a server is using `{shown}`"))
    } else {
        match writable(path) {
            Ok(()) if path.is_dir() => Line::good(CHECK, format!("`{shown}` can be written to")),
            Ok(()) => Line::good(CHECK, format!("`{shown}` will be created")),
            Err(error) => Line::bad(CHECK, format!("`{shown}` cannot be written to: {error}"), own(path)),
        }
    }];
    if path.is_dir() && others_read(path) {
        let finding = format!("other users of this machine can read `{shown}`");
        lines.push(Line::doubtful("data-rights", finding, format!("chmod 700 {shown}")));
    }
    if let Some(kind) = file_system(path) {
        if matches!(kind.as_str(), "tmpfs" | "ramfs") {
            let finding = format!(
                "`{shown}` is on a memory file system ({kind}) and is lost when the machine restarts"
            );
            lines.push(Line::bad("data-disk", finding, "name a folder on a disk with `--data`"));
        } else if OF_OTHERS.contains(&kind.as_str()) {
            let finding =
                format!("`{shown}` is on a network file system ({kind}), where commits may be lost or torn");
            lines.push(Line::bad(
                "data-disk",
                finding,
                "name a folder on a disk of this machine with `--data`",
            ));
        }
    }
    lines.push(room("data-room", path));
    lines.push(catalog(path));
    lines.extend(store(config, path));
    lines
}

/// The object store of tables, if any. It is not contacted.
fn store(config: &Config, path: &Path) -> Option<Line> {
    const CHECK: &str = "data-store";
    let set = config.tables.address.trim_end_matches('/');
    let there = tables_address(path).ok().flatten();
    Some(match there {
        None if set.is_empty() => return None,
        Some(there) if set.is_empty() => Line::bad(
            CHECK,
            format!("the tables of `{}` are in `{there}`, and `storage.tables` is not set", path.display()),
            format!("set `storage.tables` to `{there}`"),
        ),
        Some(there) if there != set => Line::doubtful(
            CHECK,
            format!("the tables of `{}` are in `{there}`, and `storage.tables` is `{set}`", path.display()),
            format!(
                "set `storage.tables` to `{there}`, unless all of it was moved, with `bowshot-owner.json`"
            ),
        ),
        _ => Line::good(CHECK, format!("files of tables are in `{set}`")),
    })
}

fn catalog(path: &Path) -> Line {
    const CHECK: &str = "catalog";
    if !path.join("catalog.sqlite").exists() {
        if path.join("tables").read_dir().is_ok_and(|mut tables| tables.next().is_some()) {
            let remedy = "restore the folder with `bowshot restore`";
            return Line::bad(CHECK, "the folder has tables, but no catalog", remedy);
        }
        return Line::good(CHECK, "none yet: the first start creates it");
    }
    match bowshot_tables::examine(path) {
        Ok(broken) if broken.is_empty() => {
            Line::good(CHECK, "readable; `bowshot verify` also checks the files")
        }
        Ok(broken) => {
            let (name, reason) = broken.first().cloned().unwrap_or_default();
            let finding = format!("{} entries cannot be read, the first is {name}: {reason}", broken.len());
            Line::bad(CHECK, finding, "`bowshot verify` says what to do about each")
        }
        Err(error) => {
            Line::error(CHECK, &bowshot_api::Error::from(error).into(), "`bowshot verify` says what to do")
        }
    }
}

/// Spilled data, exchange folder, audit trail, sources.
pub(super) fn others(config: &Config) -> Vec<Line> {
    let mut lines = Vec::new();
    let spill = folders::spill_base(config);
    lines.push(spilling(&spill, config.spill_bytes));
    if let Some(folder) = &config.exchange_folder {
        lines.push(exchange(config, folder));
    }
    if let Some(file) = &config.audit_file {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let shown = file.display();
        lines.push(match writable(folder) {
            Ok(()) => Line::good("audit", format!("`{shown}` can be written")),
            Err(error) => Line::bad("audit", format!("`{shown}` cannot be written: {error}"), own(folder)),
        });
    }
    let gone: Vec<&PathBuf> = config
        .sources
        .iter()
        .map(|source| &source.path)
        .filter(|path| {
            !is_remote(path) && !path.exists() && !path.to_string_lossy().contains(['*', '?', '['])
        })
        .collect();
    for path in gone {
        let finding = format!("`{}` does not exist", path.display());
        lines.push(Line::bad("sources", finding, "correct the path, or remove it from `paths`"));
    }
    lines
}

fn spilling(folder: &Path, wanted: u64) -> Line {
    const CHECK: &str = "spill";
    let shown = folder.display();
    if let Err(error) = writable(folder) {
        return Line::bad(CHECK, format!("`{shown}` cannot be written to: {error}"), own(folder));
    }
    if is_in_memory(nearest(folder)) {
        let finding = format!("`{shown}` is on a memory file system, so spilling saves no memory");
        return Line::doubtful(CHECK, finding, "name a folder on a disk with `engine.spill_folder`");
    }
    match free_bytes(folder) {
        Some(free) if free < wanted => Line::doubtful(
            CHECK,
            format!("`{shown}` has {} left, and queries may spill {}", size(free), size(wanted)),
            "lower `engine.spill_bytes`, or name a larger disk with `engine.spill_folder`",
        ),
        _ => Line::good(CHECK, format!("`{shown}` is on disk and has enough space for spilled data")),
    }
}

fn exchange(config: &Config, folder: &Path) -> Line {
    const CHECK: &str = "exchange";
    let shown = folder.display();
    if let Err(usage) = folders::check_apart(config, None) {
        return Line::error(CHECK, &usage.into(), "name another folder with `storage.exchange_folder`");
    }
    if !folder.is_dir() {
        let remedy = "create it for the user of the server, or remove `storage.exchange_folder`";
        return Line::bad(CHECK, format!("`{shown}` is not a folder: every COPY fails"), remedy);
    }
    match writable(folder) {
        Ok(()) => Line::good(CHECK, format!("`{shown}` can be written to, and every user may")),
        Err(error) => Line::doubtful(CHECK, format!("COPY can only read `{shown}`: {error}"), own(folder)),
    }
}

fn room(check: &'static str, path: &Path) -> Line {
    let shown = path.display();
    let remedy = "free space: see the runbook (`du`, VACUUM, spilled data)";
    match free_bytes(path) {
        None => {
            Line::doubtful(check, format!("cannot determine the free space of `{shown}`"), "look with `df`")
        }
        Some(free) if free < NO_ROOM => {
            Line::bad(check, format!("`{shown}` has {} left", size(free)), remedy)
        }
        Some(free) if free < LITTLE_ROOM => {
            Line::doubtful(check, format!("`{shown}` has only {} left", size(free)), remedy)
        }
        Some(free) => Line::good(check, format!("{} left", size(free))),
    }
}

/// Tries to create a file in a folder, or in its nearest existing parent.
fn writable(folder: &Path) -> std::io::Result<()> {
    tempfile::Builder::new().prefix(".bowshot-doctor-").tempfile_in(nearest(folder)).map(drop)
}

fn nearest(folder: &Path) -> &Path {
    let there = folder.ancestors().find(|folder| folder.exists());
    there.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn own(folder: &Path) -> String {
    let folder = nearest(folder).display();
    format!("give it to the user of the server: `chown USER {folder}`; or mount it writable")
}

/// Whether other users than owner and group can read it.
pub(super) fn others_read(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o007 != 0)
}

pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}
