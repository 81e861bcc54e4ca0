//! The settings of the log's file, and of what the server says of statements that have ended. They have no section of their own:
//! `log` is a key itself.

use std::path::PathBuf;
use std::time::Duration;

bowshot_api::defaults! {
    #[derive(Debug, Clone)]
    pub(crate) struct LogSettings {
        /// The file of the log; stderr without one.
        pub(crate) file: Option<PathBuf> = None,
        /// Size at which the next file is begun; 0: at none.
        pub(crate) max_bytes: u64 = 100 << 20,
        /// Whether each day (UTC) has a file of its own.
        pub(crate) daily: bool = false,
        /// Earlier files that stay.
        pub(crate) keep: usize = 10,
        /// Statements that took this long have a line; none when zero.
        pub(crate) slow_after: Duration = Duration::ZERO,
        /// Whether metrics count statements by their tags.
        pub(crate) count_tags: bool = false,
    }
}
