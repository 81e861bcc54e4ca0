//! Files that the metadata of a table name: those below its folder, wherever the folder was when they were written. Metadata
//! are data that somebody else has written, who need not be allowed to read what the server can.

use std::path::{Component, Path, PathBuf};

/// The file of this name. Names are kept as they are: the format does not encode them.
///
/// # Errors
/// Says what is wrong with a name that is not below the folder.
pub(super) fn local(name: &str, location: &str, root: &Path) -> Result<PathBuf, String> {
    let outside = || format!("its metadata name `{name}`, which is not in the folder of the table");
    let location = location.trim_end_matches('/');
    let below = name.strip_prefix(location).and_then(|rest| rest.strip_prefix('/'));
    let path = match below {
        Some(rest) if !location.is_empty() => root.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(of_this_machine(name).ok_or_else(outside)?),
    };
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_plain =
        is_plain && !name.contains('\0') && !name.split(['/', '\\']).any(|part| part.trim() == "..");
    match is_plain && path.starts_with(root) && path != root {
        true => Ok(path),
        false => Err(outside()),
    }
}

/// The path of `file:/path`, `file:///path` and of what has no scheme.
fn of_this_machine(name: &str) -> Option<&str> {
    let path = match name.strip_prefix("file:") {
        Some(rest) => rest.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(rest),
        None => name,
    };
    (path.starts_with('/') && !path.starts_with("//")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_metadata_name_lies_below_the_folder() {
        let root = Path::new("/data/t");
        for (name, wanted) in [
            ("s3://b/db/t/data/x.parquet", Some("/data/t/data/x.parquet")),
            (
                "s3://b/db/t/data/day=2020-01-01/x%20y.parquet",
                Some("/data/t/data/day=2020-01-01/x%20y.parquet"),
            ),
            ("file:///data/t/data/x.parquet", Some("/data/t/data/x.parquet")),
            ("file:/data/t/data/x.parquet", Some("/data/t/data/x.parquet")),
            ("/data/t/data/x.parquet", Some("/data/t/data/x.parquet")),
            ("s3://b/db/t/../secret.parquet", None),
            ("s3://b/db/t/.. /secret.parquet", None),
            ("s3://b/db/t/..\\secret.parquet", None),
            ("s3://b/db/t2/x.parquet", None),
            ("s3://b/db/t/", None),
            ("s3://b/db/t", None),
            ("s3://other/x.parquet", None),
            ("file:///etc/passwd", None),
            ("file://host/data/t/x", None),
            ("/etc/passwd", None),
            ("//data/t/x", None),
            ("/data/t/../../etc/passwd", None),
            ("/data/table2/x", None),
            ("data/x.parquet", None),
            ("s3://b/db/t/a\0b", None),
        ] {
            let found = local(name, "s3://b/db/t/", root).ok();
            assert_eq!(found.as_deref(), wanted.map(Path::new), "{name}");
        }
        assert!(local("/etc/passwd", "", root).is_err());
        assert!(local("/etc/passwd", "/", root).is_err());
        assert_eq!(local("/etc/passwd", "/etc", root).ok(), Some(PathBuf::from("/data/t/passwd")));
    }
}
