//! Tasks that DataFusion starts for a job are parts of it, and end with it. DataFusion ends them when their plan is dropped, but
//! a plan may be kept for longer than its statement is at work: for a cache, or because somebody looks at it.

use super::{Entered, Job, Polls};
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

struct Carry;

/// From now on. DataFusion has one place for this in a process; that it is taken already is right when it is ours.
pub(crate) fn carry_jobs() {
    let _ = set_join_set_tracer(&Carry);
}

impl JoinSetTracer for Carry {
    fn trace_future(
        &self,
        future: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match Job::current() {
            // It reads all of its input perhaps before it returns, and has cost more already than a change of threads.
            Some(job) => Part { job, polls: Polls::Long, work: Some(future) }.boxed(),
            None => future,
        }
    }

    fn trace_block(
        &self,
        block: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        let Some(job) = Job::current() else { return block };
        Box::new(move || {
            let _entered = Entered::new(&job);
            block()
        })
    }
}

/// A task of a job. When the job has been stopped nobody waits for the task any more, and what it holds goes at once.
struct Part {
    job: Arc<Job>,
    polls: Polls,
    work: Option<BoxFuture<'static, Box<dyn Any + Send>>>,
}

impl Future for Part {
    type Output = Box<dyn Any + Send>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { job, polls, work } = self.get_mut();
        polls.next(job, || {
            if job.stopped().is_some() {
                *work = None;
            }
            match work {
                Some(work) => work.as_mut().poll(cx),
                None => Poll::Pending,
            }
        })
    }
}
