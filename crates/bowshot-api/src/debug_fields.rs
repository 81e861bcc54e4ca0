//! `Debug` of types that have secrets, or fields without `Debug`. What is not named is never printed.

/// `Debug` with the named fields, which are those that may be printed.
#[macro_export]
macro_rules! debug_fields {
    ($name:ident { $($field:ident),* }) => {
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}
