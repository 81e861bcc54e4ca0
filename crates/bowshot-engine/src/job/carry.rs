//! Tasks that DataFusion starts for a job are parts of it.

use super::{Entered, Job};
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::any::Any;

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
            Some(job) => job.inside(future).boxed(),
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
