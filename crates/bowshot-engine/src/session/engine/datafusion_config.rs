//! The state of DataFusion as the engine's settings make it.

use super::EngineConfig;
use crate::catalog::identity;
use crate::catalog::search_path::SearchPath;
use crate::error::classify;
use crate::execute::materialized_cte::Planner;
use crate::plan;
use crate::reuse::SessionCache;
use bowshot_api::Result;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_optimizer::SessionJoinOrder;
use bowshot_optimizer::common_subplans::SharedWork;
use bowshot_optimizer::cooperative::functions;
use bowshot_optimizer::materialized_cte::SharedQueries;
use bowshot_system_catalog::pg_catalog::RelationNumbers;
use bowshot_tables::TableStore;
use datafusion::config::ConfigOptions;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::prelude::SessionConfig;
use std::sync::Arc;

/// Rows and bytes of the smaller side of a join that one thread collects, when there is only one.
const COLLECTED_ROWS: usize = 16 << 20;
const COLLECTED_BYTES: usize = 512 << 20;

/// The state that those of all sessions are copies of.
pub(super) fn template(
    config: &EngineConfig,
    environment: Arc<RuntimeEnv>,
    tables: &Arc<TableStore>,
) -> Result<SessionState> {
    let session_config = config.session_config.clone().unwrap_or_else(|| session_config(config));
    let mut rules_of_plans = bowshot_optimizer::logical(config.scratch);
    if !config.scratch {
        // Before conditions are pushed down.
        rules_of_plans.insert(0, Arc::new(RelationNumbers));
    }
    let mut template = SessionStateBuilder::new()
        .with_config(session_config)
        .with_runtime_env(environment)
        // Scratch engines are compared with DataFusion, whose functions they keep.
        .with_expr_planners(if config.scratch { Vec::new() } else { bowshot_functions::planners() })
        .with_default_features()
        .with_optimizer_rules(rules_of_plans)
        .with_physical_optimizer_rules(bowshot_optimizer::physical(config.scratch));
    // Scratch sessions have DataFusion's own types and answers.
    if !config.scratch {
        template = bowshot_optimizer::with_our_meaning(template)
            .with_type_planner(Arc::new(bowshot_types::Types))
            .with_relation_planners(vec![Arc::new(SharedQueries)])
            .with_query_planner(Arc::new(Planner));
    }
    let mut template = with_functions(template.build(), config)?;
    if !config.scratch {
        let numbers = identity::function(tables);
        for function in bowshot_types::registered().into_iter().chain([numbers]) {
            template.register_udf(Arc::new(function)).map_err(classify)?;
        }
    }
    functions::guard(&mut template).map_err(classify)?;
    Ok(template)
}

fn with_functions(mut state: SessionState, config: &EngineConfig) -> Result<SessionState> {
    if !config.scratch {
        bowshot_functions::register(&mut state).map_err(classify)?;
    }
    Ok(state)
}

fn session_config(config: &EngineConfig) -> SessionConfig {
    let mut session = SessionConfig::new()
        // Sessions that serve have a schema of that name, which does not mind broken tables.
        .with_information_schema(config.scratch)
        .with_default_catalog_and_schema(DEFAULT_CATALOG, DEFAULT_SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_target_partitions(config.threads)
        .with_batch_size(config.batch_rows)
        .with_option_extension(SessionCache::default())
        .with_option_extension(SessionJoinOrder::default())
        .with_option_extension(SharedWork::default())
        .with_option_extension(SearchPath::default());
    let options: &mut ConfigOptions = session.options_mut();
    // Plain strings from the scan to the wire: views drag whole decoded pages along (DESIGN.md 4).
    options.execution.parquet.schema_force_view_types = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    // `0.1` is a decimal, as everywhere in SQL.
    options.sql_parser.parse_float_as_decimal = !config.scratch;
    options.execution.collect_statistics = true;
    // The logical plan takes `CASE WHEN a > 1 THEN a ELSE 0 END` for what is never NULL, and the physical plan does not.
    options.execution.skip_physical_aggregate_schema_check = true;
    // One thread builds the table of a side that is collected, and all probe it without handing their rows around first: up
    // to a size that falls with the number of threads that is sooner. With two, TPC-H at scale 1 takes a tenth less time.
    let threads = config.threads.max(1);
    let (rows, bytes) = (COLLECTED_ROWS / threads, (COLLECTED_BYTES / threads).min(config.memory_bytes / 8));
    let optimizer = &mut options.optimizer;
    optimizer.hash_join_single_partition_threshold_rows =
        rows.max(optimizer.hash_join_single_partition_threshold_rows);
    optimizer.hash_join_single_partition_threshold =
        bytes.max(optimizer.hash_join_single_partition_threshold);
    if let Some(dialect) = plan::parser_dialect(config.dialect) {
        options.sql_parser.dialect = dialect;
    }
    session
}
