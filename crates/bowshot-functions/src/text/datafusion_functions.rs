//! Functions of DataFusion that are used as they are, some under further names.

use crate::define::{Function, made, stock};
use datafusion_spark::function::{hash, url};

pub(super) const FUNCTIONS: &[Function] = &[
    stock("ascii", "the code of the first character"),
    made("bit_length", "the length in bits", super::lengths::bit_length),
    stock("btrim", "without these characters at both ends").aliases(&["trim"]),
    stock("character_length", "the length in characters").aliases(&["char_length"]),
    made("concat", "the texts one after the other", super::concat::concat)
        .note("nulls are passed over; in dialect `mysql` they give null"),
    stock("concat_ws", "the texts with a separator between them; nulls are passed over"),
    stock("contains", "whether the second text is in the first"),
    stock("ends_with", "whether it ends with the second text").aliases(&["suffix", "endswith"]),
    stock("find_in_set", "the position of a text in a list that commas separate"),
    stock("initcap", "each word with a capital"),
    stock("left", "so many characters from the left; a negative number leaves so many out"),
    stock("levenshtein", "how many characters must be changed").aliases(&["editdist3", "edit_distance"]),
    stock("lower", "in small letters").aliases(&["lcase", "casefold"]),
    stock("ltrim", "without these characters at the beginning").aliases(&["trim_start"]),
    stock("md5", "the MD5 hash in hexadecimal digits"),
    made("octet_length", "the length in bytes", super::lengths::octet_length).aliases(&["strlen", "lengthb"]),
    stock("overlay", "a part replaced by another text"),
    stock("replace", "all occurrences of a text replaced"),
    stock("reverse", "the characters in reverse"),
    stock("right", "so many characters from the right; a negative number leaves so many out"),
    stock("rtrim", "without these characters at the end").aliases(&["trim_end"]),
    stock("split_part", "the part at a position between separators"),
    stock("starts_with", "whether it begins with the second text").aliases(&["prefix", "startswith"]),
    stock("strpos", "the position of the second text in the first, 0 if it is not there")
        .aliases(&["instr", "position"]),
    stock("substr", "from a position on, of a length").aliases(&["substring", "mid"]),
    stock("substr_index", "what is before the n-th separator").aliases(&["substring_index"]),
    stock("to_hex", "an integer in hexadecimal digits"),
    stock("translate", "characters replaced one by one"),
    stock("upper", "in capitals").aliases(&["ucase"]),
    stock("uuid", "a random UUID").aliases(&["gen_random_uuid", "uuidv4"]),
    made("crc32", "the CRC-32 checksum", hash::crc32),
    made("xxhash64", "Spark's 64-bit hash of the arguments", hash::xxhash64),
    made("sha1", "the SHA-1 hash in hexadecimal digits", hash::sha1).aliases(&["sha"]),
    made("parse_url", "a part of a URL: `parse_url(url, 'HOST')`", url::parse_url),
];
