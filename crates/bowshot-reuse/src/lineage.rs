//! Whether the files of a cache are of the history of tables that goes on. After a backup was put back, versions are given
//! again, and mean something else.

use bowshot_tables::Opening;
use std::io::{self, Write};
use std::path::Path;

/// Has the number of the opening of the catalog in which the files were written.
const FILE: &str = "opening";

/// Whether the files in a folder were written by the process that had the catalog before this one.
pub(crate) fn continues(folder: &Path, opening: Opening) -> bool {
    let noted = std::fs::read_to_string(folder.join(FILE)).ok();
    let noted = noted.and_then(|text| text.trim().parse::<i64>().ok());
    noted.is_some() && noted == opening.previous
}

/// Notes that the files in a folder are of this opening, once those of other ones are gone.
pub(crate) fn note(folder: &Path, opening: Opening) {
    let path = folder.join(FILE);
    let noted = match opening.current {
        Some(number) => write(&path, number),
        None => std::fs::remove_file(&path),
    };
    match noted {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // At the next start the files are taken for those of another history.
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the folder of a cache cannot be written")
        }
    }
}

fn write(path: &Path, number: i64) -> io::Result<()> {
    let begun = path.with_extension("begun");
    bowshot_cache::create_private(&begun)?.write_all(number.to_string().as_bytes())?;
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
