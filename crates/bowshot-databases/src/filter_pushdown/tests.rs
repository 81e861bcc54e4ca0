//! Conditions that are sent, sent to be computed again, and not sent.

use super::*;
use datafusion::prelude::{col, in_list, lit};

fn columns() -> Vec<Arc<Column>> {
    let column = |name: &str, data_type, compares| {
        Arc::new(Column::plain(name, &dialect::name(name).unwrap(), data_type, compares))
    };
    vec![
        column("i", DataType::Int64, Comparison::All),
        column("t", DataType::Utf8, Comparison::EqualTexts),
        column("c", DataType::Utf8, Comparison::CoarseTexts),
        column("f", DataType::Float64, Comparison::Floats),
        column("b", DataType::Boolean, Comparison::All),
        column("x", DataType::Utf8, Comparison::Nothing),
    ]
}

fn exact(expr: &Expr) -> Option<String> {
    push_down(Kind::Postgres, expr, &columns()).filter(|sent| sent.exact).map(|sent| sent.sql)
}

fn more(expr: &Expr) -> Option<String> {
    push_down(Kind::Postgres, expr, &columns()).filter(|sent| !sent.exact).map(|sent| sent.sql)
}

#[test]
fn what_means_the_same_is_exact() {
    let expr = col("i").gt(lit(5_i64)).and(col("t").eq(lit("a'b")).or(col("b")));
    assert_eq!(exact(&expr).unwrap(), r#"(("i" > 5) AND (("t" = 'a''b') OR "b"))"#);
    assert_eq!(exact(&lit(5_i64).gt(col("i"))).unwrap(), r#"("i" < 5)"#);
    let listed = in_list(col("i"), vec![lit(1_i64), lit(-2_i64)], true);
    assert_eq!(exact(&listed).unwrap(), r#"("i" NOT IN (1, (-2)))"#);
    let between = col("i").not_between(lit(1_i64), lit(2_i64));
    assert_eq!(exact(&between).unwrap(), r#"(NOT (("i" >= 1) AND ("i" <= 2)))"#);
    assert_eq!(exact(&col("x").is_null()).unwrap(), r#"("x" IS NULL)"#);
    assert_eq!(exact(&Expr::Not(Box::new(col("b")))).unwrap(), r#"(NOT "b")"#);
}

#[test]
fn what_may_keep_more_is_computed_again() {
    assert_eq!(more(&col("c").eq(lit("a"))).unwrap(), r#"("c" = 'a')"#);
    assert_eq!(more(&col("f").lt(lit(0.0_f64))).unwrap(), r#"("f" <= '0e0'::float8 OR "f" = 'NaN'::float8)"#);
    let half = col("i").eq(lit(1_i64)).and(col("t").like(lit("a%")));
    assert_eq!(more(&half).unwrap(), r#"("i" = 1)"#);
}

#[test]
fn what_may_keep_less_is_not_sent() {
    let no = |expr: Expr| assert_eq!(push_down(Kind::Postgres, &expr, &columns()), None, "{expr}");
    no(col("t").lt(lit("a")));
    no(col("c").not_eq(lit("a")));
    no(Expr::Not(Box::new(col("c").eq(lit("a")))));
    no(Expr::Not(Box::new(col("i").eq(lit(1_i64)).and(col("t").like(lit("a%"))))));
    no(in_list(col("c"), vec![lit("a")], true));
    no(in_list(col("i"), vec![lit(1_i64), lit(ScalarValue::Int64(None))], true));
    no(col("i").eq(lit(1_i32)));
    no(col("i").eq(lit(1_i64)).or(col("t").like(lit("a%"))));
    no((col("i") + lit(1_i64)).eq(lit(1_i64)));
    no(col("x").eq(lit("a")));
    no(col("t").eq(lit("a\0")));
    no(col("f").eq(lit(f64::NAN)));
    no(col("missing").is_null());
    no(lit(true));
}

fn of_mysql() -> Vec<Arc<Column>> {
    let column = |name: &str, data_type, compares| {
        Arc::new(Column::plain(name, &dialect::backticked(name).unwrap(), data_type, compares))
    };
    vec![
        column("t", DataType::Utf8, Comparison::ByteTexts),
        Arc::new(
            Column::plain("l", "`l`", DataType::Utf8, Comparison::ByteTexts)
                .with_expression("CONVERT(`l` USING utf8mb4)".to_owned()),
        ),
        column("d", DataType::Date32, Comparison::Days),
        column("z", crate::columns::utc(), Comparison::Days),
        column("f", DataType::Float64, Comparison::Floats),
        column("i", DataType::Int64, Comparison::All),
    ]
}

fn mysql(expr: &Expr) -> Option<(String, bool)> {
    push_down(Kind::Mysql, expr, &of_mysql()).map(|sent| (sent.sql, sent.exact))
}

#[test]
fn texts_of_mysql_are_compared_by_their_bytes() {
    let sql = |expr: &Expr| mysql(expr).filter(|(_, exact)| *exact).unwrap().0;
    assert_eq!(sql(&col("t").eq(lit("a"))), "((`t` = 'a') AND (CAST(`t` AS BINARY) = CAST('a' AS BINARY)))");
    let converted = "CAST(CONVERT(`l` USING utf8mb4) AS BINARY)";
    assert_eq!(sql(&col("l").eq(lit("a"))), format!("((`l` = 'a') AND ({converted} = CAST('a' AS BINARY)))"));
    assert_eq!(sql(&col("l").eq(lit("ä"))), format!("({converted} = CAST('ä' AS BINARY))"));
    assert_eq!(
        sql(&in_list(col("l"), vec![lit("a"), lit("ä")], false)),
        format!("({converted} IN (CAST('a' AS BINARY), CAST('ä' AS BINARY)))")
    );
    assert_eq!(sql(&col("t").lt(lit("a"))), "(CAST(`t` AS BINARY) < CAST('a' AS BINARY))");
    let listed = in_list(col("t"), vec![lit("a"), lit("\\")], true);
    assert_eq!(
        sql(&listed),
        "(CAST(`t` AS BINARY) NOT IN (CAST('a' AS BINARY), CAST(_utf8mb4 X'5C' AS BINARY)))"
    );
    let listed = in_list(col("t"), vec![lit("a")], false);
    assert_eq!(sql(&listed), "((`t` IN ('a')) AND (CAST(`t` AS BINARY) IN (CAST('a' AS BINARY))))");
    assert_eq!(mysql(&col("f").lt(lit(1.5_f64))), Some(("(`f` < (1.5e0))".to_owned(), false)));
}

#[test]
fn no_condition_decides_over_what_is_no_day() {
    let day = || lit(ScalarValue::Date32(Some(19_723)));
    let exact = |expr: Expr| mysql(&expr).map(|(_, exact)| exact);
    assert_eq!(mysql(&col("d").eq(day())), Some(("(`d` = DATE '2024-01-01')".to_owned(), true)));
    assert_eq!(exact(in_list(col("d"), vec![day()], false)), Some(true));
    for expr in [col("d").lt(day()), col("d").gt_eq(day()), col("d").not_eq(day()), col("d").is_not_null()] {
        assert_eq!(exact(expr), Some(false));
    }
    assert_eq!(exact(in_list(col("d"), vec![day()], true)), Some(false));
    assert_eq!(exact(col("d").is_null()), None);
    assert_eq!(exact(Expr::Not(Box::new(col("d").eq(day())))), None);
    assert_eq!(exact(Expr::Not(Box::new(col("i").eq(lit(1_i64)).and(col("d").eq(day()))))), None);
    let moment = |micros| lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())));
    assert_eq!(exact(col("z").eq(moment(1_700_000_000_000_000))), Some(true));
    for far in [-1, 0, 2_147_483_648_000_000, i64::MAX] {
        assert_eq!(exact(col("z").gt(moment(far))), None, "{far}");
    }
}
