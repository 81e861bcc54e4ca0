//! Batches of a partition: in order, spilled where nobody reads, and complete or an error.

use super::*;
use arrow::array::{AsArray, Int32Array};
use arrow::datatypes::Int32Type;
use bowshot_api::Limits;
use futures::future::join_all;
use tokio::runtime::Handle;

const PRODUCERS: i32 = 3;
const BATCHES: i32 = 50;

/// Two rows: who made them, and the how manieth batch of theirs it is.
fn batch(producer: i32, number: i32) -> RecordBatch {
    let column = Arc::new(Int32Array::from(vec![producer, number])) as _;
    RecordBatch::try_from_iter([("value", column)]).unwrap()
}

fn spooled() -> Arc<Partition> {
    let policy = Policy { delivery: Delivery::Spool, has_siblings: false, budget_bytes: 1 };
    let accounts = Arc::new(Accounts::new(&Limits::default(), None));
    Arc::new(Partition::new(batch(0, 0).schema(), policy, PRODUCERS as usize, accounts))
}

async fn produce(partition: Arc<Partition>, producer: i32) -> bool {
    for number in 0..BATCHES {
        let batch = batch(producer, number);
        let bytes = Partition::size(&batch);
        if partition.push(batch, bytes).await.unwrap().is_err() {
            return false;
        }
    }
    partition.producer_done();
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spilled_rows_of_each_producer_keep_their_order() {
    let partition = spooled();
    let producers =
        join_all((0..PRODUCERS).map(|producer| tokio::spawn(produce(Arc::clone(&partition), producer))));
    let read = async {
        let (mut reader, mut next) = (Reader::new(Handle::current()), vec![0; PRODUCERS as usize]);
        while let Some(batch) = reader.next(&partition).await.unwrap() {
            let values = batch.column(0).as_primitive::<Int32Type>();
            assert_eq!(values.value(1), next[values.value(0) as usize]);
            next[values.value(0) as usize] += 1;
        }
        next
    };
    assert!(partition.claim());
    let (ended, read) = futures::join!(producers, read);
    assert!(ended.into_iter().all(Result::unwrap));
    assert_eq!(read, [BATCHES; PRODUCERS as usize]);
    assert_eq!(partition.totals().0, 2 * (PRODUCERS * BATCHES) as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_stays_on_disk_of_a_partition_that_fails_while_it_spills() {
    let partition = spooled();
    let producers =
        join_all((0..PRODUCERS).map(|producer| tokio::spawn(produce(Arc::clone(&partition), producer))));
    partition.fail(Error::internal("broken"));
    // A producer may have been done before.
    for ended in producers.await {
        ended.unwrap();
    }
    assert_eq!(partition.accounts.disk.load(Ordering::Relaxed), 0);
}
