//! Table names exactly as the catalog lists them. Catalogs that fold case or trim names accept several spellings of a name, but
//! access rules know one; any other spelling does not exist.

use super::fault::CatalogFault;
use super::names::parts;
use super::service::Service;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Namespaces whose tables are remembered, and how much is of each; a longer list is asked for whenever it is needed.
const MAX_NAMESPACES: usize = 64;
const MAX_NAMESPACE_BYTES: usize = 1 << 20;
/// So young a list is not asked for again because of a name that is not in it.
const FRESH: Duration = Duration::from_secs(1);

type Slot = tokio::sync::Mutex<Option<Listed>>;

/// The spellings of table names that a catalog lists.
#[derive(Debug)]
pub(super) struct ExactNames {
    believed: Duration,
    namespaces: Mutex<HashMap<String, Arc<Slot>>>,
}

#[derive(Debug)]
struct Listed {
    since: Instant,
    tables: Vec<String>,
}

impl Listed {
    fn has(&self, table: &str) -> bool {
        self.tables.binary_search_by(|known| known.as_str().cmp(table)).is_ok()
    }

    /// Whether it has a table, if it is not too old to say so.
    fn says(&self, table: &str, believed: Duration) -> Option<bool> {
        let (age, has) = (self.since.elapsed(), self.has(table));
        (age < FRESH || (has && age < believed)).then_some(has)
    }

    fn bytes(&self) -> usize {
        self.tables.iter().map(|table| table.len() + size_of::<String>()).sum()
    }
}

impl ExactNames {
    pub(super) fn new(believed: Duration) -> Self {
        Self { believed, namespaces: Mutex::default() }
    }

    /// Whether the catalog lists a table, in a namespace, by exactly these names. One asks, and the others take what it was told.
    pub(super) async fn has(
        &self,
        service: &Service,
        schema: &str,
        table: &str,
    ) -> Result<bool, CatalogFault> {
        let Some(namespace) = parts(schema) else { return Ok(false) };
        let slot = self.slot(schema);
        let mut slot = slot.lock().await;
        if let Some(has) = slot.as_ref().and_then(|listed| listed.says(table, self.believed)) {
            return Ok(has);
        }
        let since = Instant::now();
        let listed = Listed { since, tables: service.spelled(&namespace).await? };
        let has = listed.has(table);
        *slot = Some(listed).filter(|listed| listed.bytes() <= MAX_NAMESPACE_BYTES);
        Ok(has)
    }

    /// Forgets what is known of a namespace.
    pub(super) async fn forget(&self, schema: &str) {
        *self.slot(schema).lock().await = None;
    }

    fn slot(&self, schema: &str) -> Arc<Slot> {
        let mut namespaces = self.namespaces.lock();
        if namespaces.len() >= MAX_NAMESPACES && !namespaces.contains_key(schema) {
            // Those that somebody is asking for now stay.
            namespaces.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(namespaces.entry(schema.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_believed_for_a_while_in_what_it_has_and_for_a_moment_in_what_it_has_not() {
        let listed = |age: u64| Listed {
            since: Instant::now().checked_sub(Duration::from_secs(age)).unwrap(),
            tables: ["a", "orders"].map(str::to_owned).to_vec(),
        };
        let believed = Duration::from_secs(10);
        assert_eq!(listed(0).says("orders", believed), Some(true));
        assert_eq!(listed(0).says("ORDERS", believed), Some(false));
        assert_eq!(listed(5).says("orders", believed), Some(true));
        assert_eq!(listed(5).says("ORDERS", believed), None);
        assert_eq!(listed(20).says("orders", believed), None);
    }
}
