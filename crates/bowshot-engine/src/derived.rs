//! A session's state made of another one, in which every name stands for the same function.

use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What makes a state of which only some parts are others than those of `template`.
///
/// [`SessionStateBuilder::new_from_existing`] takes the functions in no order. Where one function's name is another's alias, as
/// with our `length` and the alias of DataFusion's `character_length`, either might win.
pub fn derived(template: &SessionState) -> SessionStateBuilder {
    let mut builder = SessionStateBuilder::new_from_existing(template.clone());
    let scalar = in_order(template.scalar_functions(), |function| (function.name(), function.aliases()));
    let higher_order =
        in_order(template.higher_order_functions(), |function| (function.name(), function.aliases()));
    let aggregate =
        in_order(template.aggregate_functions(), |function| (function.name(), function.aliases()));
    let window = in_order(template.window_functions(), |function| (function.name(), function.aliases()));
    *builder.scalar_functions() = Some(scalar);
    *builder.higher_order_functions() = Some(higher_order);
    *builder.aggregate_functions() = Some(aggregate);
    *builder.window_functions() = Some(window);
    builder
}

/// The functions in an order in which each name is taken last by the function that it stands for.
fn in_order<F>(functions: &HashMap<String, Arc<F>>, names: impl Fn(&F) -> (&str, &[String])) -> Vec<Arc<F>> {
    let mut first_names: Vec<_> = functions.keys().collect();
    first_names.sort();
    let mut order = Order { functions, names, seen: HashSet::new(), last_first: Vec::new() };
    for name in first_names {
        order.visit(&functions[name]);
    }
    order.last_first.reverse();
    order.last_first
}

struct Order<'a, F, N> {
    functions: &'a HashMap<String, Arc<F>>,
    names: N,
    seen: HashSet<*const F>,
    last_first: Vec<Arc<F>>,
}

impl<'a, F, N: Fn(&F) -> (&str, &[String])> Order<'a, F, N> {
    /// Those that have one of this one's names come after it.
    fn visit(&mut self, function: &'a Arc<F>) {
        if !self.seen.insert(Arc::as_ptr(function)) {
            return;
        }
        let (name, aliases) = (self.names)(function);
        let names = std::iter::once(name).chain(aliases.iter().map(String::as_str));
        let winners: Vec<_> = names.filter_map(|name| self.functions.get(name)).collect();
        for winner in winners {
            self.visit(winner);
        }
        self.last_first.push(Arc::clone(function));
    }
}

#[cfg(test)]
mod tests {
    use super::derived;
    use datafusion::execution::SessionState;
    use datafusion::execution::session_state::SessionStateBuilder;

    fn names(state: &SessionState) -> Vec<(String, String)> {
        let scalar = state.scalar_functions().iter().map(|(name, function)| (name, function.name()));
        let aggregate = state.aggregate_functions().iter().map(|(name, function)| (name, function.name()));
        let window = state.window_functions().iter().map(|(name, function)| (name, function.name()));
        let mut all: Vec<_> =
            scalar.chain(aggregate).chain(window).map(|(name, own)| (name.clone(), own.to_owned())).collect();
        all.sort();
        all
    }

    #[test]
    fn names_stand_for_the_same_functions() {
        let mut template = SessionStateBuilder::new().with_default_features().build();
        bowshot_functions::register(&mut template).unwrap();
        let expected = names(&template);
        assert!(expected.contains(&("length".to_owned(), "length".to_owned())));
        // The order of a map is another one in each copy.
        for _ in 0..20 {
            assert_eq!(names(&derived(&template).build()), expected);
        }
    }
}
