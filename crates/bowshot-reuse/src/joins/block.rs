//! A part of a plan that joins tables, as tables, conditions and output columns. The order of the joins, aliases, and the position of filters
//! and projections do not matter.

use super::expression_text;
use crate::cache::{ColumnRef, JoinShape, Member, Outer, OuterKind, TableKey, Tree};
use crate::keys;
use bowshot_tables::Snapshot;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator, TableScan};
use std::cell::Cell;
use std::collections::BTreeSet;

const MAX_TABLES: usize = 16;
/// Parts of one expression at most. Columns are replaced by what computes them, and what uses each column twice doubles with
/// every query around it: `SELECT x + x AS x` forty times over is short, and has a trillion parts. Longer ones have no text
/// anyway, and what is so deep that the stack ends is longer as well.
const MAX_PARTS: usize = 4_000;
/// Most nodes of all expressions of a join.
const MAX_ALL_PARTS: usize = 40_000;
/// Nodes of expressions from which repeated computation matters.
const MANY_PARTS: usize = 64;

/// Why a join is not cached.
pub(super) type Reason = &'static str;

/// A join of a query. Tables are numbered by their index in `keys`; columns of expressions refer to them.
#[derive(Debug)]
pub(super) struct Block {
    keys: Vec<TableKey>,
    part: NodeOutput,
}

#[derive(Debug)]
pub(super) struct Shaped {
    pub(super) shape: JoinShape,
    /// Texts of the conditions, in the order of the block.
    pub(super) conditions: Vec<String>,
    /// The output columns, with the numbers of the shape.
    pub(super) columns: BTreeSet<ColumnRef>,
    /// For each table of the block, its number in the shape.
    pub(super) numbers: Vec<usize>,
}

#[derive(Debug, Default)]
struct NodeOutput {
    members: Vec<Branch>,
    conditions: Vec<Expr>,
    /// One for each column of the node, in their order.
    outputs: Vec<Expr>,
}

#[derive(Debug)]
enum Branch {
    Table(usize),
    Outer { kind: OuterKind, left: Box<NodeOutput>, right: Box<NodeOutput>, on: Vec<Expr> },
}

impl Block {
    /// The join that a node of an optimized plan computes.
    pub(super) fn of(plan: &LogicalPlan, reader: &Reader<'_>) -> Result<Self, Reason> {
        let mut keys = Vec::new();
        reader.room.set(MAX_ALL_PARTS);
        let part = reader.part(plan, &mut keys)?;
        if keys.len() < 2 {
            return Err("it joins nothing");
        }
        if part.repeats(plan) {
            return Err("its columns would be computed again for each of their uses");
        }
        Ok(Self { keys, part })
    }

    /// The expressions of the columns that the node gives.
    pub(super) fn outputs(&self) -> &[Expr] {
        &self.part.outputs
    }

    pub(super) fn conditions(&self) -> &[Expr] {
        &self.part.conditions
    }

    /// The shape to look up in the cache.
    pub(super) fn shape(&self, settings: String) -> Result<Shaped, Reason> {
        let tree = self.part.tree().ok_or(UNSTABLE)?;
        let (shape, numbers) = JoinShape::new(self.keys.clone(), &tree, settings);
        let conditions = tree.conditions.iter().map(|text| crate::cache::renumber(text, &numbers)).collect();
        let mut columns = BTreeSet::new();
        for output in &self.part.outputs {
            if !matches!(output, Expr::Column(_)) {
                expression_text::of(output).ok_or(UNSTABLE)?;
            }
            for column in output.column_refs() {
                let (table, name) = expression_text::numbered(column).ok_or(UNSTABLE)?;
                let table = numbers.get(table).copied().unwrap_or(table);
                columns.insert(ColumnRef { table, column: name.to_owned() });
            }
        }
        Ok(Shaped { shape, conditions, columns, numbers })
    }
}

const UNSTABLE: Reason = "an expression may give something else the next time, or is not known to the cache";

impl NodeOutput {
    /// The shape's tree; `None` if an expression has no text.
    fn tree(&self) -> Option<Tree> {
        let members = self.members.iter().map(|branch| match branch {
            Branch::Table(table) => Some(Member::Table(*table)),
            Branch::Outer { kind, left, right, on } => Some(Member::Outer(Box::new(Outer {
                kind: *kind,
                left: left.tree()?,
                right: right.tree()?,
                on: on.iter().map(expression_text::of).collect::<Option<_>>()?,
            }))),
        });
        let conditions = self.conditions.iter().map(expression_text::of);
        Some(Tree {
            members: members.collect::<Option<_>>()?,
            conditions: conditions.collect::<Option<_>>()?,
        })
    }

    /// Whether expressions that the plan computes once would be computed repeatedly, since each is expressed over
    /// columns of tables.
    fn repeats(&self, plan: &LogicalPlan) -> bool {
        let parts = self.outputs.iter().chain(&self.conditions).map(further_parts).sum::<usize>();
        parts > MANY_PARTS && parts > 2 * parts_of_plan(plan)
    }

    /// Removes conditions on single tables: they mean the same above a join that keeps all rows of this side.
    fn take_filters(&mut self) -> Vec<Expr> {
        let (filters, joins) = std::mem::take(&mut self.conditions).into_iter().partition(|condition| {
            let tables: BTreeSet<_> = condition
                .column_refs()
                .into_iter()
                .filter_map(expression_text::numbered)
                .map(|(table, _)| table)
                .collect();
            tables.len() == 1
        });
        self.conditions = joins;
        filters
    }
}

pub(super) struct Reader<'a> {
    defaults: (&'a str, &'a str),
    /// The committed state of all tables.
    newest: &'a Snapshot,
    /// Whether the plan has run.
    run: bool,
    /// Remaining nodes of expressions of the block.
    room: Cell<usize>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(defaults: (&'a str, &'a str), newest: &'a Snapshot, run: bool) -> Self {
        Self { defaults, newest, run, room: Cell::new(0) }
    }
}

impl Reader<'_> {
    fn part(&self, plan: &LogicalPlan, keys: &mut Vec<TableKey>) -> Result<NodeOutput, Reason> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan, keys),
            LogicalPlan::SubqueryAlias(alias) => self.part(&alias.input, keys),
            LogicalPlan::Projection(projection) => {
                let part = self.part(&projection.input, keys)?;
                let outputs = projection
                    .expr
                    .iter()
                    .map(|expr| self.resolved(expr, &[(projection.input.schema(), &part.outputs)]));
                let outputs = outputs.collect::<Result<_, _>>()?;
                Ok(NodeOutput { outputs, ..part })
            }
            LogicalPlan::Filter(filter) => {
                let mut part = self.part(&filter.input, keys)?;
                for condition in split_conjunction(&filter.predicate) {
                    let condition = self.resolved(condition, &[(filter.input.schema(), &part.outputs)])?;
                    part.conditions.push(condition);
                }
                Ok(part)
            }
            LogicalPlan::Join(join) => self.join(join, keys),
            LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_) => {
                Err("an input of the join is grouped or ranked")
            }
            LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => Err("an input of the join is cut off or sorted"),
            LogicalPlan::Union(_) => Err("an input of the join is a union"),
            _ => Err("an input of the join is not a table"),
        }
    }

    fn scan(&self, scan: &TableScan, keys: &mut Vec<TableKey>) -> Result<NodeOutput, Reason> {
        if scan.fetch.is_some() {
            return Err("an input of the join is cut off");
        }
        if keys.len() >= MAX_TABLES {
            return Err("it joins too many tables");
        }
        let provider = source_as_provider(&scan.source).map_err(|_| "an input of the join is not a table")?;
        let name = scan.table_name.clone().resolve(self.defaults.0, self.defaults.1);
        let number = keys.len();
        keys.push(keys::of(&provider, &name, (self.newest, self.run))?);
        let fields = scan.projected_schema.fields().iter();
        let relation = expression_text::relation(number);
        let outputs = fields.map(|field| expression_text::column_of(&relation, field.name())).collect();
        let conditions =
            scan.filters.iter().flat_map(split_conjunction).map(|filter| self.numbered(filter, number));
        let conditions = conditions.collect::<Result<_, _>>()?;
        Ok(NodeOutput { members: vec![Branch::Table(number)], conditions, outputs })
    }

    fn join(&self, join: &Join, keys: &mut Vec<TableKey>) -> Result<NodeOutput, Reason> {
        if join.null_aware {
            return Err("NOT IN is not cached");
        }
        let kind = match join.join_type {
            JoinType::Inner => None,
            JoinType::Left | JoinType::Right => Some(OuterKind::Left),
            JoinType::Full => Some(OuterKind::Full),
            JoinType::LeftSemi | JoinType::RightSemi => Some(OuterKind::Semi),
            JoinType::LeftAnti | JoinType::RightAnti => Some(OuterKind::Anti),
            _ => return Err("it is a join that only marks rows"),
        };
        let left = self.part(&join.left, keys)?;
        let right = self.part(&join.right, keys)?;
        let on = self.on(join, &left, &right)?;
        let Some(kind) = kind else {
            let mut part = left;
            part.members.extend(right.members);
            part.conditions.extend(right.conditions);
            part.conditions.extend(on);
            part.outputs.extend(right.outputs);
            return Ok(part);
        };
        let mut outputs = match join.join_type {
            JoinType::RightSemi | JoinType::RightAnti => Vec::new(),
            _ => left.outputs.clone(),
        };
        if !matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) {
            outputs.extend(right.outputs.iter().cloned());
        }
        if kind != OuterKind::Semi && kind != OuterKind::Anti && computes(&left, &right, kind, join.join_type)
        {
            return Err("an outer join has a computed column, which is null where its row is missing");
        }
        let turned = matches!(join.join_type, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti);
        let (mut left, right) = if turned { (right, left) } else { (left, right) };
        let conditions = if kind == OuterKind::Full { Vec::new() } else { left.take_filters() };
        let (left, right) = (Box::new(left), Box::new(right));
        Ok(NodeOutput { members: vec![Branch::Outer { kind, left, right, on }], conditions, outputs })
    }

    fn on(&self, join: &Join, left: &NodeOutput, right: &NodeOutput) -> Result<Vec<Expr>, Reason> {
        let sides = [(join.left.schema(), &left.outputs), (join.right.schema(), &right.outputs)];
        if join.null_equality == NullEquality::NullEqualsNull {
            // In a cross join it would become an ordinary equality.
            return Err("IS NOT DISTINCT FROM is not cached");
        }
        let mut conditions = Vec::new();
        for (one, other) in &join.on {
            let (one, other) = (self.resolved(one, &sides[..1])?, self.resolved(other, &sides[1..])?);
            conditions.push(Expr::BinaryExpr(BinaryExpr::new(Box::new(one), Operator::Eq, Box::new(other))));
        }
        for condition in join.filter.iter().flat_map(split_conjunction) {
            conditions.push(self.resolved(condition, &sides)?);
        }
        Ok(conditions)
    }

    /// An expression over the columns of some inputs as one over columns of tables.
    fn resolved(
        &self,
        expr: &Expr,
        inputs: &[(&datafusion::common::DFSchemaRef, &Vec<Expr>)],
    ) -> Result<Expr, Reason> {
        let find = |column: &Column| {
            inputs
                .iter()
                .find_map(|(schema, outputs)| outputs.get(schema.maybe_index_of_column(column)?).cloned())
        };
        self.replaced(expr, &find)
    }

    fn numbered(&self, expr: &Expr, table: usize) -> Result<Expr, Reason> {
        self.replaced(expr, &|column| Some(expression_text::column(table, &column.name)))
    }

    /// The expression with other columns and without aliases.
    fn replaced(&self, expr: &Expr, find: &dyn Fn(&Column) -> Option<Expr>) -> Result<Expr, Reason> {
        const LOST: Reason = "a column comes from outside of the join";
        if let Expr::Column(column) = expr {
            let found = find(column).ok_or(LOST)?;
            self.spend(further_parts(&found))?;
            return Ok(found);
        }
        let (mut lost, mut parts) = (false, 0);
        let replaced = expr.clone().transform_up(|expr| {
            parts += 1;
            Ok(match expr {
                Expr::Column(column) => match find(&column) {
                    Some(found) => {
                        parts += further_parts(&found);
                        // Too large expressions are given up before they grow.
                        Transformed::yes(if parts > MAX_PARTS { Expr::Column(column) } else { found })
                    }
                    None => {
                        lost = true;
                        Transformed::no(Expr::Column(column))
                    }
                },
                Expr::Alias(alias) => Transformed::yes(*alias.expr),
                other => Transformed::no(other),
            })
        });
        let replaced = replaced.data().map_err(|_| "an expression cannot be taken apart")?;
        if lost {
            return Err(LOST);
        }
        self.spend(parts)?;
        Ok(replaced)
    }

    fn spend(&self, parts: usize) -> Result<(), Reason> {
        let left = self.room.get().checked_sub(parts).filter(|_| parts <= MAX_PARTS);
        self.room.set(left.ok_or("its expressions are too large")?);
        Ok(())
    }
}

/// The nodes of an expression without the first.
fn further_parts(expr: &Expr) -> usize {
    let mut parts = 0;
    if !matches!(expr, Expr::Column(_) | Expr::Literal(..)) {
        // Cannot fail: the closure does not.
        let _ = expr.apply(|_| {
            parts += 1;
            Ok(TreeNodeRecursion::Continue)
        });
    }
    parts
}

fn parts_of_plan(plan: &LogicalPlan) -> usize {
    let mut parts = 0;
    // Cannot fail: the closures do not.
    let _ = plan.apply(|node| {
        node.apply_expressions(|expr| {
            parts += 1 + further_parts(expr);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    parts
}

/// Whether the optional side of an outer join outputs more than columns: above the join, `x + 1` or `5` would be computed for
/// the missing row.
fn computes(left: &NodeOutput, right: &NodeOutput, kind: OuterKind, join_type: JoinType) -> bool {
    let plain = |part: &NodeOutput| part.outputs.iter().all(|output| matches!(output, Expr::Column(_)));
    let left_may_miss = kind == OuterKind::Full || join_type == JoinType::Right;
    let right_may_miss = kind == OuterKind::Full || join_type == JoinType::Left;
    left_may_miss && !plain(left) || right_may_miss && !plain(right)
}
