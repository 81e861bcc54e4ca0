//! Lists namespaces and tables of a catalog page by page, with one deadline and one budget, since a catalog may be broken or hostile.

use super::fault::CatalogFault;
use super::names::{is_name, is_namespace, parts};
use super::responses::{Namespaces, Tables};
use super::service::{MAX_BYTES, SEPARATOR, Service, parsed};
use bowshot_object_store::{Answer, Fault};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use url::Url;

/// Names, and bytes of answers and of what is kept of them, in a whole listing.
const MAX_NAMES: usize = 100_000;
const MAX_LIST_BYTES: usize = 64 << 20;
/// Pages of one list, and bytes of what a page says of the next one.
const MAX_PAGES: usize = 1_000;
const MAX_PAGE_TOKEN_BYTES: usize = 8 << 10;
/// Namespaces that are asked for at once.
const AT_ONCE: usize = 8;
/// So many times what one answer has, the listing of all namespaces has.
const TIMES: u32 = 2;

const LARGE: CatalogFault = CatalogFault::Large("more than 64 MiB of names");

type Result<T> = std::result::Result<T, CatalogFault>;

#[derive(Debug)]
struct Budget {
    begun: Instant,
    limit: Duration,
    names: AtomicUsize,
    bytes: AtomicUsize,
}

impl Budget {
    fn new(limit: Duration) -> Self {
        Self { begun: Instant::now(), limit, names: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    fn is_late(&self) -> bool {
        self.begun.elapsed() >= self.limit
    }

    /// Until when the next page is waited for, and how large it may be.
    fn left(&self) -> Result<(Instant, usize)> {
        if self.is_late() {
            return Err(CatalogFault::Slow(self.limit));
        }
        let taken = self.bytes.load(Ordering::Relaxed);
        Ok((self.begun + self.limit, MAX_LIST_BYTES.saturating_sub(taken).min(MAX_BYTES)))
    }

    fn take(&self, names: usize, bytes: usize) -> Result<()> {
        let names = self.names.fetch_add(names, Ordering::Relaxed).saturating_add(names);
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match (names > MAX_NAMES, bytes > MAX_LIST_BYTES) {
            (true, _) => Err(CatalogFault::Large("more than 100000 names")),
            (_, true) => Err(LARGE),
            (false, false) => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
struct Pages {
    next: Option<String>,
    seen: HashSet<String>,
}

impl Pages {
    fn address(&self, mut url: Url) -> Url {
        if let Some(page) = &self.next {
            url.query_pairs_mut().append_pair("pageToken", page);
        }
        url
    }

    /// Whether there is another page, which is the next one then.
    fn turn(&mut self, next: Option<String>) -> Result<bool> {
        let Some(next) = next.filter(|next| !next.is_empty()) else { return Ok(false) };
        if next.len() > MAX_PAGE_TOKEN_BYTES {
            return Err(CatalogFault::Strange("its page token is longer than 8 KiB"));
        }
        if self.seen.len() >= MAX_PAGES {
            return Err(CatalogFault::Large("names on more than 1000 pages"));
        }
        if !self.seen.insert(next.clone()) {
            return Err(CatalogFault::Strange("its list returns the same page twice"));
        }
        self.next = Some(next);
        Ok(true)
    }
}

impl Service {
    /// The tables of all namespaces that are seen, sorted.
    pub(super) async fn names(&self) -> Result<Vec<(String, String)>> {
        let budget = Budget::new(self.timeout() * TIMES);
        let namespaces = match self.chosen() {
            [] => self.namespaces(&budget).await?,
            chosen => chosen.iter().filter_map(|name| parts(name)).collect(),
        };
        let mut waiting = namespaces.iter();
        let mut asked = FuturesUnordered::new();
        for namespace in waiting.by_ref().take(AT_ONCE) {
            asked.push(self.named(namespace, &budget));
        }
        let mut names = Vec::new();
        while let Some(found) = asked.next().await {
            names.extend(found?);
            if let Some(namespace) = waiting.next() {
                asked.push(self.named(namespace, &budget));
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The tables of the namespace that is called exactly so, sorted; none where there is no such namespace.
    pub(super) async fn spelled(&self, namespace: &[String]) -> Result<Vec<String>> {
        let budget = Budget::new(self.timeout());
        if !self.has(namespace, &budget).await? {
            return Ok(Vec::new());
        }
        let mut names = self.tables(namespace, &budget).await?;
        names.sort_unstable();
        Ok(names)
    }

    pub(super) async fn has_namespace(&self, namespace: &[String]) -> Result<bool> {
        self.has(namespace, &Budget::new(self.timeout())).await
    }

    /// Those that the operator chooses are called what the operator calls them.
    async fn has(&self, namespace: &[String], budget: &Budget) -> Result<bool> {
        Ok(!self.chosen().is_empty()
            || self.namespaces(budget).await?.iter().any(|known| known.as_slice() == namespace))
    }

    async fn named(&self, namespace: &[String], budget: &Budget) -> Result<Vec<(String, String)>> {
        let tables = self.tables(namespace, budget).await?;
        let schema = namespace.join(".");
        budget.take(0, tables.len() * schema.len())?;
        Ok(tables.into_iter().map(|table| (schema.clone(), table)).collect())
    }

    /// The namespaces of the first level, without those that can be no schemas.
    async fn namespaces(&self, budget: &Budget) -> Result<Vec<Vec<String>>> {
        let (mut names, mut pages) = (Vec::new(), Pages::default());
        loop {
            let url = pages.address(self.address(&["namespaces"]).await?);
            let answer: Namespaces = parsed(&self.page(url, budget).await?)?;
            budget.take(answer.namespaces.len(), 0)?;
            names.extend(answer.namespaces.into_iter().filter(|parts| is_namespace(parts)));
            if !pages.turn(answer.next_page_token)? {
                return Ok(names);
            }
        }
    }

    /// The names of the tables of a namespace; none where it is gone.
    async fn tables(&self, namespace: &[String], budget: &Budget) -> Result<Vec<String>> {
        let namespace = namespace.join(SEPARATOR);
        let (mut names, mut pages) = (Vec::new(), Pages::default());
        loop {
            let url = pages.address(self.address(&["namespaces", &namespace, "tables"]).await?);
            let answer = self.page(url, budget).await?;
            if answer.status == 404 {
                return Ok(Vec::new());
            }
            let answer: Tables = parsed(&answer)?;
            budget.take(answer.identifiers.len(), 0)?;
            names.extend(answer.identifiers.into_iter().map(|table| table.name).filter(|name| is_name(name)));
            if !pages.turn(answer.next_page_token)? {
                return Ok(names);
            }
        }
    }

    async fn page(&self, url: Url, budget: &Budget) -> Result<Answer> {
        let (until, most) = budget.left()?;
        let answer = match self.asked(url, most, Some(until)).await {
            Err(CatalogFault::Asked(Fault::Late(_))) if budget.is_late() => {
                return Err(CatalogFault::Slow(budget.limit));
            }
            // It may be as large as what is left for all of them.
            Err(CatalogFault::Asked(Fault::Strange(_))) if most < MAX_BYTES => return Err(LARGE),
            answer => answer?,
        };
        budget.take(0, answer.bytes.len())?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_together_have_one_budget() {
        let budget = Budget::new(Duration::from_secs(60));
        assert!(matches!(budget.left(), Ok((_, MAX_BYTES))));
        budget.take(MAX_NAMES, MAX_LIST_BYTES - 1).unwrap();
        assert!(matches!(budget.left(), Ok((_, 1))));
        assert!(budget.take(1, 0).is_err() && budget.take(0, 2).is_err());
        assert!(matches!(Budget::new(Duration::ZERO).left(), Err(CatalogFault::Slow(_))));
    }

    #[test]
    fn pages_come_once() {
        let next = |number: usize| Some(number.to_string());
        let mut pages = Pages::default();
        assert!(!pages.turn(None).unwrap() && !pages.turn(Some(String::new())).unwrap());
        assert!(pages.turn(next(1)).unwrap() && pages.turn(next(2)).unwrap());
        let url = pages.address(Url::parse("http://h/x").unwrap());
        assert_eq!(url.as_str(), "http://h/x?pageToken=2");
        assert!(pages.turn(next(1)).is_err() && pages.turn(Some("x".repeat(9_000))).is_err());
        assert!((3..=MAX_PAGES).all(|number| pages.turn(next(number)).unwrap()));
        assert!(pages.turn(next(0)).is_err());
    }
}
