//! Answers never depend on the order of joins, and the order follows the sizes.

use super::cost::Model;
use super::set::RelationSet;
use super::tree::Shape;
use super::{Choose, SELECTION, SessionJoinOrder, before_selection, choosing, worthwhile};
use crate::node_rule::Rule;
use crate::same_names;
use crate::test_sessions::register_file;
use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// Random numbers that are the same each time (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).expect("small")
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

fn context(choose: Option<Choose>) -> SessionContext {
    let config =
        SessionConfig::new().with_target_partitions(2).with_option_extension(SessionJoinOrder::default());
    let rules = same_names::physical();
    let rules = match choose {
        Some(choose) => choosing(rules, choose),
        None => rules,
    };
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let builder = builder.with_optimizer_rules(crate::logical(false)).with_physical_optimizer_rules(rules);
    SessionContext::new_with_state(builder.build())
}

thread_local! {
    static SHAPES: Cell<u64> = const { Cell::new(1) };
    static OTHERS: Cell<usize> = const { Cell::new(0) };
}

/// Any shape in which each join has an equality, whatever it costs.
fn any_shape(model: &mut Model, given: Shape) -> Shape {
    let mut dice = Dice(SHAPES.get());
    let mut parts: Vec<Shape> = (0..model.relations()).map(Shape::Relation).collect();
    while parts.len() > 1 {
        let (one, other) = (dice.below(parts.len()), dice.below(parts.len()));
        if one == other || !model.connects(parts[one].relations(), parts[other].relations()) {
            continue;
        }
        let right = parts.swap_remove(one.max(other));
        let left = parts.swap_remove(one.min(other));
        parts.push(Shape::Join(Box::new(left), Box::new(right)));
    }
    SHAPES.set(dice.0);
    let shape = parts.pop().expect("a relation");
    OTHERS.set(OTHERS.get() + usize::from(joined_sets(&shape) != joined_sets(&given)));
    shape
}

fn joined_sets(shape: &Shape) -> BTreeSet<RelationSet> {
    match shape {
        Shape::Relation(_) => BTreeSet::new(),
        Shape::Join(left, right) => {
            let below = &joined_sets(left) | &joined_sets(right);
            &below | &BTreeSet::from([shape.relations()])
        }
    }
}

const TABLES: usize = 6;
const KEYS: [&str; 3] = ["k", "j", "s"];

/// A table with keys of few values, some of them null.
fn table(dice: &mut Dice) -> RecordBatch {
    let rows = dice.pick(&[1, 3, 8, 20]);
    let mut values = |rows: usize, of: usize| -> Vec<Option<usize>> {
        (0..rows).map(|_| (!dice.chance(15)).then(|| dice.below(of))).collect()
    };
    let (k, j, s, x) = (values(rows, 5), values(rows, 4), values(rows, 3), values(rows, 10));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(k.iter().map(|v| v.map(|v| v as i64)).collect::<Int64Array>())),
        ("j", Arc::new(j.iter().map(|v| v.map(|v| v as i32)).collect::<Int32Array>())),
        ("s", Arc::new(s.iter().map(|v| v.map(|v| ["a", "b", ""][v])).collect::<StringArray>())),
        ("x", Arc::new(x.iter().map(|v| v.map(|v| v as i64)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("batch")
}

/// A query that joins some tables in some ways, with all that may stand between joins.
fn query(dice: &mut Dice) -> String {
    let count = 2 + dice.below(5);
    let mut from = String::new();
    let mut conditions: Vec<String> = Vec::new();
    for place in 0..count {
        let table = format!("t{}", dice.below(TABLES));
        let source = match dice.below(10) {
            0 => format!("(SELECT k, max(j) AS j, min(s) AS s, sum(x) AS x FROM {table} GROUP BY k)"),
            1 => format!("(SELECT k, j, s, x + 1 AS x FROM {table} WHERE x <> 3)"),
            2 => format!("(SELECT p.k, q.j, p.s, q.x FROM {table} p JOIN t0 q ON p.k = q.k)"),
            3 => format!("(SELECT DISTINCT k, j, s, x FROM {table})"),
            _ => table,
        };
        if place == 0 {
            write!(from, "{source} r0").expect("text");
            continue;
        }
        let mut on = Vec::new();
        for _ in 0..1 + dice.below(2) {
            let key = dice.pick(&KEYS);
            on.push(format!("r{}.{key} = r{place}.{key}", dice.below(place)));
        }
        if dice.chance(15) {
            let op = dice.pick(&["<", "<>", ">="]);
            on.push(format!("r{}.x {op} r{place}.x", dice.below(place)));
        }
        if dice.chance(10) {
            on.push(format!("r{place}.x + r{}.x < 12", dice.below(place)));
        }
        if dice.chance(5) {
            on.push(format!("r{}.x > 2", dice.below(place + 1)));
        }
        let kind =
            dice.pick(&["JOIN", "JOIN", "JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", ","]);
        if kind == "," {
            write!(from, " CROSS JOIN {source} r{place}").expect("text");
            conditions.extend(on);
        } else {
            write!(from, " {kind} {source} r{place} ON {}", on.join(" AND ")).expect("text");
        }
    }
    let place = dice.below(count);
    match dice.below(8) {
        0 => conditions.push(format!("r{place}.x < {}", dice.below(10))),
        1 => conditions.push(format!("r{place}.s = 'a'")),
        2 => conditions.push(format!("r{place}.k IN (SELECT k FROM t1 WHERE x > 2)")),
        3 => conditions.push(format!("NOT EXISTS (SELECT 1 FROM t2 WHERE t2.j = r{place}.j)")),
        4 => conditions.push(format!("r{place}.k = r{place}.x")),
        _ => {}
    }
    let mut chosen: Vec<String> = Vec::new();
    for number in 0..1 + dice.below(4) {
        chosen.push(format!("r{}.{} AS c{number}", dice.below(count), dice.pick(&["k", "j", "s", "x"])));
    }
    let chosen = if dice.chance(20) { "count(*), sum(r0.x)".to_owned() } else { chosen.join(", ") };
    let conditions =
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    format!("SELECT {chosen} FROM {from}{conditions}")
}

async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<String>, String> {
    let rows = async { context.sql(sql).await?.collect().await }.await.map_err(|error| error.to_string())?;
    let text = pretty_format_batches(&rows).expect("text").to_string();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    Ok(lines)
}

#[tokio::test]
async fn answers_do_not_depend_on_the_order() {
    let mut dice = Dice(20_261_123);
    for round in 0..24 {
        let tables: Vec<RecordBatch> = (0..TABLES).map(|_| table(&mut dice)).collect();
        let contexts = [context(None), context(Some(worthwhile)), context(Some(any_shape))];
        for context in &contexts {
            for (place, table) in tables.iter().enumerate() {
                context.register_batch(format!("t{place}"), table.clone()).expect("table");
            }
        }
        for _ in 0..25 {
            let sql = query(&mut dice);
            let expected = answer(&contexts[0], &sql).await;
            for context in &contexts[1..] {
                assert_eq!(answer(context, &sql).await, expected, "round {round}: {sql}");
            }
        }
    }
    assert!(OTHERS.get() > 300, "only {} orders were other ones", OTHERS.get());
}

/// Rows that joins give and rows that their hash tables are built of.
fn joins(plan: &Arc<dyn ExecutionPlan>) -> (usize, usize) {
    let mut rows = (0, 0);
    if let Some(metrics) = plan.downcast_ref::<HashJoinExec>().and_then(|join| join.metrics()) {
        let built = metrics.sum_by_name("build_input_rows").map_or(0, |rows| rows.as_usize());
        rows = (metrics.output_rows().unwrap_or(0), built);
    }
    for (joined, built) in plan.children().into_iter().map(joins) {
        rows = (rows.0 + joined, rows.1 + built);
    }
    rows
}

/// The same for all joins of a query.
async fn joined_rows(context: &SessionContext, sql: &str) -> (usize, usize) {
    let plan = context.sql(sql).await.expect("query").create_physical_plan().await.expect("plan");
    collect(Arc::clone(&plan), context.task_ctx()).await.expect("rows");
    joins(&plan)
}

/// Files of a table for each tenant's texts, and of keys that are far apart, as those of days in digits are.
async fn with_tenants(choose: Option<Choose>, folder: &std::path::Path) -> SessionContext {
    let context = context(choose);
    for (name, rows, parents) in
        [("cust", 2_000_i64, 1), ("ord", 6_000, 2_000), ("line", 20_000, 6_000), ("prod", 1_000, 1)]
    {
        let ids = (0..rows).map(|row| row * 40).collect::<Int64Array>();
        let parent = (0..rows).map(|row| Some(row % parents * 40)).collect::<Int64Array>();
        let product = (0..rows).map(|row| Some(row % 1000 * 40)).collect::<Int64Array>();
        let tenants =
            (0..rows).map(|row| Some(if row % 4 == 0 { "acme" } else { "other" })).collect::<StringArray>();
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(ids) as ArrayRef),
            ("parent", Arc::new(parent) as ArrayRef),
            ("product", Arc::new(product) as ArrayRef),
            ("tenant", Arc::new(tenants) as ArrayRef),
        ])
        .expect("batch");
        register_file(&context, folder, name, batch).await;
    }
    context
}

#[tokio::test]
async fn no_order_multiplies_rows_without_need() {
    let folder = tempfile::tempdir().expect("folder");
    let (plain, ordered) =
        (with_tenants(None, folder.path()).await, with_tenants(Some(worthwhile), folder.path()).await);
    for sql in [
        // The tenant joins nothing once it is the same everywhere.
        "SELECT count(*) FROM line l JOIN ord o ON o.id = l.parent AND o.tenant = l.tenant \
         JOIN cust c ON c.id = o.parent AND c.tenant = o.tenant \
         JOIN prod p ON p.id = l.product AND p.tenant = l.tenant WHERE l.tenant = 'acme'",
        // Most orders have no line of the product, which the statistics of none of the columns tell.
        "SELECT count(*) FROM ord o LEFT JOIN (SELECT * FROM line WHERE product = 40) r ON r.parent = o.id \
         JOIN cust c ON c.id = o.parent JOIN prod p ON p.id = o.product WHERE r.id IS NULL AND p.tenant = 'acme'",
        // A part of the keys.
        "SELECT count(*) FROM line l JOIN ord o ON o.id = l.parent \
         JOIN (SELECT parent FROM line WHERE product = 80 GROUP BY parent) r ON r.parent = l.parent",
    ] {
        let ((before, _), (after, _)) = (joined_rows(&plain, sql).await, joined_rows(&ordered, sql).await);
        assert!(before > 0 && after <= before + before / 4, "{after} instead of {before} rows: {sql}");
        assert_eq!(answer(&plain, sql).await, answer(&ordered, sql).await);
    }
}

fn numbers(rows: i64, columns: [(&str, fn(i64) -> i64); 2]) -> RecordBatch {
    let columns = columns.map(|(name, value)| {
        let values = (0..rows).map(value).collect::<Int64Array>();
        (name, Arc::new(values) as ArrayRef)
    });
    RecordBatch::try_from_iter(columns).expect("batch")
}

/// Sales of 400 days, in a calendar of 20,000, and a tenth of some rows.
async fn with_calendar(choose: Option<Choose>, folder: &std::path::Path) -> SessionContext {
    let context = context(choose);
    for (name, batch) in [
        ("calendar", numbers(20_000, [("id", |row| row), ("year", |row| row / 100)])),
        ("sales", numbers(40_000, [("day", |row| 10_000 + row % 400), ("cust", |row| row / 14)])),
        ("customers", numbers(3_000, [("id", |row| row), ("name", |row| row % 7)])),
        ("sold", numbers(20_000, [("ticket", |row| row / 5), ("item", |row| row * 7 % 1_000)])),
        ("returned", numbers(2_000, [("ticket", |row| row * 2), ("item", |row| row * 70 % 1_000)])),
    ] {
        register_file(&context, folder, name, batch).await;
    }
    context
}

#[tokio::test]
async fn conditions_ask_for_rows_with_partners() {
    let folder = tempfile::tempdir().expect("folder");
    let (plain, ordered) =
        (with_calendar(None, folder.path()).await, with_calendar(Some(worthwhile), folder.path()).await);
    let sql = "SELECT c.name, count(*) FROM sales s JOIN calendar d ON s.day = d.id \
               JOIN customers c ON s.cust = c.id WHERE d.year = 101 GROUP BY c.name";
    // Hash tables of a year's days and of the customers, not of its 10,000 sales.
    assert!(joined_rows(&ordered, sql).await.1 < 5_000);
    assert_eq!(answer(&plain, sql).await, answer(&ordered, sql).await);
}

#[tokio::test]
async fn estimates_are_near() {
    let folder = tempfile::tempdir().expect("folder");
    let context = with_calendar(Some(worthwhile), folder.path()).await;
    for (sql, least, most) in [
        // Nine of ten rows, though each item and each ticket is among those that came back.
        (
            "SELECT ticket FROM sold s WHERE NOT EXISTS \
             (SELECT 1 FROM returned r WHERE r.ticket = s.ticket AND r.item = s.item)",
            10_000.0,
            20_000.0,
        ),
        ("SELECT year, count(*) FROM calendar WHERE year IN (5, 7) GROUP BY year", 2.0, 2.0),
        (
            "SELECT year, count(*) FROM calendar WHERE year = 5 OR (year = 7 AND id = 710) GROUP BY year",
            1.0,
            2.0,
        ),
    ] {
        let plan = context.sql(sql).await.expect("query").create_physical_plan().await.expect("plan");
        let rows = crate::estimated_rows(&plan).expect("rows");
        assert!((least..=most).contains(&rows), "{rows}: {sql}");
    }
}

#[tokio::test]
async fn rows_that_a_join_takes_away_never_reach_a_cast() {
    let (plain, shaken) = (context(None), context(Some(any_shape)));
    for context in [&plain, &shaken] {
        for sql in [
            "CREATE TABLE kinds AS VALUES (1, 'number'), (2, 'text')",
            "CREATE TABLE v AS VALUES (1, 1, '12'), (1, 2, '7'), (2, 1, 'twelve'), (2, 2, '')",
            "CREATE TABLE w AS VALUES (1, 10), (2, 10)",
        ] {
            context.sql(sql).await.expect("table").collect().await.expect("rows");
        }
    }
    for sql in [
        "SELECT v.column3 FROM kinds k JOIN v ON v.column1 = k.column1 \
         JOIN w ON w.column1 = v.column2 AND CAST(v.column3 AS BIGINT) > w.column2 WHERE k.column2 = 'number'",
        // What takes the row away is a condition of another join, which may end up in the same one.
        "SELECT v.column3 FROM v JOIN kinds k ON v.column2 = k.column1 AND v.column1 < k.column1 + 0 \
         JOIN w ON w.column1 = v.column2 AND CAST(v.column3 AS BIGINT) > w.column2 - 5",
    ] {
        for _ in 0..20 {
            assert_eq!(answer(&shaken, sql).await, answer(&plain, sql).await, "{sql}");
        }
        assert!(answer(&plain, sql).await.is_ok(), "{sql}");
    }
}

#[test]
fn the_rule_for_sides_is_there() {
    let rules = before_selection(same_names::physical());
    let is_ours = |rule: &Rule| rule.name() == SELECTION && format!("{rule:?}").starts_with("FunctionRule");
    assert_eq!(rules.iter().filter(|rule| is_ours(rule)).count(), 1);
}
