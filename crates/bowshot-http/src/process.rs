//! Process statistics from `/proc`, under the usual Prometheus names. Other systems than Linux have none.

use bowshot_ipc::os::proc_bytes;
use std::fs;

/// Process statistics; `None` where not available.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Process {
    /// Files, sockets and pipes that are open.
    pub(crate) open_fds: Option<u64>,
    /// Bytes of memory that are in RAM.
    pub(crate) resident_bytes: Option<u64>,
    /// Seconds of CPU used since the start, in user and kernel mode.
    pub(crate) cpu_seconds: Option<f64>,
}

/// Clock ticks a second in `/proc`: 100 on every architecture, since the kernel translates for user space.
const TICKS_PER_SECOND: f64 = 100.0;

impl Process {
    pub(crate) fn now() -> Self {
        Self {
            // Without the handle of this listing.
            open_fds: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| (entries.count() as u64).saturating_sub(1)),
            resident_bytes: fs::read_to_string("/proc/self/status")
                .ok()
                .and_then(|text| proc_bytes(&text, "VmRSS:")),
            cpu_seconds: fs::read_to_string("/proc/self/stat").ok().and_then(|text| cpu_seconds(&text)),
        }
    }
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the program's name in parentheses and may hold spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some((user + kernel) as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_as_the_kernel_writes_them() {
        let status = "VmHWM:\t  9000 kB\nVmRSS:\t    8192 kB\nRssAnon:\t 1 kB\n";
        assert_eq!(proc_bytes(status, "VmRSS:"), Some(8 << 20));
        assert_eq!(proc_bytes("VmRSS:\tmany", "VmRSS:"), None);
        let stat = "4711 (bow) shot) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("4711 (bowshot) S 1 2"), None);
        assert_eq!(cpu_seconds(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_tells_everything() {
        let process = Process::now();
        assert!(process.open_fds.expect("files") >= 3, "standard input, output and error are open");
        assert!(process.resident_bytes.expect("memory") > 1 << 20);
        assert!(process.cpu_seconds.expect("time") >= 0.0);
    }
}
