//! The re-run that confirms a hint: it profiles only the hint's launch, and collects only the sections that decide.

use super::match_results::join_results;
use super::{Collect, Options, Rerun, Target, plan};
use crate::analysis::hints::Confirm;
use crate::analysis::hints::diagnosed_kernel::Subject;
use crate::model::metrics::IN_PLACE;
use crate::model::{LaunchId, Profile};
use rustc_hash::FxHashMap;

/// Returns options that collect what a hint needs; `None` if no re-run tells more.
pub fn confirm_options(confirm: &Confirm) -> Option<Options> {
    if !confirm.is_rerun() {
        return None;
    }
    if confirm.trace {
        return Some(Options { collect: Collect::Question("stalls"), ..Options::default() });
    }
    let sections = confirm.sections.iter().map(|s| (*s).to_owned()).collect();
    Some(Options { collect: Collect::Sections(sections), import_source: confirm.source, ..Options::default() })
}

/// Returns the command. The error is a sentence that explains why there is no command.
pub fn confirm_command(profile: &Profile, launch: u32, confirm: &Confirm) -> Result<Rerun, String> {
    let options = confirm_options(confirm).ok_or_else(|| "nothing to collect".to_owned())?;
    let plan = plan(profile, &Target::Launches(vec![LaunchId(launch)]), &options)?;
    plan.commands.into_iter().next().ok_or_else(|| "no command selects this launch".to_owned())
}

/// Profile in which the launches of a report's results are counted. Results measured during a run cover only a few of
/// its launches, so the run's timeline is used for counting.
pub struct Counted<'a> {
    profile: &'a Profile,
    /// Launches of the run, by result index.
    launches: Option<FxHashMap<usize, u32>>,
}

impl<'a> Counted<'a> {
    /// `timeline` is the run during which the report's results were measured.
    pub fn new(profile: &'a Profile, timeline: Option<&'a Profile>) -> Self {
        match profile.metrics.as_deref().filter(|m| m.source.tool == IN_PLACE) {
            None => Self { profile, launches: None },
            Some(metrics) => {
                let joined = timeline.map(|t| join_results(t, metrics).pairs.into_iter().map(|p| (p.result, p.launch)).collect());
                Self { profile: timeline.unwrap_or(profile), launches: Some(joined.unwrap_or_default()) }
            }
        }
    }

    /// Returns the command that confirms a hint on a subject of the report.
    pub fn confirm_command(&self, subject: &Subject, confirm: &Confirm) -> Result<Rerun, String> {
        let launch = match &self.launches {
            None => subject.launch,
            Some(known) => {
                let launch = subject.result.and_then(|r| known.get(&r));
                *launch.ok_or_else(|| "it is not known which launch of the run it was".to_owned())?
            }
        };
        confirm_command(self.profile, launch, confirm)
    }
}
