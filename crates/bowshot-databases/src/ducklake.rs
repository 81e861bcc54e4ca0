//! Catalogs of DuckLake, which need no driver: `bowshot-lakehouse` reads them. Decides which ones a statement may open.

use crate::config_values::{Values, beside, check_name, wrong};
use crate::status::DatabaseStatus;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_engine::databases::Attachment;
use bowshot_files::FileCatalog;
use bowshot_lakehouse::{DuckLake, DuckLakePlace};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The name of the kind, and the scheme of a location.
const KIND: &str = "ducklake";

#[derive(Debug, Clone)]
pub struct LakeSettings {
    place: DuckLakePlace,
    /// Visible schemas; all when empty.
    schemas: Vec<String>,
}

impl LakeSettings {
    /// Whether an entry of `[[databases]]` describes a lake.
    pub fn is_meant(values: &BTreeMap<String, Vec<String>>) -> bool {
        let kind = values.get("kind").map(Vec::as_slice);
        matches!(kind, Some([kind]) if kind.eq_ignore_ascii_case(KIND))
    }

    /// Reads an entry of `[[databases]]`. Paths are relative to `base`.
    ///
    /// # Errors
    /// `Invalid`, naming the database and the key; `Unsupported` for a catalog that is not a file of SQLite.
    pub fn read(values: &BTreeMap<String, Vec<String>>, base: Option<&Path>) -> Result<Self> {
        let values = Values(values);
        let name = values.needed("name", "?")?;
        values.check(&["name", "kind", "uri", "data_path", "read_paths", "schemas", "read_only"], &name)?;
        let uri = values.needed("uri", &name)?;
        Self::of(&name, &uri, &values, base)
    }

    /// A lake that is served by its path.
    pub fn served(name: &str, uri: &str) -> Result<Self> {
        Self::of(name, uri, &Values(&BTreeMap::new()), None)
    }

    /// Settings from ATTACH.
    fn attached(attachment: &Attachment, opened: &[PathBuf]) -> Result<Self> {
        let Attachment { uri, name, options, .. } = attachment;
        let values = options.iter().map(|(key, value)| (key.clone(), vec![value.clone()])).collect();
        let values = Values(&values);
        values.check(&["type", "data_path", "read_paths", "schemas", "read_only"], name)?;
        let mut settings = Self::of(name, uri, &values, None)?;
        settings.place.within = Some(opened.to_vec());
        Ok(settings)
    }

    fn of(name: &str, uri: &str, values: &Values<'_>, base: Option<&Path>) -> Result<Self> {
        check_name(name)?;
        if values.truth("read_only", name)? == Some(false) {
            return Err(wrong(name, "read_only", "a lake is read-only"));
        }
        let folder = |text: &String| absolute(&beside(text, base));
        let data_path = values.one("data_path", name)?.map(|text| folder(&text)).transpose();
        let read_paths = values.many("read_paths").iter().map(folder).collect::<std::result::Result<_, _>>();
        Ok(Self {
            place: DuckLakePlace {
                name: name.to_owned(),
                catalog: catalog(name, uri, base)?,
                data_path: data_path.map_err(|reason| wrong(name, "data_path", &reason))?,
                read_paths: read_paths.map_err(|reason: String| wrong(name, "read_paths", &reason))?,
                within: None,
            },
            schemas: values.many("schemas"),
        })
    }
}

/// Whether this is the location of a lake.
pub fn is_lake(uri: &str) -> bool {
    after_scheme(uri, KIND).is_some()
}

fn after_scheme<'a>(uri: &'a str, scheme: &str) -> Option<&'a str> {
    let (found, rest) = uri.split_once(':')?;
    found.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// The file of `ducklake:path`, `ducklake:sqlite:path` and `ducklake:///path`.
fn catalog(name: &str, uri: &str, base: Option<&Path>) -> Result<PathBuf> {
    let rest = after_scheme(uri, KIND).unwrap_or(uri);
    let rest = after_scheme(rest, "sqlite").unwrap_or(rest);
    for other in ["postgres", "postgresql", "mysql", "duckdb", "md", "quack"] {
        if after_scheme(rest, other).is_some() {
            return Err(Error::unsupported(format!(
                "the catalog of the lake `{name}` is not supported: only SQLite files are"
            ))
            .with_hint("create the lake with a catalog in SQLite: `ATTACH 'ducklake:sqlite:FILE'`"));
        }
    }
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() || path.contains("://") || path.chars().any(char::is_control) {
        return Err(wrong(name, "uri", "expected the path of a file"));
    }
    absolute(&beside(path, base)).map_err(|reason| wrong(name, "uri", &reason))
}

fn absolute(path: &Path) -> std::result::Result<PathBuf, String> {
    if path.components().any(|part| part == Component::ParentDir) {
        return Err("a path must not contain `..`".to_owned());
    }
    std::path::absolute(path).map_err(|error| error.to_string())
}

/// An open lake.
#[derive(Debug)]
pub(crate) struct Lake {
    settings: LakeSettings,
    lake: Arc<DuckLake>,
    /// Whether ATTACH opened it.
    pub(crate) attached: bool,
    /// Its number of tables, and the last error.
    seen: Mutex<(Option<usize>, Option<String>)>,
}

impl Lake {
    pub(crate) fn may_have_schema(&self, schema: &str) -> bool {
        self.settings.schemas.is_empty() || self.settings.schemas.iter().any(|allowed| allowed == schema)
    }

    /// Schemas and tables; none if the catalog cannot be read. Blocks.
    pub(crate) fn listed(&self) -> Arc<Vec<(String, String)>> {
        match self.listing() {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!(database = %self.settings.place.name, %error, "cannot list the tables of a lake");
                Arc::default()
            }
        }
    }

    fn listing(&self) -> Result<Arc<Vec<(String, String)>>> {
        let mut listed = self.record(self.lake.listed())?;
        if !self.settings.schemas.is_empty() {
            let mut kept = listed.as_ref().clone();
            kept.retain(|(schema, _)| self.may_have_schema(schema));
            listed = Arc::new(kept);
        }
        self.seen.lock().0 = Some(listed.len());
        Ok(listed)
    }

    pub(crate) fn open(&self) -> &Arc<DuckLake> {
        &self.lake
    }

    /// Records the last error.
    pub(crate) fn record<T>(&self, done: Result<T>) -> Result<T> {
        let problem = match &done {
            Ok(_) => None,
            // Errors of one table are not errors of the lake.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Denied | ErrorKind::Unsupported | ErrorKind::NotFound
                ) =>
            {
                return done;
            }
            Err(error) => Some(error.message().to_owned()),
        };
        self.seen.lock().1 = problem;
        done
    }
}

/// All lakes of a server.
#[derive(Debug)]
pub(crate) struct Lakes {
    files: Arc<FileCatalog>,
    lakes: RwLock<BTreeMap<String, Arc<Lake>>>,
    /// Folders whose catalogs may be attached.
    opened: Vec<PathBuf>,
}

impl Lakes {
    /// Lakes can be attached in the locations of lakes among `places`.
    ///
    /// # Errors
    /// `Invalid` for an invalid location.
    pub(crate) fn new(files: Arc<FileCatalog>, places: &[String]) -> Result<Self> {
        let opened = places.iter().filter(|place| is_lake(place)).map(|place| {
            catalog("attach.places", place, None).map_err(|_| {
                Error::invalid("invalid location in `attach.places`")
                    .with_hint("expected a folder of lakes, such as `ducklake:///data`")
            })
        });
        Ok(Self { files, lakes: RwLock::default(), opened: opened.collect::<Result<_>>()? })
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Lake>> {
        self.lakes.read().get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.lakes.read().keys().cloned().collect()
    }

    pub(crate) fn add(&self, lake: Arc<Lake>) {
        self.lakes.write().insert(lake.settings.place.name.clone(), lake);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.lakes.write().remove(name);
    }

    pub(crate) fn configured(&self, settings: LakeSettings) -> Arc<Lake> {
        self.opened_as(settings, false)
    }

    fn opened_as(&self, settings: LakeSettings, attached: bool) -> Arc<Lake> {
        let lake = self.files.lake(settings.place.clone());
        Arc::new(Lake { settings, lake, attached, seen: Mutex::default() })
    }

    /// Opens a lake by ATTACH, and reads its catalog.
    ///
    /// # Errors
    /// `Denied` for a location that is not allowed; errors of the catalog.
    pub(crate) async fn attached(&self, attachment: &Attachment) -> Result<Arc<Lake>> {
        let settings = LakeSettings::attached(attachment, &self.opened)?;
        let lake = self.opened_as(settings, true);
        let (looking, opened) = (Arc::clone(&lake), self.opened.clone());
        let looked = tokio::task::spawn_blocking(move || {
            check_opened(&looking.settings.place.catalog, &opened)?;
            looking.listing().map(drop)
        });
        looked.await.map_err(|error| Error::internal("cannot read the lake").with_source(error))??;
        Ok(lake)
    }

    /// Rows of `system.databases`.
    pub(crate) fn statuses(&self) -> Vec<DatabaseStatus> {
        let of_one = |lake: &Arc<Lake>| {
            let (tables, problem) = lake.seen.lock().clone();
            DatabaseStatus {
                name: lake.settings.place.name.clone(),
                kind: KIND,
                place: lake.settings.place.catalog.display().to_string(),
                read_only: true,
                attached: lake.attached,
                pool: None,
                connections: None,
                tables,
                problem,
            }
        };
        self.lakes.read().values().map(of_one).collect()
    }
}

/// Checks that a catalog is in an allowed folder, also after links are resolved.
fn check_opened(catalog: &Path, opened: &[PathBuf]) -> Result<()> {
    let whole = |path: &Path| std::fs::canonicalize(path).ok();
    let is_within = |folder: &PathBuf| {
        catalog.starts_with(folder)
            && match (whole(catalog), whole(folder)) {
                (Some(catalog), Some(folder)) => catalog.starts_with(folder),
                // A missing file is reported as missing only within the folder.
                (None, Some(_)) => true,
                _ => false,
            }
    };
    match opened.iter().any(is_within) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Denied, "cannot attach a database at this location").with_hint(
            "the operator can allow folders of lakes with the setting `attach.places`: `ducklake:///folder`",
        )),
    }
}

/// The error for a change of a lake.
pub(crate) fn only_read(name: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("the lake `{name}` is read-only"))
        .with_hint("write it with DuckDB; the next statement sees the new rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<LakeSettings> {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]));
        LakeSettings::read(&pairs.collect(), Some(Path::new("/etc/bowshot")))
    }

    #[test]
    fn an_entry_is_understood_as_a_whole_or_refused() {
        let base = [("name", "lake"), ("kind", "ducklake"), ("uri", "ducklake:lake.sqlite")];
        let good = read(&base).unwrap();
        assert_eq!(good.place.catalog, Path::new("/etc/bowshot/lake.sqlite"));
        assert!(good.place.data_path.is_none() && good.place.within.is_none());
        for (key, value) in [
            ("data_pth", "x"),
            ("uri", "ducklake:../x"),
            ("uri", "ducklake:postgres:dbname=x"),
            ("uri", "ducklake:duckdb:x"),
            ("uri", "ducklake:"),
            ("uri", "s3://bucket/x.sqlite"),
            ("data_path", "/data/../etc"),
            ("read_only", "false"),
            ("read_only", "perhaps"),
            ("pool", "4"),
            ("name", ""),
        ] {
            let mut pairs = base.to_vec();
            pairs.retain(|(known, _)| *known != key);
            pairs.push((key, value));
            assert!(read(&pairs).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn catalogs_are_named_in_several_ways() {
        for uri in
            ["ducklake:/d/x.sqlite", "ducklake:///d/x.sqlite", "DuckLake:sqlite:/d/x.sqlite", "/d/x.sqlite"]
        {
            assert_eq!(catalog("lake", uri, None).unwrap(), Path::new("/d/x.sqlite"), "{uri}");
        }
        assert!(is_lake("ducklake:x") && !is_lake("sqlite:x") && !is_lake("x"));
    }

    #[test]
    fn a_link_leads_out_of_no_opened_folder() {
        let folder = std::env::temp_dir().join(format!("bowshot-lakes-{}", std::process::id()));
        let (open, shut) = (folder.join("open"), folder.join("shut"));
        std::fs::create_dir_all(&open).unwrap();
        std::fs::create_dir_all(&shut).unwrap();
        std::fs::write(shut.join("x"), "").unwrap();
        std::fs::write(open.join("x"), "").unwrap();
        std::os::unix::fs::symlink(shut.join("x"), open.join("link")).unwrap();
        let check = |path: PathBuf| check_opened(&path, std::slice::from_ref(&open)).is_ok();
        let found = (
            check(open.join("x")),
            check(open.join("missing")),
            check(open.join("link")),
            check(shut.join("x")),
        );
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, (true, true, false, false));
    }
}
