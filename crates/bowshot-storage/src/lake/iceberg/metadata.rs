//! The metadata file of a table, and which of them is current (specification, "Table Metadata").

use crate::Error;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a metadata file; a larger one is refused.
const MAX_BYTES: u64 = 32 << 20;
/// Bytes of the file that says which number is current.
const MAX_HINT_BYTES: u64 = 64;

/// What is read of a metadata file.
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
    snapshots: Vec<Snapshot>,
    #[serde(default)]
    partition_specs: Vec<PartitionSpec>,
    partition_spec: Option<Vec<PartitionField>>,
    #[serde(default)]
    properties: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct IcebergSchema {
    schema_id: Option<i32>,
    fields: Vec<IcebergField>,
}

/// A column, or a field within one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct IcebergField {
    pub(super) id: i32,
    pub(super) name: String,
    pub(super) required: bool,
    #[serde(rename = "type")]
    pub(super) data_type: IcebergType,
    pub(super) initial_default: Option<Value>,
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

/// A state of the table.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Snapshot {
    snapshot_id: i64,
    pub(super) manifest_list: Option<String>,
    /// Version 1 may name the manifests themselves.
    #[serde(default)]
    pub(super) manifests: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PartitionSpec {
    spec_id: i32,
    fields: Vec<PartitionField>,
}

/// What files are grouped by.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PartitionField {
    pub(super) source_id: Option<i32>,
    pub(super) transform: String,
}

/// A name that a column had in files without numbers (specification, "Column Projection").
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MappedField {
    field_id: Option<i32>,
    names: Vec<String>,
}

impl TableMetadata {
    /// # Errors
    /// When the file cannot be read, or is of a version that is not known.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::io(path, error);
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(Error::NotRegular { path: path.to_path_buf() });
        }
        let file = fs::File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let packed = std::mem::take(&mut bytes);
            GzDecoder::new(packed.as_slice()).take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::corrupt(path, "it is too large for the metadata of a table"));
        }
        let metadata: Self = serde_json::from_slice(&bytes).map_err(|error| Error::corrupt(path, error))?;
        if !(1..=3).contains(&metadata.format_version) {
            let detail = format!("version {} of the Iceberg format", metadata.format_version);
            return Err(Error::Unsupported { path: path.to_path_buf(), detail });
        }
        Ok(metadata)
    }

    /// The columns that the table has now.
    pub(super) fn fields(&self) -> Option<&[IcebergField]> {
        let current = self.schemas.iter().find(|schema| schema.schema_id == self.current_schema_id);
        Some(current.filter(|_| self.current_schema_id.is_some()).or(self.schema.as_ref())?.fields.as_slice())
    }

    /// The state that the table is in; none where nothing was ever written.
    ///
    /// # Errors
    /// Names a state that is said to be current and is not there.
    pub(super) fn current(&self) -> Result<Option<&Snapshot>, String> {
        let Some(current) = self.current_snapshot_id.filter(|id| *id >= 0) else { return Ok(None) };
        let found = self.snapshots.iter().find(|snapshot| snapshot.snapshot_id == current);
        found.map(Some).ok_or_else(|| format!("its current snapshot {current} is not there"))
    }

    /// What files of a specification are grouped by.
    pub(super) fn partitions(&self, spec: i32) -> &[PartitionField] {
        let found = self.partition_specs.iter().find(|known| known.spec_id == spec);
        let found = found.map(|spec| &spec.fields).or(self.partition_spec.as_ref());
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// The numbers of columns by the names that they had in files without numbers.
    pub(super) fn names(&self) -> HashMap<String, i32> {
        let mapping = self.properties.get("schema.name-mapping.default");
        let fields: Vec<MappedField> =
            mapping.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let of_field = |field: MappedField| {
            let names = field.field_id.map(|_| field.names).unwrap_or_default();
            names.into_iter().filter_map(move |name| Some((name, field.field_id?)))
        };
        fields.into_iter().flat_map(of_field).collect()
    }
}

/// The metadata file that is current. Those called `v12.metadata.json` are committed by getting their name, so the highest
/// number counts; of others, the one that `version-hint.text` names, else the one with the highest number.
///
/// # Errors
/// When there is none, or two have the highest number, of which a catalog alone knows which one counts.
pub(super) fn newest(folder: &Path) -> Result<PathBuf, Error> {
    let metadata = folder.join("metadata");
    let failed = |error| Error::io(&metadata, error);
    let hint = hint(&metadata.join("version-hint.text"));
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&metadata).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some(number) = path.file_name().and_then(|name| number_of(&name.to_string_lossy())) {
            found.push((number, path));
        }
    }
    let is_renamed =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('v'));
    let renamed = found.iter().filter(|(_, path)| is_renamed(path)).map(|(number, _)| *number).max();
    let highest = found.iter().map(|(number, _)| *number).max();
    let wanted = renamed.or(hint).or(highest);
    found.retain(|(_, path)| renamed.is_none() || is_renamed(path));
    found.retain(|(number, _)| Some(*number) == wanted);
    match found.as_slice() {
        [(_, path)] => Ok(path.clone()),
        [] => Err(Error::corrupt(&metadata, "the metadata file that is current is not there")),
        [(number, _), ..] => {
            let detail = format!(
                "{} metadata files of number {number}, of which only the table's catalog knows which one counts",
                found.len()
            );
            Err(Error::Unsupported { path: metadata, detail })
        }
    }
}

/// The number that a file says, if there is one.
fn hint(path: &Path) -> Option<u64> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_HINT_BYTES {
        return None;
    }
    fs::read_to_string(path).ok()?.trim().parse().ok()
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

    #[test]
    fn the_newest_counts_if_it_can_be_told() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = folder.path().join("metadata");
        fs::create_dir(&metadata).unwrap();
        assert!(newest(folder.path()).is_err());
        fs::write(metadata.join("00001-a.metadata.json"), "{}").unwrap();
        fs::write(metadata.join("00002-b.metadata.json"), "{}").unwrap();
        assert!(newest(folder.path()).unwrap().ends_with("00002-b.metadata.json"));
        fs::write(metadata.join("00002-c.metadata.json"), "{}").unwrap();
        assert!(newest(folder.path()).unwrap_err().to_string().contains("catalog"));
        fs::write(metadata.join("version-hint.text"), "1\n").unwrap();
        assert!(newest(folder.path()).unwrap().ends_with("00001-a.metadata.json"));
        fs::write(metadata.join("v1.metadata.json"), "{}").unwrap();
        fs::write(metadata.join("v2.metadata.json"), "{}").unwrap();
        assert!(newest(folder.path()).unwrap().ends_with("v2.metadata.json"));
    }

    #[test]
    fn a_version_that_is_not_known_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v1.metadata.json");
        fs::write(&path, r#"{"format-version": 4, "location": "x"}"#).unwrap();
        assert!(TableMetadata::read(&path).unwrap_err().to_string().contains("version 4"));
        fs::write(&path, r#"{"format-version": 2, "location": "x"}"#).unwrap();
        let metadata = TableMetadata::read(&path).unwrap();
        assert!(metadata.current().unwrap().is_none() && metadata.fields().is_none());
    }
}
