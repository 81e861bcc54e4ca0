//! Plans of all sessions that are used again: of statements about a key and of rows that are written out for other literals, and of
//! other queries for the same text. A plan serves only the session that made it, so that it never has the rights or the policies of
//! another user, and holds no rows.

use crate::authorize::AuthorizedPlan;
use crate::catalog::providers::PlanRows;
use crate::plan;
use crate::session::plan_binding::BarePlan;
use bowshot_api::{Error, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::PlainSelect;
use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a plan is used again for the same text: what it reads of a session's surroundings is not looked at each time.
const MAX_AGE: Duration = Duration::from_secs(4);
/// Tables and views up to which it is found out for each statement that they are the same.
const MAX_ENTRIES: usize = 4096;
/// Plans of a session that may share what tables are with the next one.
const SHARING: usize = 8;
/// Forms of texts that a plan is known by: one statement is seldom written in many ways.
const FORMS: usize = 4;

/// The plans that the sessions reuse.
#[derive(Debug)]
pub(crate) struct PlanCache {
    next: AtomicU64,
    /// Plans of all sessions together. One holds what all tables are, so that idle sessions must not add up.
    most: usize,
    sessions: Mutex<HashMap<u64, Vec<CachedPlan>>>,
}

/// By what a plan is found.
#[derive(Debug, PartialEq)]
pub(super) enum PlanKey {
    /// The text, as it was sent.
    Text(Arc<str>),
    /// The statement with a blank in the place of each literal.
    Blank(Box<ast::Statement>),
}

#[derive(Debug)]
pub(super) struct CachedPlan {
    pub(super) key: PlanKey,
    /// The forms of texts with this statement, so that these need not be parsed: see [`PlainSelect`].
    forms: Vec<Box<str>>,
    /// Whoever changes a setting makes other options: these are held, and cannot change in place.
    options: Arc<ConfigOptions>,
    pub(super) plan: Arc<BarePlan>,
    user: Arc<str>,
    bytes: u64,
    used: Instant,
    counts: Arc<Counts>,
}

/// How often a statement was planned, and how often its plan was used again.
#[derive(Debug, Default)]
pub(super) struct Counts {
    planned: AtomicU64,
    hits: AtomicU64,
}

impl Counts {
    /// Notes that a plan is used again.
    pub(super) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }
}

impl CachedPlan {
    /// Whether it may be used with these settings. Whether it fits the tables takes longer to find out.
    pub(super) fn is_for(&self, options: &Arc<ConfigOptions>) -> bool {
        Arc::ptr_eq(&self.options, options) && self.age() < MAX_AGE
    }

    /// Whether it is of this very text.
    pub(super) fn is_of_text(&self, sql: &str) -> bool {
        matches!(&self.key, PlanKey::Text(text) if **text == *sql)
    }

    /// Whether it is of texts of this form.
    pub(super) fn is_of_form(&self, select: &PlainSelect<'_>) -> bool {
        self.forms.iter().any(|form| **form == *select.form())
    }

    fn age(&self) -> Duration {
        self.plan.plan().made().elapsed()
    }
}

impl PlanCache {
    /// A cache of so many plans.
    pub(crate) fn new(most: usize) -> Self {
        Self { next: AtomicU64::default(), most, sessions: Mutex::default() }
    }

    /// Drops the one that was not used for longest.
    fn evict(sessions: &mut HashMap<u64, Vec<CachedPlan>>) -> Option<CachedPlan> {
        let all = sessions.iter().flat_map(|(session, plans)| {
            plans.iter().enumerate().map(|(at, cached)| (cached.used, *session, at))
        });
        let (_, session, at) = all.min()?;
        let plans = sessions.get_mut(&session)?;
        Some(plans.remove(at))
    }

    #[cfg(test)]
    pub(super) fn has_plans_of(&self, session: u64) -> bool {
        self.sessions.lock().contains_key(&session)
    }

    #[cfg(test)]
    pub(super) fn bare_plans(&self) -> Vec<Arc<BarePlan>> {
        self.sessions.lock().values().flatten().map(|cached| Arc::clone(&cached.plan)).collect()
    }
}

/// The plans of one session. They end with it.
#[derive(Debug)]
pub(crate) struct SessionPlans {
    session: u64,
    user: Arc<str>,
    all: Arc<PlanCache>,
}

impl SessionPlans {
    pub(crate) fn new(all: &Arc<PlanCache>, user: &str) -> Arc<Self> {
        let session = all.next.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { session, user: Arc::from(user), all: Arc::clone(all) })
    }

    #[cfg(test)]
    pub(super) fn session(&self) -> u64 {
        self.session
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &PlanCache {
        &self.all
    }

    /// The plan of the first that is wanted, with its counts.
    pub(super) fn find(
        &self,
        is_wanted: impl Fn(&CachedPlan) -> bool,
    ) -> Option<(Arc<BarePlan>, Arc<Counts>)> {
        let mut sessions = self.all.sessions.lock();
        let found = sessions.get_mut(&self.session)?.iter_mut().find(|cached| is_wanted(cached))?;
        found.used = Instant::now();
        Some((Arc::clone(&found.plan), Arc::clone(&found.counts)))
    }

    /// Notes that a text of this form has the statement of the first plan that is wanted.
    pub(super) fn add_form(&self, select: &PlainSelect<'_>, is_wanted: impl Fn(&CachedPlan) -> bool) {
        let mut sessions = self.all.sessions.lock();
        let plans = sessions.get_mut(&self.session);
        let found = plans.and_then(|plans| plans.iter_mut().find(|cached| is_wanted(cached)));
        if let Some(cached) = found.filter(|cached| !cached.is_of_form(select)) {
            if cached.forms.len() >= FORMS {
                cached.forms.remove(0);
            }
            cached.forms.push(Box::from(select.form()));
        }
    }

    /// Adds a plan in the place of an earlier one with the same key, if it reads nothing but the tables that it was planned on.
    pub(super) fn add(
        &self,
        key: PlanKey,
        select: Option<&PlainSelect<'_>>,
        options: Arc<ConfigOptions>,
        plan: &AuthorizedPlan,
    ) {
        let [_, _, entries] = plan.pinned().shared().counts();
        if self.all.most == 0 || entries > MAX_ENTRIES {
            return;
        }
        let Some(plan) = BarePlan::new(plan, self.without_rows(plan.pinned())).map(Arc::new) else { return };
        let bytes = estimated_bytes(plan.plan().planned().plan(), &key);
        let mut sessions = self.all.sessions.lock();
        // Dropped without the lock, since a plan may be the last one that holds what tables are.
        let mut gone = Vec::new();
        let mut counts = Arc::<Counts>::default();
        for (session, plans) in sessions.iter_mut() {
            let is_gone = |cached: &mut CachedPlan| {
                let is_replaced = *session == self.session && cached.key == key;
                if is_replaced {
                    counts = Arc::clone(&cached.counts);
                }
                is_replaced || cached.age() >= MAX_AGE
            };
            gone.extend(plans.extract_if(.., is_gone));
        }
        sessions.retain(|_, plans| !plans.is_empty());
        if sessions.values().map(Vec::len).sum::<usize>() >= self.all.most {
            gone.extend(PlanCache::evict(&mut sessions));
        }
        counts.planned.fetch_add(1, Ordering::Relaxed);
        let (user, used) = (Arc::clone(&self.user), Instant::now());
        let forms = select.map(|select| Box::<str>::from(select.form())).into_iter().collect();
        let cached = CachedPlan { key, forms, options, plan, user, bytes, used, counts };
        sessions.entry(self.session).or_default().push(cached);
        drop(sessions);
        drop(gone);
    }

    /// The state without rows: that of a recent plan, if its tables are these but for their rows.
    fn without_rows(&self, pinned: &Pinned) -> Pinned {
        let pinned_of = |cached: &CachedPlan| cached.plan.plan().pinned().clone();
        let recent: Vec<Pinned> = self
            .all
            .sessions
            .lock()
            .get(&self.session)
            .map_or_else(Vec::new, |plans| plans.iter().rev().take(SHARING).map(pinned_of).collect());
        let known = recent.into_iter().find(|there| there.is_same_but_for_rows(pinned));
        known.unwrap_or_else(|| pinned.without_rows())
    }
}

impl Drop for SessionPlans {
    fn drop(&mut self) {
        let gone = self.all.sessions.lock().remove(&self.session);
        drop(gone);
    }
}

/// Bytes of the nodes, the expressions and the text, without what they share with tables.
fn estimated_bytes(plan: &LogicalPlan, key: &PlanKey) -> u64 {
    let mut bytes = match key {
        PlanKey::Text(text) => text.len(),
        PlanKey::Blank(_) => 0,
    };
    // A plan that was authorized has been walked before.
    let _ = plan.apply_with_subqueries(|node| {
        bytes += size_of::<LogicalPlan>();
        node.apply_expressions(|expr| {
            expr.apply(|_| {
                bytes += size_of::<Expr>();
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    bytes as u64
}

impl PlanRows for PlanCache {
    fn rows(&self, user: Option<&str>) -> Result<RecordBatch> {
        let sessions = self.sessions.lock();
        let all = sessions.values().flatten();
        let seen: Vec<&CachedPlan> =
            all.filter(|cached| user.is_none_or(|user| *cached.user == *user)).collect();
        let text = |value: &dyn Fn(&CachedPlan) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(seen.iter().map(|cached| value(cached))))
        };
        let number = |value: &dyn Fn(&CachedPlan) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(seen.iter().map(|cached| value(cached))))
        };
        let hits = |cached: &CachedPlan| cached.counts.hits.load(Ordering::Relaxed);
        let planned = |cached: &CachedPlan| cached.counts.planned.load(Ordering::Relaxed);
        let columns = [
            ("user_name", text(&|cached| cached.user.as_ref().to_owned())),
            ("statement", text(&|cached| cached.key.statement())),
            ("dialect", text(&|cached| plan::dialect(&cached.options).name().as_str().to_owned())),
            ("kind", text(&|cached| cached.key.kind().to_owned())),
            ("uses", number(&|cached| planned(cached) + hits(cached))),
            ("hits", number(&hits)),
            ("bytes", number(&|cached| cached.bytes)),
            ("age_ms", number(&|cached| cached.age().as_millis() as u64)),
        ];
        RecordBatch::try_from_iter(columns)
            .map_err(|error| Error::internal("the plan cache does not fit its schema").with_source(error))
    }
}

impl PlanKey {
    fn statement(&self) -> String {
        match self {
            Self::Text(text) => text.as_ref().to_owned(),
            Self::Blank(statement) => statement.to_string(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "statement",
            Self::Blank(statement) => match statement.as_ref() {
                ast::Statement::Query(_) => "key lookup",
                ast::Statement::Insert(_) => "insert",
                _ => "change by key",
            },
        }
    }
}
