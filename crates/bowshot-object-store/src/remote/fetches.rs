//! Reads of objects that are under way: who wants the same blocks waits for the request that is out already. It ends when the
//! last of them no longer waits.

use super::cache::FileKey;
use super::fault::Fault;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, Shared, WeakShared};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Blocks of a file by their numbers.
pub(super) type Blocks = BTreeMap<u32, Bytes>;

pub(super) type Fetch = BoxFuture<'static, Result<Blocks, Fault>>;

#[derive(Debug, Default)]
pub(super) struct Fetches(Mutex<Running>);

/// The requests that run, by file and blocks.
type Running = HashMap<(FileKey, Range<u32>), WeakShared<Fetch>>;

impl Fetches {
    /// The read of these blocks that is under way, else the one that `fetch` begins.
    pub(super) fn join(&self, run: (FileKey, Range<u32>), fetch: impl FnOnce() -> Fetch) -> Shared<Fetch> {
        let mut running = self.0.lock();
        if let Some(fetch) = running.get(&run).and_then(WeakShared::upgrade) {
            return fetch;
        }
        running.retain(|_, fetch| fetch.upgrade().is_some());
        let fetch = fetch().shared();
        if let Some(weak) = fetch.downgrade() {
            running.insert(run, weak);
        }
        fetch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn who_wants_the_same_waits_for_the_same_request() {
        let (fetches, begun) = (Fetches::default(), AtomicUsize::new(0));
        let blocks = Blocks::from([(3, Bytes::from_static(b"abc"))]);
        let join = |run| {
            let blocks = blocks.clone();
            fetches.join(([7; 16], run), || {
                begun.fetch_add(1, Ordering::Relaxed);
                async move { Ok(blocks) }.boxed()
            })
        };
        let (one, two, other) = (join(3..4), join(3..4), join(3..5));
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        drop(other);
        assert_eq!(one.await, two.await);
        // Nobody waits any more, and the blocks may have left the cache.
        assert_eq!(join(3..4).await.unwrap(), blocks);
        assert_eq!(begun.load(Ordering::Relaxed), 3);
    }
}
