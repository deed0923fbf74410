//! A finding in words: one form for all findings about runs, kernels and memory, rendered as text and as
//! Markdown. Strings are unescaped: renderers escape them.

use super::output::bold;
use super::table::write_wrapped;
use crate::model::text::escape_unsafe;
use std::io::{self, Write};

/// A value that supports a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvidenceText {
    pub name: String,
    pub value: String,
    /// Threshold that the value met, with its source: `≥ 80 %: ncu's own rule`; empty if there is none.
    pub threshold: String,
    /// Name of the metric in the report; empty if the value is not a single metric.
    pub metric: String,
}

impl EvidenceText {
    /// `name: value (threshold), metric`.
    pub fn to_line(&self) -> String {
        let threshold = if self.threshold.is_empty() { String::new() } else { format!(" ({})", self.threshold) };
        let metric = if self.metric.is_empty() { String::new() } else { format!(", {}", self.metric) };
        format!("{}: {}{threshold}{metric}", self.name, self.value)
    }
}

/// A problem, or a good result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingText {
    pub id: &'static str,
    pub headline: String,
    /// Severity, confidence and gain: `high, certain, up to 40% of the steady state`; may be empty.
    pub rating: String,
    /// True for a problem, false for a good result.
    pub is_problem: bool,
    /// Further remarks on the cost, each with a label.
    pub costs: Vec<(&'static str, String)>,
    pub evidence: Vec<EvidenceText>,
    pub places: Vec<String>,
    /// Findings caused by this one.
    pub consequences: Vec<String>,
    pub actions: Vec<String>,
    /// Reason to record more, and the command that does so, as a list of arguments; either may be empty.
    pub confirm: (String, Vec<String>),
}

impl FindingText {
    /// Lines below the headline in order, each with a label.
    fn items(&self) -> impl Iterator<Item = (&'static str, String)> {
        let named = |word: &'static str, list: &[String]| list.iter().map(move |t| (word, t.clone())).collect::<Vec<_>>();
        let confirm = (!self.confirm.0.is_empty()).then(|| ("confirm", self.confirm.0.clone()));
        let evidence: Vec<_> = self.evidence.iter().map(|e| ("", e.to_line())).collect();
        self.costs
            .iter()
            .cloned()
            .chain(evidence)
            .chain(named("at", &self.places))
            .chain(named("consequence", &self.consequences))
            .chain(named("do", &self.actions))
            .chain(confirm)
    }

    /// Command line that confirms the finding, if any.
    fn command(&self) -> Option<String> {
        Some(crate::rerun::shell::command_line(&self.confirm.1)).filter(|c| !c.is_empty())
    }
}

/// Writes a finding as text; `rank` counts from 1.
pub fn write_text(out: &mut dyn Write, rank: usize, f: &FindingText, width: usize) -> io::Result<()> {
    let title = format!("{rank}. {}", f.id);
    let rating = if f.rating.is_empty() { String::new() } else { format!(" ({})", f.rating) };
    writeln!(out, "{}{rating}", bold(&title))?;
    write_wrapped(out, "   ", "   ", &f.headline, width)?;
    for (word, text) in f.items() {
        let first = if word.is_empty() { "     · ".to_owned() } else { format!("     {word}: ") };
        write_wrapped(out, &first, "         ", &text, width)?;
    }
    f.command().map_or(Ok(()), |c| writeln!(out, "       {}", escape_unsafe(&c)))
}

/// Writes a finding as Markdown; `text` escapes.
pub fn write_markdown(out: &mut dyn Write, f: &FindingText, text: &dyn Fn(&str) -> String) -> io::Result<()> {
    let rating = if f.rating.is_empty() { String::new() } else { format!(" ({})", text(&f.rating)) };
    writeln!(out, "**{}**{rating}: {}\n", text(f.id), text(&f.headline))?;
    for (word, item) in f.items() {
        let word = if word.is_empty() { String::new() } else { format!("{word}: ") };
        writeln!(out, "- {word}{}", text(&item))?;
    }
    if let Some(command) = f.command() {
        // A command that contains backticks cannot be inline code.
        let command = escape_unsafe(&command);
        let shown = if command.contains('`') { text(&command) } else { format!("`{command}`") };
        writeln!(out, "- {shown}")?;
    }
    writeln!(out)
}
