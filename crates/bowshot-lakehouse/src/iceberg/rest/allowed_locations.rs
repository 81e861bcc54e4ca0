//! Locations below which tables of a catalog may lie. The operator names them, since others write the catalog.

use crate::table_folder::of_this_machine;
use bowshot_object_store::RemoteUrl;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub(super) enum Place {
    Store(RemoteUrl),
    Folder(PathBuf),
}

#[derive(Debug)]
pub(super) enum Spot {
    Store(RemoteUrl),
    Folder(PathBuf),
}

impl Place {
    /// `None` for what is neither an address of a bucket nor an absolute path.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = plain(text);
        if let Ok(url) = RemoteUrl::parse(&text) {
            return Some(Self::Store(url));
        }
        of_this_machine(&text).map(|path| Self::Folder(PathBuf::from(path)))
    }
}

/// Where a table of this location lies, if it is below one of the places.
pub(super) fn spot(location: &str, places: &[Place]) -> Option<Spot> {
    let location = plain(location);
    if let Ok(url) = RemoteUrl::parse(&location) {
        let below = |place: &Place| match place {
            Place::Store(place) => {
                url.below(place).filter(|rest| !rest.split('/').any(|part| part.starts_with('.')))
            }
            Place::Folder(_) => None,
        };
        return places.iter().any(|place| below(place).is_some()).then_some(Spot::Store(url));
    }
    // Where a link leads counts, not how it is called.
    let path = Path::new(of_this_machine(&location)?).canonicalize().ok()?;
    let below = |place: &Place| match place {
        Place::Folder(place) => place.canonicalize().is_ok_and(|place| path.starts_with(place)),
        Place::Store(_) => false,
    };
    places.iter().any(below).then_some(Spot::Folder(path))
}

/// Addresses of one protocol under one name.
fn plain(text: &str) -> String {
    let rest = ["s3a://", "s3n://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    rest.map_or_else(|| text.to_owned(), |rest| format!("s3://{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lie_below_the_places_or_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("in/t")).unwrap();
        std::fs::create_dir_all(folder.path().join("out/t")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("out"), folder.path().join("in/link")).unwrap();
        let here = folder.path().display();
        let places: Vec<Place> = ["s3://lake/db".to_owned(), format!("{here}/in")]
            .iter()
            .filter_map(|text| Place::parse(text))
            .collect();
        assert_eq!(places.len(), 2);
        for (location, wanted) in [
            ("s3://lake/db/t".to_owned(), true),
            ("s3a://lake/db/t/".to_owned(), true),
            ("s3://lake/db".to_owned(), true),
            (format!("file://{here}/in/t"), true),
            (format!("{here}/in/t"), true),
            ("s3://lake/db2/t".to_owned(), false),
            ("s3://lake".to_owned(), false),
            ("s3://other/db/t".to_owned(), false),
            ("gs://lake/db/t".to_owned(), false),
            ("s3://lake/db/../secret".to_owned(), false),
            ("s3://lake/db/.hidden/t".to_owned(), false),
            ("http://lake/db/t".to_owned(), false),
            (format!("file://{here}/out/t"), false),
            (format!("{here}/in/../out/t"), false),
            (format!("{here}/in/link/t"), false),
            (format!("{here}/in/none"), false),
            ("file:///etc".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(spot(&location, &places).is_some(), wanted, "{location}");
        }
        assert!(Place::parse("warehouse").is_none());
    }
}
