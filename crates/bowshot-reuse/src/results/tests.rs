//! Keys of results, and what stays when room is short.

use super::ResultCacheConfig;
use super::key::Question;
use super::store::{AskedQuery, BegunBytes, CachedResult, FoundResult, ResultInfo};
use super::{disk, stored_key};
use crate::cache::{Budget, Content, EntryInfo, Loaded, Place, Store, TableKey, TableName};
use bowshot_tables::TableStore;
use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

fn plan(number: i64) -> LogicalPlan {
    let plan = LogicalPlanBuilder::empty(true).project(vec![lit(number)]).and_then(LogicalPlanBuilder::build);
    plan.expect("a plan")
}

fn question(plan: &LogicalPlan, version: &str) -> Question {
    let name = TableName { catalog: "c".into(), schema: "s".into(), table: "t".into() };
    let content = Content::Files { version: version.into(), columns: 0 };
    Question::over(plan, vec![TableKey { name, content }]).expect("a query that can be kept")
}

fn store(memory_bytes: u64) -> Store<ResultInfo> {
    Store::open(Budget { memory_bytes, disk_bytes: 0, folder: None })
}

/// Keeps a result of a query that began then.
fn keep_from(
    store: &Store<ResultInfo>,
    question: &Question,
    (rows, cost_ms): (i64, u64),
    begun: Instant,
) -> Option<Arc<CachedResult>> {
    let numbers = Arc::new(Int64Array::from_iter_values(0..rows)) as _;
    let batch = RecordBatch::try_from_iter([("x", numbers)]).expect("a batch");
    let key = question.key.to_keep().expect("a key that can be kept");
    let about = ResultInfo {
        digest: question.digest,
        tables: key.tables.clone(),
        streams: vec![1],
        ordered: true,
        promised: None,
        query: OnceLock::new(),
        asked: Default::default(),
    };
    let (rows, cost) = (rows.cast_unsigned(), Duration::from_millis(cost_ms));
    let info = EntryInfo { rows, bytes: rows * 8, cost, created: SystemTime::now() };
    let loaded = Loaded::in_memory(batch.schema(), vec![batch]);
    store.keep(about, (info, loaded), AskedQuery { key, begun, template: None })
}

fn keep(store: &Store<ResultInfo>, question: &Question, rows: i64, cost_ms: u64) -> Arc<CachedResult> {
    keep_from(store, question, (rows, cost_ms), Instant::now()).expect("room")
}

fn rows(found: &FoundResult) -> usize {
    found
        .execution()
        .streams
        .iter()
        .filter_map(|stream| stream.ready())
        .flatten()
        .map(RecordBatch::num_rows)
        .sum()
}

#[test]
fn a_result_is_found_for_what_its_tables_held_and_replaced_by_a_later_one() {
    let (store, begun) = (store(1 << 20), Instant::now());
    let (now, later) = (question(&plan(1), "a"), question(&plan(1), "b"));
    keep(&store, &now, 10, 5);
    assert!(store.find(&now).is_some());
    assert!(store.find(&later).is_none(), "the table has changed");
    assert!(store.find(&question(&plan(2), "a")).is_none(), "another query");
    keep(&store, &later, 20, 5);
    assert_eq!(store.find(&later).map(|found| rows(&found)), Some(20));
    assert!(store.find(&now).is_none() && store.all().len() == 1, "nobody can ask for the earlier one");
    let earlier = keep_from(&store, &now, (10, 5), begun);
    assert!(earlier.is_none(), "a query that began before does not take the place of a later one");
    assert!(store.find(&later).is_some());
    store.remove_all(|_| true);
    assert!(store.find(&later).is_none());
}

#[test]
fn what_saves_least_for_its_bytes_leaves_first() {
    let store = store(1_000 * 8);
    let questions: Vec<Question> = (0..5).map(|number| question(&plan(number), "a")).collect();
    let [dear, asked, cheap, new, newer] = questions.as_slice() else { unreachable!("there are five") };
    keep(&store, dear, 300, 1_000);
    keep(&store, asked, 300, 10);
    keep(&store, cheap, 300, 15);
    for _ in 0..5 {
        let found = store.find(asked).expect("it is there");
        store.hit(&found.result);
    }
    keep(&store, new, 300, 1);
    let there = |question| store.find(question).is_some();
    assert_eq!([dear, asked, cheap, new].map(there), [true, true, false, true], "the new one has its chance");
    keep(&store, newer, 300, 1);
    assert_eq!([dear, asked, new, newer].map(there), [true, true, false, true]);
}

#[test]
fn room_for_results_on_their_way_is_bounded() {
    let begun = BegunBytes::new(100);
    assert!(begun.begin(60) && begun.begin(40) && !begun.begin(1));
    begun.end(40);
    assert!(begun.begin(30) && !begun.begin(30));
}

fn on_disk(folder: &Path, disk_bytes: u64) -> Store<ResultInfo> {
    let folder = Some(folder.to_path_buf());
    let config = ResultCacheConfig { disk_bytes, folder, ..ResultCacheConfig::default() };
    disk::open(&config, 1 << 20, &TableStore::in_memory("c", "s", 0))
}

fn write(store: &Store<ResultInfo>, question: &Question) -> Arc<CachedResult> {
    let result = keep(store, question, 1_000, 10);
    let query = stored_key::fingerprint(&question.key).expect("a text");
    result.about.query.set(query).expect("only once");
    store.write(&result, &|| {});
    result
}

#[test]
fn a_result_is_found_after_a_restart_and_removed_when_its_tables_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let (now, later) = (question(&plan(1), "a"), question(&plan(1), "b"));
    write(&on_disk(folder.path(), 1 << 20), &now);
    let store = on_disk(folder.path(), 1 << 20);
    let found = store.find_on_disk(&now).expect("it is there");
    assert_eq!(found.about.query.get(), stored_key::fingerprint(&now.key).as_ref());
    assert_ne!(found.about.query.get(), stored_key::fingerprint(&question(&plan(2), "a").key).as_ref());
    assert!(found.read().is_ok() && store.find(&now).is_none() && store.find_on_disk(&later).is_none());
    write(&store, &later);
    assert_eq!(store.all().len(), 1, "nobody can ask for the earlier one");
    drop(store);
    drop(on_disk(folder.path(), 0));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert!(left.iter().all(|entry| entry.path().extension().is_none()), "{left:?}");
}

#[test]
fn what_is_used_on_disk_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = on_disk(folder.path(), 1 << 17);
    let questions: Vec<Question> = (0..40).map(|number| question(&plan(number), "a")).collect();
    let mut results = Vec::new();
    for question in &questions {
        results.push(write(&store, question));
        store.hit(&results[0]);
    }
    let is_there = |number: usize| results[number].bytes_in(Place::Disk) > 0;
    assert!(is_there(0) && is_there(39) && !is_there(1));
    let bytes: u64 = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").len())
        .sum();
    assert!(bytes > 1 << 16 && bytes <= 1 << 17, "{bytes} bytes");
}

const OUTPUTS: &[&str] = &[
    "SELECT x",
    "SELECT x AS y",
    "SELECT w",
    "SELECT DISTINCT x",
    "SELECT x, w",
    "SELECT w, x",
    "SELECT *",
    "SELECT x + 1 AS x",
    "SELECT x + 2 AS x",
    "SELECT CAST(x AS INT) AS x",
    "SELECT TRY_CAST(x AS INT) AS x",
    "SELECT 'a' AS x",
    "SELECT 'A' AS x",
    "SELECT '' AS x",
    "SELECT NULL AS x",
    "SELECT CAST(NULL AS VARCHAR) AS x",
    "SELECT 1.0 AS x",
    "SELECT CAST(1 AS DOUBLE) AS x",
    "SELECT CAST(1 AS REAL) AS x",
    "SELECT 'x' AS \"a\"\"b\"",
    "SELECT X'00ff' AS x",
    "SELECT X'00fe' AS x",
    "SELECT count(*) AS n",
    "SELECT count(DISTINCT w) AS n",
    "SELECT count(w) AS n",
    "SELECT count(w) FILTER (WHERE x > 1) AS n",
    "SELECT sum(x) OVER () AS s",
    "SELECT sum(x) OVER (ORDER BY x) AS s",
    "SELECT sum(x) OVER (ORDER BY x DESC) AS s",
    "SELECT x IN (1, 2) AS x",
    "SELECT x NOT IN (1, 2) AS x",
    "SELECT x BETWEEN 1 AND 2 AS x",
    "SELECT w LIKE 'a' AS x",
    "SELECT w ILIKE 'a' AS x",
    "SELECT abs(x) AS x",
    "SELECT -x AS x",
    "SELECT w IN ('x\"), None), Literal(Utf8(\"y', 'z') AS b",
    "SELECT w IN ('x', 'y\"), None), Literal(Utf8(\"z') AS b",
    "SELECT concat('a', 'b') AS c",
    "SELECT concat('ab', '') AS c",
    "SELECT concat('', 'ab') AS c",
];
/// What follows their table.
const RESTS: &[&str] = &[
    "",
    "WHERE x > 1",
    "WHERE x >= 1",
    "WHERE w = 'a'",
    "WHERE w = 'b'",
    "ORDER BY 1",
    "ORDER BY 1 DESC",
    "ORDER BY 1 NULLS FIRST",
    "LIMIT 1",
    "LIMIT 2",
    "OFFSET 1",
    "LIMIT 1 OFFSET 1",
];

/// Queries that differ from each other in one thing each.
fn queries() -> Vec<String> {
    let from = "FROM (VALUES (1, 'a', 1.5), (2, 'b', 2.5)) AS t(x, w, d)";
    let mut sqls: Vec<String> = OUTPUTS.iter().map(|end| format!("{end} {from}")).collect();
    sqls.extend(RESTS.iter().map(|rest| format!("SELECT x, w AS z {from} {rest}")));
    let other = "(VALUES (1, 'a'), (2, 'c')) AS o(x, v)";
    sqls.extend(
        ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"].iter().flat_map(
            |kind| {
                ["t.x = o.x", "t.w = o.v", "t.x < o.x", "t.x = o.x AND t.x > 1"]
                    .map(|on| format!("SELECT t.x AS k {from} {kind} {other} ON {on}"))
            },
        ),
    );
    sqls.extend(
        [
            "x IN (SELECT x FROM",
            "x NOT IN (SELECT x FROM",
            "EXISTS (SELECT 1 FROM",
            "NOT EXISTS (SELECT 1 FROM",
        ]
        .iter()
        .flat_map(|some| {
            ["", " WHERE v = 'a'"].map(|rest| format!("SELECT x AS s {from} WHERE {some} {other}{rest})"))
        }),
    );
    sqls.extend(["UNION ALL", "UNION"].map(|kind| format!("SELECT x AS u {from} {kind} SELECT x {from}")));
    sqls.extend(["GROUP BY x, w", "GROUP BY w, x"].map(|by| format!("SELECT count(*) AS g {from} {by}")));
    sqls
}

#[tokio::test]
async fn queries_have_the_same_text_only_if_they_are_the_same() {
    let context = datafusion::prelude::SessionContext::new();
    let sqls = queries();
    let mut texts = Vec::new();
    for sql in &sqls {
        let plan = context.state().create_logical_plan(sql).await.expect(sql);
        let question = question(&plan, "a");
        let text = stored_key::text(&question.key.to_keep().expect(sql)).expect(sql);
        assert_eq!(stored_key::text(&question.key), Some(text.clone()), "{sql}");
        texts.push((sql, question, text));
    }
    for (place, (sql, question, text)) in texts.iter().enumerate() {
        for (other_sql, other, other_text) in &texts[place + 1..] {
            assert_eq!(question.key == other.key, text == other_text, "{sql}\n{other_sql}\n{text}");
            assert_ne!(text, other_text, "{sql}\n{other_sql}");
        }
    }
    let nested = context.state().create_logical_plan("SELECT [1, x] AS l FROM (VALUES (1)) AS t(x)").await;
    assert!(
        stored_key::text(&question(&nested.expect("a plan"), "a").key).is_some(),
        "its constants are plain"
    );
}
