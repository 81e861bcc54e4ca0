//! The metric of tagged statements. Tags are texts of clients, so only the first [`MAX_TAGS`] become label values.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// Tags with a label value of their own; statements of further ones are counted together.
const MAX_TAGS: usize = 100;
const OTHER: &str = "other";

#[derive(Debug, Default)]
pub(super) struct TagLabels(Mutex<HashSet<Arc<str>>>);

impl TagLabels {
    /// Counts a statement that has ended, if it has a tag.
    pub(super) fn count(&self, tag: &Arc<str>, outcome: &'static str) {
        if let Some(label) = self.label(tag) {
            metrics::counter!("bowshot_tagged_queries_total", "tag" => label, "outcome" => outcome)
                .increment(1);
        }
    }

    fn label(&self, tag: &Arc<str>) -> Option<Arc<str>> {
        if tag.is_empty() {
            return None;
        }
        let mut tags = self.0.lock();
        if !tags.contains(tag) {
            if tags.len() >= MAX_TAGS {
                return Some(Arc::from(OTHER));
            }
            tags.insert(Arc::clone(tag));
        }
        Some(Arc::clone(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_bounded() {
        let tags = TagLabels::default();
        assert_eq!(tags.label(&Arc::from("")), None);
        for number in 0..MAX_TAGS {
            let tag: Arc<str> = Arc::from(format!("job {number}"));
            assert_eq!(tags.label(&tag), Some(tag));
        }
        assert_eq!(tags.label(&Arc::from("one more")).as_deref(), Some(OTHER));
        assert_eq!(tags.label(&Arc::from("job 7")).as_deref(), Some("job 7"), "those that came first stay");
    }
}
