//! Whether the files of a cache belong to the current history of tables: after a restored backup, versions are reused with other contents.

use crate::cache::{Cacheable, Store, replace_private_file};
use crate::keys;
use bowshot_tables::{Opening, TableStore};
use std::io;
use std::path::Path;

/// Contains the number of the catalog opening in which the files were written.
const FILE: &str = "opening";

/// Takes over what an earlier process has left in a store, if it is of the tables that there are.
pub(crate) fn keep_current<K: Cacheable>(store: &Store<K>, tables: &TableStore) {
    let Some(folder) = store.folder() else { return };
    let (newest, opening) = (tables.snapshot(), tables.opening());
    // Versions and segments of a backup that was put back are numbered again.
    let continues = continues(folder, opening);
    store.remove_of(|table| !(keys::holds(table, &newest) && (continues || keys::is_file(table))));
    note(folder, opening);
}

/// Whether the files in a folder were written in the previous opening of the catalog.
fn continues(folder: &Path, opening: Opening) -> bool {
    let noted = std::fs::read_to_string(folder.join(FILE)).ok();
    let noted = noted.and_then(|text| text.trim().parse::<i64>().ok());
    noted.is_some() && noted == opening.previous
}

/// Records that the files in a folder belong to this opening.
fn note(folder: &Path, opening: Opening) {
    let path = folder.join(FILE);
    let noted = match opening.current {
        Some(number) => replace_private_file(&path, number.to_string().as_bytes()),
        None => std::fs::remove_file(&path),
    };
    match noted {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // The next start will discard the files.
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the folder of a cache cannot be written")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_catalog_of_before_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = |previous, current| {
            let opening = Opening { previous, current };
            let continues = continues(folder.path(), opening);
            note(folder.path(), opening);
            continues
        };
        assert!(!opened(None, Some(1)), "nothing is known of the files");
        assert!(opened(Some(1), Some(2)));
        assert!(opened(Some(2), Some(3)));
        assert!(!opened(Some(1), Some(4)), "a backup");
        assert!(!opened(Some(5), Some(6)), "another process had the catalog meanwhile");
        assert!(!opened(None, None), "no catalog");
        assert!(!opened(Some(6), Some(7)), "nothing was noted of the last process");
    }
}
