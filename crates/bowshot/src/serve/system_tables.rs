//! `system.nodes`: members of the cluster as this node sees them, `system.query_stages`: statements on several nodes, and
//! `system.databases`: the other databases of this server. For administrators only.

use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, StringArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, Principal, Result};
use bowshot_cluster::QueryStages;
use bowshot_cluster::membership::{Cluster, Member};
use bowshot_databases::ExternalDatabases;
use bowshot_engine::databases::Databases;
use bowshot_system_catalog::system::SystemTables;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const NODES: &str = "nodes";
const STAGES: &str = "query_stages";
const DATABASES: &str = "databases";

/// Adds the tables of nodes, and that of other databases, to other system tables.
#[derive(Debug)]
pub(super) struct ServerTables {
    pub(super) others: Arc<dyn SystemTables>,
    pub(super) cluster: Option<Cluster>,
    pub(super) stages: QueryStages,
    pub(super) databases: Arc<ExternalDatabases>,
}

impl SystemTables for ServerTables {
    bowshot_api::delegate! { others:
        fn names(&self) -> Vec<&'static str>;
        fn admin_names(&self) -> Vec<&'static str>;
    }

    fn shared_names(&self) -> Vec<&'static str> {
        let mut names = self.others.shared_names();
        names.extend([NODES, STAGES, DATABASES]);
        names
    }

    fn rows(&self, name: &str, principal: &Principal) -> Option<Result<RecordBatch>> {
        match name {
            NODES => Some(rows(self.cluster.as_ref())),
            STAGES => Some(self.stages.rows()),
            DATABASES => Some(self.databases.rows()),
            _ => self.others.rows(name, principal),
        }
    }
}

fn rows(cluster: Option<&Cluster>) -> Result<RecordBatch> {
    let members = cluster.map(|cluster| cluster.members()).unwrap_or_default();
    let myself = cluster.map(|cluster| cluster.myself());
    let text = |value: &dyn Fn(&Member) -> String| -> ArrayRef {
        Arc::new(members.iter().map(|member| Some(value(member))).collect::<StringArray>())
    };
    let truth = |value: &dyn Fn(&Member) -> bool| -> ArrayRef {
        Arc::new(members.iter().map(|member| Some(value(member))).collect::<BooleanArray>())
    };
    let times = |value: &dyn Fn(&Member) -> Option<SystemTime>| -> ArrayRef {
        let times = members.iter().map(|member| value(member).map(micros));
        Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("+00:00"))
    };
    let skews: Int64Array = members.iter().map(|member| member.clock_skew_ms).collect();
    let threads = UInt32Array::from_iter_values(members.iter().map(|member| member.threads));
    let memory = UInt64Array::from_iter_values(members.iter().map(|member| member.memory));
    let is_myself = |member: &Member| myself.as_ref().is_some_and(|myself| member.id == myself.id);
    let takes_work =
        |member: &Member| myself.as_ref().is_some_and(|myself| member.takes_work_of(&myself.build));
    let columns: [(&str, ArrayRef, bool); 13] = [
        ("node_id", text(&|member| member.id.to_string()), false),
        ("address", text(&|member| member.address.clone()), false),
        ("public", text(&|member| member.public.clone()), false),
        ("state", text(&|member| member.state.name().to_owned()), false),
        ("this_node", truth(&is_myself), false),
        ("takes_work", truth(&takes_work), false),
        ("guarded", truth(&|member| member.guarded), false),
        ("build", text(&|member| member.build.clone()), false),
        ("since", times(&|member| Some(member.since)), false),
        ("last_heard", times(&|member| member.last_heard), true),
        ("clock_skew_ms", Arc::new(skews), true),
        ("threads", Arc::new(threads), false),
        ("memory_bytes", Arc::new(memory), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| Error::internal("the nodes do not fit their table").with_source(error))
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
