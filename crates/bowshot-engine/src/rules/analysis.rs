//! What plans mean before they are optimised, where DataFusion means something else than SQL does. Sessions with a scratch
//! catalog are plain DataFusion.

use super::{OuterTypes, Unnest, below_nulls, integers, multisets, operators};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::optimizer::{AnalyzerRule, analyzer::type_coercion::TypeCoercion};
use std::sync::Arc;

/// The state to be built with our rules of analysis, and with the functions that these put into plans.
pub(crate) fn with_our_meaning(mut state: SessionStateBuilder) -> SessionStateBuilder {
    state.scalar_functions().get_or_insert_default().extend(integers::functions());
    state.scalar_functions().get_or_insert_default().extend(operators::functions());
    state.scalar_functions().get_or_insert_default().extend(below_nulls::functions());
    let planners = state.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(operators::IntervalPlanner));
    planners.insert(0, Arc::new(operators::UuidPlanner));
    planners.insert(0, Arc::new(operators::UntypedTexts));
    planners.insert(0, Arc::new(integers::IntegerLiterals));
    planners.insert(0, Arc::new(operators::BooleanLiterals));
    planners.insert(0, Arc::new(operators::ParameterOperands::AS_POSTGRES));
    state.with_analyzer_rules(rules())
}

fn rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let types = TypeCoercion::new();
    let mut rules = vec![crate::types::casts()];
    for rule in Analyzer::new().rules {
        if rule.name() == types.name() {
            rules.push(Arc::new(multisets::CountedCopies) as _);
            rules.push(Arc::new(operators::OperatorsOfSql) as _);
            rules.push(crate::types::times());
            rules.push(Arc::new(OuterTypes::new()));
            rules.push(crate::types::texts());
            rules.push(Arc::new(integers::IntegersInRange) as _);
            rules.push(Arc::new(operators::BothZeros) as _);
            rules.push(Arc::new(operators::OnlyOneNan) as _);
            rules.push(Arc::new(below_nulls::NothingBelowNulls) as _);
        } else {
            rules.push(rule);
        }
    }
    // Last, so that all types are settled.
    rules.push(Arc::new(Unnest));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::util::display::array_value_to_string;
    use datafusion::common::Result;
    use datafusion::prelude::{SessionConfig, SessionContext};

    fn context() -> SessionContext {
        let mut config = SessionConfig::new().with_target_partitions(2);
        config.options_mut().sql_parser.parse_float_as_decimal = true;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_optimizer_rules(crate::rules::logical(false))
            .with_physical_optimizer_rules(crate::rules::physical(false));
        SessionContext::new_with_state(with_our_meaning(state).build())
    }

    /// The first value, or the error.
    async fn answer(sql: &str) -> Result<String> {
        let batches = context().sql(sql).await?.collect().await?;
        let filled = batches.iter().find(|batch| batch.num_rows() > 0);
        Ok(filled.map_or_else(String::new, |batch| array_value_to_string(batch.column(0), 0).expect("text")))
    }

    #[tokio::test]
    async fn operators_have_the_values_of_sql() {
        // As PostgreSQL 15 and DuckDB 2.0 have them.
        for (sql, expected) in [
            ("SELECT 9223372036854775806 + 1", "9223372036854775807"),
            ("SELECT 2147483648 - 1", "2147483647"),
            ("SELECT x + 1 FROM (VALUES (CAST(2147483647 AS BIGINT))) AS v(x)", "2147483648"),
            ("SELECT x + 1 FROM (VALUES (CAST(127 AS TINYINT))) AS v(x)", "128"),
            ("SELECT 9007199254740993 = 9007199254740992.0", "false"),
            ("SELECT 0.1 + 0.2 = 0.3", "true"),
            ("SELECT 1.0 / 4", "0.25"),
            ("SELECT x > 0.5 FROM (VALUES (CAST('NaN' AS DOUBLE))) AS v(x)", "true"),
            ("SELECT DATE '2024-03-01' - INTERVAL '1 hour'", "2024-02-29T23:00:00"),
            ("SELECT DATE '2024-03-01' - INTERVAL '1 day' = DATE '2024-02-29'", "true"),
            ("SELECT INTERVAL '25 hours' > INTERVAL '1 day'", "true"),
            ("SELECT INTERVAL '3 days' / 2 = INTERVAL '36 hours'", "true"),
            ("SELECT CAST(2.5 AS INT)", "3"),
            ("SELECT CAST(CAST(2.5 AS DOUBLE) AS INT)", "2"),
            ("SELECT (a IN (1) AND a IN (2)) IS NULL FROM (VALUES (CAST(NULL AS INT))) AS v(a)", "true"),
            (
                "SELECT count(*) FROM (VALUES (CAST(NULL AS INT))) AS v(a) WHERE (a IN (1) AND a IN (2)) IS NULL",
                "1",
            ),
            (
                "SELECT count(*) FROM (VALUES (CAST(NULL AS INT))) AS v(a) WHERE a NOT IN (1) OR a NOT IN (2)",
                "0",
            ),
            ("SELECT count(*) FROM (VALUES (1, 1, 1)) AS v(a, b, c) WHERE a IN (b, 2) AND a IN (c, 3)", "1"),
            ("SELECT count(*) FROM (VALUES (1)) AS v(a) WHERE a IN (1, 2) AND a NOT IN (2, NULL)", "0"),
            (
                "SELECT ((a = 1 OR a = 2) AND (a = 3 OR a = 4)) IS NULL FROM (VALUES (CAST(NULL AS INT))) AS v(a)",
                "true",
            ),
            ("SELECT count(*) FROM (VALUES (1), (1), (2) EXCEPT ALL VALUES (1)) AS v", "2"),
            ("SELECT count(*) FROM (VALUES (1), (1), (2) INTERSECT ALL VALUES (1), (1), (1)) AS v", "2"),
            ("SELECT x <> 0 AND 10 / x > 1 FROM (VALUES (0)) AS v(x)", "false"),
            ("SELECT CASE WHEN x <> 0 THEN 10 / x > 1 ELSE false END FROM (VALUES (0)) AS v(x)", "false"),
            (
                "SELECT count(get_field(CASE WHEN x > 1 THEN t END, 'a')) FROM (VALUES (1, named_struct('a', 10)), (2, named_struct('a', 20))) AS v(x, t)",
                "1",
            ),
            (
                "SELECT get_field(nullif(t, named_struct('a', named_struct('b', 1))), 'a', 'b') IS NULL FROM (VALUES (named_struct('a', named_struct('b', 1)))) AS v(t)",
                "true",
            ),
            (
                "SELECT array_append(nullif(l, make_array(1, 2)), 9) FROM (VALUES (make_array(1, 2))) AS v(l)",
                "[9]",
            ),
            (
                "SELECT count(*) FROM (VALUES (-0e0)) AS v(x) WHERE CAST(x AS DOUBLE) IN (0.0, 1, 2, 3, 4)",
                "1",
            ),
        ] {
            assert_eq!(answer(sql).await.expect(sql), expected, "{sql}");
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_an_error() {
        for (sql, expected) in [
            ("SELECT 9223372036854775807 + 1", "bigint out of range"),
            ("SELECT x * x FROM (VALUES (3037000500)) AS v(x)", "bigint out of range"),
            ("SELECT 2147483647 + 1", "integer out of range"),
            ("SELECT x - 10 FROM (VALUES (CAST(-2147483648 AS INT))) AS v(x)", "integer out of range"),
            ("SELECT CAST(100 AS TINYINT) + CAST(100 AS TINYINT)", "tinyint out of range"),
            (
                "SELECT count(*) FROM (VALUES (9223372036854775807)) AS v(x) GROUP BY x + 1",
                "bigint out of range",
            ),
            ("SELECT x FROM (VALUES (9223372036854775807)) AS v(x) ORDER BY x + 1", "bigint out of range"),
            ("SELECT 1.0 / 0", "division by zero"),
        ] {
            let error = answer(sql).await.expect_err(sql).to_string();
            assert!(error.contains(expected), "{sql}: {error}");
        }
    }
}
