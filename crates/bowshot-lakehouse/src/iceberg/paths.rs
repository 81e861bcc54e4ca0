//! Files that the metadata of a table name: those below its folder, wherever the folder was when they were written. Metadata
//! are data that somebody else has written, who need not be allowed to read what the server can.

use crate::table_folder::FolderView;

/// The name from the folder on of the file of this name. Names are kept as they are: the format does not encode them.
///
/// # Errors
/// Says what is wrong with a name that is not below the folder.
pub(super) fn below(name: &str, location: &str, folder: &FolderView) -> Result<String, String> {
    let outside = || format!("its metadata refer to `{name}`, which is not in the folder of the table");
    let location = location.trim_end_matches('/');
    let moved = name.strip_prefix(location).filter(|_| !location.is_empty());
    let rest = match moved.and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => rest.to_owned(),
        None => folder.name_of(name).ok_or_else(outside)?.into_owned(),
    };
    let rest = rest.trim_start_matches('/');
    let is_plain = |part: &str| !matches!(part.trim(), "." | "..");
    let is_below = !rest.is_empty()
        && !rest.ends_with('/')
        && !rest.contains('\0')
        && rest.split(['/', '\\']).all(is_plain);
    if is_below { Ok(rest.to_owned()) } else { Err(outside()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn what_metadata_name_lies_below_the_folder() {
        let folder = FolderView::Local(PathBuf::from("/data/t"));
        for (name, wanted) in [
            ("s3://b/db/t/data/x.parquet", Some("data/x.parquet")),
            ("s3://b/db/t/data/day=2020-01-01/x%20y.parquet", Some("data/day=2020-01-01/x%20y.parquet")),
            ("file:///data/t/data/x.parquet", Some("data/x.parquet")),
            ("file:/data/t/data/x.parquet", Some("data/x.parquet")),
            ("/data/t/data/x.parquet", Some("data/x.parquet")),
            ("s3://b/db/t/../secret.parquet", None),
            ("s3://b/db/t/.. /secret.parquet", None),
            ("s3://b/db/t/..\\secret.parquet", None),
            ("s3://b/db/t/./x.parquet", None),
            ("s3://b/db/t2/x.parquet", None),
            ("s3://b/db/t/", None),
            ("s3://b/db/t", None),
            ("s3://b/db/t/data/", None),
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
            let found = below(name, "s3://b/db/t/", &folder).ok();
            assert_eq!(found.as_deref(), wanted, "{name}");
        }
        assert!(below("/etc/passwd", "", &folder).is_err());
        assert!(below("/etc/passwd", "/", &folder).is_err());
        assert_eq!(below("/etc/passwd", "/etc", &folder).ok().as_deref(), Some("passwd"));
    }
}
