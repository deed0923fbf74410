//! State of the screens about one result. Each view has its own rows and selection.

use super::hints::HintsView;
use super::lazy_details::Asked;
use super::metrics::{MetricsView, Of};
use super::source::SourceView;
use crate::analysis::compare;
use crate::analysis::hints::{Confirm, Hint, Subject};
use crate::analysis::roofline::Plot;
use crate::app::screen::ResultView;
use crate::import::rocm::counters::counters_of;
use crate::model::{Details, Metrics};
use crate::rerun::match_results::Sure;
use crate::rerun::{Collect, Options, confirm};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct RooflineView {
    pub plot: Option<Arc<Plot>>,
    /// Index of the selected point.
    pub selected: usize,
}

#[derive(Clone, Debug, Default)]
pub struct CompareView {
    /// The other result: index of its report, metrics, index of the result.
    pub other: Option<(usize, Arc<Metrics>, usize)>,
    pub rows: Arc<Vec<compare::ComparedMetric>>,
    /// Hints on the other result.
    pub subject: Arc<Subject>,
    /// Number of launches of this kernel, grid and block in each of the two reports.
    pub launches: (usize, usize),
    /// Index of the selected row.
    pub selected: usize,
}

#[derive(Clone, Debug)]
pub struct ResultScreen {
    /// Index of the report that contains the result; the launch may be in another report.
    pub report: usize,
    pub metrics: Arc<Metrics>,
    /// Index of the result.
    pub result: usize,
    /// Certainty that the result belongs to the launch from which it was opened.
    pub sure: Option<Sure>,
    /// Current view.
    pub view: ResultView,
    /// Initial view, to which `back` returns.
    pub opened: ResultView,
    /// Sections, rules and instances.
    pub details: Asked<Details>,
    /// Hints on the result.
    pub subject: Arc<Subject>,
    pub sections: MetricsView,
    pub hints: HintsView,
    pub roofline: RooflineView,
    pub compare: CompareView,
    pub source: SourceView,
}

impl ResultScreen {
    pub fn new(report: usize, metrics: Arc<Metrics>, result: usize) -> Self {
        let subject = Arc::new(Subject::of_metrics(&metrics, result).unwrap_or_default());
        Self {
            report,
            metrics,
            result,
            sure: None,
            view: ResultView::Metrics,
            opened: ResultView::Metrics,
            details: Asked::Waiting,
            subject,
            sections: MetricsView::default(),
            hints: HintsView::default(),
            roofline: RooflineView::default(),
            compare: CompareView::default(),
            source: SourceView::default(),
        }
    }

    /// Returns the section rows together with the input for building them.
    pub fn sections_of<'a>(&'a mut self, pins: &'a [Arc<str>]) -> (Of<'a>, &'a mut MetricsView) {
        let details = self.details.get().map(|d| &**d);
        (Of { metrics: &self.metrics, result: self.result, details, pins, hints: self.subject.hints.len() }, &mut self.sections)
    }

    /// Rebuilds the rows of the sections, with these metrics pinned to the top.
    pub fn rebuild_sections(&mut self, pins: &[Arc<str>]) {
        let (of, sections) = self.sections_of(pins);
        sections.rebuild_rows(&of);
    }

    /// Rebuilds the lines of the hints.
    pub fn rebuild_hints(&mut self) {
        self.hints.rebuild_lines(&self.subject, self.details.get().map(|d| &**d));
    }

    /// Returns true if the view is available: rooflines need counters; code needs an ncu result or a thread trace.
    pub fn has_view(&self, view: ResultView) -> bool {
        !self.subject.is_amd()
            || matches!(view, ResultView::Hints | ResultView::Metrics | ResultView::Compare)
            || (view == ResultView::Roofline && !self.is_thread_trace())
            || (view == ResultView::Source && self.is_thread_trace())
    }

    /// Returns true if the result comes from a thread trace, which has code but no rates.
    pub fn is_thread_trace(&self) -> bool {
        crate::analysis::code::has_thread_trace(&self.metrics)
    }

    /// Returns true if the report contains the code of the result.
    pub fn has_code(&self) -> bool {
        self.details.get().is_some_and(|d| !d.sources.is_empty())
    }

    /// Measurement that confirms the selected hint, or otherwise the one that would decide between diagnoses.
    pub fn selected_confirm(&self) -> Option<Confirm> {
        self.selected_hint().map(|h| h.confirm.clone()).filter(Confirm::is_rerun).or_else(|| self.subject.sections_to_collect())
    }

    fn selected_hint(&self) -> Option<&Hint> {
        self.hints.selected_hint().or(Some(0)).and_then(|i| self.subject.hints.get(i))
    }

    /// Options that measure a hint on an AMD GPU again, after the change. The usual counters are not those of every
    /// hint, unlike ncu's sections.
    fn evidence_options(&self) -> Option<Options> {
        let hint = self.selected_hint().filter(|_| self.subject.is_amd() && !self.is_thread_trace())?;
        let mut counters: Vec<String> = Vec::new();
        for counter in hint.evidence.iter().flat_map(|e| counters_of(&e.metric)) {
            if !counters.contains(&counter) {
                counters.push(counter);
            }
        }
        // Reads from memory and writes to it need a run each.
        if counters.iter().any(|c| c == "FETCH_SIZE" || c == "WRITE_SIZE") {
            return Some(Options { collect: Collect::Question("memory"), ..Options::default() });
        }
        (!counters.is_empty()).then(|| Options { collect: Collect::Sections(counters), ..Options::default() })
    }

    /// Re-run options: those that collect what the view lacks, or that confirm the selected hint; otherwise, the
    /// defaults.
    pub fn rerun_options(&self) -> Options {
        match self.view {
            ResultView::Hints => {
                self.selected_confirm().and_then(|c| confirm::confirm_options(&c)).or_else(|| self.evidence_options()).unwrap_or_default()
            }
            ResultView::Source if self.source.row_count() == 0 => {
                Options { collect: Collect::Sections(vec!["SourceCounters".to_owned()]), import_source: true, ..Options::default() }
            }
            ResultView::Roofline if !self.subject.is_amd() && self.roofline.plot.as_ref().is_none_or(|p| !p.placed.missing.is_empty()) => {
                Options { collect: Collect::Set("roofline".to_owned()), ..Options::default() }
            }
            _ => Options::default(),
        }
    }
}
