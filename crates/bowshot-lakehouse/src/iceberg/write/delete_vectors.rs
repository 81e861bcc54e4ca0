//! Rows that are deleted in files that stay: each file gets one vector of all its deleted rows, in the place of the one that it had
//! (Iceberg specification, "Deletion Vectors").

use super::super::manifest::ManifestFile;
use super::data_files::WrittenFile;
use super::manifest::{self, Change, DELETES};
use super::new_files::NewFiles;
use super::puffin::PuffinFile;
use super::removal::{put, spec_of};
use super::table_state::{TableState, Target};
use bowshot_api::Result;
use datafusion::common::ScalarValue;
use roaring::RoaringTreemap;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What a file of places deletes rows by.
const BY_PLACE: i64 = 1;

/// A file that stays, of which these rows are deleted.
pub(super) struct ShortenedFile<'r> {
    pub(super) path: String,
    pub(super) spec: i64,
    pub(super) partition: Vec<ScalarValue>,
    pub(super) places: &'r RoaringTreemap,
}

/// Writes the vectors and the manifests that name them; with the number of vectors, of rows and of bytes.
///
/// # Errors
/// When a file cannot be written; `Unsupported` for a specification of partitions that is not known here.
pub(super) fn put_vectors(
    shortened: Vec<ShortenedFile<'_>>,
    state: &TableState,
    (target, files): (&Target, &mut NewFiles),
    snapshot: i64,
) -> Result<(Vec<ManifestFile>, [i64; 3])> {
    let (mut manifests, mut counts) = (Vec::new(), [0; 3]);
    if shortened.is_empty() {
        return Ok((manifests, counts));
    }
    let name = format!("data/{}-deletes.puffin", Uuid::new_v4());
    let (mut puffin, mut of_specs) = (PuffinFile::new(), BTreeMap::<i64, Vec<WrittenFile>>::new());
    for ShortenedFile { path, spec, partition, places } in shortened {
        let range = puffin.add(&path, places)?;
        let rows = i64::try_from(places.len()).unwrap_or(i64::MAX);
        let [vectors, all_rows, bytes] = counts;
        counts = [vectors + 1, all_rows + rows, bytes + range.1];
        of_specs.entry(spec).or_default().push(WrittenFile {
            content: BY_PLACE,
            path: target.address(&name),
            format: "PUFFIN".to_owned(),
            partition,
            rows,
            referenced: Some(path),
            range: Some(range),
            ..WrittenFile::default()
        });
    }
    let bytes = puffin.finish();
    files.put(&name, &bytes)?;
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    for (spec, mut vectors) in of_specs {
        vectors.iter_mut().for_each(|vector| vector.bytes = size);
        let spec = spec_of(state, spec, target)?;
        let entries = vectors.iter().map(|vector| (Change::Added, vector));
        let bytes = manifest::manifest((target, &spec, DELETES), entries, snapshot);
        let (path, length) = put(target, files, &bytes)?;
        manifests.push(ManifestFile {
            path,
            length,
            spec: spec.id,
            content: DELETES,
            sequence: 0,
            min_sequence: 0,
            snapshot,
            files: [i64::try_from(vectors.len()).unwrap_or(i64::MAX), 0, 0],
            rows: [vectors.iter().map(|vector| vector.rows).sum(), 0, 0],
            partitions: Some(manifest::summaries(&spec.partition, &vectors)),
            key: None,
            first_row: None,
        });
    }
    Ok((manifests, counts))
}
