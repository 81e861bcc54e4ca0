//! `system.nodes`: members of the cluster as this node sees them, and `system.query_stages`: statements on several nodes. For administrators
//! only.

use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, StringArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, Principal, Result};
use bowshot_cluster::QueryStages;
use bowshot_cluster::membership::{Cluster, Member};
use bowshot_system_catalog::system::SystemTables;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const NODES: &str = "nodes";
const STAGES: &str = "query_stages";

/// Adds the tables of nodes to other system tables.
#[derive(Debug)]
pub(super) struct NodeTables {
    pub(super) others: Arc<dyn SystemTables>,
    pub(super) cluster: Option<Cluster>,
    pub(super) stages: QueryStages,
}

impl SystemTables for NodeTables {
    fn names(&self) -> Vec<&'static str> {
        self.others.names()
    }

    fn admin_names(&self) -> Vec<&'static str> {
        self.others.admin_names()
    }

    fn shared_names(&self) -> Vec<&'static str> {
        let mut names = self.others.shared_names();
        names.extend([NODES, STAGES]);
        names
    }

    fn rows(&self, name: &str, principal: &Principal) -> Option<Result<RecordBatch>> {
        match (name, &self.cluster) {
            (NODES, Some(cluster)) => {
                let myself = cluster.myself();
                Some(rows(&cluster.members(), &myself))
            }
            // A single server is no cluster.
            (NODES, None) => Some(Ok(RecordBatch::new_empty(Arc::new(schema())))),
            (STAGES, _) => Some(self.stages.rows()),
            _ => self.others.rows(name, principal),
        }
    }
}

fn rows(members: &[Member], myself: &Member) -> Result<RecordBatch> {
    let text = |value: &dyn Fn(&Member) -> String| -> ArrayRef {
        Arc::new(members.iter().map(|member| Some(value(member))).collect::<StringArray>())
    };
    let times = |value: &dyn Fn(&Member) -> Option<SystemTime>| -> ArrayRef {
        let times = members.iter().map(|member| value(member).map(micros));
        Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("+00:00"))
    };
    let columns: Vec<ArrayRef> = vec![
        text(&|member| member.id.to_string()),
        text(&|member| member.address.clone()),
        text(&|member| member.public.clone()),
        text(&|member| member.state.name().to_owned()),
        Arc::new(members.iter().map(|member| Some(member.id == myself.id)).collect::<BooleanArray>()),
        Arc::new(
            members.iter().map(|member| Some(member.takes_work_of(&myself.build))).collect::<BooleanArray>(),
        ),
        Arc::new(members.iter().map(|member| Some(member.guarded)).collect::<BooleanArray>()),
        text(&|member| member.build.clone()),
        times(&|member| Some(member.since)),
        times(&|member| member.last_heard),
        Arc::new(members.iter().map(|member| member.clock_skew_ms).collect::<Int64Array>()),
        Arc::new(UInt32Array::from_iter_values(members.iter().map(|member| member.threads))),
        Arc::new(UInt64Array::from_iter_values(members.iter().map(|member| member.memory))),
    ];
    RecordBatch::try_new(Arc::new(schema()), columns)
        .map_err(|error| Error::internal("the nodes do not fit their table").with_source(error))
}

fn schema() -> Schema {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let truth = |name: &str| Field::new(name, DataType::Boolean, false);
    let time = |name: &str, nullable: bool| {
        Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())), nullable)
    };
    Schema::new(vec![
        text("node_id"),
        text("address"),
        text("public"),
        text("state"),
        truth("this_node"),
        truth("takes_work"),
        truth("guarded"),
        text("build"),
        time("since", false),
        time("last_heard", true),
        Field::new("clock_skew_ms", DataType::Int64, true),
        Field::new("threads", DataType::UInt32, false),
        Field::new("memory_bytes", DataType::UInt64, false),
    ])
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
