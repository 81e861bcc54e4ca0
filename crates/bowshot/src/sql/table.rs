//! Aligned text tables. The first rows decide the widths, later ones are streamed, so memory is bounded.

use super::output::Layout;
use anyhow::Result;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// Rows that are looked at before the first line is written.
const MEASURED_ROWS: usize = 1_000;
/// Longer cells are cut in tables; the expanded form shows them whole.
const CELL_CHARS: usize = 100;

pub(super) struct TableWriter {
    names: Vec<String>,
    align_right: Vec<bool>,
    layout: Layout,
    waiting: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
    taken: usize,
    cut: u64,
}

impl TableWriter {
    pub(super) fn new(schema: &Schema, layout: Layout) -> Self {
        Self {
            names: schema.fields().iter().map(|field| printable(field.name())).collect(),
            align_right: schema.fields().iter().map(|field| field.data_type().is_numeric()).collect(),
            layout,
            waiting: Vec::new(),
            widths: None,
            taken: 0,
            cut: 0,
        }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch, out: &mut impl Write) -> Result<()> {
        let room = match self.layout.max_rows {
            0 => usize::MAX,
            max => max.saturating_sub(self.taken),
        };
        let shown = batch.num_rows().min(room);
        self.cut += (batch.num_rows() - shown) as u64;
        let options = FormatOptions::new().with_null("NULL").with_display_error(true);
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..shown {
            let cells = formatters.iter().map(|cells| printable(&cells.value(row).to_string())).collect();
            self.row(cells, out)?;
        }
        Ok(())
    }

    /// Writes what still waits; returns the number of rows that were cut off.
    pub(super) fn finish(mut self, out: &mut impl Write) -> Result<u64> {
        if !self.names.is_empty() && !self.layout.expanded {
            self.release(out)?;
        }
        Ok(self.cut)
    }

    fn row(&mut self, cells: Vec<String>, out: &mut impl Write) -> Result<()> {
        self.taken += 1;
        if self.layout.expanded {
            return self.expanded(&cells, out);
        }
        let cells: Vec<String> = cells.into_iter().map(shortened).collect();
        match &self.widths {
            Some(widths) => line(&cells, widths, &self.align_right, out),
            None => {
                self.waiting.push(cells);
                if self.waiting.len() >= MEASURED_ROWS { self.release(out) } else { Ok(()) }
            }
        }
    }

    fn release(&mut self, out: &mut impl Write) -> Result<()> {
        if self.widths.is_some() {
            return Ok(());
        }
        let mut widths: Vec<usize> = self.names.iter().map(|name| name.width()).collect();
        for cells in &self.waiting {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.width().max(*width);
            }
        }
        line(&self.names, &widths, &[], out)?;
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(out, "{}", rule.join("+"))?;
        for cells in self.waiting.drain(..) {
            line(&cells, &widths, &self.align_right, out)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    fn expanded(&self, cells: &[String], out: &mut impl Write) -> Result<()> {
        let width = self.names.iter().map(|name| name.width()).max().unwrap_or(0);
        writeln!(out, "-[ row {} ]-", self.taken)?;
        for (name, cell) in self.names.iter().zip(cells) {
            writeln!(out, "{name}{} | {cell}", " ".repeat(width - name.width()))?;
        }
        Ok(())
    }
}

fn line(cells: &[String], widths: &[usize], align_right: &[bool], out: &mut impl Write) -> Result<()> {
    let mut text = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        let right = align_right.get(index).copied().unwrap_or(false);
        let (before, after) = if right { (padding.as_str(), "") } else { ("", padding.as_str()) };
        text.push_str(if index == 0 { " " } else { "| " });
        text.push_str(before);
        text.push_str(cell);
        text.push_str(after);
        text.push(' ');
    }
    writeln!(out, "{}", text.trim_end())?;
    Ok(())
}

/// Control characters written out: data must not steer the terminal or break the lines.
fn printable(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

fn shortened(cell: String) -> String {
    match cell.char_indices().nth(CELL_CHARS) {
        Some((end, _)) => format!("{}…", cell.get(..end).unwrap_or_default()),
        None => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use expect_test::{Expect, expect};
    use std::sync::Arc;

    fn batch() -> RecordBatch {
        RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(vec![Some(1), Some(200), None])) as ArrayRef),
            ("name", Arc::new(StringArray::from(vec!["größe", "日本", "a\u{1b}[2J\nb"]))),
        ])
        .unwrap()
    }

    fn check(layout: Layout, cut: u64, expected: Expect) {
        let mut out = Vec::new();
        let mut table = TableWriter::new(&batch().schema(), layout);
        table.write(&batch(), &mut out).unwrap();
        assert_eq!(table.finish(&mut out).unwrap(), cut);
        expected.assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn columns_are_aligned_and_control_characters_written_out() {
        check(
            Layout::default(),
            0,
            expect![[r#"
                 id   | name
                ------+---------------
                    1 | größe
                  200 | 日本
                 NULL | a\u{1b}[2J\nb
            "#]],
        );
    }

    #[test]
    fn rows_above_the_limit_are_counted() {
        check(
            Layout { max_rows: 1, ..Layout::default() },
            2,
            expect![[r#"
                 id | name
                ----+-------
                  1 | größe
            "#]],
        );
    }

    #[test]
    fn expanded_has_one_line_per_value() {
        check(
            Layout { max_rows: 2, expanded: true, ..Layout::default() },
            1,
            expect![[r#"
                -[ row 1 ]-
                id   | 1
                name | größe
                -[ row 2 ]-
                id   | 200
                name | 日本
            "#]],
        );
    }

    #[test]
    fn long_results_stream_after_the_measured_rows() {
        let mut out = Vec::new();
        let mut table = TableWriter::new(&batch().schema(), Layout::default());
        for _ in 0..=MEASURED_ROWS {
            table.write(&batch(), &mut out).unwrap();
        }
        assert!(table.waiting.is_empty());
        table.finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 2 + 3 * (MEASURED_ROWS + 1));
    }
}
