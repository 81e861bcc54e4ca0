//! Files that a catalog names: those below its data path, and below what else the operator has named. Names are kept as they are:
//! the format does not encode them.

use super::metadata::LakePath;
use std::fs;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// Where its files are, whatever the catalog says.
    pub(super) data_path: Option<PathBuf>,
    /// Where files may be that were added to it.
    pub(super) read_paths: Vec<PathBuf>,
    /// Where all of that has to be, of a lake that the operator has not named himself.
    pub(super) within: Option<Vec<PathBuf>>,
}

impl Named {
    /// Whether what a statement has named is where the operator lets statements go. It need not be there yet.
    ///
    /// # Errors
    /// Names the place that is elsewhere.
    pub(super) fn expect_within(&self) -> Result<(), String> {
        let Some(within) = &self.within else { return Ok(()) };
        let within: Vec<PathBuf> = within.iter().filter_map(|path| whole(path).ok()).collect();
        let is_open = |path: &&PathBuf| {
            let found = path.ancestors().find_map(|path| whole(path).ok());
            found.is_some_and(|found| within.iter().any(|opened| found.starts_with(opened)))
        };
        match self.data_path.iter().chain(&self.read_paths).find(|path| !is_open(path)) {
            Some(outside) => Err(not_opened(outside)),
            None => Ok(()),
        }
    }
}

/// Where files may be. All of them are without links.
#[derive(Debug)]
pub(super) struct Roots {
    data: PathBuf,
    /// The data path as the catalog has it, which stands for `data`.
    written: String,
    others: Vec<PathBuf>,
}

impl Roots {
    /// # Errors
    /// Says which place is none, or has not been opened.
    pub(super) fn new(catalog: &Path, data_path: &str, named: &Named) -> Result<Self, String> {
        let folder = fs::canonicalize(catalog).ok().and_then(|path| path.parent().map(Path::to_path_buf));
        let folder = folder.ok_or("its folder does not exist")?;
        let data = match &named.data_path {
            Some(path) => path.clone(),
            None => folder.join(of_this_machine(data_path).ok_or_else(|| elsewhere(data_path))?),
        };
        let data = whole(&data)?;
        let others = named.read_paths.iter().map(|path| whole(path)).collect::<Result<Vec<_>, _>>()?;
        match &named.within {
            Some(within) => {
                let within: Vec<PathBuf> = within.iter().filter_map(|path| whole(path).ok()).collect();
                let is_open = |path: &PathBuf| within.iter().any(|opened| path.starts_with(opened));
                if let Some(outside) = std::iter::once(&data).chain(&others).find(|path| !is_open(path)) {
                    return Err(not_opened(outside));
                }
            }
            None if named.data_path.is_none() && !data.starts_with(&folder) => {
                return Err(format!(
                    "its data path `{}` is not in the folder of the catalog",
                    data.display()
                ));
            }
            None => {}
        }
        Ok(Self { data, written: data_path.to_owned(), others })
    }

    /// The file of a path below folders, of which the first one is in the data path.
    ///
    /// # Errors
    /// Says what is wrong with a path that leads elsewhere.
    pub(super) fn local(&self, folders: &[LakePath], file: &LakePath) -> Result<PathBuf, String> {
        let mut path = self.data.clone();
        for part in folders.iter().chain([file]) {
            let text = part.path.as_str();
            if text.contains('\0') || text.split(['/', '\\']).any(|part| part.trim() == "..") {
                return Err(outside(text));
            }
            if part.is_relative {
                // Whatever begins with a slash would be taken for another beginning.
                path.push(text.trim_start_matches('/'));
                continue;
            }
            let written = self.written.trim_end_matches('/');
            let below = text.strip_prefix(written).and_then(|rest| rest.strip_prefix('/'));
            path = match below {
                Some(rest) if !written.is_empty() => self.data.join(rest.trim_start_matches('/')),
                _ => match of_this_machine(text) {
                    Some(absolute) if absolute.starts_with('/') => PathBuf::from(absolute),
                    _ => return Err(elsewhere(text)),
                },
            };
        }
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let roots = || std::iter::once(&self.data).chain(&self.others);
        match is_plain && roots().any(|root| path.starts_with(root) && path != *root) {
            true => Ok(path),
            false => Err(outside(&file.path)),
        }
    }
}

fn not_opened(path: &Path) -> String {
    format!("`{}` is outside of the folders that the operator allows", path.display())
}

fn outside(name: &str) -> String {
    format!("`{name}` is not below its data path")
}

fn elsewhere(name: &str) -> String {
    format!("`{name}` is not on this machine; remote files of a lake are not supported")
}

/// A folder without links.
fn whole(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("`{}` cannot be read: {error}", path.display()))
}

/// The path of `file:/path`, `file:///path` and of what has no scheme.
fn of_this_machine(name: &str) -> Option<&str> {
    let path = match name.strip_prefix("file:") {
        Some(rest) => rest.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(rest),
        None if name.contains("://") => return None,
        None => name,
    };
    (!path.starts_with("//") && !path.contains('\0')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative(path: &str) -> LakePath {
        LakePath { path: path.to_owned(), is_relative: true }
    }

    fn absolute(path: &str) -> LakePath {
        LakePath { path: path.to_owned(), is_relative: false }
    }

    #[test]
    fn files_lie_below_the_data_path() {
        let roots = Roots {
            data: PathBuf::from("/data/lake"),
            written: "s3://bucket/lake/".to_owned(),
            others: vec![PathBuf::from("/land")],
        };
        let folders = [relative("main/"), relative("t/")];
        for (file, wanted) in [
            (relative("y=a%2Fb c/f.parquet"), Some("/data/lake/main/t/y=a%2Fb c/f.parquet")),
            (relative("/etc/passwd"), Some("/data/lake/main/t/etc/passwd")),
            (relative("../../../etc/passwd"), None),
            (relative(".. /x"), None),
            (relative("a\0b"), None),
            (absolute("/land/f.parquet"), Some("/land/f.parquet")),
            (absolute("file:///land/f.parquet"), Some("/land/f.parquet")),
            (absolute("s3://bucket/lake/main/t/f.parquet"), Some("/data/lake/main/t/f.parquet")),
            (absolute("s3://bucket/lake2/f.parquet"), None),
            (absolute("s3://other/f.parquet"), None),
            (absolute("/landing/f.parquet"), None),
            (absolute("/land"), None),
            (absolute("/etc/passwd"), None),
            (absolute("//land/f"), None),
            (absolute("land/f"), None),
        ] {
            assert_eq!(roots.local(&folders, &file).ok().as_deref(), wanted.map(Path::new), "{file:?}");
        }
        let folders = [absolute("/land/main/"), relative("t/")];
        assert_eq!(roots.local(&folders, &relative("f")).ok(), Some(PathBuf::from("/land/main/t/f")));
        assert!(roots.local(&[absolute("/etc/")], &relative("passwd")).is_err());
    }

    #[test]
    fn what_a_statement_names_is_in_opened_places() {
        let folder = tempfile::tempdir().unwrap();
        let (open, shut) = (folder.path().join("open"), folder.path().join("shut"));
        fs::create_dir_all(open.join("files")).unwrap();
        fs::create_dir(&shut).unwrap();
        std::os::unix::fs::symlink(&shut, open.join("link")).unwrap();
        let within = Some(vec![open.clone()]);
        for (path, wanted) in [
            (open.join("files"), true),
            (open.join("later/files"), true),
            (open.join("link"), false),
            (open.join("link/later"), false),
            (shut.clone(), false),
            (shut.join("later"), false),
        ] {
            let data =
                Named { data_path: Some(path.clone()), read_paths: Vec::new(), within: within.clone() };
            let more = Named { data_path: None, read_paths: vec![path.clone()], within: within.clone() };
            assert_eq!(
                (data.expect_within().is_ok(), more.expect_within().is_ok()),
                (wanted, wanted),
                "{path:?}"
            );
        }
        assert!(Named { data_path: Some(shut), ..Named::default() }.expect_within().is_ok());
    }

    #[test]
    fn a_data_path_elsewhere_has_to_be_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (lake, other) = (root.join("lake"), root.join("other"));
        fs::create_dir_all(lake.join("files")).unwrap();
        fs::create_dir(&other).unwrap();
        let catalog = lake.join("meta.sqlite");
        fs::write(&catalog, "").unwrap();
        let new = |path: &str, named: Named| Roots::new(&catalog, path, &named).map(|roots| roots.data);
        assert_eq!(new("files/", Named::default()).unwrap(), lake.join("files"));
        let elsewhere = other.display().to_string();
        assert!(new(&elsewhere, Named::default()).unwrap_err().contains("folder of the catalog"));
        assert!(new("s3://bucket/x", Named::default()).unwrap_err().contains("remote files"));
        let named = Named { data_path: Some(other.clone()), ..Named::default() };
        assert_eq!(new("s3://bucket/x", named.clone()).unwrap(), other);
        let attached = |within: &Path| Some(vec![within.to_path_buf()]);
        assert!(new("files", Named { within: attached(&lake), ..Named::default() }).is_ok());
        assert!(new("files", Named { within: attached(&other), ..Named::default() }).is_err());
        assert!(new("files", Named { within: attached(&lake), ..named }).is_err());
        std::os::unix::fs::symlink(&other, lake.join("link")).unwrap();
        assert!(new("link", Named::default()).is_err());
    }
}
