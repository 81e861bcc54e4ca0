//! The types of a file as a tree, and the Arrow types that they become.

use crate::Error;
use crate::error::corrupt;
use crate::messages::Type;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields as ArrowFields, TimeUnit,
};
use std::sync::Arc;

/// Levels of types within types.
const MAX_DEPTH: usize = 64;

/// What decimals are that say nothing about their digits, as Arrow's own reader has it.
const DEFAULT_DECIMAL: (u8, i8) = (DECIMAL128_MAX_PRECISION, 6);

fn decimal(of: &Type) -> Result<Kind, Error> {
    if of.precision == 0 {
        let (precision, scale) = DEFAULT_DECIMAL;
        return Ok(Kind::Decimal { precision, scale });
    }
    let precision = u8::try_from(of.precision).ok().filter(|digits| *digits <= DECIMAL128_MAX_PRECISION);
    let scale = i8::try_from(of.scale).ok().filter(|_| of.scale <= of.precision);
    match (precision, scale) {
        (Some(precision), Some(scale)) => Ok(Kind::Decimal { precision, scale }),
        _ => Err(corrupt("a decimal has more digits than there are")),
    }
}

/// A type and its number, by which streams find their column.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) id: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Text,
    Binary,
    Date,
    /// A point in time of a clock on the wall, or of the world.
    Time {
        unit: TimeUnit,
        instant: bool,
    },
    Decimal {
        precision: u8,
        scale: i8,
    },
    List(Box<Node>),
    Map(Box<Node>, Box<Node>),
    Struct(Vec<(String, Node)>),
}

/// Makes the tree; `unit` says in which unit a column's points in time are.
pub(crate) fn tree(types: &[Type], unit: impl Fn(usize) -> TimeUnit) -> Result<Node, Error> {
    let mut builder = Builder { types, unit, next: 0 };
    builder.node(0, 0)
}

struct Builder<'a, F> {
    types: &'a [Type],
    unit: F,
    /// The first number that has no place in the tree yet: types come in the order of the tree.
    next: usize,
}

impl<F: Fn(usize) -> TimeUnit> Builder<'_, F> {
    fn node(&mut self, id: usize, depth: usize) -> Result<Node, Error> {
        let types = self.types;
        let written = types.get(id).filter(|_| id >= self.next && depth <= MAX_DEPTH);
        let written = written.ok_or_else(|| corrupt("its types are no tree"))?;
        self.next = id + 1;
        let kind = match written.kind {
            0 => Kind::Boolean,
            1 => Kind::Byte,
            2 => Kind::Short,
            3 => Kind::Int,
            4 => Kind::Long,
            5 => Kind::Float,
            6 => Kind::Double,
            7 | 16 | 17 => Kind::Text,
            8 => Kind::Binary,
            9 => Kind::Time { unit: (self.unit)(id), instant: false },
            10 => Kind::List(Box::new(self.below(written, (0, 1), depth)?)),
            11 => {
                let key = self.below(written, (0, 2), depth)?;
                Kind::Map(Box::new(key), Box::new(self.below(written, (1, 2), depth)?))
            }
            12 => Kind::Struct(self.fields(written, depth)?),
            13 => {
                return Err(Error::Unsupported(
                    "a column whose values are of several types (a union)".into(),
                ));
            }
            14 => decimal(written)?,
            15 => Kind::Date,
            18 => Kind::Time { unit: (self.unit)(id), instant: true },
            _ => return Err(Error::Unsupported(format!("a column of an unknown type ({})", written.kind))),
        };
        Ok(Node { id, kind })
    }

    /// The type at one of the places below another.
    fn below(&mut self, written: &Type, place: (usize, usize), depth: usize) -> Result<Node, Error> {
        let (place, count) = place;
        let id = written.subtypes.get(place).filter(|_| written.subtypes.len() == count);
        let id = id.and_then(|id| usize::try_from(*id).ok());
        self.node(id.ok_or_else(|| corrupt("its types are no tree"))?, depth + 1)
    }

    fn fields(&mut self, written: &Type, depth: usize) -> Result<Vec<(String, Node)>, Error> {
        let count = written.subtypes.len();
        if count != written.field_names.len() {
            return Err(corrupt("its columns have other names than types"));
        }
        let fields = written.field_names.iter().enumerate();
        fields.map(|(place, name)| Ok((name.clone(), self.below(written, (place, count), depth)?))).collect()
    }
}

impl Node {
    pub(crate) fn arrow(&self) -> DataType {
        match &self.kind {
            Kind::Boolean => DataType::Boolean,
            Kind::Byte => DataType::Int8,
            Kind::Short => DataType::Int16,
            Kind::Int => DataType::Int32,
            Kind::Long => DataType::Int64,
            Kind::Float => DataType::Float32,
            Kind::Double => DataType::Float64,
            Kind::Text => DataType::Utf8,
            Kind::Binary => DataType::Binary,
            Kind::Date => DataType::Date32,
            Kind::Time { unit, instant } => DataType::Timestamp(*unit, instant.then(|| "UTC".into())),
            Kind::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
            Kind::List(item) => DataType::List(field("item", item)),
            Kind::Map(key, value) => DataType::Map(entries(key, value), false),
            Kind::Struct(children) => DataType::Struct(fields(children)),
        }
    }
}

pub(crate) fn field(name: &str, node: &Node) -> FieldRef {
    Arc::new(Field::new(name, node.arrow(), true))
}

pub(crate) fn fields(children: &[(String, Node)]) -> ArrowFields {
    children.iter().map(|(name, node)| field(name, node)).collect()
}

/// The field of the pairs of a map, whose keys are never null.
pub(crate) fn entries(key: &Node, value: &Node) -> FieldRef {
    let key = Arc::new(Field::new("key", key.arrow(), false));
    let pairs = ArrowFields::from(vec![key, field("value", value)]);
    Arc::new(Field::new("entries", DataType::Struct(pairs), false))
}
