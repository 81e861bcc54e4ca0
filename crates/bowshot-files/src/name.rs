//! Table names from file names. A name made here works without quotes, because SQL folds unquoted names to lower case.

use bowshot_object_store::file_name::{Format, Kind};

/// Words in the names that writers give to the parts of a data set, codecs among them.
const OF_PARTS: [&str; 8] = ["part", "data", "chunk", "shard", "c", "gz", "snappy", "zstd"];

/// `Orders 2024.csv` has the stem `Orders 2024` and becomes `orders_2024`.
pub(crate) fn table_name(stem: &str) -> String {
    let mut name: String = stem
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' })
        .collect();
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    name
}

/// The shape of the names of files that are the parts of one data set: of one format, with names that differ in numbers and
/// identifiers only. One file alone is a part if its name says nothing else or ends in a number with zeros before it, so that
/// the next part goes into the same table.
pub(crate) fn shape_of_parts(files: &[Kind]) -> Option<String> {
    let (first, rest) = files.split_first()?;
    let one = shape(&first.stem);
    let are_parts = if rest.is_empty() {
        // The sheets of a workbook are tables of their own.
        let mut words = one.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let says_nothing =
            one.contains('#') && words.all(|word| OF_PARTS.contains(&word.to_lowercase().as_str()));
        first.format != Format::Excel && (says_nothing || is_numbered(&first.stem))
    } else {
        rest.iter().all(|kind| kind.format == first.format && shape(&kind.stem) == one)
    };
    are_parts.then_some(one)
}

/// `orders-0001`, as writers of several files number them, and not `orders-2024`.
fn is_numbered(stem: &str) -> bool {
    let name = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = stem.strip_prefix(name).unwrap_or_default();
    number.len() > 1 && number.starts_with('0') && name.ends_with(['-', '_', '.', ' '])
}

/// A name with its digits and identifiers blanked: two parts of one data set have the same shape.
///
/// Hexadecimal runs of at least eight characters count as identifiers, so `part-0001-9f3c…-c000` and
/// `part-0002-77ab…-c000` are alike.
pub(crate) fn shape(stem: &str) -> String {
    let chars: Vec<char> = stem.chars().collect();
    let mut shape = String::with_capacity(stem.len());
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let hex = rest.iter().take_while(|c| c.is_ascii_hexdigit()).count();
        let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        let bounded = at == 0 || !chars[at - 1].is_alphanumeric();
        let open = rest.get(hex).is_none_or(|c| !c.is_alphanumeric());
        let identifier = bounded && open && (hex >= 8 || (hex >= 4 && shape.ends_with("#-")));
        let run = if identifier { hex } else { digits };
        if run > 0 {
            shape.push('#');
            at += run;
        } else {
            shape.push(chars[at]);
            at += 1;
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::{shape, shape_of_parts, table_name};
    use bowshot_object_store::file_name::kind_of;
    use std::path::Path;

    #[test]
    fn names_work_without_quotes() {
        for (stem, name) in [
            ("orders", "orders"),
            ("Orders 2024", "orders_2024"),
            ("2024-sales", "_2024_sales"),
            ("größe", "größe"),
            ("a%b#c?d[e]*", "a_b_c_d_e__"),
            ("", "_"),
        ] {
            assert_eq!(table_name(stem), name, "{stem}");
        }
    }

    #[test]
    fn parts_of_one_data_set_have_one_shape() {
        for (one, other, same) in [
            ("part-0001", "part-0002", true),
            (
                "part-00000-8b5e1c1a-6f0e-4b3e-9a51-0c9d3b2a7e11-c000",
                "part-00001-0d7a6b5c-aaaa-4bbb-8ccc-1234567890ab-c000",
                true,
            ),
            ("orders", "customers", false),
            ("orders1", "orders22", true),
            ("a", "b", false),
            ("cafe", "face", false),
            ("deadbeef", "12345678", true),
        ] {
            assert_eq!(
                shape(one) == shape(other),
                same,
                "{one} and {other}: {} {}",
                shape(one),
                shape(other)
            );
        }
    }

    #[test]
    fn one_file_alone_is_a_part_by_its_name() {
        for (name, is_part) in [
            ("part-0001.parquet", true),
            ("part-00000-8b5e1c1a-6f0e-4b3e-9a51-0c9d3b2a7e11-c000.snappy.parquet", true),
            ("data_0.parquet", true),
            ("2024-01-31.csv.gz", true),
            ("orders-0001.parquet", true),
            ("orders_01.csv", true),
            ("orders.csv", false),
            ("orders1.csv", false),
            ("0001.xlsx", false),
            ("orders_2024.csv", false),
            ("data.csv", false),
            ("2024.xlsx", false),
        ] {
            let shape = shape_of_parts(&[kind_of(Path::new(name)).unwrap()]);
            assert_eq!(shape.is_some(), is_part, "{name}");
        }
    }
}
