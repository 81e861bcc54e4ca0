//! Files and folders that only the server's own user may look into: 0600 and 0700, whatever the process was started with.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// Makes a folder, and those around it, where they are missing.
pub fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Makes an empty file where there is none, and keeps others out of one that is there, if that is ours to say.
pub fn file(path: &Path) -> io::Result<()> {
    let made = OpenOptions::new().create(true).truncate(false).write(true).mode(FILE).open(path)?;
    if made.metadata()?.permissions().mode() & 0o077 != 0
        && let Err(error) = fs::set_permissions(path, Permissions::from_mode(FILE))
    {
        tracing::warn!(path = %path.display(), %error, "other users of this machine can read a file of the server");
    }
    Ok(())
}

/// Makes a file that is not there yet, to be written and read.
pub fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create_new(true).read(true).write(true).mode(FILE).open(path)
}

/// Keeps others out of the files of a folder.
pub fn all_in(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0) {
            fs::set_permissions(entry.path(), Permissions::from_mode(FILE))?;
        }
    }
    Ok(())
}
