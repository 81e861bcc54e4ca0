//! Fetches results through Flight and measures their speed.

use anyhow::Result;
use bowshot_api::{OptionValue, batch_bytes};
use bowshot_flight::client::Client;
use futures::StreamExt;
use indicatif::HumanCount;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Name, value of the session option `endpoints`, statement.
const QUERIES: [(&str, &str, &str); 4] = [
    ("lineitem, all of it", "1", "SELECT * FROM lineitem"),
    ("the same in parallel", "auto", "SELECT * FROM lineitem"),
    (
        "orders join lineitem",
        "1",
        "SELECT l_orderkey, o_custkey, o_orderdate, o_orderpriority, l_partkey, l_quantity, l_extendedprice, \
         l_discount, l_shipdate FROM lineitem JOIN orders ON l_orderkey = o_orderkey",
    ),
    (
        "TPC-H 3 without limit",
        "1",
        "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority \
         FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey \
         AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' \
         GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate",
    ),
];

#[derive(Debug)]
struct Cost {
    rows: u64,
    bytes: u64,
    endpoints: usize,
    first_batch: Duration,
    total: Duration,
}

/// Runs all queries, one after the other.
pub(super) async fn run(client: &Client) -> Result<String> {
    let mut report = format!(
        "{:<22} {:>7} {:>12} {:>9} {:>9} {:>9} {:>11} {:>7}\n",
        "query", "streams", "rows", "MB", "first", "total", "rows/s", "GB/s"
    );
    for (name, endpoints, sql) in QUERIES {
        client.set_option("endpoints", Some(OptionValue::String(endpoints.to_owned()))).await?;
        let cost = fetch(client, sql).await?;
        writeln!(report, "{name:<22} {}", line(&cost))?;
    }
    report.push_str("\nthrough Flight SQL over loopback, server and client in this process\n");
    Ok(report)
}

async fn fetch(client: &Client, sql: &str) -> Result<Cost> {
    let started = Instant::now();
    let query = client.execute(sql).await?;
    let mut batches = query.batches();
    let mut cost = Cost {
        rows: 0,
        bytes: 0,
        endpoints: query.endpoints(),
        first_batch: Duration::ZERO,
        total: Duration::ZERO,
    };
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        if cost.rows == 0 {
            cost.first_batch = started.elapsed();
        }
        cost.rows += batch.num_rows() as u64;
        cost.bytes += batch_bytes(&batch) as u64;
    }
    cost.total = started.elapsed();
    Ok(cost)
}

fn line(cost: &Cost) -> String {
    let seconds = cost.total.as_secs_f64().max(1e-9);
    format!(
        "{:>7} {:>12} {:>9.1} {:>6.0} ms {:>7.3} s {:>11} {:>7.2}",
        cost.endpoints,
        HumanCount(cost.rows).to_string(),
        cost.bytes as f64 / 1e6,
        cost.first_batch.as_secs_f64() * 1e3,
        seconds,
        HumanCount((cost.rows as f64 / seconds) as u64).to_string(),
        cost.bytes as f64 / 1e9 / seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_from_totals() {
        let cost = Cost {
            rows: 6_001_215,
            bytes: 1_010_000_000,
            endpoints: 1,
            first_batch: Duration::from_millis(12),
            total: Duration::from_millis(500),
        };
        let text = line(&cost);
        assert_eq!(
            text.split_whitespace().collect::<Vec<_>>(),
            ["1", "6,001,215", "1010.0", "12", "ms", "0.500", "s", "12,002,430", "2.02"]
        );
    }
}
