//! Enumerations whose values have names, as in settings and statements.

/// The enumeration with `ALL` of its values, in their order, and with a method of the given name for the text of each.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $visibility:vis enum $type:ident: $name:ident {
            $($(#[$of_value:meta])* $value:ident = $text:literal,)+
        }
    ) => {
        $(#[$about])*
        $visibility enum $type {
            $($(#[$of_value])* $value,)+
        }

        impl $type {
            /// All of them.
            $visibility const ALL: [Self; [$($text),+].len()] = [$(Self::$value),+];

            /// As it is written.
            $visibility fn $name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }
    };
}
