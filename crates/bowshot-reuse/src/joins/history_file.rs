//! The history of joins on disk.

use super::JoinCache;
use crate::cache::replace_private_file;
use std::error::Error;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// Its name in the folder of the cache.
const FILE: &str = "history.json";
/// Pause of writes after a failure of the disk.
const REST: Duration = Duration::from_secs(60);

/// The text on disk, if this process wrote it.
#[derive(Debug, Default)]
pub(super) struct Saved {
    text: String,
    rests_until: Option<Instant>,
}

impl JoinCache {
    /// Restores the history of an earlier process. An unreadable one is ignored.
    pub(super) fn restore_history(&self) {
        let Some(folder) = self.store.folder() else { return };
        let path = folder.join(FILE);
        let restored = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => Err(error.to_string()),
            Ok(text) => {
                self.history.restore(&text, crate::settings::are_known).map_err(|error| error.to_string())
            }
        };
        if let Err(error) = restored {
            count_error();
            tracing::warn!(path = %path.display(), error, "the history of joins cannot be read and begins anew");
        }
    }

    pub(super) fn save_history(&self) {
        let mut saved = self.saved.lock();
        let (Some(folder), Ok(text)) = (self.store.folder(), self.history.to_text()) else { return };
        let is_there = text == saved.text && (text.is_empty() || folder.join(FILE).exists());
        if is_there || saved.rests_until.is_some_and(|end| Instant::now() < end) {
            return;
        }
        match self.write_history(&text) {
            Ok(()) => saved.text = text,
            Err(error) => {
                saved.rests_until = Instant::now().checked_add(REST);
                count_error();
                tracing::warn!(error = error.as_ref() as &dyn Error, "the history of joins is not saved");
            }
        }
    }

    fn write_history(&self, text: &str) -> Result<(), Box<dyn Error>> {
        // It contains constants of queries.
        Ok(replace_private_file(&self.store.claimed()?.join(FILE), text.as_bytes())?)
    }
}

fn count_error() {
    metrics::counter!("bowshot_join_cache_errors_total", "what" => "history").increment(1);
}
