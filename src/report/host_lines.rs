//! `lines`: idle time of the devices by line of the program.

use super::top::SourceJson;
use super::{Format, table};
use crate::analysis::call_tree::CallTree;
use crate::analysis::table::lines::{LineRow, columns};
use crate::analysis::triage::{HostTime, LineTime};
use crate::model::Profile;
use std::io::{self, Write};

/// Functions of a run, or a tree of calls, by idle time of the devices.
pub struct HostLines {
    /// Each with its level in the tree, and the thread that held the interpreter lock.
    rows: Vec<(LineTime, u32, Option<String>)>,
    /// Idle time with samples and without, ns.
    known: i64,
    unknown: i64,
}

/// Name of a thread for sentences: `thread 4711 (loader)`.
pub fn thread_label(profile: &Profile, thread: u32) -> String {
    match profile.threads.get(thread as usize) {
        Some(t) => t.name.as_ref().map_or_else(|| format!("thread {}", t.tid), |name| format!("thread {} ({name})", t.tid)),
        None => "another thread".to_owned(),
    }
}

impl HostLines {
    /// The functions to which the idle time is attributed.
    pub fn of_functions(profile: &Profile, time: &HostTime) -> Self {
        let rows = time.lines(&[]).into_iter().map(|line| {
            let holder = line.held_by.map(|thread| thread_label(profile, thread));
            (line, 0, holder)
        });
        Self { rows: rows.collect(), known: time.known(), unknown: time.unknown }
    }

    /// The tree of calls, down to a depth, without nodes of less than a share of the idle time.
    pub fn of_tree(profile: &Profile, time: &HostTime, depth: Option<u32>, least: f64) -> Self {
        let tree = CallTree::from_time(time, |thread| thread_label(profile, thread));
        let listed = tree.listed_nodes(depth, least);
        let rows = listed.iter().filter_map(|&id| tree.nodes.get(id as usize)).map(|n| (n.to_line(), n.depth, None)).collect();
        Self { rows, known: tree.known, unknown: tree.unknown }
    }

    fn line_rows(&self) -> impl Iterator<Item = LineRow<'_>> {
        self.rows.iter().map(|(line, depth, holder)| LineRow { line, depth: *depth, all: self.known, holder: holder.as_deref() })
    }

    pub fn write_json(&self, out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
        let source = super::json_text(&SourceJson::from(&profile.source))?;
        write!(out, "{{\"source\":{source},\"idle_ns\":{},\"idle_without_samples_ns\":{},\"rows\":", self.known, self.unknown)?;
        table::write_json_rows(&columns(), self.line_rows(), out)?;
        writeln!(out, "}}")
    }

    /// Prints the rows in a format other than JSON.
    pub fn print_rows(&self, out: &mut dyn Write, format: Format, width: Option<usize>) -> io::Result<()> {
        let has = |id: &str| match id {
            "inside" => self.rows.iter().any(|r| r.0.inside.is_some()),
            "gil_holder" => self.rows.iter().any(|r| r.2.is_some()),
            _ => true,
        };
        // Programs find each column; people only those with contents.
        let shown = columns().into_iter().filter(|c| format == Format::Csv || has(c.id)).collect();
        table::print_rows(shown, self.line_rows(), out, format, width)
    }
}
