//! Judgement of members, by a clock that only moves when it is told to.

use super::*;

const TIMING: Timing = Timing { suspect_after: Duration::from_secs(5), dead_after: Duration::from_secs(20) };

/// A table at a node of address `me:1`, and a clock that only moves when it is told to.
struct World {
    table: Table,
    now: Moment,
}

impl World {
    fn new() -> Self {
        let now = Moment { at: Instant::now() + Duration::from_secs(100), wall: SystemTime::now() };
        Self { table: Table::new(node("me:1", 1), TIMING, now), now }
    }

    /// Lets time pass as it does for a node that looks at its members all the time.
    fn pass(&mut self, seconds: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        for _ in 0..seconds {
            self.jump(1);
            changes.extend(self.table.judge(self.now));
        }
        changes
    }

    fn jump(&mut self, seconds: u64) {
        self.now.at += Duration::from_secs(seconds);
        self.now.wall += Duration::from_secs(seconds);
    }

    fn heard(&mut self, from: &Node, reaches_me: bool) {
        let word = Report { from: from.clone(), reaches_me, known: Vec::new() };
        self.table.heard(&word, self.now);
        self.table.judge(self.now);
    }

    fn answered(&mut self, from: &Node, reaches_me: bool) {
        let word = Report { from: from.clone(), reaches_me, known: Vec::new() };
        self.table.answered(&word, Some(3), self.now.at, self.now);
        self.table.judge(self.now);
    }

    fn learn(&mut self, known: &[Node]) {
        let word = Report { from: node("me:1", 1), reaches_me: true, known: known.to_vec() };
        self.table.heard(&word, self.now);
        self.table.judge(self.now);
    }

    fn state(&self, node: &Node) -> Option<State> {
        let members = self.table.members(self.now);
        members.iter().find(|member| member.id == node.id).map(|member| member.state)
    }
}

fn node(address: &str, incarnation: u64) -> Node {
    Node {
        id: Uuid::new_v4(),
        address: address.to_owned(),
        public: String::new(),
        build: "b".to_owned(),
        incarnation,
        leaving: false,
        serves: true,
        guarded: false,
        threads: 1,
        memory: 1,
    }
}

#[test]
fn a_member_is_alive_when_messages_go_both_ways() {
    let (mut world, one) = (World::new(), node("one:1", 1));
    world.heard(&one, false);
    assert_eq!(world.state(&one), Some(State::Joining));
    world.answered(&one, false);
    assert_eq!(world.state(&one), Some(State::Joining));
    world.heard(&one, true);
    assert_eq!(world.state(&one), Some(State::Alive));
    assert_eq!(world.table.members(world.now).len(), 2);
}

#[test]
fn one_that_hears_but_is_not_heard_is_suspect() {
    let (mut world, one) = (World::new(), node("one:1", 1));
    world.answered(&one, true);
    assert_eq!(world.state(&one), Some(State::Alive));
    // It answers, but cannot reach this node by itself any more.
    world.answered(&one, false);
    assert_eq!(world.state(&one), Some(State::Suspect));
    world.answered(&one, true);
    assert_eq!(world.state(&one), Some(State::Alive));
    // It sends heartbeats, but does not answer any more.
    for _ in 0..30 {
        world.heard(&one, true);
        world.pass(1);
    }
    assert_eq!(world.state(&one), Some(State::Suspect));
}

#[test]
fn silence_makes_suspect_then_dead_and_an_answer_alive() {
    let (mut world, one) = (World::new(), node("one:1", 1));
    world.answered(&one, true);
    world.pass(4);
    assert_eq!(world.state(&one), Some(State::Alive));
    world.pass(2);
    assert_eq!(world.state(&one), Some(State::Suspect));
    world.pass(17);
    assert_eq!(world.state(&one), Some(State::Dead));
    assert!(world.table.known(world.now).is_empty(), "the dead are not passed on");
    world.answered(&one, true);
    assert_eq!(world.state(&one), Some(State::Alive));
    world.pass(4_000);
    assert_eq!(world.state(&one), None, "forgotten in the end");
}

#[test]
fn a_failed_call_makes_suspect_at_once() {
    let (mut world, one) = (World::new(), node("one:1", 1));
    world.answered(&one, true);
    world.table.failed("one:1");
    world.table.judge(world.now);
    assert_eq!(world.state(&one), Some(State::Suspect));
    world.answered(&one, true);
    assert_eq!(world.state(&one), Some(State::Alive));
}

#[test]
fn a_restarted_node_takes_the_place_of_the_old_one() {
    let (mut world, old) = (World::new(), node("one:1", 7));
    world.answered(&old, true);
    let new = node("one:1", 8);
    world.heard(&new, true);
    assert_eq!((world.state(&old), world.state(&new)), (None, Some(State::Joining)));
    // What is left of the old one counts no more.
    world.heard(&old, true);
    assert_eq!(world.state(&old), None);
    // Whoever answers there is the member, whatever its number.
    let newest = node("one:1", 3);
    world.answered(&newest, true);
    assert_eq!((world.state(&new), world.state(&newest)), (None, Some(State::Alive)));
}

#[test]
fn a_node_raises_its_number_above_its_predecessor() {
    let mut world = World::new();
    world.learn(&[node("me:1", 40)]);
    assert_eq!(world.table.me().incarnation, 41);
    world.learn(&[node("me:1", 3)]);
    assert_eq!(world.table.me().incarnation, 41);
}

#[test]
fn others_only_tell_whom_to_ask() {
    let (mut world, one) = (World::new(), node("one:1", 1));
    world.learn(std::slice::from_ref(&one));
    assert_eq!(world.state(&one), Some(State::Joining));
    assert_eq!(world.table.addresses(), ["one:1"]);
    assert!(world.table.known(world.now).is_empty(), "not passed on before it was heard");
    world.pass(6);
    assert_eq!(world.state(&one), Some(State::Suspect));
    world.pass(17);
    assert_eq!(world.state(&one), Some(State::Dead));
    // Told again, it stays what it is.
    world.learn(std::slice::from_ref(&one));
    assert_eq!(world.state(&one), Some(State::Dead));
}

#[test]
fn one_that_leaves_is_dead_when_it_no_longer_answers() {
    let (mut world, mut one) = (World::new(), node("one:1", 1));
    world.answered(&one, true);
    one.leaving = true;
    world.answered(&one, true);
    assert_eq!(world.state(&one), Some(State::Leaving));
    world.table.failed("one:1");
    let changes = world.pass(1);
    assert_eq!(changes.first().map(|change| (change.from, change.to)), Some((State::Leaving, State::Dead)));
    world.pass(61);
    assert_eq!(world.state(&one), None);
}

#[test]
fn nobody_is_blamed_while_this_node_was_stopped() {
    let (mut world, one) = (World::new(), node("one:1", 1));
    world.answered(&one, true);
    world.jump(300);
    assert_eq!(world.table.judge(world.now), []);
    assert_eq!(world.state(&one), Some(State::Alive));
    world.pass(6);
    assert_eq!(world.state(&one), Some(State::Suspect), "its own silence counts again");
}

#[test]
fn what_is_no_node_is_not_kept() {
    let mut world = World::new();
    for address in ["", "host", "host:0", "host:99999", "a b:1", "::1:5", "\n:1"] {
        world.heard(&node(address, 1), true);
        world.learn(&[node(address, 1)]);
    }
    world.heard(&Node { build: "x".repeat(301), ..node("one:1", 1) }, true);
    assert_eq!(world.table.members(world.now).len(), 1);
    let many: Vec<Node> = (1..2_000).map(|port| node(&format!("h:{port}"), 1)).collect();
    for some in many.chunks(500) {
        world.learn(some);
    }
    assert_eq!(world.table.members(world.now).len(), MAX_MEMBERS);
}
