//! From a backup to a data folder.

use super::copy::{Copied, finish};
use super::manifest::{Manifest, copied};
use super::{Stop, UNFINISHED, around, check_free};
use crate::Error;
use crate::durable::verify::{Depth, examine};
use bowshot_object_store::private;
use bowshot_object_store::scratch::Scratch;
use std::path::Path;

/// Makes a data folder of a backup, every file of it as the manifest says, and gives it its name when it is whole. Blocks.
///
/// # Errors
/// When the place is taken, something cannot be read or written, or the backup is damaged; nothing is left then.
pub fn restore(from: &Path, data: &Path, stop: &Stop) -> Result<Copied, Error> {
    check_free(data)?;
    let manifest = Manifest::read(from)?;
    let place = around(data)?;
    let unfinished =
        Scratch::named(&place, UNFINISHED).map_err(|error| Error::file("write to", &place, error))?;
    for (name, listed) in &manifest.files {
        let to = unfinished.path().join(name);
        if let Some(folder) = to.parent() {
            private::folder(folder).map_err(|error| Error::file("make", folder, error))?;
        }
        let found = copied(&from.join(name), &to, stop)?;
        if found != *listed {
            let problem = if found.bytes == listed.bytes {
                "its bytes are not those that were written".to_owned()
            } else {
                format!("it has {} bytes, {} were written", found.bytes, listed.bytes)
            };
            return Err(Error::Damaged { place: name.clone(), problem });
        }
    }
    let found = examine(unfinished.path(), Depth::Footers, None, stop)?;
    if let Some(fault) = found.faults.into_iter().next() {
        return Err(Error::Damaged { place: fault.place, problem: fault.problem });
    }
    finish(unfinished, manifest.files.keys(), data)?;
    Ok(Copied {
        tables: manifest.tables,
        files: manifest.files.len(),
        bytes: manifest.bytes(),
        taken: manifest.taken,
        shared_bytes: 0,
    })
}
