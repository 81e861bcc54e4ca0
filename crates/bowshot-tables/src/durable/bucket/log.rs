//! Delta logs in the store. An entry is put there first, under a name that must be free, and is then kept here too: what is here
//! is a copy, and what a lost copy lacks is brought back before anything is added.

use super::super::disk::put_new;
use super::Bucket;
use crate::Error;
use bowshot_api::ErrorKind;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use uuid::Uuid;

pub(super) const LOG: &str = "_delta_log";
/// Names the newest checkpoint.
const LAST_CHECKPOINT: &str = "_last_checkpoint";

impl Bucket {
    /// Makes both sides of a log have what the other one lacks, as far as it matters from the entry on that the catalog knows.
    pub(in crate::durable) fn bring_log(
        &self,
        table: Uuid,
        folder: &Path,
        recorded: Option<u64>,
    ) -> Result<(), Error> {
        self.check_ours()?;
        if !self.is_whole(table) {
            return Err(bowshot_api::Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the files of the table are still on their way to `{}`",
                    self.address_of(&table.to_string())
                ),
            )
            .into());
        }
        let here = names_in(folder)?;
        let prefix = format!("{table}/{LOG}");
        let listed = self.objects.list(&prefix)?;
        let there: BTreeSet<String> = listed
            .iter()
            .filter_map(|one| one.name.strip_prefix(&prefix)?.strip_prefix('/').map(str::to_owned))
            .collect();
        self.send_lacking(table, folder, &here, &there)?;
        let checkpoint = there.iter().filter_map(|name| checkpoint_number(name)).max();
        let from = checkpoint.unwrap_or(0).min(recorded.unwrap_or(0));
        let is_wanted = |name: &&String| {
            entry_number(name).is_some_and(|number| number >= from)
                || checkpoint.is_some() && checkpoint_number(name) == checkpoint
                || name.as_str() == LAST_CHECKPOINT
        };
        let lacking: Vec<&String> =
            there.iter().filter(is_wanted).filter(|name| !here.contains(*name)).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        super::super::disk::make_folder(folder)?;
        for name in lacking {
            let full = format!("{prefix}/{name}");
            let found = self.objects.get(&full)?.ok_or_else(|| gone(&self.address_of(&full)))?;
            put_new(&folder.join(name), &found.bytes)?;
        }
        Ok(())
    }

    /// Entries before checkpoints, and what names the newest of them last: nobody is led to what is not there.
    fn send_lacking(
        &self,
        table: Uuid,
        folder: &Path,
        here: &BTreeSet<String>,
        there: &BTreeSet<String>,
    ) -> Result<(), Error> {
        for name in lacking(here, there, entry_number) {
            if !self.put_entry(table, name, &read(&folder.join(name))?)? {
                return Err(gone(&self.address_of(&format!("{table}/{LOG}/{name}"))));
            }
        }
        let mut newer = false;
        for name in lacking(here, there, checkpoint_number) {
            newer |= self.objects.put_new(&format!("{table}/{LOG}/{name}"), read(&folder.join(name))?)?;
        }
        if newer && here.contains(LAST_CHECKPOINT) {
            let text = read(&folder.join(LAST_CHECKPOINT))?;
            self.objects.overwrite(&format!("{table}/{LOG}/{LAST_CHECKPOINT}"), text)?;
        }
        Ok(())
    }

    /// Puts an entry of a log there; false if another one has its name.
    pub(in crate::durable) fn put_entry(&self, table: Uuid, name: &str, text: &[u8]) -> Result<bool, Error> {
        self.check_ours()?;
        let full = format!("{table}/{LOG}/{name}");
        if self.objects.put_new(&full, text.to_vec())? {
            return Ok(true);
        }
        // It may be this one, put there by a request whose answer was lost.
        Ok(self.objects.get(&full)?.is_some_and(|there| there.bytes.as_ref() == text))
    }

    /// Shows a new checkpoint to others, and removes what was cleaned away here along with it.
    pub(in crate::durable) fn after_checkpoint(
        &self,
        table: Uuid,
        folder: &Path,
        before: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let now = names_in(folder)?;
        self.send_lacking(table, folder, &now, before)?;
        // What is gone for another reason than being older than a checkpoint is none of it.
        let newest = now.iter().filter_map(|name| checkpoint_number(name)).max().unwrap_or(0);
        let is_older = |name: &str| {
            entry_number(name).or_else(|| checkpoint_number(name)).is_some_and(|number| number < newest)
        };
        let cleaned = before.iter().filter(|name| is_older(name) && !now.contains(*name));
        let cleaned: Vec<String> = cleaned.map(|name| format!("{table}/{LOG}/{name}")).collect();
        Ok(self.objects.remove(&cleaned)?)
    }
}

/// The names of a kind that one side has and the other one lacks, in their order.
fn lacking<'a>(
    here: &'a BTreeSet<String>,
    there: &'a BTreeSet<String>,
    number: fn(&str) -> Option<u64>,
) -> impl Iterator<Item = &'a String> {
    here.iter().filter(move |name| number(name).is_some() && !there.contains(*name))
}

/// What there is in the folder of a log, which need not be there itself.
pub(in crate::durable) fn names_in(folder: &Path) -> Result<BTreeSet<String>, Error> {
    let failed = |error| Error::file("list", folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(failed(error)),
    };
    entries.map(|entry| Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned())).collect()
}

pub(super) fn newest_entry<'a>(names: impl Iterator<Item = &'a str>) -> Option<(u64, &'a str)> {
    names.filter_map(|name| Some((entry_number(name)?, name))).max()
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| Error::file("read", path, error))
}

fn gone(address: &str) -> Error {
    let reason = io::Error::other("another program has changed the Delta log, which only Bowshot may do");
    Error::file("use", Path::new(address), reason)
}

fn entry_number(name: &str) -> Option<u64> {
    numbered(name).filter(|(_, ending)| *ending == "json").map(|(number, _)| number)
}

fn checkpoint_number(name: &str) -> Option<u64> {
    let is_checkpoint = |ending: &str| ending.starts_with("checkpoint") && ending.ends_with("parquet");
    numbered(name).filter(|(_, ending)| is_checkpoint(ending)).map(|(number, _)| number)
}

fn numbered(name: &str) -> Option<(u64, &str)> {
    let (number, ending) = name.split_once('.')?;
    let all_digits = number.len() == 20 && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| all_digits)?, ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_log_are_known() {
        assert_eq!(entry_number("00000000000000000007.json"), Some(7));
        assert_eq!(checkpoint_number("00000000000000000009.checkpoint.parquet"), Some(9));
        for name in ["7.json", "_last_checkpoint", ".bowshot-x.tmp", "00000000000000000007.json.tmp", "0.crc"]
        {
            assert_eq!((entry_number(name), checkpoint_number(name)), (None, None), "{name}");
        }
        let names = ["00000000000000000009.json", "00000000000000000010.json", "_last_checkpoint"];
        assert_eq!(newest_entry(names.into_iter()).map(|(number, _)| number), Some(10));
    }
}
