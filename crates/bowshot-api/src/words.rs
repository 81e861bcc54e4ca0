//! Lists of words, such as the names of functions.

/// The words as texts, in a slice.
#[macro_export]
macro_rules! words {
    ($($word:ident)*) => {
        &[$(stringify!($word)),*]
    };
}
