//! What statements compute without a plan.

use super::*;
use crate::session::key_lookup::tests::{engine, planned};
use bowshot_api::Principal;
use datafusion::arrow::util::display::array_value_to_string;

#[test]
fn scalar_expressions_need_no_plan() {
    let engine = engine();
    engine.runtime().handle().block_on(async {
        let session = engine.open_session(&Principal::anonymous()).unwrap();
        for (values, is_computed) in [
            ("(1, 'x')", true),
            ("(1 + 2, upper('x')), (abs(-5), NULL)", true),
            ("(1, now()), (2, DEFAULT)", true),
            ("(1, CASE WHEN 1 = 0 THEN 'x' ELSE current_schema() END)", true),
            ("(1, random())", false),
            ("(1, (SELECT max(word) FROM t))", false),
            ("(1 / 0, 'x')", false),
        ] {
            let plan = planned(&session, &format!("INSERT INTO t VALUES {values}")).await;
            let state = session.lazy_state(plan.pinned());
            let rows = scalar_rows::rows(plan.planned().plan(), None, &state);
            assert_eq!(rows.is_some(), is_computed, "{values}");
        }
        for (items, expected) in [
            ("*", Some("2000")),
            ("word AS w, 'y', t.id", Some("x")),
            ("upper(word) || (id + 1)", Some("X2001")),
            ("1 / (id - 2000)", None),
            ("id, random()", None),
            ("(SELECT max(id) FROM t)", None),
        ] {
            let sql = format!("INSERT INTO t VALUES (2000, 'x') RETURNING {items}");
            let plan = planned(&session, &sql).await;
            let state = session.lazy_state(plan.pinned());
            let changed = scalar_rows::rows(plan.planned().plan(), None, &state).unwrap();
            let returned = scalar_rows::rows(plan.returning().unwrap().plan(), Some(&changed), &state);
            let returned = returned.map(|rows| array_value_to_string(rows.column(0), 0).unwrap());
            assert_eq!(returned.as_deref(), expected, "{items}");
        }
    });
}
