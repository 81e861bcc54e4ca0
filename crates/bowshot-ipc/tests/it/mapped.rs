//! Mapped Arrow files: shared memory, hostile footers, and files that are truncated under the map.

use crate::cases::{SHAPES, Shape, batch, types};
use crate::make::Numbers;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use bowshot_ipc::{Error, MappedFile};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn write(path: &Path, batches: &[RecordBatch], compression: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = FileWriter::try_new_with_options(file, &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.arrow");
    (folder, path)
}

#[test]
fn every_type_from_a_file() {
    let (_folder, path) = folder();
    for (name, data_type) in types() {
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            // Whole arrays, since Arrow's own writer makes wrong files of some slices, and twice the same, since a file
            // may not replace dictionaries.
            let whole = batch(&data_type, SHAPES[1]);
            let batches = [whole.clone(), whole];
            write(&path, &batches, compression);
            let file = MappedFile::open(&path).unwrap();
            assert_eq!(file.schema(), &batches[0].schema(), "{name}");
            assert_eq!(file.len(), batches.len());
            for (index, expected) in batches.iter().enumerate() {
                assert_eq!(&file.batch(index).unwrap(), expected, "{name} {compression:?}");
                assert_eq!(file.rows(index).unwrap(), expected.num_rows());
            }
            file.check().unwrap();
        }
    }
}

#[test]
fn batches_share_the_map() {
    let (_folder, path) = folder();
    let numbers = batch(&DataType::Int64, Shape { rows: 10_000, nulls: true, margin: 0 });
    write(&path, &[numbers], None);
    let file = MappedFile::open(&path).unwrap();
    let pointer = |batch: &RecordBatch| batch.column(0).to_data().buffers()[0].as_ptr();
    let (one, two) = (file.batch(0).unwrap(), file.batch(0).unwrap());
    assert_eq!(pointer(&one), pointer(&two), "two reads give the same memory");
    // The memory outlives the file's handle, and even its name.
    drop(file);
    fs::remove_file(&path).unwrap();
    assert_eq!(one, two);
}

#[test]
fn projection_reads_only_what_is_asked_for() {
    let (_folder, path) = folder();
    let all: Vec<_> = types().iter().map(|(_, t)| Arc::clone(batch(t, SHAPES[1]).column(0))).collect();
    let names: Vec<String> = (0..all.len()).map(|n| format!("c{n}")).collect();
    let table = RecordBatch::try_from_iter_with_nullable(
        names.iter().zip(all).map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    for compression in [None, Some(CompressionType::LZ4_FRAME)] {
        write(&path, std::slice::from_ref(&table), compression);
        let file = MappedFile::open(&path).unwrap();
        for columns in [vec![], vec![0], vec![5, 3, 5], (0..names.len()).rev().collect()] {
            let read = file.batch_projected(0, Some(&columns)).unwrap();
            assert_eq!(read, table.project(&columns).unwrap());
        }
        assert!(file.batch_projected(0, Some(&[names.len()])).is_err());
        assert!(file.batch(1).is_err());
    }
}

fn open_error(bytes: &[u8]) -> String {
    let (_folder, path) = folder();
    fs::write(&path, bytes).unwrap();
    let error = MappedFile::open(&path).unwrap_err().to_string();
    error.strip_prefix(&format!("file `{}`: ", path.display())).unwrap().to_owned()
}

#[test]
fn files_that_are_no_arrow_files() {
    assert_eq!(open_error(b""), "no Arrow file, but an empty file");
    assert_eq!(open_error(b"a,b\n1,2\n"), "no Arrow file, but something else");
    assert_eq!(open_error(b"PAR1 and so on PAR1"), "no Arrow file, but a Parquet file");
    assert_eq!(open_error(b"ARROW1\0\0"), "no Arrow file, but an Arrow file without its end");
    assert_eq!(open_error(b"ARROW1\0\0ARROW1"), "no Arrow file, but an Arrow file without its end");
    assert_eq!(
        open_error(b"ARROW1\0\0\xff\xff\xff\x7fARROW1"),
        "malformed Arrow data: a footer of 2147483647 bytes in a file of 18"
    );
    let numbers = batch(&DataType::Int64, SHAPES[0]);
    let mut stream = StreamWriter::try_new(Vec::new(), &numbers.schema()).unwrap();
    stream.write(&numbers).unwrap();
    let stream = stream.into_inner().unwrap();
    assert_eq!(
        open_error(&stream),
        "no Arrow file, but an Arrow stream (files have a footer, streams have none)"
    );
    let error = MappedFile::open("/nowhere/at/all.arrow").unwrap_err();
    assert_eq!(bowshot_api::Error::from(error).kind(), bowshot_api::ErrorKind::NotFound);
}

#[test]
fn disturbed_files() {
    let (_folder, path) = folder();
    let mut n = Numbers::new(5);
    for (name, data_type) in types().into_iter().step_by(5) {
        write(&path, &[batch(&data_type, SHAPES[0])], None);
        let whole = fs::read(&path).unwrap();
        for _ in 0..25 {
            let mut changed = whole.clone();
            // Mostly in the footer, which is the last part.
            let at = if n.below(3) == 0 {
                n.below(whole.len())
            } else {
                whole.len() - 1 - n.below(whole.len() / 3)
            };
            changed[at] = [0, 1, 0x7F, 0x80, 0xFF, n.next() as u8][n.below(6)];
            fs::write(&path, &changed).unwrap();
            let read = MappedFile::open(&path)
                .and_then(|file| (0..file.len()).try_for_each(|i| file.batch(i).map(drop)));
            if let Err(Error::File { source, .. }) = read {
                assert!(!matches!(*source, Error::Panicked), "{name} at {at}");
            }
        }
        for len in (0..whole.len()).step_by(397) {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(MappedFile::open(&path).is_err(), "{name} cut at {len}");
        }
    }
}

#[test]
fn a_file_that_changes_is_refused_from_then_on() {
    let (_folder, path) = folder();
    write(&path, &[batch(&DataType::Int64, SHAPES[0])], None);
    let file = MappedFile::open(&path).unwrap();
    file.batch(0).unwrap();
    let handle = OpenOptions::new().write(true).open(&path).unwrap();
    handle.set_modified(SystemTime::now() + Duration::from_secs(10)).unwrap();
    let error = file.batch(0).unwrap_err();
    assert!(error.to_string().ends_with("it was changed after it was opened"), "{error}");
    assert_eq!(bowshot_api::Error::from(error).kind(), bowshot_api::ErrorKind::Corrupt);
}

/// Environment variable that makes the test binary play the part of a server in [`in_child`].
const CHILD: &str = "BOWSHOT_IPC_TEST_CHILD";

/// Runs one test of this binary again in a process of its own, in which it may die.
fn in_child(test: &str) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap()
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// A table of 8 MB, mapped and not yet read.
fn large(path: &Path) -> MappedFile {
    write(path, &[batch(&DataType::Int64, Shape { rows: 1_000_000, nulls: false, margin: 0 })], None);
    MappedFile::open(path).unwrap()
}

fn truncate(path: &Path, len: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

#[test]
fn truncation_damages_the_table_and_not_the_process() {
    if !is_child() {
        let output = in_child("mapped::truncation_damages_the_table_and_not_the_process");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "the child died: {:?} {text}", output.status);
        assert!(text.contains("child: survived"), "{text}");
        return;
    }
    let (_folder, path) = folder();
    let file = large(&path);
    let rows = file.batch(0).unwrap();
    let numbers = rows.column(0).as_primitive::<Int64Type>();
    let last = numbers.value(999_999);
    assert_ne!(last, 0);
    truncate(&path, 4096);
    // Many readers touch lost pages at once, in different places.
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let numbers = &numbers;
            scope.spawn(move || {
                (0..1_000_000)
                    .rev()
                    .skip(thread * 50_000)
                    .step_by(99)
                    .map(|row| numbers.value(row))
                    .fold(0, i64::wrapping_add)
            });
        }
    });
    assert_eq!(numbers.value(999_999), 0, "lost pages read as zeros");
    let error = file.check().unwrap_err().to_string();
    assert!(error.ends_with("it was truncated while it was read"), "{error}");
    assert!(file.batch(0).is_err());
    // Another table goes on, also in the slot of the damaged one.
    drop((rows, file));
    let other = large(&path.with_file_name("other.arrow"));
    other.batch(0).unwrap();
    other.check().unwrap();
    println!("child: survived");
}

#[test]
fn a_witness_tells_of_a_map_that_is_gone() {
    let (_folder, path) = folder();
    let rows = batch(&DataType::Int64, SHAPES[1]);
    write(&path, std::slice::from_ref(&rows), None);
    let witness_of = || {
        let file = MappedFile::open(&path).unwrap();
        let (witness, held) = (file.witness(), file.batch(0).unwrap());
        assert!(witness.is_of_same_map(&file.witness()));
        drop(file);
        witness.check().unwrap();
        (witness, held)
    };
    let (intact, held) = witness_of();
    drop(held);
    let (changed, held) = witness_of();
    assert!(!intact.is_of_same_map(&changed));
    let longer = File::options().write(true).open(&path).unwrap();
    longer.set_len(longer.metadata().unwrap().len() + 1).unwrap();
    assert!(changed.check().is_err(), "the rows are still there");
    drop(held);
    let error = changed.check().unwrap_err().to_string();
    assert!(error.contains("table.arrow") && error.ends_with("it was changed while it was read"), "{error}");
    intact.check().expect("what comes after the last row does not matter");
}

#[test]
fn truncation_before_the_first_read_is_an_error_too() {
    let (_folder, path) = folder();
    let file = large(&path);
    truncate(&path, 4096);
    let error = file.batch(0).unwrap_err();
    assert_eq!(bowshot_api::Error::from(error).kind(), bowshot_api::ErrorKind::Corrupt);
}

#[cfg(target_os = "linux")]
#[test]
fn pages_are_shared_until_the_file_changes() {
    let (_folder, path) = folder();
    fs::write(&path, (0..100_000).map(|at| (at % 251) as u8).collect::<Vec<_>>()).unwrap();
    let pages = bowshot_ipc::FilePages::open(&path).unwrap();
    let bytes = pages.resident(70_000..70_010).unwrap();
    assert_eq!(bytes, (70_000..70_010).map(|at| (at % 251) as u8).collect::<Vec<_>>());
    // Of a page, not of a copy.
    assert_eq!(pages.resident(0..100_000).unwrap().as_ptr().addr() + 70_000, bytes.as_ptr().addr());
    assert!(pages.resident(99_999..100_001).is_none() && pages.resident(usize::MAX..usize::MAX).is_none());
    #[expect(clippy::reversed_empty_ranges, reason = "footers may name any range")]
    let reversed = pages.resident(10..5);
    assert!(reversed.is_none());
    pages.check().unwrap();
    truncate(&path, 4096);
    assert_eq!(bytes[0], 0, "lost pages read as zeros");
    let error = pages.check().unwrap_err().to_string();
    assert!(error.ends_with("it was truncated while it was read"), "{error}");
    assert!(bowshot_ipc::FilePages::open(path.with_extension("none")).is_err());
}

#[test]
fn a_bus_error_elsewhere_still_kills() {
    use std::os::unix::process::ExitStatusExt;
    if !is_child() {
        let output = in_child("mapped::a_bus_error_elsewhere_still_kills");
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{output:?}");
        return;
    }
    bowshot_ipc::install_truncation_guard().unwrap();
    let (_folder, path) = folder();
    fs::write(&path, vec![1; 100_000]).unwrap();
    #[expect(unsafe_code, reason = "the test makes the fault that the guard must not hide")]
    // SAFETY: the fault that follows is what the test is about; it ends the process.
    let map = unsafe { memmap2::Mmap::map(&File::open(&path).unwrap()).unwrap() };
    truncate(&path, 0);
    println!("read {}", map[50_000]);
}
