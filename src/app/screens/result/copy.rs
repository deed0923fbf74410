//! Copy menu of a result, and the text to copy

use super::hints::Line;
use super::state::ResultScreen;
use crate::analysis::code::Counts;
use crate::analysis::metrics_rows::{MetricsRow, plain_text};
use crate::analysis::{compare, metric};
use crate::app::clipboard;
use crate::app::overlay::{CopyWhat, PickList};
use crate::app::screen::ResultView as View;
use crate::model::NameForm;
use crate::model::units::format_count;
use crate::report::table::to_paste;

/// Copy menu for the views of a result.
pub fn copy_menu(view: View) -> PickList {
    let mut rows = [
        (CopyWhat::MetricValue, 'v', "value", "the exact value in its base unit"),
        (CopyWhat::MetricName, 'n', "name", "as --metrics expects it"),
        (CopyWhat::Row, 'r', "row", "name, value and unit as CSV"),
        (CopyWhat::Section, 's', "section", "all rows of this section as CSV"),
        (CopyWhat::Name(NameForm::Function), 'f', "kernel's function name", "as ncu --kernel-name expects it"),
    ];
    if view == View::Hints {
        rows = [
            (CopyWhat::Row, 'h', "hint", "id and headline, or the selected number"),
            (CopyWhat::Command, 'c', "command", "the ncu command that confirms the selected hint"),
            (CopyWhat::Section, 's', "all hints", "id, gain and headline of each as CSV"),
            (CopyWhat::MetricName, 'n', "metric", "name of the selected number's metric"),
            (CopyWhat::Name(NameForm::Function), 'f', "kernel's function name", "as ncu --kernel-name expects it"),
        ];
    }
    clipboard::copy_menu(&rows)
}

/// Returns the text to copy and its description.
pub fn copy_text(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    let result = screen.metrics.results.get(screen.result)?;
    if let CopyWhat::Name(form) = what {
        return Some((result.kernel.name(form).to_owned(), format!("{} name", form.as_str())));
    }
    match screen.view {
        View::Compare => of_comparison(screen, what),
        View::Source => of_code(screen, what),
        View::Hints => of_hints(screen, what),
        View::Metrics | View::Roofline => of_sections(screen, what),
    }
}

/// Formats rows as CSV; returns the CSV and its description.
fn format_rows(head: &[&str], rows: Vec<Vec<String>>) -> (String, String) {
    let said = if rows.len() == 1 { "row".to_owned() } else { format_count(rows.len(), "row") };
    (to_paste(head, rows), said)
}

fn of_comparison(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    let selected = screen.compare.rows.get(screen.compare.selected);
    let rows: Vec<&compare::ComparedMetric> = match what {
        CopyWhat::Section => screen.compare.rows.iter().collect(),
        _ => selected.into_iter().collect(),
    };
    let name = rows.first()?.name.to_string();
    Some(match what {
        CopyWhat::MetricName => (name, "metric's name".to_owned()),
        CopyWhat::MetricValue => {
            let lookup = metric::Lookup::new(&screen.metrics, screen.metrics.results.get(screen.result)?);
            (lookup.value(&name)?.to_string(), "value".to_owned())
        }
        _ => {
            let rows = rows.iter().map(|r| vec![r.name.to_string(), r.first.clone(), r.second.clone()]);
            format_rows(&["metric", "first", "second"], rows.collect())
        }
    })
}

fn of_sections(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    let lookup = metric::Lookup::new(&screen.metrics, screen.metrics.results.get(screen.result)?);
    let line = |name: &str| {
        let value = lookup.value(name).map(ToString::to_string).unwrap_or_default();
        vec![name.to_owned(), value, lookup.unit(name).to_owned()]
    };
    let head = ["metric", "value", "unit"];
    let sections = &screen.sections;
    if what == CopyWhat::Section {
        let is_head = |i: &usize| matches!(sections.rows.get(*i), Some(MetricsRow::Section { .. }));
        let from = (0..=sections.selected).rev().find(is_head).unwrap_or(0);
        let to = (sections.selected + 1..sections.rows.len()).find(is_head).unwrap_or(sections.rows.len());
        let names = sections.rows.get(from..to)?.iter().flat_map(|r| match r {
            MetricsRow::Cells { metrics, head: false, .. } => metrics.iter().collect(),
            other => other.metric().into_iter().collect::<Vec<_>>(),
        });
        return Some(format_rows(&head, names.map(|n| line(n)).collect()));
    }
    match sections.selected_row()? {
        MetricsRow::Hint(i) => return Some((screen.subject.hints.get(*i)?.headline.clone(), "hint".to_owned())),
        MetricsRow::Rule(r, m) => {
            let message = screen.details.get()?.rules.get(*r)?.messages.get(*m)?;
            return Some((plain_text(&message.text), "rule's text".to_owned()));
        }
        _ => {}
    }
    let name = sections.selected_metric()?;
    Some(match what {
        CopyWhat::MetricName => (name.to_string(), "metric's name".to_owned()),
        CopyWhat::MetricValue => (lookup.value(name)?.to_string(), "value".to_owned()),
        _ => format_rows(&head, vec![line(name)]),
    })
}

/// Text to copy from the hints: the selected value, the hint's headline, or all headlines.
fn of_hints(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    let hints = &screen.subject.hints;
    if what == CopyWhat::Section {
        let rows = hints.iter().map(|h| vec![h.id.id().to_owned(), format!("{:.1}", h.gain_range().1 * 100.0), h.headline.clone()]);
        return Some((to_paste(&["id", "gain_percent", "headline"], rows), format_count(hints.len(), "hint")));
    }
    if let Some(Line::Evidence(i, e)) = screen.hints.lines.get(screen.hints.selected) {
        let e = hints.get(*i)?.evidence.get(*e)?;
        return Some(match what {
            CopyWhat::MetricName if !e.metric.is_empty() => (e.metric.clone(), "metric's name".to_owned()),
            CopyWhat::MetricValue => (e.value.to_string(), "value".to_owned()),
            _ => format_rows(&["label", "value", "unit"], vec![vec![e.name.clone(), e.value.to_string(), e.unit.to_string()]]),
        });
    }
    let hint = hints.get(screen.hints.selected_hint()?)?;
    Some((format!("{}: {}", hint.id.id(), hint.headline), "hint".to_owned()))
}

fn of_code(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    let source = &screen.source;
    let listing = source.listing.as_ref()?;
    let row = |place: String, counts: &Counts, text: Option<&str>| {
        let executed = counts.executed.map(|n| n.to_string()).unwrap_or_default();
        vec![place, counts.samples.to_string(), executed, text.unwrap_or_default().to_owned()]
    };
    let one = |at: usize| {
        if source.instructions {
            listing.instructions.get(at).map(|i| row(format!("{:#x}", i.address), &i.counts, i.text.as_deref()))
        } else {
            listing.lines.get(at).map(|l| row(format!("{}:{}", l.name, l.line), &l.counts, l.text.as_deref()))
        }
    };
    let rows = if what == CopyWhat::Section { (0..source.row_count()).filter_map(one).collect() } else { vec![one(source.selected)?] };
    Some(format_rows(&["place", "samples", "executed", "text"], rows))
}
