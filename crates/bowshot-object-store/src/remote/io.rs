//! The threads that run requests to object stores, independent of the runtime or thread that waits for them.

use super::fault::Fault;
use std::future::Future;
use std::sync::mpsc;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// They wait for sockets, and decrypt; what is made of the bytes is computed elsewhere.
const THREADS: usize = 2;

#[derive(Debug)]
pub(super) struct Io {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Io {
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("object-store")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle })
    }

    /// Runs work here; dropping what comes back ends it.
    pub(super) fn spawn<F>(&self, work: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Task(self.handle.spawn(work))
    }

    /// Runs work here that ends by itself and that nobody waits for.
    pub(super) fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(work));
    }

    /// Runs work here and blocks until it is done. Never to be called on one of these threads.
    pub(super) fn wait<F>(&self, work: F) -> Result<F::Output, Fault>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (sender, receiver) = mpsc::sync_channel(1);
        let _task = self.spawn(async move {
            // Nobody listens any more when the server ends.
            let _ = sender.send(work.await);
        });
        receiver.recv().map_err(|_| Fault::Stopped)
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Blocking here would panic when the server itself is dropped inside an asynchronous task.
            runtime.shutdown_background();
        }
    }
}

/// Work that ends when nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    pub(super) async fn done(mut self) -> Result<T, Fault> {
        (&mut self.0).await.map_err(|_| Fault::Stopped)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
