//! Whether the files of a cache belong to the current history of tables: after a restored backup, versions are reused with other contents.

use bowshot_storage::tables::Opening;
use std::io::{self, Write};
use std::path::Path;

/// Contains the number of the catalog opening in which the files were written.
const FILE: &str = "opening";

/// Whether the files in a folder were written in the previous opening of the catalog.
pub(crate) fn continues(folder: &Path, opening: Opening) -> bool {
    let noted = std::fs::read_to_string(folder.join(FILE)).ok();
    let noted = noted.and_then(|text| text.trim().parse::<i64>().ok());
    noted.is_some() && noted == opening.previous
}

/// Records that the files in a folder belong to this opening.
pub(crate) fn note(folder: &Path, opening: Opening) {
    let path = folder.join(FILE);
    let noted = match opening.current {
        Some(number) => write(&path, number),
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

fn write(path: &Path, number: i64) -> io::Result<()> {
    let begun = path.with_extension("begun");
    crate::cache::create_private_file(&begun)?.write_all(number.to_string().as_bytes())?;
    std::fs::rename(&begun, path)
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
