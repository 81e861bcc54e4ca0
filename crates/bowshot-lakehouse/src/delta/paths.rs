//! Which files the log of a Delta table may name: those below its folder. A log is data that somebody else has written, who
//! need not be allowed to read what the server can.

use crate::table_folder::FolderView;
use deltalake_core::kernel::{DeletionVectorDescriptor, LogDataHandler, StorageType};
use percent_encoding::percent_decode_str;
use std::path::Path;
use url::Url;

/// How often a path may have been encoded. More are refused.
const MAX_DECODINGS: usize = 4;
/// Characters of a file name in the descriptor of deleted rows; what comes before is a folder.
const ENCODED_UUID: usize = 20;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Root<'a> {
    /// On this machine, without links in its path.
    Folder(&'a Path),
    /// In a store that holds nothing else: what is named by a whole address is refused, since it could be another table's.
    Store,
}

/// Checks all files that a version of a table consists of.
///
/// # Errors
/// Names the first one that is not below the root.
pub(crate) fn check(files: LogDataHandler<'_>, root: Root<'_>) -> Result<(), String> {
    for file in files.iter() {
        let path = file.path();
        if !is_below(&path, root) {
            return Err(outside(&path));
        }
        if let Some(deleted) = file.deletion_vector_descriptor() {
            check_deleted(&deleted, root)?;
        }
    }
    Ok(())
}

/// The name below the folder of a file that a log names by a path or an address, encoded once or not at all.
pub(crate) fn name_below(path: &str, folder: &FolderView) -> Result<String, String> {
    let root = match folder {
        FolderView::Local(root) => root,
        FolderView::Remote(_) if is_below(path, Root::Store) => return Ok(decoded(path)),
        FolderView::Remote(_) => return Err(outside(path)),
    };
    if !is_below(path, Root::Folder(root)) {
        return Err(outside(path));
    }
    let whole = match Url::parse(path) {
        Ok(url) => url.to_file_path().map_err(|()| outside(path))?,
        Err(_) => root.join(decoded(path)),
    };
    let name = whole.strip_prefix(root).ok().and_then(Path::to_str).filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| outside(path))
}

fn check_deleted(deleted: &DeletionVectorDescriptor, root: Root<'_>) -> Result<(), String> {
    let text = deleted.path_or_inline_dv.as_str();
    let inside = match deleted.storage_type {
        StorageType::Inline => true,
        StorageType::AbsolutePath => is_below(text, root),
        StorageType::UuidRelativePath => {
            let folder = text.len().checked_sub(ENCODED_UUID).and_then(|length| text.get(..length));
            folder.is_some_and(|folder| is_below(folder, root))
        }
    };
    if inside { Ok(()) } else { Err(outside(text)) }
}

pub(crate) fn outside(path: &str) -> String {
    format!("its log names `{path}`, which is not in the folder of the table")
}

/// Whether a path of a log stays below the folder however often somebody decodes it.
fn is_below(path: &str, root: Root<'_>) -> bool {
    let mut path = path.to_owned();
    for _ in 0..MAX_DECODINGS {
        if !is_plainly_below(&path, root) {
            return false;
        }
        let decoded = decoded(&path);
        if decoded == path {
            return true;
        }
        path = decoded;
    }
    false
}

fn is_plainly_below(path: &str, root: Root<'_>) -> bool {
    if path.contains('\0') || path.split(['/', '\\']).any(|part| part.trim() == "..") {
        return false;
    }
    match (Url::parse(path), root) {
        (Ok(url), Root::Folder(root)) => {
            url.scheme() == "file" && url.to_file_path().is_ok_and(|file| file.starts_with(root))
        }
        (Ok(_), Root::Store) => false,
        // A URL without a scheme can still name another host.
        (Err(_), _) if path.starts_with("//") || path.starts_with('\\') => false,
        (Err(_), Root::Folder(root)) => !path.starts_with('/') || Path::new(path).starts_with(root),
        (Err(_), Root::Store) => !path.starts_with('/'),
    }
}

fn decoded(path: &str) -> String {
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_names_lies_below_its_folder() {
        let root = Root::Folder(Path::new("/data/t"));
        for (path, inside) in [
            ("part-0.parquet", true),
            ("a=1/b=x y/part.parquet", true),
            ("ts=2020-01-01 00%3A00%3A00/part.parquet", true),
            ("ts=2020-01-01 00:00:00/part.parquet", true),
            ("a..b/..c/d...parquet", true),
            ("file:///data/t/part.parquet", true),
            ("/data/t/part.parquet", true),
            ("100%/part.parquet", true),
            ("../secret.parquet", false),
            ("a/../../secret.parquet", false),
            ("/etc/passwd", false),
            ("/data/table2/x.parquet", false),
            ("file:///etc/passwd", false),
            ("file:///data/t/../../etc/passwd", false),
            ("FILE:/etc/passwd", false),
            ("file:../x", false),
            ("//host/x", false),
            ("http://host/x.parquet", false),
            ("s3://bucket/x.parquet", false),
            ("%2e%2e/secret.parquet", false),
            ("%2E./secret.parquet", false),
            ("%252e%252e/secret.parquet", false),
            ("a%2F..%2F..%2Fsecret", false),
            ("%2Fetc%2Fpasswd", false),
            ("file%3A///etc/passwd", false),
            ("..\\secret.parquet", false),
            ("%25252525252e%25252525252e/x", false),
        ] {
            assert_eq!(is_below(path, root), inside, "{path}");
            // In a store nothing but names from the folder on is one of them.
            let is_relative =
                !path.starts_with(['/', '\\']) && !path.to_ascii_lowercase().starts_with("file:");
            assert_eq!(is_below(path, Root::Store), inside && is_relative, "{path}");
        }
        assert!(!is_below("bowshot-delta://1/1/x.parquet", Root::Store));
    }

    #[test]
    fn names_are_decoded_once() {
        let folder = FolderView::Local("/data/t".into());
        for (path, name) in [
            ("part-0.parquet", Some("part-0.parquet")),
            ("a=x%20y/part.parquet", Some("a=x y/part.parquet")),
            ("ts=2020-01-01%2000%253A00/part.parquet", Some("ts=2020-01-01 00%3A00/part.parquet")),
            ("file:///data/t/a%20b.parquet", Some("a b.parquet")),
            ("/data/t/a%20b.parquet", Some("a b.parquet")),
            ("/data/t", None),
            ("../x", None),
            ("%2e%2e/x", None),
            ("/data/table2/x", None),
            ("s3://bucket/x", None),
        ] {
            assert_eq!(name_below(path, &folder).ok().as_deref(), name, "{path}");
        }
    }

    #[test]
    fn what_says_which_rows_are_gone_lies_there_too() {
        let vector = |storage_type, text: &str| DeletionVectorDescriptor {
            storage_type,
            path_or_inline_dv: text.to_owned(),
            offset: Some(1),
            size_in_bytes: 1,
            cardinality: 1,
        };
        let name = "ab^-aqEH.-t@S}K{vb[*k^";
        for (deleted, inside) in [
            (vector(StorageType::UuidRelativePath, name), true),
            (vector(StorageType::UuidRelativePath, "vBn[lx{q8@P<9BNH/isA"), true),
            (vector(StorageType::UuidRelativePath, "../../vBn[lx{q8@P<9BNH/isA"), false),
            (vector(StorageType::AbsolutePath, "file:///data/t/x.bin"), true),
            (vector(StorageType::AbsolutePath, "file:///etc/x.bin"), false),
            (vector(StorageType::Inline, "../anything"), true),
        ] {
            assert_eq!(
                check_deleted(&deleted, Root::Folder(Path::new("/data/t"))).is_ok(),
                inside,
                "{deleted:?}"
            );
        }
    }
}
