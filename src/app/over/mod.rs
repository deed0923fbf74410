//! What lies over a screen: pages to read, lists to choose from, lines to type. Each carries the screen that it was opened on, so that an
//! answer lands there whatever comes up meanwhile.

pub mod choice;
pub mod finder;
pub mod line;
pub mod pick;

pub use choice::{Choice, CopyWhat, Facet, RangeSort, RunChoice};
pub use finder::{Finder, Typed};
pub use line::LineOf;
pub use pick::{Item, Pick};

use crate::analysis::checklist;
use crate::analysis::triage::Finding;
use crate::report::hints::Advice;
use std::sync::Arc;
use tui_input::Input;

/// Something to read; longer than the screen it can be scrolled.
#[derive(Clone, Debug)]
pub enum Page {
    Help,
    /// The report's notes, GPUs and command.
    Notes,
    /// The selected row's name in all forms.
    Names,
    /// The selected row's details, where the terminal has no room for them beside the table.
    Details,
    /// What there is to know about the selected metric, rule or point.
    Explain,
    /// What of an analysis is done in this session.
    Checklist(Arc<[checklist::Item]>),
    /// What a launch of a timeline tells by itself.
    Advice(Arc<Advice>),
    /// A finding's numbers, places and remedies.
    Finding(Arc<Finding>, i64),
    /// What there is to know of a run.
    RunFacts(Arc<[(&'static str, String)]>),
}

#[derive(Clone, Debug)]
pub enum What {
    /// To read, scrolled by so many lines.
    Page(Page, usize),
    /// A list to choose from.
    Pick(Pick),
    /// The number of a launch to type.
    Number(Input),
    /// A line to type.
    Line(LineOf, Input),
}

impl From<Page> for What {
    fn from(page: Page) -> Self {
        Self::Page(page, 0)
    }
}

impl From<Pick> for What {
    fn from(pick: Pick) -> Self {
        Self::Pick(pick)
    }
}

/// What lies on top, and what it is about.
#[derive(Clone, Debug)]
pub struct Over {
    /// Number of the screen that it was opened on.
    pub screen: u64,
    /// Index of the report that was shown then.
    pub report: usize,
    pub what: What,
}

impl Over {
    /// Whether typed letters go into a text.
    #[must_use]
    pub fn takes_text(&self) -> bool {
        match &self.what {
            What::Pick(pick) => pick.typed.is_some(),
            What::Number(_) | What::Line(..) => true,
            What::Page(..) => false,
        }
    }
}
