//! A planned statement. Its plan may be made late: a lookup by a key is answered without it.

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use std::sync::{Arc, LazyLock};

/// Makes a plan.
pub(crate) type MakePlan = Box<dyn FnOnce() -> LogicalPlan + Send>;

/// A planned statement with the parameters that it wants.
#[derive(Debug, Clone)]
pub struct Planned {
    form: Arc<LogicalPlan>,
    /// The plan, where it is another one than its form.
    late: Option<Arc<LazyLock<LogicalPlan, MakePlan>>>,
    parameters: SchemaRef,
    ordered: bool,
}

impl Planned {
    pub(crate) fn new(plan: LogicalPlan, parameters: SchemaRef, ordered: bool) -> Self {
        Self { form: Arc::new(plan), late: None, parameters, ordered }
    }

    pub(crate) fn plan(&self) -> &LogicalPlan {
        self.late.as_ref().map_or(self.form.as_ref(), |late| LazyLock::force(late))
    }

    /// The plan, but perhaps with other literals, and on other rows of its tables.
    pub(crate) fn form(&self) -> &Arc<LogicalPlan> {
        &self.form
    }

    /// One nullable field for each parameter, in the order of binding.
    pub fn parameters(&self) -> &SchemaRef {
        &self.parameters
    }

    /// Whether the statement asks for an order of its rows.
    pub fn ordered(&self) -> bool {
        self.ordered
    }

    pub(crate) fn with_plan(&self, plan: LogicalPlan) -> Self {
        Self::new(plan, Arc::clone(&self.parameters), self.ordered)
    }

    /// The same of a plan of this form that is made when somebody asks for it.
    pub(crate) fn with_late_plan(&self, make: MakePlan) -> Self {
        Self { late: Some(Arc::new(LazyLock::new(make))), ..self.clone() }
    }
}
