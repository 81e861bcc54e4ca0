//! Windows are written out where they are used; frames that leave rows out are split.

use super::{one_line, rewritten};

#[test]
fn windows_are_written_out() {
    for (sql, expected) in [
        (
            "SELECT sum(v) OVER (w ROWS 1 PRECEDING) AS s FROM t WINDOW w AS (PARTITION BY g ORDER BY k)",
            "SELECT sum(v) OVER (PARTITION BY g ORDER BY k ROWS 1 PRECEDING) AS s FROM t",
        ),
        (
            "SELECT a FROM t WINDOW v AS (PARTITION BY g), w AS (v ORDER BY k) ORDER BY rank() OVER w",
            "SELECT a FROM t ORDER BY CAST((rank() OVER (PARTITION BY g ORDER BY k)) AS BIGINT)",
        ),
        (
            "SELECT sum(v) OVER W AS s FROM t WINDOW w AS (ORDER BY k ROWS 1 PRECEDING)",
            "SELECT sum(v) OVER (ORDER BY k ROWS 1 PRECEDING) AS s FROM t",
        ),
        (
            "SELECT (SELECT sum(v) OVER w FROM u) AS s FROM t WINDOW w AS (ORDER BY k)",
            "window `w` does not exist; define it in the WINDOW clause of the same SELECT",
        ),
        (
            "SELECT (SELECT sum(v) OVER (w) AS s FROM u WINDOW w AS (ORDER BY j)) AS s, rank() OVER w AS r FROM t WINDOW w AS (ORDER BY k)",
            "SELECT (SELECT sum(v) OVER (ORDER BY j) AS s FROM u) AS s, CAST((rank() OVER (ORDER BY k)) AS BIGINT) AS r FROM t",
        ),
        (
            "SELECT sum(v) OVER (w PARTITION BY a) AS s FROM t WINDOW w AS (ORDER BY k)",
            "cannot override PARTITION BY clause of window `w`",
        ),
        (
            "SELECT sum(v) OVER (w ORDER BY a) AS s FROM t WINDOW w AS (ORDER BY k)",
            "cannot override ORDER BY clause of window `w`",
        ),
        (
            "SELECT sum(v) OVER (w) AS s FROM t WINDOW w AS (ORDER BY k ROWS 1 PRECEDING)",
            "cannot copy window `w` because it has a frame clause; write OVER and the name without brackets",
        ),
        (
            "SELECT sum(v) OVER w AS s FROM t WINDOW w AS (ORDER BY k), w AS (ORDER BY v)",
            "window `w` is defined twice",
        ),
        (
            "SELECT sum(v) OVER w AS s FROM t WINDOW w AS (x ORDER BY k), x AS (PARTITION BY v)",
            "window `x` does not exist; define it in the WINDOW clause of the same SELECT",
        ),
    ] {
        assert_eq!(one_line(&rewritten(sql)), expected, "{sql}");
    }
}

#[test]
fn frames_leave_rows_out() {
    let sum = |frame: &str| format!("SELECT sum(v) OVER (ORDER BY k {frame}) AS s FROM t");
    for (frame, expected) in [
        ("ROWS 2 PRECEDING EXCLUDE NO OTHERS", "sum(v) OVER (ORDER BY k ROWS 2 PRECEDING)"),
        (
            "ROWS 2 PRECEDING EXCLUDE CURRENT ROW",
            "(sum(v) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING))",
        ),
        (
            "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
            "(sum(v) OVER (ORDER BY k ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))",
        ),
    ] {
        assert_eq!(one_line(&rewritten(&sum(frame))), format!("SELECT {expected} AS s FROM t"), "{frame}");
    }
    for (frame, windows) in [
        ("ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW", 4),
        ("RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP", 4),
        ("GROUPS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE TIES", 10),
    ] {
        let rewritten = one_line(&rewritten(&sum(frame)));
        assert!(!rewritten.contains("excluding"), "{rewritten}");
        // `coalesce(l + r, l, r)` of each two.
        assert_eq!(rewritten.matches("OVER").count(), windows, "{rewritten}");
    }
    let refused = rewritten(&sum("ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE TIES"));
    assert!(refused.starts_with("EXCLUDE TIES is not supported"), "{refused}");
    assert_eq!(rewritten("SELECT * EXCLUDE (a) FROM t"), "SELECT * EXCLUDE (a) FROM t");
}
