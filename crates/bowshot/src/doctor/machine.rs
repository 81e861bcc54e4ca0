//! Checks of the limits and the clock of the machine.

use super::Line;
use super::folders::size;
use crate::config::{Config, DataFolder};
use crate::serve::available_memory;
use nix::sys::resource::{Resource, getrlimit};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Open files of a server without tables and connections.
const OTHER_FILES: u64 = 200;
/// 2026-01-01: a correct clock is later.
const RELEASED: Duration = Duration::from_secs(1_767_225_600);
/// Allowed clock difference of files.
const LEEWAY: Duration = Duration::from_secs(300);

/// Open files, memory, processors.
pub(super) fn limits(config: &Config) -> Vec<Line> {
    let mut lines = Vec::new();
    let wanted = config.storage.max_open_files as u64 + config.limits.max_connections as u64 + OTHER_FILES;
    lines.push(match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard < wanted => Line::doubtful(
            "open-files",
            format!("the process may open {hard} files and sockets, and its settings add up to {wanted}"),
            "raise the limit (`LimitNOFILE=` of systemd, `ulimit -Hn`), or lower `limits.max_connections` and \
             `storage.max_open_files`",
        ),
        Ok((_, hard)) => Line::good("open-files", format!("the limit is {hard}, and the settings need {wanted}")),
        Err(error) => Line::doubtful("open-files", error.to_string(), "check `ulimit -Hn`"),
    });
    lines.push(memory(config));
    if let (Some(threads), Ok(cores)) = (config.threads, std::thread::available_parallelism())
        && threads > 4 * cores.get()
    {
        let finding = format!("`engine.threads` is {threads}, and there are {cores} processors");
        lines.push(Line::doubtful("processors", finding, "leave it at `auto`"));
    }
    lines
}

fn memory(config: &Config) -> Line {
    const CHECK: &str = "memory";
    let Some(available) = available_memory() else {
        return Line::good(CHECK, "cannot determine the memory of the machine");
    };
    let (process, queries) = (config.limits.memory_bytes, config.limits.query_memory_bytes as u64);
    let budget = if process == 0 { available / 8 * 7 } else { process };
    if process > available {
        let finding =
            format!("`limits.memory_bytes` is {}, and there are {}", size(process), size(available));
        return Line::bad(
            CHECK,
            finding,
            "lower it, or set it to 0: otherwise the system may kill the process",
        );
    }
    // Caches can release memory; tables and running queries cannot.
    if queries.saturating_add(config.table_bytes) > budget {
        let finding = format!(
            "queries ({}) and tables in memory ({}) may take more than the process has ({})",
            size(queries),
            size(config.table_bytes),
            size(budget)
        );
        let remedy = "lower `limits.query_memory_bytes` or `storage.memory_bytes`: statements end before their own limits do";
        return Line::doubtful(CHECK, finding, remedy);
    }
    Line::good(CHECK, format!("{} of {} for the process", size(budget), size(available)))
}

pub(super) fn clock(config: &Config) -> Vec<Line> {
    const CHECK: &str = "clock";
    let now = SystemTime::now();
    if now < UNIX_EPOCH + RELEASED {
        let remedy = "set it (`timedatectl`): certificates, tokens and versions by time depend on it";
        return vec![Line::bad(CHECK, "the clock is earlier than the build of this program", remedy)];
    }
    if let Some(DataFolder::At(path)) = &config.data
        && let Ok(written) = std::fs::metadata(path.join("catalog.sqlite")).and_then(|about| about.modified())
        && written > now + LEEWAY
    {
        let remedy = "set it (`timedatectl`): `FOR TIMESTAMP AS OF` and VACUUM go by the time of commits";
        return vec![Line::bad(CHECK, "the last commit is in the future", remedy)];
    }
    let service = Path::new("/run/systemd/timesync");
    if service.is_dir() && !service.join("synchronized").exists() {
        let remedy = "check `timedatectl timesync-status`";
        return vec![Line::doubtful(
            CHECK,
            "the clock has not been synchronized since the machine started",
            remedy,
        )];
    }
    vec![Line::good(CHECK, "plausible")]
}
