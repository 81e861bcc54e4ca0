//! Looking at the files that a listing found: several at a time, and those alone whose content is not known yet.

use crate::data_file::{DataFile, HandlePool};
use crate::file_metadata::{FactSources, FileFacts};
use crate::listed_file::ListedFile;
use crate::read_options::ReadOptions;
use bowshot_object_store::Error;
use datafusion::execution::SessionState;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Threads that look at the files of an object store.
const REMOTE_THREADS: usize = 32;

pub type KnownFiles = HashMap<PathBuf, (Arc<DataFile>, Arc<FileFacts>)>;

#[derive(Debug)]
pub struct Workshop {
    pub sources: FactSources,
    pub pool: Arc<HandlePool>,
    pub threads: usize,
    pub delta: Arc<SessionState>,
}

pub fn of_all_rows(options: &ReadOptions) -> ReadOptions {
    ReadOptions { sample_rows: Some(usize::MAX), ..options.clone() }
}

pub type LookedAt = Result<(Arc<DataFile>, Arc<FileFacts>), Error>;

/// One result per file, in order, by several threads. What could be read is kept even if another file is broken.
pub fn look_at(
    found: &[ListedFile],
    known: &mut KnownFiles,
    (options, workshop): (&ReadOptions, &Workshop),
) -> Vec<LookedAt> {
    let results: Vec<OnceLock<LookedAt>> = found.iter().map(|_| OnceLock::new()).collect();
    let (mut open, all_rows) = (Vec::new(), of_all_rows(options));
    for (index, file) in found.iter().enumerate() {
        match known.get(&file.path) {
            Some((data, facts))
                if *data.identity() == file.identity && file.identity.settled && !facts.is_outgrown() =>
            {
                let _ = results[index].set(Ok((Arc::clone(data), Arc::clone(facts))));
            }
            // What has had strange rows once may have some again when it has grown.
            Some((_, facts)) if facts.is_outgrown() || facts.is_of_all_rows() => {
                open.push((index, &all_rows))
            }
            _ => open.push((index, options)),
        }
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((index, options)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _ = results[*index].set(look_at_one(&found[*index], options, workshop));
        }
    };
    let remote = found.iter().any(|file| file.remote.is_some());
    // These wait for a network, not for a disk or a processor.
    let most = if remote { workshop.threads.max(REMOTE_THREADS) } else { workshop.threads };
    let threads = most.min(open.len());
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let missing =
        |file: &ListedFile| Error::Interrupted { path: file.path.clone(), detail: "no result".to_owned() };
    let results = results.into_iter().zip(found);
    let looked_at: Vec<LookedAt> =
        results.map(|(result, file)| result.into_inner().unwrap_or_else(|| Err(missing(file)))).collect();
    let kept = looked_at.iter().flatten();
    *known = kept
        .map(|(data, facts)| (data.path().to_path_buf(), (Arc::clone(data), Arc::clone(facts))))
        .collect();
    looked_at
}

fn look_at_one(found: &ListedFile, options: &ReadOptions, workshop: &Workshop) -> LookedAt {
    let data = found.data(&workshop.pool);
    // A file of noise can make a reader panic; that is this table's problem and nobody else's.
    let facts =
        catch_unwind(AssertUnwindSafe(|| FileFacts::read(&data, &found.kind, options, &workshop.sources)))
            .unwrap_or_else(|_| Err(Error::corrupt(&found.path, "it cannot be decoded")))
            .map_err(|error| data.fault().cloned().unwrap_or(error));
    data.close();
    Ok((data, Arc::new(facts?)))
}
