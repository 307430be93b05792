//! A plan in lines of text: its operators as an indented tree, each with its properties below it.
//!
//! Called by hosts for a format that people read. An input stands below its operator, as in PostgreSQL's
//! EXPLAIN. What an operator did stands behind its title; memory and files only where there were any.

use super::{Measured, Operator, OperatorFigures, Value, milliseconds};

/// The lines of a plan that ran on `threads` threads. The first line begins with a label, the others with as
/// many blanks.
pub fn lines(root: &Operator, label: &str, threads: usize) -> Vec<String> {
    let mut text = Text { width: label.len(), threads, lines: Vec::new() };
    text.enter(root, label, 0);
    text.lines
}

struct Text {
    /// Of the label.
    width: usize,
    threads: usize,
    lines: Vec<String>,
}

impl Text {
    /// Adds an operator that has `depth` operators above it; its own line begins with `before`.
    fn enter(&mut self, operator: &Operator, before: &str, depth: usize) {
        let did = operator.measured.map(|measured| self.did(&measured)).unwrap_or_default();
        self.lines.push(format!("{before}{}{did}", operator.title));
        let below = " ".repeat(before.len() + 2);
        let removed = operator.measured.and_then(|measured| measured.removed_property());
        for property in operator.properties.iter().chain(&removed) {
            self.lines.push(format!("{below}{}: {}", property.label, property.value));
        }
        let before = format!("{}->  ", " ".repeat(self.width + depth * 3));
        operator.inputs.iter().for_each(|input| self.enter(input, &before, depth + 1));
    }

    /// What an operator did.
    fn did(&self, measured: &Measured) -> String {
        let OperatorFigures { rows, nanoseconds, memory, files, spilled } = measured.figures;
        let mut text = format!(" (rows={rows}");
        if measured.with_work {
            text.push_str(&format!(" own time={}", milliseconds(nanoseconds)));
            if self.threads > 1 {
                text.push_str(" of all threads");
            }
            if memory > 0 {
                text.push_str(&format!(" memory={}", Value::Bytes(memory)));
            }
            if spilled > 0 {
                text.push_str(&format!(" spilled={} files={files}", Value::Bytes(spilled)));
            }
        }
        text + ")"
    }
}
