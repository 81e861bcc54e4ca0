//! From the queue to the collector: one task, which sends what there is twice a second or when a batch is full. What does not fit into
//! the queue, or is not taken in time, is dropped and counted; nothing is sent twice.

use super::client::Client;
use super::messages::Span;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Spans that wait for the collector.
const QUEUE: usize = 8_192;
const BATCH: usize = 512;
/// How long a delivery waits for more spans.
const PAUSE: Duration = Duration::from_millis(500);
const SPANS: &str = "bowshot_trace_spans_total";

/// Takes spans that have ended, on whatever thread, and makes nobody wait.
#[derive(Debug, Clone)]
pub(super) struct Queue(mpsc::Sender<Span>);

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Span>) {
        let (sender, spans) = mpsc::channel(QUEUE);
        (Self(sender), spans)
    }

    pub(super) fn put(&self, span: Span) {
        if self.0.try_send(span).is_err() {
            count("dropped", 1);
        }
    }
}

/// Spans are sent as long as this is there.
#[derive(Debug)]
pub(crate) struct Sending {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    patience: Duration,
}

impl Sending {
    /// Sends them to this collector from now on.
    pub(super) fn begin(spans: mpsc::Receiver<Span>, client: Client, patience: Duration) -> Self {
        let (stop, stopped) = oneshot::channel();
        let delivery = Delivery { client, patience, is_down: false };
        Self { stop, task: tokio::spawn(send_all(spans, delivery, stopped)), patience }
    }

    /// Sends what is left, within the time of one delivery.
    pub(crate) async fn finish(self) {
        _ = self.stop.send(());
        let abort = self.task.abort_handle();
        if tokio::time::timeout(self.patience, self.task).await.is_err() {
            abort.abort();
        }
    }
}

async fn send_all(
    mut spans: mpsc::Receiver<Span>,
    mut delivery: Delivery,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut is_last = false;
    while !is_last {
        tokio::select! {
            taken = spans.recv_many(&mut batch, BATCH) => is_last = taken == 0,
            _ = &mut stopped => is_last = true,
        }
        if !is_last && batch.len() < BATCH {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = &mut stopped => is_last = true,
            }
        }
        loop {
            fill(&mut batch, &mut spans);
            delivery.send(&mut batch).await;
            if !is_last || spans.is_empty() {
                break;
            }
        }
    }
}

fn fill(batch: &mut Vec<Span>, spans: &mut mpsc::Receiver<Span>) {
    while batch.len() < BATCH
        && let Ok(span) = spans.try_recv()
    {
        batch.push(span);
    }
}

struct Delivery {
    client: Client,
    patience: Duration,
    /// It is told once that the collector does not take them, and once that it does again.
    is_down: bool,
}

impl Delivery {
    async fn send(&mut self, batch: &mut Vec<Span>) {
        if batch.is_empty() {
            return;
        }
        let spans = std::mem::replace(batch, Vec::with_capacity(BATCH));
        let all = spans.len() as u64;
        let delivered = tokio::time::timeout(self.patience, Box::pin(self.client.export(spans))).await;
        let (refused, problem) = match delivered {
            Ok(Ok(None)) => (0, None),
            Ok(Ok(Some(refused))) => (refused.spans.min(all), Some(refused.reason)),
            Ok(Err(problem)) => (all, Some(problem)),
            Err(_) => (all, Some("no answer in time".to_owned())),
        };
        count("sent", all - refused);
        count("failed", refused);
        self.tell(problem);
    }

    fn tell(&mut self, problem: Option<String>) {
        match problem {
            None if std::mem::take(&mut self.is_down) => {
                tracing::info!("the collector accepts traces again");
            }
            Some(problem) if !std::mem::replace(&mut self.is_down, true) => {
                tracing::warn!(%problem, "the collector does not accept traces: they are dropped");
            }
            _ => {}
        }
    }
}

fn count(outcome: &'static str, spans: u64) {
    if spans > 0 {
        metrics::counter!(SPANS, "outcome" => outcome).increment(spans);
    }
}
