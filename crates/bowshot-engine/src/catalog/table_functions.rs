//! `duckdb_tables()` and its like: the tables of the same names, as functions. The rows come from the catalogs of the
//! statement that calls them.

use crate::catalog::providers::Catalogs;
use bowshot_system_catalog::functions::Facts;
use bowshot_system_catalog::lazy_table::Defined;
use bowshot_system_catalog::pg_catalog;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use std::any::Any;
use std::sync::Arc;

/// Gives a session its functions.
pub(crate) fn register(context: &SessionContext, facts: &Arc<Facts>) {
    bowshot_system_catalog::functions::of_session(facts)
        .into_iter()
        .for_each(|function| context.register_udf(function));
    for defined in pg_catalog::functions() {
        context.register_udtf(defined.name, Arc::new(Called(defined)));
    }
}

struct Called(&'static Defined);

impl std::fmt::Debug for Called {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Called").field(&self.0.name).finish()
    }
}

impl TableFunctionImpl for Called {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = self.0.name;
        if !args.exprs().is_empty() {
            return Err(DataFusionError::Plan(format!("`{name}` takes no arguments")));
        }
        let session: &dyn Session = args.session();
        let state = session.as_any().downcast_ref::<SessionState>();
        let catalogs = state.map(|state| Arc::clone(state.catalog_list()));
        let any = catalogs.as_ref().map(|list| -> &dyn Any { list.as_ref() });
        let visible = any.and_then(|list| list.downcast_ref::<Catalogs>()).map(Catalogs::visible);
        match visible {
            Some(visible) => Ok(self.0.provider(&visible.view())),
            None => Err(DataFusionError::Plan(format!("`{name}` is not supported here"))),
        }
    }
}
