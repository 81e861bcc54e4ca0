//! The runtime that CPU work runs on. Sockets have another one, so that a long sort never delays a keep-alive.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// Deep plans recurse; the default of 2 MiB is too little for hostile nesting.
const STACK_BYTES: usize = 16 << 20;

/// Work that goes on for longer after its runtime is left to itself.
const ENDING: Duration = Duration::from_secs(10);

/// A multi-threaded runtime for planning and execution. Dropping it stops everything that runs on it.
#[derive(Debug)]
pub struct QueryRuntime {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl QueryRuntime {
    /// Starts `threads` worker threads. More than processors is right: a plan that yields too rarely then shares the
    /// processor with others by the operating system's scheduler instead of holding it alone.
    ///
    /// # Errors
    /// When the operating system gives no threads.
    pub fn start(threads: usize) -> io::Result<Self> {
        Self::of(Builder::new_multi_thread().worker_threads(threads.max(1)).thread_name("query"))
    }

    /// Starts one thread for what is no query. `begin` is called on it, and on those that it starts.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start_thread(name: &str, begin: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        Self::of(Builder::new_multi_thread().worker_threads(1).thread_name(name).on_thread_start(begin))
    }

    fn of(builder: &mut Builder) -> io::Result<Self> {
        let runtime = builder.thread_stack_size(STACK_BYTES).enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle })
    }

    /// Runs a future on the query threads. The caller owns the handle; aborting it stops the work.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(work)
    }

    /// Whether the caller runs on it.
    pub fn is_here(&self) -> bool {
        Handle::try_current().is_ok_and(|current| current.id() == self.handle.id())
    }

    /// The handle, for task sets that abort on drop.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for QueryRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            end(runtime);
        }
    }
}

/// Ends its threads from another one, since the server may be dropped inside an asynchronous task, which must not wait. They are
/// joined, not detached as by `shutdown_background`: glibc reads from a thread's stack after it has detached it, which ends the
/// process where the thread has ended just then and its stack, too large to be kept, is gone (glibc bug 19951).
fn end(runtime: Runtime) {
    let (sender, receiver) = mpsc::sync_channel::<Runtime>(1);
    let ending = move || {
        if let Ok(runtime) = receiver.recv() {
            runtime.shutdown_timeout(ENDING);
        }
    };
    match thread::Builder::new().name("ending".to_owned()).spawn(ending) {
        Ok(_) => drop(sender.send(runtime)),
        Err(_) => runtime.shutdown_background(),
    }
}
