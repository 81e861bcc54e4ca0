//! A look through a whole ONNX file before anything of it is decoded: which operators it has, and whether there is more in it
//! than a decoder could be given. What costs memory once it is decoded is counted here, where it costs none. Tree ensembles may have
//! as many texts as nodes, and whole numbers without a limit of their own.

use super::wire::{Fields, Wire, not_onnx};
use crate::error::{Error, Result};
use crate::limits::{self, within};

/// Operators of a graph.
const OPERATORS: usize = 10_000;
/// Attributes of all operators.
const ATTRIBUTES: usize = 100_000;
/// Constants.
const TENSORS: usize = 20_000;
/// Names, texts, dimensions and what else is small.
const PARTS: usize = 2_000_000;
/// Bytes of whole numbers, which take up to eight times as many in memory.
const INTEGER_BYTES: usize = 16 << 20;

/// What there is in a file.
#[derive(Debug, Default)]
pub(super) struct Screened<'a> {
    /// Domains and names of the operators.
    pub(super) operators: Vec<(&'a str, &'a str)>,
    /// What no model has that is evaluated, but for its operators.
    odd: Option<&'static str>,
    /// Whether numbers are in another file.
    elsewhere: bool,
    attributes: usize,
    tensors: usize,
    parts: usize,
    /// Texts of attributes, and their bytes.
    texts: usize,
    text_bytes: usize,
    integers: usize,
}

/// Looks through a file.
pub(super) fn screen(bytes: &[u8]) -> Result<Screened<'_>> {
    let mut found = Screened::default();
    let (mut model, mut has_graph) = (Fields(bytes), false);
    while let Some((field, value)) = model.next()? {
        match (field, value) {
            (7, Wire::Bytes(graph)) => {
                has_graph = true;
                found.graph(graph)?;
            }
            (20, _) => found.odd = Some("training"),
            (25, _) => found.odd = Some("functions of their own"),
            (_, value) => found.other(value),
        }
    }
    if has_graph { Ok(found) } else { Err(not_onnx()) }
}

impl<'a> Screened<'a> {
    /// Refuses what is neither an operator nor known, and what is too much to be decoded.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(what) = self.odd {
            return Err(Error::unsupported(format!("ONNX models with {what} are not supported")));
        }
        self.check_trees()?;
        within("names and dimensions", self.parts + self.texts + self.text_bytes / 2, PARTS)?;
        within("bytes of whole numbers", self.integers, INTEGER_BYTES)
    }

    /// Refuses what is too much to be decoded of a tree ensemble, whose nodes have a text each.
    pub(super) fn check_trees(&self) -> Result<()> {
        if self.elsewhere {
            return Err(Error::unsupported("ONNX models with external data are not supported"));
        }
        within("attributes", self.attributes, ATTRIBUTES)?;
        within("constants", self.tensors, TENSORS)?;
        within("names and dimensions", self.parts, PARTS)?;
        within("texts", self.texts, limits::NODES)
    }

    fn graph(&mut self, bytes: &'a [u8]) -> Result<()> {
        let mut fields = Fields(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (1, Wire::Bytes(node)) => self.node(node)?,
                (5, Wire::Bytes(tensor)) => self.tensor(tensor)?,
                (15, _) => self.odd = Some("sparse constants"),
                (_, value) => self.other(value),
            }
        }
        Ok(())
    }

    fn node(&mut self, bytes: &'a [u8]) -> Result<()> {
        within("operators", self.operators.len() + 1, OPERATORS)?;
        let (mut domain, mut operator) = ("", "");
        let mut fields = Fields(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (4, value) => operator = value.text()?,
                (7, value) => domain = value.text()?,
                (5, Wire::Bytes(attribute)) => self.attribute(attribute)?,
                (_, value) => self.other(value),
            }
        }
        self.operators.push((domain, operator));
        Ok(())
    }

    fn attribute(&mut self, bytes: &'a [u8]) -> Result<()> {
        self.attributes += 1;
        let mut fields = Fields(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (5, Wire::Bytes(tensor)) => self.tensor(tensor)?,
                (6 | 11, _) => self.odd = Some("graphs within operators"),
                (10 | 22 | 23, _) => self.odd = Some("sparse constants"),
                // Floats have their size in memory, too.
                (7, _) => {}
                (8, value) => self.whole(value),
                (4 | 9, Wire::Bytes(text)) => {
                    self.texts += 1;
                    self.text_bytes += text.len();
                }
                (_, value) => self.other(value),
            }
        }
        Ok(())
    }

    fn tensor(&mut self, bytes: &'a [u8]) -> Result<()> {
        self.tensors += 1;
        let mut fields = Fields(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (13, _) | (14, Wire::Varint(1)) => self.elsewhere = true,
                (1 | 5 | 7 | 11, value) => self.whole(value),
                (4 | 9 | 10, _) => {}
                (_, value) => self.other(value),
            }
        }
        Ok(())
    }

    /// What is small, or should be: a message within it takes at most about thirty times its bytes.
    fn other(&mut self, value: Wire<'_>) {
        self.parts += match value {
            Wire::Bytes(bytes) => 1 + bytes.len() / 2,
            _ => 1,
        };
    }

    /// Whole numbers, packed or one.
    fn whole(&mut self, value: Wire<'_>) {
        self.integers += match value {
            Wire::Bytes(bytes) => bytes.len(),
            _ => 1,
        };
    }
}
