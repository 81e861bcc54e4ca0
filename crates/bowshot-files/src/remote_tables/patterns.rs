//! Files in object stores that a statement names: an address or a pattern, below a place that the operator has opened. What is
//! listed begins where the pattern does, so that no more of a bucket is looked at than the statement names.

use super::listing::list;
use crate::ad_hoc_files::{is_pattern, matches};
use crate::listing::{Choice, ListingLimits};
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_object_store::secrets::InForce;
use bowshot_object_store::{Error, RemoteSource, RemoteUrl, Remotes};
use std::path::PathBuf;
use std::sync::Arc;

/// One address or pattern.
#[derive(Debug, Clone)]
pub(crate) struct NamedObjects {
    text: String,
    /// The object that has the pattern itself for its name, if there is one.
    own: PathBuf,
    source: Arc<RemoteSource>,
    /// The folders before the first part with a pattern: they may be partitions.
    folders: Vec<String>,
    /// The parts from there on; none for an address of one file.
    pattern: Vec<String>,
}

impl NamedObjects {
    /// What a statement names.
    ///
    /// # Errors
    /// `Denied` for what lies in no place that the operator has opened.
    pub(crate) fn new(remotes: &Remotes, text: &str) -> Result<Self, Error> {
        let (url, client) = remotes.readable(text)?;
        let parts: Vec<&str> = url.location.as_ref().split('/').collect();
        let fixed = parts.iter().take_while(|part| !is_pattern(part)).count();
        let above = if fixed == parts.len() { fixed.saturating_sub(1) } else { fixed };
        let folders = parts.iter().take(above).map(|&part| part.to_owned()).collect();
        let pattern = parts.iter().skip(fixed).map(|&part| part.to_owned()).collect();
        let base = parts.into_iter().take(fixed).collect::<Vec<_>>().join("/");
        // With a slash at its end the place is as it is written; a part of it must not become a pattern's.
        let root = RemoteUrl::parse(&format!("{}/{base}", url.root))?;
        let (text, own) = (text.to_owned(), url.shown(url.location.as_ref()));
        Ok(Self { text, own, source: RemoteSource::new(root, client), folders, pattern })
    }

    /// As the statement has it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the files are others by now than the last listing has.
    pub(crate) fn is_stale(&self) -> bool {
        self.source.table().is_stale()
    }

    /// All secrets that are in force, if the server keeps some.
    pub(crate) fn in_force(&self) -> Option<Arc<InForce>> {
        self.source.table().in_force()
    }

    /// The files as they are now. Blocks while the store is asked.
    pub(crate) fn list(
        &self,
        limits: ListingLimits,
        options: &ReadOptions,
    ) -> Result<Vec<ListedFile>, Error> {
        let table = self.source.table();
        let missing = || Error::Missing { path: PathBuf::from(&self.text) };
        let files = match list(&table, limits, Choice { options, parts: None }) {
            Err(Error::Empty { .. }) => return Err(missing()),
            files => files?,
        };
        let is_named = files.iter().any(|file| file.path == self.own);
        let fits = |file: &ListedFile| {
            if self.pattern.is_empty() || is_named {
                // One file, as for paths: a folder is named by a pattern.
                return file.path == self.own;
            }
            let name =
                file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let parts: Vec<&str> = file.folders.iter().map(String::as_str).chain([name.as_str()]).collect();
            fit(&self.pattern, &parts)
        };
        let below = |mut file: ListedFile| {
            file.folders.splice(0..0, self.folders.iter().cloned());
            file
        };
        let fitting: Vec<ListedFile> = files.into_iter().filter(fits).map(below).collect();
        if fitting.is_empty() { Err(missing()) } else { Ok(fitting) }
    }
}

/// Whether the parts of a name are as those of a pattern say; `**` is any number of folders.
fn fit(pattern: &[String], parts: &[&str]) -> bool {
    // Which rests of the name may still be reached, so that several `**` cost no more than one.
    let mut open = vec![false; parts.len() + 1];
    open[0] = true;
    for part in pattern {
        let mut next = vec![false; parts.len() + 1];
        for (at, _) in open.iter().enumerate().filter(|(_, open)| **open) {
            if part == "**" {
                next.iter_mut().take(parts.len()).skip(at).for_each(|place| *place = true);
            } else if parts.get(at).is_some_and(|name| matches(part, name)) {
                next[at + 1] = true;
            }
        }
        open = next;
    }
    open.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn patterns_fit_names_part_by_part() {
        for (pattern, name, fits) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "x/a.csv", false),
            ("*/*.csv", "x/a.csv", true),
            ("**/*.csv", "a.csv", true),
            ("**/*.csv", "x/y/a.csv", true),
            ("y=*/**/b.csv", "y=1/b.csv", true),
            ("y=*/**/b.csv", "z=1/b.csv", false),
            ("**/a/**/*.csv", "a/a/a/a.csv", true),
        ] {
            let pattern_parts: Vec<String> = pattern.split('/').map(str::to_owned).collect();
            let parts: Vec<&str> = name.split('/').collect();
            assert_eq!(fit(&pattern_parts, &parts), fits, "{pattern} {name}");
        }
    }
}
