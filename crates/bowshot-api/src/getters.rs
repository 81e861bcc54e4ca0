//! Methods of traits that give a field of their own name, or are those of a field.

/// `getters!(name: &str)` is the method `name`, which gives the field `name`.
#[macro_export]
macro_rules! getters {
    ($($visibility:vis $field:ident: $type:ty),+) => {
        $($visibility fn $field(&self) -> $type {
            &self.$field
        })+
    };
}

/// Methods that call the same of a field: `delegate! { inner: fn size(&self) -> usize; }`.
#[macro_export]
macro_rules! delegate {
    ($field:tt:) => {};
    ($field:tt: fn $name:ident(&$this:ident $(, $argument:ident: $type:ty)*) $(-> $gives:ty)?; $($rest:tt)*) => {
        fn $name(&$this $(, $argument: $type)*) $(-> $gives)? {
            $this.$field.$name($($argument),*)
        }
        $crate::delegate! { $field: $($rest)* }
    };
    ($field:tt: fn $name:ident(&mut $this:ident $(, $argument:ident: $type:ty)*) $(-> $gives:ty)?; $($rest:tt)*) => {
        fn $name(&mut $this $(, $argument: $type)*) $(-> $gives)? {
            $this.$field.$name($($argument),*)
        }
        $crate::delegate! { $field: $($rest)* }
    };
}
