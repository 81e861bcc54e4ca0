//! The metadata file of a table, and which of them is current (specification, "Table Metadata").

use super::name_mapping::MappedField;
use crate::table_folder::FolderView;
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub(super) const MAX_BYTES: u64 = 32 << 20;
const FOLDER: &str = "metadata";
const MAX_HINT_BYTES: u64 = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct TableMetadata {
    pub(super) format_version: u32,
    pub(super) location: String,
    current_schema_id: Option<i32>,
    #[serde(default)]
    schemas: Vec<IcebergSchema>,
    schema: Option<IcebergSchema>,
    current_snapshot_id: Option<i64>,
    #[serde(default)]
    pub(super) snapshots: Vec<Snapshot>,
    /// When which state became the current one.
    #[serde(default)]
    pub(super) snapshot_log: Vec<Logged>,
    #[serde(default)]
    partition_specs: Vec<PartitionSpec>,
    partition_spec: Option<Vec<PartitionField>>,
    #[serde(default)]
    properties: HashMap<String, String>,
    /// Branches and tags.
    #[serde(default)]
    refs: HashMap<String, Reference>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Reference {
    snapshot_id: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct IcebergSchema {
    schema_id: Option<i32>,
    fields: Vec<IcebergField>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct IcebergField {
    pub(super) id: i32,
    pub(super) name: String,
    pub(super) required: bool,
    #[serde(rename = "type")]
    pub(super) data_type: IcebergType,
    pub(super) initial_default: Option<Value>,
    pub(super) write_default: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum IcebergType {
    Primitive(String),
    Nested(NestedType),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "kebab-case")]
pub(super) enum NestedType {
    Struct { fields: Vec<IcebergField> },
    List { element_id: i32, element: Box<IcebergType>, element_required: bool },
    Map { key_id: i32, key: Box<IcebergType>, value_id: i32, value: Box<IcebergType>, value_required: bool },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Snapshot {
    pub(super) snapshot_id: i64,
    pub(super) parent_snapshot_id: Option<i64>,
    pub(super) timestamp_ms: Option<i64>,
    /// The columns that it was written with; those of the table where it does not say.
    schema_id: Option<i32>,
    pub(super) manifest_list: Option<String>,
    /// Version 1 may name the manifests themselves.
    #[serde(default)]
    pub(super) manifests: Vec<String>,
}

/// A state became the current one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Logged {
    pub(super) timestamp_ms: i64,
    pub(super) snapshot_id: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PartitionSpec {
    spec_id: i32,
    fields: Vec<PartitionField>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PartitionField {
    pub(super) source_id: Option<i32>,
    pub(super) transform: String,
}

impl TableMetadata {
    pub(super) fn read(folder: &FolderView, name: &str, pool: &Arc<HandlePool>) -> Result<Self, Error> {
        let path = folder.path(name);
        let mut bytes = folder.read(name, MAX_BYTES, pool)?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let packed = std::mem::take(&mut bytes);
            let unpacked = GzDecoder::new(packed.as_slice()).take(MAX_BYTES + 1).read_to_end(&mut bytes);
            unpacked.map_err(|error| Error::io(&path, error))?;
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::corrupt(&path, "it is too large for table metadata"));
        }
        let metadata: Self = serde_json::from_slice(&bytes).map_err(|error| Error::corrupt(&path, error))?;
        metadata.check(&path)?;
        Ok(metadata)
    }

    pub(super) fn check(&self, path: &Path) -> Result<(), Error> {
        if (1..=3).contains(&self.format_version) {
            return Ok(());
        }
        let detail = format!("version {} of the Iceberg format", self.format_version);
        Err(Error::Unsupported { path: path.to_path_buf(), detail })
    }

    pub(super) fn fields(&self, earlier: Option<&Snapshot>) -> Option<&[IcebergField]> {
        let wanted = earlier.and_then(|state| state.schema_id).or(self.current_schema_id);
        let found = self.schemas.iter().find(|schema| wanted.is_some() && schema.schema_id == wanted);
        // Version 1 may have the one schema alone.
        let only = self
            .schema
            .as_ref()
            .filter(|only| wanted.is_none() || only.schema_id.is_none_or(|id| Some(id) == wanted));
        Some(found.or(only)?.fields.as_slice())
    }

    /// The state that the table is in; none where nothing was ever written.
    ///
    /// # Errors
    /// Names a state that is said to be current and is not there.
    pub(super) fn current(&self) -> Result<Option<&Snapshot>, String> {
        let Some(current) = self.current_snapshot_id.filter(|id| *id >= 0) else { return Ok(None) };
        let found = self.snapshot(current);
        found.map(Some).ok_or_else(|| format!("its current snapshot {current} does not exist"))
    }

    pub(super) fn snapshot(&self, id: i64) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.snapshot_id == id)
    }

    pub(super) fn referenced_state(&self, name: &str) -> Option<u64> {
        u64::try_from(self.refs.get(name)?.snapshot_id).ok()
    }

    pub(super) fn partitions(&self, spec: i32) -> &[PartitionField] {
        let found = self.partition_specs.iter().find(|known| known.spec_id == spec);
        let found = found.map(|spec| &spec.fields).or(self.partition_spec.as_ref());
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// The names that columns had in files without numbers.
    pub(super) fn names(&self) -> Vec<MappedField> {
        let mapping = self.properties.get("schema.name-mapping.default");
        mapping.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// The metadata file that is current, by its name from the folder on. Those called `v12.metadata.json` are committed by getting
/// their name, so the highest number counts; of others, the one that `version-hint.text` names, else the one with the highest
/// number.
pub(super) fn newest(folder: &FolderView, pool: &Arc<HandlePool>) -> Result<String, Error> {
    let names = folder.names(FOLDER)?;
    let hint = names.iter().any(|name| name == "version-hint.text").then(|| hint(folder, pool)).flatten();
    let numbered = names.iter().filter_map(|name| Some((number_of(name)?, name.as_str())));
    let mut found: Vec<(u64, &str)> = numbered.collect();
    let is_renamed = |name: &str| name.starts_with('v');
    let renamed = found.iter().filter(|(_, name)| is_renamed(name)).map(|(number, _)| *number).max();
    let highest = found.iter().map(|(number, _)| *number).max();
    let wanted = renamed.or(hint).or(highest);
    found.retain(|(_, name)| renamed.is_none() || is_renamed(name));
    found.retain(|(number, _)| Some(*number) == wanted);
    match found.as_slice() {
        [(_, name)] => Ok(format!("{FOLDER}/{name}")),
        [] => Err(Error::corrupt(&folder.path(FOLDER), "the current metadata file does not exist")),
        [(number, _), ..] => {
            let detail = format!(
                "{} metadata files of version {number}: only the table's catalog knows the current one",
                found.len()
            );
            Err(Error::Unsupported { path: folder.path(FOLDER), detail })
        }
    }
}

fn hint(folder: &FolderView, pool: &Arc<HandlePool>) -> Option<u64> {
    let bytes = folder.read(&format!("{FOLDER}/version-hint.text"), MAX_HINT_BYTES, pool).ok()?;
    String::from_utf8(bytes).ok()?.trim().parse().ok()
}

/// The number of `00012-uuid.metadata.json` and `v12.metadata.json`, also of compressed ones.
fn number_of(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(".metadata.json").or_else(|| name.strip_suffix(".metadata.json.gz"))?;
    let digits = stem.strip_prefix('v').unwrap_or(stem);
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_folder::TableFolder;
    use std::fs;

    #[test]
    fn metadata_files_have_numbers() {
        for (name, wanted) in [
            ("v12.metadata.json", Some(12)),
            ("v3.gz.metadata.json", Some(3)),
            ("00012-5f0e7d6e.metadata.json", Some(12)),
            ("00012-5f0e7d6e.gz.metadata.json", Some(12)),
            ("v4.metadata.json.gz", Some(4)),
            ("snap-1-2.avro", None),
            ("x.metadata.json", None),
            ("version-hint.text", None),
        ] {
            assert_eq!(number_of(name), wanted, "{name}");
        }
    }

    fn view(folder: &Path) -> FolderView {
        TableFolder::Local(folder.to_path_buf()).view().unwrap()
    }

    #[test]
    fn the_newest_counts_if_it_can_be_told() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), HandlePool::new(4));
        let metadata = folder.path().join("metadata");
        let newest = || newest(&view(folder.path()), &pool);
        fs::create_dir(&metadata).unwrap();
        assert!(newest().is_err());
        fs::write(metadata.join("00001-a.metadata.json"), "{}").unwrap();
        fs::write(metadata.join("00002-b.metadata.json"), "{}").unwrap();
        assert_eq!(newest().unwrap(), "metadata/00002-b.metadata.json");
        fs::write(metadata.join("00002-c.metadata.json"), "{}").unwrap();
        assert!(newest().unwrap_err().to_string().contains("catalog"));
        fs::write(metadata.join("version-hint.text"), "1\n").unwrap();
        assert_eq!(newest().unwrap(), "metadata/00001-a.metadata.json");
        fs::write(metadata.join("v1.metadata.json"), "{}").unwrap();
        fs::write(metadata.join("v2.metadata.json"), "{}").unwrap();
        assert_eq!(newest().unwrap(), "metadata/v2.metadata.json");
    }

    #[test]
    fn a_version_that_is_not_known_is_refused() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), HandlePool::new(4));
        let path = folder.path().join("v1.metadata.json");
        let read = || TableMetadata::read(&view(folder.path()), "v1.metadata.json", &pool);
        fs::write(&path, r#"{"format-version": 4, "location": "x"}"#).unwrap();
        assert!(read().unwrap_err().to_string().contains("version 4"));
        fs::write(&path, r#"{"format-version": 2, "location": "x"}"#).unwrap();
        let metadata = read().unwrap();
        assert!(metadata.current().unwrap().is_none() && metadata.fields(None).is_none());
    }
}
