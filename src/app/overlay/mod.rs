//! Overlays: text pages, pick lists and text inputs. The answer from an overlay goes to the screen that opened it, even
//! if another screen is on top by then.

pub mod choice;
pub mod filter_input;
pub mod line;
pub mod pick_list;

pub use choice::{CopyWhat, Facet, PickAction, RunChoice};
pub use filter_input::{FilterInput, Typed};
pub use line::LineOf;
pub use pick_list::{Item, PickList};

use crate::analysis::checklist;
use crate::analysis::triage::Finding;
use crate::app::session::Session;
use crate::report::hints::Advice;
use crate::rerun::shell::command_line;
use std::sync::Arc;
use tui_input::Input;

/// Text page, scrollable if it is longer than the screen.
#[derive(Clone, Debug)]
pub enum Page {
    Help,
    /// The report's notes, GPUs and command.
    Notes,
    /// The selected row's name in all forms.
    Names,
    /// Details of the selected row, if the terminal has no room for them next to the table.
    Details,
    /// Explanation of the selected metric, rule or point.
    Explain,
    /// Analysis steps covered in this session.
    Checklist(Arc<[checklist::Item]>),
    /// Advice derived from a timeline launch alone, without metrics.
    Advice(Arc<Advice>),
    /// A finding's values, locations and remedies.
    Finding(Arc<Finding>, Option<i64>, &'static str),
    /// Details of a run.
    RunFacts(Arc<[(&'static str, String)]>),
}

impl Page {
    /// Command that confirms the finding of the page. A comparison of ranks that are open already confirms it by itself.
    pub fn command(&self, session: &Session) -> Option<String> {
        let Self::Finding(finding, ..) = self else { return None };
        let compared = finding.id.asks_for_ranks() && session.straggler().is_some();
        finding.confirm.as_ref().filter(|_| !compared).map(|c| command_line(&c.argv))
    }
}

#[derive(Clone, Debug)]
pub enum OverlayKind {
    /// Page with its scroll offset in lines.
    Page(Page, usize),
    Pick(PickList),
    /// Input for a launch number.
    Number(Input),
    /// Text input.
    Line(LineOf, Input),
}

impl From<Page> for OverlayKind {
    fn from(page: Page) -> Self {
        Self::Page(page, 0)
    }
}

impl From<PickList> for OverlayKind {
    fn from(pick: PickList) -> Self {
        Self::Pick(pick)
    }
}

/// Open overlay and its screen.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Id of the screen that opened the overlay.
    pub screen: u64,
    /// Index of the report that was active when the overlay opened.
    pub report: usize,
    pub what: OverlayKind,
}

impl Overlay {
    /// Returns true if the overlay has a text input.
    pub fn takes_text(&self) -> bool {
        match &self.what {
            OverlayKind::Pick(pick) => pick.typed.is_some(),
            OverlayKind::Number(_) | OverlayKind::Line(..) => true,
            OverlayKind::Page(..) => false,
        }
    }
}
