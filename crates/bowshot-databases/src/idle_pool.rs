//! A pool of idle items with a timeout. A thread drops expired items, since dropping may block.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct IdleItems<T> {
    kept_for: Duration,
    items: Arc<Mutex<Items<T>>>,
}

#[derive(Debug)]
struct Items<T> {
    /// With when they came, the oldest first.
    kept: Vec<(T, Instant)>,
    /// Whether the thread is there.
    is_watched: bool,
}

impl<T: Send + 'static> IdleItems<T> {
    pub(crate) fn new(kept_for: Duration) -> Self {
        Self { kept_for, items: Arc::new(Mutex::new(Items { kept: Vec::new(), is_watched: false })) }
    }

    /// The one that came last.
    pub(crate) fn take(&self) -> Option<T> {
        self.items.lock().kept.pop().map(|(item, _)| item)
    }

    pub(crate) fn keep(&self, item: T) {
        let mut items = self.items.lock();
        items.kept.push((item, Instant::now()));
        if items.is_watched {
            return;
        }
        let (watched, kept_for) = (Arc::downgrade(&self.items), self.kept_for);
        let watch = thread::Builder::new().name("database-idle".to_owned());
        match watch.spawn(move || drop_old(&watched, kept_for)) {
            Ok(_) => items.is_watched = true,
            Err(error) => {
                let unkept = items.kept.pop();
                drop(items);
                drop(unkept);
                tracing::debug!(%error, "an idle connection is closed");
            }
        }
    }

    pub(crate) fn clear(&self) {
        let kept = std::mem::take(&mut self.items.lock().kept);
        drop(kept);
    }
}

/// Drops what has been kept long enough until nothing is kept any more.
fn drop_old<T>(items: &Weak<Mutex<Items<T>>>, kept_for: Duration) {
    while let Some(items) = items.upgrade() {
        let (old, next) = {
            let mut items = items.lock();
            let old = items.kept.iter().take_while(|(_, since)| since.elapsed() >= kept_for).count();
            let old: Vec<(T, Instant)> = items.kept.drain(..old).collect();
            let next = items.kept.first().map(|(_, since)| kept_for.saturating_sub(since.elapsed()));
            items.is_watched = next.is_some();
            (old, next)
        };
        drop(old);
        drop(items);
        match next {
            Some(next) => thread::sleep(next),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct Told(u8, Sender<u8>);

    impl Drop for Told {
        fn drop(&mut self) {
            self.1.send(self.0).unwrap();
        }
    }

    #[test]
    fn what_nobody_takes_is_dropped() {
        let (sender, dropped) = channel();
        let items = IdleItems::new(Duration::from_millis(20));
        for round in 0..2 {
            items.keep(Told(round, sender.clone()));
            assert_eq!(dropped.recv(), Ok(round));
            assert!(items.take().is_none());
        }
    }

    #[test]
    fn the_last_one_is_taken_first() {
        let (sender, dropped) = channel();
        let items = IdleItems::new(Duration::from_secs(3600));
        (0..3).for_each(|number| items.keep(Told(number, sender.clone())));
        assert_eq!(items.take().map(|taken| taken.0), Some(2));
        items.clear();
        assert_eq!(dropped.iter().take(3).collect::<Vec<_>>(), [2, 0, 1]);
        assert!(items.take().is_none());
    }
}
