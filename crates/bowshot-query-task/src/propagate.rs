//! Tasks that DataFusion starts for a query task belong to it, and end with it. DataFusion ends them when their plan is dropped,
//! but a plan may live longer than its statement: for a cache, or because somebody looks at it.

use super::{Entered, Polls, QueryTask};
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

struct Propagate;

/// From now on. DataFusion has one place for this in a process; that it is taken already is right when it is ours.
pub fn propagate() {
    let _ = set_join_set_tracer(&Propagate);
}

impl JoinSetTracer for Propagate {
    fn trace_future(
        &self,
        future: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match QueryTask::current() {
            // It reads all of its input perhaps before it returns, and has cost more already than a change of threads.
            Some(task) => Part { task, polls: Polls::Long, work: Some(future) }.boxed(),
            None => future,
        }
    }

    fn trace_block(
        &self,
        block: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        let Some(task) = QueryTask::current() else { return block };
        Box::new(move || {
            let _entered = Entered::new(&task);
            block()
        })
    }
}

/// A task of a query task. When the query task has been stopped nobody waits for the task any more, and what it holds goes at once.
struct Part {
    task: Arc<QueryTask>,
    polls: Polls,
    work: Option<BoxFuture<'static, Box<dyn Any + Send>>>,
}

impl Future for Part {
    type Output = Box<dyn Any + Send>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { task, polls, work } = self.get_mut();
        polls.next(task, || {
            if task.stopped().is_some() {
                *work = None;
            }
            match work {
                Some(work) => work.as_mut().poll(cx),
                None => Poll::Pending,
            }
        })
    }
}
