//! The settings of the log's file, and of what the server says of statements that have ended. They have no section of their own:
//! `log` is a key itself.

use std::path::PathBuf;
use std::time::Duration;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct LogSettings {
    /// The file of the log; stderr without one.
    pub(crate) file: Option<PathBuf>,
    /// Size at which the next file is begun; 0: at none.
    pub(crate) max_bytes: u64,
    /// Whether each day (UTC) has a file of its own.
    pub(crate) daily: bool,
    /// Earlier files that stay.
    pub(crate) keep: usize,
    /// Statements that took this long have a line; none when zero.
    pub(crate) slow_after: Duration,
    /// Whether metrics count statements by their tags.
    pub(crate) count_tags: bool,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            file: None,
            max_bytes: 100 << 20,
            daily: false,
            keep: 10,
            slow_after: Duration::ZERO,
            count_tags: false,
        }
    }
}
