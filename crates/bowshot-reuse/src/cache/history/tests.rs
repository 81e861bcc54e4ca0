//! What is remembered of joins, and what is predicted.

use super::*;
use crate::cache::shape::{Content, Member, TableKey};

const JOIN: &str = "(bin \"=\" #0:\"k\" #1:\"k\")";

fn day(day: u32, filter: Option<&str>) -> JoinShape {
    let key = |table: &str| TableKey {
        name: TableName {
            catalog: "bowshot".into(),
            schema: "main".into(),
            table: format!("{table}202108{day:02}"),
        },
        content: Content::Files { version: String::new(), columns: 0 },
    };
    let conditions = [JOIN].into_iter().chain(filter).map(str::to_owned).collect();
    let tree = Tree { members: vec![Member::Table(0), Member::Table(1)], conditions };
    JoinShape::new(vec![key("sales"), key("stores")], &tree, String::new()).0
}

fn column(table: usize, column: &str) -> ColumnRef {
    ColumnRef { table, column: column.into() }
}

#[test]
fn the_joins_of_two_days_are_one_template_that_the_third_day_continues() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    let filter = "(bin \"<\" #0:\"x\" (lit \"Int64\" \"5\"))";
    assert_eq!(history.see(&day(3, Some(filter)), &[column(0, "a")].into(), now).count, 1);
    let seen = history.see(&day(4, None), &[column(1, "b")].into(), now);
    assert_eq!(seen.count, 2);
    assert_eq!(seen.order.tree.conditions, [JOIN], "only one of the queries had the filter");
    assert_eq!(seen.order.columns, [column(0, "a"), column(0, "x"), column(1, "b")]);
    let appeared = &day(5, None).tables[0].name;
    let next = history.continued_by(appeared, 2, now);
    let tables: Vec<_> = next[0].1.tables.iter().map(|name| name.table.as_str()).collect();
    assert_eq!(tables, ["sales20210805", "stores20210805"]);
    assert!(history.continued_by(appeared, 3, now).is_empty(), "not seen often enough");
}

#[test]
fn it_survives_as_text_and_forgets_the_least() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    history.see(&day(3, None), &BTreeSet::new(), now);
    let again = History::new(10);
    let text = history.to_text().expect("text");
    again.restore(&text, |settings| !settings.is_empty()).expect("restored");
    assert!(again.templates().is_empty(), "its settings are not known");
    again.restore(&text, str::is_empty).expect("restored");
    assert_eq!(again.templates().len(), 1);
    assert!(again.restore("no history", str::is_empty).is_err());
    let small = History::new(1);
    small.see(&day(3, None), &BTreeSet::new(), now);
    let mut other = day(3, None);
    other.settings = "other".into();
    small.see(&other, &BTreeSet::new(), now);
    assert_eq!(small.templates().len(), 1);
}

#[test]
fn a_history_of_another_program_has_the_keys_of_this_one() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    history.see(&day(3, None), &BTreeSet::new(), now);
    let text = history.to_text().expect("text");
    let other = text.replace("sales{date}", "sales{n}");
    assert_ne!(other, text);
    let again = History::new(10);
    again.restore(&other, |_| true).expect("restored");
    assert_eq!(again.see(&day(4, None), &BTreeSet::new(), now).count, 2);
}

#[test]
fn joins_in_the_schemas_of_two_days_are_one_template() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    let join = |schema: &str| {
        let mut shape = day(3, None);
        shape.tables.iter_mut().for_each(|table| table.name.schema = schema.to_owned());
        shape
    };
    let see = |schema: &str| history.see(&join(schema), &BTreeSet::new(), now).count;
    assert_eq!((see("d20210803"), see("d20210804"), see("tenant7"), see("tenant8")), (1, 2, 1, 1));
    let next = history.continued_by(&join("d20210805").tables[0].name, 2, now);
    let tables: Vec<_> = next[0].1.tables.iter().map(|name| name.schema.as_str()).collect();
    assert_eq!(tables, ["d20210805", "d20210805"]);
}

#[test]
fn forecasts_that_nobody_uses_lose_rank() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    history.see(&day(3, None), &BTreeSet::new(), now);
    let rank = || history.latest(1, now)[0].0;
    let before = rank();
    history.used(&day(3, None), false);
    assert!(rank() < before);
    history.used(&day(3, None), true);
    assert!((rank() - before).abs() < f64::EPSILON);
}

#[test]
fn a_sequence_that_nobody_asks_for_any_more_is_given_up() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    history.see(&day(3, None), &BTreeSet::new(), now);
    history.see(&day(4, None), &BTreeSet::new(), now);
    let forecast = |of: u32| history.continued_by(&day(of, None).tables[0].name, 2, now);
    let first = forecast(5)[0].0;
    let mut made = 0;
    for of in 5..30 {
        for (rank, order) in forecast(of) {
            assert!(of == 5 || rank < first, "{of}");
            history.passed(&order, now + TimeDelta::days(of.into()));
            history.passed(&order, now + TimeDelta::days(of.into()) + TimeDelta::hours(1));
            made += 1;
        }
    }
    assert_eq!(made, GIVEN_UP);
    history.see(&day(5, None), &BTreeSet::new(), now);
    for of in 6..30 {
        let (_, order) = forecast(of).remove(0);
        history.read_ahead(&day(of, None));
        history.passed(&order, now + TimeDelta::days(100 + i64::from(of)));
    }
    history.see(&day(30, None), &BTreeSet::new(), now);
    assert_eq!(forecast(31).len(), 1, "somebody has asked again");
}

#[test]
fn of_a_join_that_is_too_large_slices_are_cached_and_the_next_one_is_predicted() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    let filter = |day: u32| format!("(bin \"=\" #0:\"day\" (lit \"Int64\" \"{day}\"))");
    let ask = |of: u32| history.see(&day(3, Some(&filter(of))), &BTreeSet::new(), now);
    ask(7);
    let whole = ask(8);
    assert_eq!((whole.count, whole.order.tree.filters().len()), (2, 0));
    assert!(history.too_large(&day(3, None)));
    assert!(!history.too_large(&day(3, None)), "said once");
    assert!(history.does_not_fit(&whole.order));
    assert_eq!(history.see(&day(3, None), &BTreeSet::new(), now).count, 0, "is not tried again");
    assert!(history.latest(2, now).is_empty());
    let slice = ask(8);
    assert_eq!((slice.count, slice.order.tree.filters()), (1, BTreeSet::from([filter(8)])));
    assert!(history.latest(2, now).is_empty() && history.next_slices(2, now).is_empty());
    ask(9);
    assert_eq!(ask(9).count, 2);
    assert_eq!(history.latest(2, now)[0].1.tree.filters(), BTreeSet::from([filter(9)]));
    assert_eq!(history.next_slices(2, now)[0].1.tree.filters(), BTreeSet::from([filter(10)]));
    assert_eq!(history.known(&day(3, Some(&filter(9)))), (2, false));
    assert!(!history.too_large(&day(3, Some(&filter(9)))), "of a slice it is not said");
    assert_eq!(history.known(&day(3, Some(&filter(9)))), (2, true));
    let other = history.see(&day(4, Some(&filter(9))), &BTreeSet::new(), now);
    assert!(other.order.tree.filters().is_empty(), "other tables may fit");
    assert!(history.next_slices(2, now).is_empty());
    assert_eq!(ask(8).count, 2, "what is known of the others stays");
}

#[test]
fn what_saves_more_for_each_byte_comes_first() {
    let (history, now) = (History::new(10), DateTime::<Utc>::default());
    history.see(&day(3, None), &BTreeSet::new(), now);
    let rank = || history.latest(1, now)[0].0;
    history.computed(&day(3, None), 1_000, 100 << 20);
    let large = rank();
    history.computed(&day(3, None), 1_000, 10 << 20);
    assert!((rank() / large - 10.0).abs() < 0.01);
}
