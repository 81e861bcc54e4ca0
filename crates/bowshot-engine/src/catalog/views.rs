//! Views as tables: their queries are planned anew in every statement.

use super::Visible;
use super::enum_types::SeenTypes;
use super::functions::{self, Scope, SeenFunctions};
use super::group_keys;
use super::names::Names;
use super::public::{self, Schemas};
use super::search_path;
use crate::plan;
use crate::plan::allowed::check_readable;
use bowshot_api::Error as ApiError;
use bowshot_query_task::run_blocking_if;
use bowshot_sql::DialectName;
use bowshot_tables::View;
use datafusion::catalog::TableProvider;
use datafusion::datasource::ViewTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// Views over views: deeper is a cycle.
const MAX_VIEW_DEPTH: usize = 32;

impl Visible {
    pub(super) async fn view_provider(&self, view: &Arc<View>) -> Result<Arc<dyn TableProvider>> {
        let plan = run_blocking_if(!bowshot_sql::is_small(&view.sql), self.view_plan(view)).await?;
        Ok(Arc::new(ViewTable::new(plan, Some(view.sql.clone()))))
    }

    /// A view with the names of its columns.
    ///
    /// # Errors
    /// From planning, and where two columns have one name.
    pub(crate) async fn view_plan(&self, view: &View) -> Result<LogicalPlan> {
        let plan = self.query_plan(view).await?;
        if view.columns.is_empty() {
            plan::without_marks(plan).map_err(|error| DataFusionError::External(Box::new(error)))
        } else {
            plan::renamed(plan, &view.columns)
        }
    }

    /// The query of a view is planned in the snapshot of the statement, with the names that were the defaults where it was made.
    ///
    /// # Errors
    /// From planning.
    pub(crate) async fn query_plan(&self, view: &View) -> Result<LogicalPlan> {
        if self.depth >= MAX_VIEW_DEPTH {
            return Err(DataFusionError::Plan(format!(
                "views are nested deeper than {MAX_VIEW_DEPTH}, or in a circle"
            )));
        }
        let mut state = self.context.state();
        let options = state.config_mut().options_mut();
        search_path::clear(options);
        let names = &mut options.catalog;
        (names.default_catalog, names.default_schema) =
            (view.default_catalog.clone(), view.default_schema.clone());
        let inner = Self {
            context: SessionContext::new_with_state(state),
            target: None,
            source: None,
            depth: self.depth + 1,
            ..self.clone()
        };
        let state = inner.state();
        let external = |error: ApiError| DataFusionError::External(Box::new(error));
        let dialect = DialectName::parse(&view.dialect).unwrap_or_default();
        let mut statement = plan::kept_query(state.config_options(), &view.sql, dialect).map_err(external)?;
        let (pinned, databases) = (&self.pinned, &self.parts.databases);
        let schemas = Schemas { pinned, databases, default_catalog: &view.default_catalog };
        public::resolve(&mut statement, &schemas);
        SeenTypes::new(schemas, (&view.default_schema, &[]), &self.access).resolve(&mut statement);
        let (catalog, schema) = (&view.default_catalog, &view.default_schema);
        let scope = Scope { catalog, schema, path: &[], own: true };
        let bodies = SeenFunctions::new(self, scope).expand(&mut statement).map_err(external)?;
        Box::pin(functions::check(bodies, &inner)).await.map_err(external)?;
        group_keys::add(&mut statement, &inner.names_of_view(view), &inner);
        let plan = Box::pin(plan::logical(&state, statement)).await?;
        check_readable(&plan).map_err(external)?;
        Ok(plan)
    }

    fn names_of_view(&self, view: &View) -> Names {
        Names {
            pinned: self.pinned.clone(),
            access: self.access.clone(),
            parts: self.parts.clone(),
            default_catalog: view.default_catalog.clone(),
            default_schema: view.default_schema.clone(),
            path: Vec::new(),
        }
    }
}
