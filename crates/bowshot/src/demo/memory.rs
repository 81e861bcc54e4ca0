//! Peak resident memory of this process.

/// One line of text.
pub(super) fn peak() -> String {
    match peak_bytes() {
        Some(bytes) => format!(
            "peak memory {:.0} MB, server and client together, mapped file pages included\n",
            bytes as f64 / 1e6
        ),
        None => "peak memory: not available on this system\n".to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn peak_bytes() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

#[cfg(not(target_os = "linux"))]
fn peak_bytes() -> Option<u64> {
    None
}

#[cfg(any(target_os = "linux", test))]
fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_the_high_water_mark() {
        assert_eq!(
            parse("Name:\tbowshot\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(parse("Name:\tbowshot\n"), None);
        assert_eq!(parse("VmHWM:\tlots\n"), None);
    }
}
