//! The operator on top of the last stage that keeps the rows of a result on the node that makes them, for their client. It ends when the
//! client has read them; dropping it ends the endpoint.

use bowshot_api::{Claims, Compression, Error, ErrorKind, Layout, Principal, QueryId};
use bowshot_engine::Engine;
use bowshot_engine::endpoints::{EndpointId, EndpointStore, Handout, LocalEndpoint};
use bowshot_engine::rows_of;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_err, internal_datafusion_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_distributed::DistributedTaskContext;
use futures::{StreamExt, future, stream};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How long an endpoint whose plan was dropped waits for the reason.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The endpoints of this node, for its operators.
pub(crate) struct Store(Option<Arc<dyn EndpointStore>>);

impl Store {
    pub(crate) fn of(engine: &Engine) -> Self {
        Self(engine.endpoints().cloned())
    }
}

#[derive(Debug)]
pub(crate) struct EndpointSink {
    input: Arc<dyn ExecutionPlan>,
    run: Uuid,
    handout: Handout,
}

impl EndpointSink {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, run: Uuid, handout: Handout) -> Self {
        Self { input, run, handout }
    }

    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Encodes everything but the input.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let Handout { query, principal, layout, schema } = &self.handout;
        let mut words = Vec::new();
        StreamWriter::try_new(&mut words, schema)?.finish()?;
        let described = json!({
            "run": self.run.to_string(),
            "query": query.to_string(),
            "principal": described(principal),
            "views": layout.views,
            "dictionaries": layout.dictionaries,
            "wide_numbers": layout.wide_numbers,
            "json_variants": layout.json_variants,
        });
        let described = serde_json::to_vec(&described).map_err(malformed)?;
        let length = u32::try_from(described.len()).map_err(malformed)?;
        Ok([&length.to_le_bytes()[..], &described, &words].concat())
    }

    /// Decodes an operator on top of `input`.
    pub(crate) fn from_bytes(bytes: &[u8], input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let short = || malformed("it is too short");
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(malformed)?;
        let (described, schema) = rest.split_at_checked(length).ok_or_else(short)?;
        let described: Value = serde_json::from_slice(described).map_err(malformed)?;
        let principal = principal(&described["principal"])?;
        let text = |name: &str| described[name].as_str().ok_or_else(|| malformed(name));
        let run = Uuid::parse_str(text("run")?).map_err(malformed)?;
        let query = QueryId::parse(text("query")?).ok_or_else(|| malformed("query"))?;
        let layout = Layout {
            views: truth(&described, "views")?,
            dictionaries: truth(&described, "dictionaries")?,
            wide_numbers: truth(&described, "wide_numbers")?,
            json_variants: truth(&described, "json_variants")?,
            compression: Compression::None,
        };
        let schema: SchemaRef = StreamReader::try_new(schema, None)?.schema();
        Ok(Self { input, run, handout: Handout { query, principal, layout, schema } })
    }
}

/// Encodes a principal for other nodes.
pub(crate) fn described(principal: &Principal) -> Value {
    let claims = principal.claims.as_ref().map(|claims| {
        let Claims { issuer, roles, admin, local_users } = claims.as_ref();
        json!({"issuer": issuer, "roles": roles, "admin": admin, "local_users": local_users})
    });
    json!({"name": principal.name, "authenticated": principal.authenticated, "claims": claims})
}

pub(crate) fn principal(described: &Value) -> Result<Principal> {
    Ok(Principal {
        authenticated: truth(described, "authenticated")?,
        claims: claims(&described["claims"])?.map(Arc::new),
        ..Principal::user(described["name"].as_str().ok_or_else(|| malformed("name"))?)
    })
}

fn claims(value: &Value) -> Result<Option<Claims>> {
    if value.is_null() {
        return Ok(None);
    }
    let roles = value["roles"].as_array().ok_or_else(|| malformed("roles"))?;
    let roles: Option<BTreeSet<String>> = roles.iter().map(|role| role.as_str().map(str::to_owned)).collect();
    Ok(Some(Claims {
        issuer: value["issuer"].as_str().ok_or_else(|| malformed("issuer"))?.to_owned(),
        roles: roles.ok_or_else(|| malformed("roles"))?,
        admin: truth(value, "admin")?,
        local_users: truth(value, "local_users")?,
    }))
}

fn truth(value: &Value, name: &str) -> Result<bool> {
    value[name].as_bool().ok_or_else(|| malformed(name))
}

fn malformed(what: impl fmt::Display) -> DataFusionError {
    internal_datafusion_err!("the description of an endpoint cannot be read: {what}")
}

impl DisplayAs for EndpointSink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for EndpointSink {
    fn name(&self) -> &'static str {
        "EndpointSink"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input, self.run, self.handout.clone()))),
            _ => exec_err!("an endpoint has one input"),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let config = context.session_config();
        let Some(store) = config.get_extension::<Store>().and_then(|store| store.0.clone()) else {
            return exec_err!("this node does not serve results");
        };
        let task = DistributedTaskContext::from_ctx(&context).task_index;
        let id = EndpointId { run: self.run, index: u32::try_from(task).map_err(malformed)? };
        let rows = rows_of(&self.input, partition, &context, &self.handout).map_err(external)?;
        let streams = self.input.properties().partitioning.partition_count();
        let endpoint = store.open(id, &self.handout, streams, rows.origin().cloned()).map_err(external)?;
        let filling = stream::once(fill(rows, Filling { endpoint, done: false }));
        let errors = filling.filter_map(|end| future::ready(end.err().map(|error| Err(external(error)))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), errors)))
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Puts all rows into the endpoint, and waits until its client has read them.
async fn fill(mut rows: bowshot_api::BatchStream, mut filling: Filling) -> bowshot_api::Result<()> {
    let endpoint = Arc::clone(&filling.endpoint);
    let mut wanted = true;
    while wanted && let Some(batch) = rows.next().await {
        let put = match batch {
            Ok(batch) => endpoint.put(batch).await,
            Err(error) => Err(error),
        };
        match put {
            Ok(goes_on) => wanted = goes_on,
            Err(error) => {
                filling.done = true;
                endpoint.fail(error.duplicate());
                return Err(error);
            }
        }
    }
    // Frees the resources of the plan.
    drop(rows);
    endpoint.stream_ended();
    let finished = endpoint.finished().await;
    filling.done = true;
    finished
}

/// A stream that fills an endpoint. Dropped before its end, it fails the endpoint: the rows are not wanted any more, or the
/// coordinating node is lost. A living coordinator reports the reason before that.
struct Filling {
    endpoint: Arc<dyn LocalEndpoint>,
    done: bool,
}

impl Drop for Filling {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let lost = Error::new(ErrorKind::Unavailable, "the node that the statement was sent to is lost")
            .with_hint("run the statement again");
        let endpoint = Arc::clone(&self.endpoint);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                tokio::time::sleep(LAST_WORD).await;
                endpoint.fail(lost);
            })),
            Err(_) => endpoint.fail(lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_plan::empty::EmptyExec;
    use std::time::SystemTime;

    #[test]
    fn a_description_comes_as_it_went() {
        let schema = Arc::new(Schema::new(vec![Field::new("ä", DataType::Utf8, true)]));
        let roles = ["one", "two"].map(str::to_owned).into();
        let claims = Claims { issuer: "i".to_owned(), roles, admin: false, local_users: true };
        for principal in [
            Principal::anonymous(),
            Principal::user("ann"),
            Principal::claimed("bob", claims, SystemTime::now()),
        ] {
            let layout = Layout { views: true, wide_numbers: true, ..Layout::default() };
            let query = QueryId::random();
            let handout =
                Handout { query, principal: principal.clone(), layout, schema: Arc::clone(&schema) };
            let input: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::clone(&schema)));
            let sink = EndpointSink::new(Arc::clone(&input), Uuid::from_u128(7), handout);
            let bytes = sink.to_bytes().expect("bytes");
            let back = EndpointSink::from_bytes(&bytes, Arc::clone(&input)).expect("a sink");
            assert_eq!((back.run, back.handout.query), (sink.run, query));
            assert_eq!((&back.handout.principal, back.handout.layout), (&principal, layout));
            assert_eq!(back.handout.schema, schema);
            // The last eight bytes mark the end of the stream, which is not checked.
            for end in 0..bytes.len() - 8 {
                assert!(EndpointSink::from_bytes(&bytes[..end], Arc::clone(&input)).is_err());
            }
        }
    }
}
