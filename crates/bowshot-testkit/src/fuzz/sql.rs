//! SQL text: seeds that are valid, damaged seeds, and texts that are large or deep in one dimension.

use super::mutate;
use super::random::Random;

/// Valid statements, one a line, over the tables `numbers` and `words`.
const SEEDS: &str = include_str!("../../../../tests/fuzz/seeds.sql");

/// Depth and length of the extreme texts.
const DEEP: usize = 10_000;
const LONG: usize = 1 << 20;

pub fn seeds() -> Vec<&'static str> {
    SEEDS.lines().filter(|line| !line.is_empty() && !line.starts_with("--")).collect()
}

/// A valid statement.
pub fn seed(random: &mut Random) -> &'static str {
    let seeds = seeds();
    seeds[random.below(seeds.len())]
}

/// Statement text as bytes, since it need not be UTF-8.
pub fn text(random: &mut Random) -> Vec<u8> {
    match random.below(100) {
        0..20 => seed(random).as_bytes().to_vec(),
        20..45 => {
            let text = seed(random);
            mutate::bytes(random, text.as_bytes())
        }
        45..65 => tokens(random).into_bytes(),
        65..75 => truncated(random),
        75..85 => spliced(random),
        85..90 => comments(random).into_bytes(),
        90..94 => several(random).into_bytes(),
        94..98 => literal(random).into_bytes(),
        98 => invalid_utf8(random),
        _ => extreme(random).into_bytes(),
    }
}

/// Removes, repeats and swaps words.
fn tokens(random: &mut Random) -> String {
    let mut words: Vec<&str> = seed(random).split(' ').collect();
    let more: Vec<&str> = seed(random).split(' ').collect();
    for _ in 0..=random.below(3) {
        let (at, other) = (random.below(words.len()), random.below(words.len()));
        match random.below(4) {
            0 if words.len() > 1 => drop(words.remove(at)),
            1 => words.insert(at, words[other]),
            2 => words.swap(at, other),
            _ => words[at] = more[random.below(more.len())],
        }
    }
    words.join(" ")
}

fn truncated(random: &mut Random) -> Vec<u8> {
    let text = seed(random).as_bytes();
    text[..random.below(text.len())].to_vec()
}

fn spliced(random: &mut Random) -> Vec<u8> {
    let (first, second) = (seed(random).as_bytes(), seed(random).as_bytes());
    let (cut, from) = (random.below(first.len()), random.below(second.len()));
    [&first[..cut], &second[from..]].concat()
}

fn comments(random: &mut Random) -> String {
    let comment =
        *random.pick(&["/*", "*/", "/* a /* b */", "--", "-- x\n", "/*+ hint */", "#", "/**/", "\u{0}"]);
    let text = seed(random);
    let spaces: Vec<usize> = text.match_indices(' ').map(|(at, _)| at).collect();
    let at = if spaces.is_empty() { 0 } else { *random.pick(&spaces) };
    format!("{}{comment}{}", &text[..at], &text[at..])
}

fn several(random: &mut Random) -> String {
    let (first, second) = (seed(random), seed(random));
    match random.below(4) {
        0 => format!("{first}; {second}"),
        1 => format!("{first};;;"),
        2 => ";".repeat(1 + random.below(1000)),
        _ => " \n\t".repeat(random.below(1000)),
    }
}

fn literal(random: &mut Random) -> String {
    let value = match random.below(14) {
        0 => "9".repeat(1 + random.below(500)),
        1 => format!("1e{}", random.bits()),
        2 => format!("-{}", u64::MAX),
        3 => "0x".to_owned() + &"f".repeat(random.below(40)),
        4 => format!("DATE '{}-13-45'", random.below(100_000)),
        5 => format!("TIMESTAMP '{}'", random.bits()),
        6 => format!("INTERVAL '{} years'", random.bits()),
        7 => format!("CAST('{}' AS DECIMAL(38, 38))", random.bits()),
        8 => format!("ARRAY[{}]", "1,".repeat(random.below(100))),
        9 => format!("'{}'", "\\".repeat(random.below(100))),
        10 => "'unfinished".to_owned(),
        11 => format!("9223372036854775807 + {}", random.bits() >> 1),
        12 => format!("{} / 0", random.bits()),
        _ => format!(
            "CAST({} AS {})",
            random.bits(),
            random.pick(&["TINYINT", "DATE", "TIME", "BYTEA", "NOTHING"])
        ),
    };
    format!("SELECT {value}")
}

fn invalid_utf8(random: &mut Random) -> Vec<u8> {
    let mut text = seed(random).as_bytes().to_vec();
    let at = random.below(text.len());
    text.splice(at..at, *random.pick(&[[0xff, 0xfe], [0xc3, 0x28], [0xed, 0xa0]]));
    text
}

/// Texts that are fine in every way but one.
fn extreme(random: &mut Random) -> String {
    let (depth, length) = (random.below(DEEP) + 1, random.below(LONG) + 1);
    match random.below(22) {
        0 => format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth)),
        1 => format!("SELECT {}1", "(".repeat(depth)),
        2 => format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(depth)),
        3 => format!("SELECT 1{}", " + 1".repeat(depth)),
        4 => format!("SELECT {}true", "NOT ".repeat(depth)),
        5 => format!("SELECT {}1", "- ".repeat(depth)),
        6 => format!("{}SELECT 1{}", "SELECT * FROM (".repeat(depth), ")".repeat(depth)),
        7 => format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(depth), " END".repeat(depth)),
        8 => format!("SELECT id FROM numbers WHERE id IN ({}1)", "1, ".repeat(depth)),
        9 => format!("SELECT id FROM numbers WHERE {}true", "id = 1 OR ".repeat(depth)),
        10 => format!("SELECT '{}'", "x".repeat(length)),
        11 => format!("SELECT 1 AS \"{}\"", "y".repeat(length)),
        12 => format!("SELECT {}1", "1, ".repeat(depth)),
        13 => format!("SELECT {}1{}", "abs(".repeat(depth), ")".repeat(depth)),
        14 => format!("SELECT {}1{}", "[".repeat(depth), "]".repeat(depth)),
        15 => format!("SELECT * FROM numbers a{}", " CROSS JOIN numbers b".repeat(depth % 40)),
        16 => format!(
            "WITH {} SELECT 1",
            (0..depth % 500).map(|i| format!("c{i} AS (SELECT {i})")).collect::<Vec<_>>().join(", ")
        ),
        17 => {
            let call = *random.pick(&[
                "CAST(",
                "TRY_CAST(",
                "POSITION(",
                "SUBSTRING(",
                "OVERLAY(",
                "CEIL(",
                "TRIM(",
            ]);
            format!("SELECT {}1", call.repeat(depth % 45))
        }
        18 => format!("SELECT {}1{}", "(SELECT ".repeat(depth % 45), ")".repeat(depth % 45)),
        19 => format!("SELECT 1{}", "::INT".repeat(depth)),
        20 => format!("SELECT 1{}", " IS NULL".repeat(depth)),
        _ => format!("SELECT '{}' ~ '{}'", "a".repeat(depth % 5000), "(a+)+".repeat(1 + depth % 50)),
    }
}
