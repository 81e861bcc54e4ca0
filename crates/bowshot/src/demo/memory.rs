//! Peak resident memory of this process.

use bowshot_ipc::os::proc_bytes;

pub(super) fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match proc_bytes(&status, "VmHWM:") {
        Some(bytes) => format!(
            "peak memory {:.0} MB, server and client together, mapped file pages included\n",
            bytes as f64 / 1e6
        ),
        None => "peak memory: not available on this system\n".to_owned(),
    }
}
