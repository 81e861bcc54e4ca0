//! The memory of the machine, or of this process's control group.

use bowshot_ipc::os::proc_bytes;
use std::fs;
use std::path::Path;

/// Most memory of an optional part.
const SHARE: u64 = 4;

/// The bytes of the setting `name`, or a quarter of the memory of the machine or of the process's `budget` if that is less.
pub(super) fn share(name: &'static str, bytes: u64, budget: u64) -> u64 {
    let budget = Some(budget).filter(|budget| *budget > 0);
    let Some(available) = available().into_iter().chain(budget).min() else { return bytes };
    let share = available / SHARE;
    if bytes > share {
        tracing::info!(
            setting = name,
            configured = bytes,
            used = share,
            "a setting is limited by the machine's memory"
        );
    }
    bytes.min(share)
}

/// The limit of the whole process; by default what leaves the system enough. None on a
/// system that does not say what it has.
pub(super) fn budget(bytes: u64) -> u64 {
    match bytes {
        0 => available().map_or(0, |available| available / 8 * 7),
        named => named,
    }
}

/// Bytes of memory for this process; `None` if unknown.
pub(crate) fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| proc_bytes(&text, "MemTotal:"));
    let own = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|text| limit(&text, Path::new("/sys/fs/cgroup")));
    machine.into_iter().chain(own).min()
}

/// The least limit of the control group (version 2) of this process and of those around it.
fn limit(membership: &str, root: &Path) -> Option<u64> {
    let own = membership.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = root.join(own);
    let around = folder.ancestors().take_while(|folder| folder.starts_with(root));
    around.filter_map(|folder| fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_nested_groups_counts() {
        let root = tempfile::tempdir().expect("folder");
        let inner = root.path().join("a/b/c");
        fs::create_dir_all(&inner).expect("folders");
        fs::write(inner.join("memory.max"), "max\n").expect("write");
        fs::write(root.path().join("a/b/memory.max"), "4096\n").expect("write");
        fs::write(root.path().join("a/memory.max"), "8192\n").expect("write");
        assert_eq!(limit("0::/a/b/c\n", root.path()), Some(4096));
        assert_eq!(limit("0::/a\n", root.path()), Some(8192));
        assert_eq!(limit("1:cpu:/a\n", root.path()), None);
    }
}
