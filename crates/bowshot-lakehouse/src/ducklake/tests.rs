//! Catalogs of versions that differ from the one that the suite of lakes writes: what is read of them.

use super::catalog::Catalog;
use super::metadata::{self, Described, LakeName};
use bowshot_api::ErrorKind;
use bowshot_object_store::Error;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The tables of the format that are read, as version 0.3 has them.
const OF_0_3: &str = "
CREATE TABLE ducklake_metadata(key VARCHAR, value VARCHAR, scope VARCHAR, scope_id BIGINT);
CREATE TABLE ducklake_snapshot(snapshot_id BIGINT PRIMARY KEY, snapshot_time VARCHAR, schema_version BIGINT, next_catalog_id BIGINT, next_file_id BIGINT);
CREATE TABLE ducklake_schema(schema_id BIGINT PRIMARY KEY, schema_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_name VARCHAR, path VARCHAR, path_is_relative BIGINT);
CREATE TABLE ducklake_table(table_id BIGINT, table_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, table_name VARCHAR, path VARCHAR, path_is_relative BIGINT);
CREATE TABLE ducklake_column(column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT, column_order BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, nulls_allowed BIGINT, parent_column BIGINT);
CREATE TABLE ducklake_data_file(data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, file_order BIGINT, path VARCHAR, path_is_relative BIGINT, file_format VARCHAR, record_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, row_id_start BIGINT, partition_id BIGINT, encryption_key VARCHAR, partial_file_info VARCHAR, mapping_id BIGINT);
CREATE TABLE ducklake_delete_file(delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, data_file_id BIGINT, path VARCHAR, path_is_relative BIGINT, format VARCHAR, delete_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, encryption_key VARCHAR);
CREATE TABLE ducklake_inlined_data_tables(table_id BIGINT, table_name VARCHAR, schema_version BIGINT);
CREATE TABLE ducklake_column_mapping(mapping_id BIGINT, table_id BIGINT, type VARCHAR);
CREATE TABLE ducklake_name_mapping(mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, parent_column BIGINT, is_partition BIGINT);
CREATE TABLE ducklake_partition_column(partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, transform VARCHAR);
CREATE TABLE ducklake_file_partition_value(data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR);
INSERT INTO ducklake_metadata VALUES ('version', '0.3', NULL, NULL), ('data_path', 'files/', NULL, NULL);
INSERT INTO ducklake_snapshot VALUES (0, '2026-01-01 00:00:00.5+00', 0, 1, 0), (5, '2026-01-02 03:00:00+01', 1, 2, 4);
INSERT INTO ducklake_schema VALUES (0, '', 0, NULL, 'main', 'main/', 1);
INSERT INTO ducklake_table VALUES (1, '', 1, NULL, 0, 't', 't/', 1);
INSERT INTO ducklake_column VALUES (1, 1, NULL, 1, 1, 'i', 'int32', NULL, NULL, 1, NULL);
INSERT INTO ducklake_data_file VALUES (0, 1, 1, NULL, NULL, 'a.parquet', 1, 'parquet', 1, 1, 1, 0, NULL, NULL, NULL, NULL), (1, 1, 2, NULL, NULL, 'b.parquet', 1, 'parquet', 2, 1, 1, 1, NULL, NULL, '2:1|3:2', NULL);
CREATE TABLE ducklake_inlined_data_1_1(row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, i BIGINT);
INSERT INTO ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_1', 1);
INSERT INTO ducklake_inlined_data_1_1 VALUES (0, 4, NULL, 7);
";

/// What version 1.1 has changed of it.
const TO_1_1: &str = "
UPDATE ducklake_metadata SET value = '1.1' WHERE key = 'version';
ALTER TABLE ducklake_schema ADD COLUMN parent_schema_id BIGINT;
ALTER TABLE ducklake_data_file DROP COLUMN partial_file_info;
ALTER TABLE ducklake_data_file ADD COLUMN partial_max BIGINT;
INSERT INTO ducklake_schema VALUES (1, '', 0, NULL, 'main', 'main/', 1, 0);
INSERT INTO ducklake_table VALUES (2, '', 1, NULL, 1, 'within', 't/', 1);
ALTER TABLE ducklake_inlined_data_1_1 RENAME COLUMN row_id TO _x_row_id;
ALTER TABLE ducklake_inlined_data_1_1 RENAME COLUMN begin_snapshot TO _x_begin_snapshot;
ALTER TABLE ducklake_inlined_data_1_1 RENAME COLUMN end_snapshot TO _x_end_snapshot;
";

fn made(folder: &Path, statements: &[&str]) -> PathBuf {
    let path = folder.join("meta.sqlite");
    let connection = Connection::open(&path).unwrap();
    statements.iter().for_each(|sql| connection.execute_batch(sql).unwrap());
    path
}

fn described(path: &Path, table: &str) -> Option<Described> {
    let mut catalog = Catalog::open(path).unwrap();
    let state = catalog.state().unwrap();
    let name = LakeName { schema: "main".to_owned(), table: table.to_owned() };
    metadata::described(&state, &name, state.moment.snapshot, 10).unwrap()
}

#[test]
fn catalogs_of_other_versions_are_read() {
    for statements in [&[OF_0_3][..], &[OF_0_3, TO_1_1]] {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path(), statements);
        let found = described(&path, "t").unwrap();
        assert_eq!((found.snapshot, found.files.len(), found.inlined.len()), (5, 2, 1));
        assert!(described(&path, "within").is_none());
    }
}

#[test]
fn rows_in_a_layout_that_is_not_known_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(
        folder.path(),
        &[OF_0_3, "ALTER TABLE ducklake_inlined_data_1_1 RENAME COLUMN end_snapshot TO z"],
    );
    let mut catalog = Catalog::open(&path).unwrap();
    let state = catalog.state().unwrap();
    let name = LakeName { schema: "main".to_owned(), table: "t".to_owned() };
    let error = metadata::described(&state, &name, 5, 10).unwrap_err();
    assert!(error.to_string().contains("unknown layout"), "{error}");
}

#[test]
fn schemas_of_one_number_are_refused_at_once() {
    let more = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) ";
    let tables = format!(
        "{more} INSERT INTO ducklake_table SELECT 10 + i, '', 1, NULL, 7, 't' || i, 't/', 1 FROM n; \
         CREATE TABLE s AS SELECT * FROM ducklake_schema; DROP TABLE ducklake_schema; ALTER TABLE s RENAME TO ducklake_schema"
    );
    let schemas =
        format!("{more} INSERT INTO ducklake_schema SELECT 7, '', 1, NULL, 's' || i, 's/', 1 FROM n");
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), &[OF_0_3, &tables, &schemas]);
    let mut catalog = Catalog::open(&path).unwrap();
    let state = catalog.state().unwrap();
    let name = LakeName { schema: "main".to_owned(), table: "t".to_owned() };
    for error in [
        metadata::listed(&state).map(drop).unwrap_err(),
        metadata::described(&state, &name, 5, 10).map(drop).unwrap_err(),
    ] {
        assert!(error.to_string().contains("two schemas with the id 7"), "{error}");
    }
}

#[test]
fn rows_of_too_many_bytes_are_refused() {
    for (bytes, is_read) in [(1_000, true), (17_000_000, false)] {
        let rows = format!(
            "INSERT INTO ducklake_inlined_data_1_1 SELECT 1, 4, NULL, zeroblob({bytes}) FROM (VALUES (1), (2), (3), (4))"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path(), &[OF_0_3, &rows]);
        let mut catalog = Catalog::open(&path).unwrap();
        let name = LakeName { schema: "main".to_owned(), table: "t".to_owned() };
        let found = metadata::described(&catalog.state().unwrap(), &name, 5, 10);
        assert_eq!(found.as_ref().is_ok(), is_read);
        let told = found.map_or_else(|error| error.to_string(), |found| format!("{found:?}"));
        assert!(told.len() < 5_000 && (is_read || told.contains("more than 64 MiB")), "{}", told.len());
    }
}

#[test]
fn reads_that_last_too_long_are_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), &[OF_0_3]);
    let mut catalog = Catalog::open(&path).unwrap();
    catalog.patience = Duration::from_millis(500);
    {
        let state = catalog.state().unwrap();
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
        let error = state.rows(sql, &[], 1, |row| row.get::<_, i64>(0)).unwrap_err();
        assert!(matches!(error, Error::Lake { kind: ErrorKind::Timeout, .. }), "{error}");
    }
    catalog.patience = Duration::from_secs(10);
    assert_eq!(metadata::listed(&catalog.state().unwrap()).unwrap().len(), 1);
}

#[test]
fn a_state_is_read_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), &[OF_0_3, "PRAGMA journal_mode = WAL"]);
    let mut catalog = Catalog::open(&path).unwrap();
    let first = {
        let state = catalog.state().unwrap();
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("INSERT INTO ducklake_table VALUES (9, '', 1, NULL, 0, 'u', 'u/', 1)").unwrap();
        assert_eq!(metadata::listed(&state).unwrap().len(), 1);
        state.moment
    };
    let state = catalog.state().unwrap();
    assert_eq!(metadata::listed(&state).unwrap().len(), 2);
    assert!(state.moment != first, "a change without a snapshot is seen");
}
