//! Random histories of many transactions at once, beside a model.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// The table's rows by id.
fn contents(table: &Table) -> BTreeMap<i64, Option<i64>> {
    let mut found = BTreeMap::new();
    for batch in table.batches().map(Result::unwrap) {
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>();
        for (id, value) in column(0).values().iter().zip(column(1)) {
            assert!(found.insert(*id, value).is_none(), "row {id} is there twice");
        }
    }
    found
}

fn updated(store: &Arc<TableStore>, table: &Table, id: i64, value: i64) -> Table {
    let left = without(store, table, id);
    appended(store, &left, [pairs([(id, Some(value))])])
}

/// Numbers that look random and are the same in every run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// What the tables should hold.
type Model = BTreeMap<String, BTreeMap<i64, Option<i64>>>;

/// A transaction in the store, and what it should see.
struct Transaction {
    base: Arc<Snapshot>,
    current: Arc<Snapshot>,
    base_model: Model,
    model: Model,
    /// Only appends so far, which must not conflict.
    harmless: bool,
}

/// The store beside a model of it that knows rows only.
struct History {
    store: Arc<TableStore>,
    numbers: Numbers,
    model: Model,
    next_row: i64,
    open: Vec<Transaction>,
    committed: u32,
    refused: u32,
}

const TABLES: [&str; 3] = ["a", "b", "c"];

impl History {
    fn new(seed: u64) -> Self {
        let store = store();
        let mut model = Model::new();
        for (at, table_name) in TABLES.into_iter().enumerate() {
            let first = at as i64 * 100;
            let table = table(&store, [rows(first..first + 6), rows(first + 6..first + 12)]);
            model.insert(table_name.to_owned(), contents(&table));
            put(&store, table_name, table);
        }
        let numbers = Numbers(seed);
        Self { store, numbers, model, next_row: 1000, open: Vec::new(), committed: 0, refused: 0 }
    }

    fn step(&mut self) {
        match self.numbers.below(10) {
            0 | 1 if self.open.len() < 4 => {
                let base = self.store.snapshot();
                let (base_model, model) = (self.model.clone(), self.model.clone());
                self.open.push(Transaction {
                    current: Arc::clone(&base),
                    base,
                    base_model,
                    model,
                    harmless: true,
                });
            }
            2 | 3 if !self.open.is_empty() => {
                let at = self.numbers.below(self.open.len());
                let transaction = self.open.swap_remove(at);
                self.commit(transaction);
            }
            _ if !self.open.is_empty() => {
                let at = self.numbers.below(self.open.len());
                let mut transaction = self.open.swap_remove(at);
                self.change(&mut transaction);
                check(&transaction.current, &transaction.model);
                check(&transaction.base, &transaction.base_model);
                self.open.push(transaction);
            }
            _ => {}
        }
    }

    /// One random statement of the transaction.
    fn change(&mut self, transaction: &mut Transaction) {
        let table_name = TABLES[self.numbers.below(TABLES.len())];
        let before = get(&transaction.current, table_name);
        let model = transaction.model.get_mut(table_name).unwrap();
        let some_id = model.keys().nth(self.numbers.below(model.len().max(1))).copied();
        self.next_row += 1;
        let (row, value) = (self.next_row, Some(self.next_row * 7));
        let after = match (self.numbers.below(8), some_id) {
            (0, _) => {
                model.clear();
                before.truncate()
            }
            (1, _) => {
                // Another table of the same name, which no change of the old one may reach.
                *model = BTreeMap::from([(row, value)]);
                appended(&self.store, &Table::new(definition()), [pairs([(row, value)])])
            }
            (2 | 3, Some(id)) => {
                model.remove(&id);
                without(&self.store, &before, id).as_ref().clone()
            }
            (4 | 5, Some(id)) => {
                model.insert(id, value);
                updated(&self.store, &before, id, row * 7)
            }
            _ => {
                model.insert(row, value);
                let after = appended(&self.store, &before, [pairs([(row, value)])]);
                transaction.current = put_in(&transaction.current, table_name, after);
                return;
            }
        };
        transaction.harmless = false;
        transaction.current = put_in(&transaction.current, table_name, after);
    }

    fn commit(&mut self, transaction: Transaction) {
        let head = self.store.snapshot();
        match self.store.commit(&transaction.base, &transaction.current) {
            Ok(published) => {
                self.committed += 1;
                self.apply(&transaction, &head);
                check(&published, &self.model);
            }
            Err(Error::Conflict { .. }) => {
                self.refused += 1;
                let touched = TABLES
                    .into_iter()
                    .filter(|table| !get(&transaction.base, table).same(&get(&transaction.current, table)));
                let mut moved =
                    touched.filter(|table| !get(&transaction.base, table).same(&get(&head, table)));
                assert!(moved.next().is_some(), "refused though nobody else changed its tables");
                let tables_stay =
                    TABLES.iter().all(|table| get(&transaction.base, table).id() == get(&head, table).id());
                assert!(!(transaction.harmless && tables_stay), "appends were refused");
            }
            Err(error) => panic!("{error}"),
        }
        check(&self.store.snapshot(), &self.model);
    }

    /// Does the transaction's changes of rows in the model of the head. No row that it changed may have been changed
    /// by somebody else.
    fn apply(&mut self, transaction: &Transaction, head: &Arc<Snapshot>) {
        for table_name in TABLES {
            let (base, now) = (&transaction.base_model[table_name], &transaction.model[table_name]);
            let head_rows = self.model.get_mut(table_name).unwrap();
            let [base_id, now_id, head_id] =
                [&transaction.base, &transaction.current, head].map(|state| get(state, table_name).id());
            if base_id != now_id {
                assert_eq!(base, head_rows, "table {table_name} was replaced over changes");
                *head_rows = now.clone();
                continue;
            }
            let touched: BTreeSet<&i64> = base.keys().chain(now.keys()).collect();
            for id in touched.into_iter().filter(|id| base.get(id) != now.get(id)) {
                assert_eq!(base_id, head_id, "row {id} was put into another table");
                assert_eq!(base.get(id), head_rows.get(id), "a change of row {id} was lost");
                match now.get(id) {
                    Some(value) => head_rows.insert(*id, *value),
                    None => head_rows.remove(id),
                };
            }
        }
    }
}

fn put_in(snapshot: &Snapshot, to: &str, table: Table) -> Arc<Snapshot> {
    Arc::new(snapshot.with_entry(&name(to), Entry::Table(Arc::new(table))).unwrap())
}

fn check(snapshot: &Snapshot, model: &Model) {
    for (table_name, rows) in model {
        let table = get(snapshot, table_name);
        assert_eq!(contents(&table), *rows, "table {table_name}");
        assert_eq!(table.rows(), rows.len() as u64);
    }
}

#[test]
fn random_histories_are_snapshot_isolated() {
    let (mut committed, mut refused) = (0, 0);
    for seed in 0..40 {
        let mut history = History::new(seed);
        (0..250).for_each(|_| history.step());
        committed += history.committed;
        refused += history.refused;
        let History { store, open, .. } = history;
        drop(open);
        let snapshot = store.snapshot();
        let tables = TABLES.map(|table| get(&snapshot, table).bytes());
        assert_eq!(store.memory_bytes(), tables.iter().sum::<u64>(), "seed {seed}");
    }
    // Else the histories would show nothing.
    assert!(committed > 500 && refused > 100, "{committed} committed, {refused} refused");
}
