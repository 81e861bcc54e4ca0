//! Methods of traits that give a field of their own name.

/// `getters!(name: &str)` is the method `name`, which gives the field `name`.
#[macro_export]
macro_rules! getters {
    ($($field:ident: $type:ty),+) => {
        $(fn $field(&self) -> $type {
            &self.$field
        })+
    };
}
