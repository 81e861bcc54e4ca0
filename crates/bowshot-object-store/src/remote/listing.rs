//! What a source holds, as one listing of its store has shown it: all objects below it, by name. Folders are the parts of names.

use crate::file_name;
use object_store::ObjectMeta;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

/// Formats of tables, as errors name them.
pub const DELTA: &str = "a Delta table";
pub const ICEBERG: &str = "an Iceberg table";
pub const HUDI: &str = "a Hudi table";

#[derive(Debug, Default)]
pub struct Listing {
    /// By name, without those that are hidden, unfinished or markers.
    objects: Vec<ObjectMeta>,
    /// Whether the source is the one object, and no folder.
    pub is_file: bool,
    /// Folders with a name directly in them that cannot be asked for, and of which nothing is known for that reason.
    odd: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Level<'a> {
    pub files: Vec<(&'a str, &'a ObjectMeta)>,
    pub folders: BTreeSet<&'a str>,
}

impl Listing {
    /// Of all objects below `base`, but for those in `odd` folders.
    pub(super) fn of_folder(mut objects: Vec<ObjectMeta>, odd: Vec<String>, base: &str) -> Self {
        objects.retain(|object| below(object.location.as_ref(), base).is_some_and(|name| !name.is_empty()));
        objects.sort_by(|one, other| one.location.as_ref().cmp(other.location.as_ref()));
        Self { objects, is_file: false, odd }
    }

    pub(super) fn of_file(object: ObjectMeta) -> Self {
        Self { objects: vec![object], is_file: true, odd: Vec::new() }
    }

    pub fn is_odd(&self, folder: &str) -> bool {
        self.odd.iter().any(|odd| odd == folder)
    }

    /// Whether objects of a folder, or of one below it, have names that cannot be asked for.
    pub fn has_odd_names(&self, folder: &str) -> bool {
        self.odd.iter().any(|odd| below(odd, folder).is_some())
    }

    /// The objects of a folder and all below it, with their names from there.
    pub fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = (&'a str, &'a ObjectMeta)> {
        let folder = folder.to_owned();
        let first = self.objects.partition_point(|object| object.location.as_ref() < folder.as_str());
        let prefix = folder.clone();
        let rest = self.objects.get(first..).unwrap_or_default().iter();
        // Names that go on otherwise (`a-b` between `a` and `a/b`) stand between.
        rest.take_while(move |object| object.location.as_ref().starts_with(&prefix))
            .filter_map(move |object| Some((below(object.location.as_ref(), &folder)?, object)))
            .filter(|(name, _)| !name.is_empty())
    }

    pub fn object(&self, name: &str) -> Option<&ObjectMeta> {
        let place = self.objects.binary_search_by(|object| object.location.as_ref().cmp(name)).ok()?;
        self.objects.get(place)
    }

    /// What is directly in a folder, without what is ignored.
    pub fn level(&self, folder: &str) -> Level<'_> {
        let mut level = Level::default();
        for (name, object) in self.below(folder) {
            match name.split_once('/') {
                Some((first, _)) if !is_ignored(first) => drop(level.folders.insert(first)),
                None if !is_ignored(name) => level.files.push((name, object)),
                _ => {}
            }
        }
        let odd = self.odd.iter().filter_map(|odd| below(odd, folder)?.split('/').next());
        level.folders.extend(odd.filter(|name| !name.is_empty() && !is_ignored(name)));
        level
    }

    /// A folder that belongs to a table format whose log decides which files count.
    pub fn foreign_table(&self, folder: &str) -> Option<&'static str> {
        let is_there = |name: &str| self.below(&join(folder, name)).next().is_some();
        if is_there("_delta_log") {
            return Some(DELTA);
        }
        if is_there(".hoodie") {
            return Some(HUDI);
        }
        let metadata = join(folder, "metadata");
        self.below(&metadata).any(|(name, _)| is_iceberg_metadata(name)).then_some(ICEBERG)
    }

    /// Whether a folder holds any data file, or may hold some that nothing is known of.
    pub fn holds_data(&self, folder: &str) -> bool {
        let is_data =
            |name: &str| !name.split('/').any(is_ignored) && file_name::kind_of(Path::new(name)).is_some();
        self.has_odd_names(folder) || self.below(folder).any(|(name, _)| is_data(name))
    }
}

/// The name of an object, or of a folder, from a folder on.
fn below<'a>(name: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() {
        return Some(name);
    }
    let rest = name.strip_prefix(folder)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// A name below a folder, which may be the bucket itself.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The format of the table that an object is of which has this name, if it is one of those that only such tables have.
pub fn foreign_part(parts: &[&str]) -> Option<&'static str> {
    match parts {
        _ if parts.contains(&"_delta_log") => Some(DELTA),
        _ if parts.contains(&".hoodie") => Some(HUDI),
        [.., "metadata", name] if is_iceberg_metadata(name) => Some(ICEBERG),
        _ => None,
    }
}

fn is_iceberg_metadata(name: &str) -> bool {
    !name.contains('/') && (name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz"))
}

pub fn is_ignored(name: &str) -> bool {
    file_name::is_ignored(OsStr::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::path::Path as Location;

    fn listing(names: &[&str]) -> Listing {
        let object = |name: &&str| ObjectMeta {
            location: Location::from(*name),
            last_modified: chrono::DateTime::UNIX_EPOCH,
            size: 1,
            e_tag: None,
            version: None,
        };
        Listing::of_folder(names.iter().map(object).collect(), vec!["data/odd/deep".to_owned()], "data")
    }

    #[test]
    fn folders_are_parts_of_names() {
        let listing = listing(&[
            "data/a-b.csv",
            "data/a/x.csv",
            "data/a/y/z.csv",
            "data/b.csv",
            "data/_SUCCESS",
            "data/.x/y.csv",
            "database/x.csv",
        ]);
        let level = listing.level("data");
        let files: Vec<&str> = level.files.iter().map(|(name, _)| *name).collect();
        assert_eq!(files, ["a-b.csv", "b.csv"]);
        assert_eq!(level.folders.into_iter().collect::<Vec<_>>(), ["a", "odd"]);
        assert!(listing.holds_data("data/odd") && listing.has_odd_names("data/odd/deep"));
        assert!(listing.has_odd_names("data") && !listing.has_odd_names("data/a"));
        let below: Vec<&str> = listing.below("data/a").map(|(name, _)| name).collect();
        assert_eq!(below, ["x.csv", "y/z.csv"]);
        assert!(listing.holds_data("data/a") && !listing.holds_data("data/c"));
        assert!(listing.object("data/b.csv").is_some() && listing.object("data/c.csv").is_none());
    }

    #[test]
    fn tables_of_others_are_known() {
        for (name, kind) in [
            ("data/t/_delta_log/0.json", Some(DELTA)),
            ("data/t/metadata/v1.metadata.json", Some(ICEBERG)),
            ("data/t/metadata/v1.metadata.json.gz", Some(ICEBERG)),
            ("data/t/.hoodie/x", Some(HUDI)),
            ("data/t/metadata/x.json", None),
            ("data/t/metadata/old/v1.metadata.json", None),
            ("data/t/_delta_logs/0.json", None),
            ("data/t-2/_delta_log/0.json", None),
        ] {
            assert_eq!(listing(&["data/t/x.parquet", name]).foreign_table("data/t"), kind, "{name}");
        }
        assert_eq!(foreign_part(&["a", "_delta_log", "0.json"]), Some(DELTA));
        assert_eq!(foreign_part(&["a", "metadata", "v1.metadata.json"]), Some(ICEBERG));
        assert_eq!(foreign_part(&["metadata", "x.parquet"]), None);
    }
}
