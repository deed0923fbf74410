//! The re-run that confirms a hint: the launch that the hint is about, and only the sections that decide.

use super::join::join;
use super::{Collect, Options, Rerun, Target, plan};
use crate::analysis::hints::Confirm;
use crate::analysis::hints::subject::Subject;
use crate::model::metrics::IN_PLACE;
use crate::model::{LaunchId, Profile};
use rustc_hash::FxHashMap;

/// Options of the command that collects what a hint asks for; `None` when it asks for nothing that ncu collects.
#[must_use]
pub fn options(confirm: &Confirm) -> Option<Options> {
    if confirm.sections.is_empty() {
        return None;
    }
    let sections = confirm.sections.iter().map(|s| (*s).to_owned()).collect();
    Some(Options { collect: Collect::Sections(sections), import_source: confirm.source, ..Options::default() })
}

/// The command. Errors are sentences: why there is none.
pub fn command(profile: &Profile, launch: u32, confirm: &Confirm) -> Result<Rerun, String> {
    let options = options(confirm).ok_or_else(|| "nothing to collect with ncu".to_owned())?;
    let plan = plan(profile, &Target::Launches(vec![LaunchId(launch)]), &options)?;
    plan.commands.into_iter().next().ok_or_else(|| "no command selects this launch".to_owned())
}

/// Where the launches of a report's results are counted: results that were measured in a run are few of its launches.
pub struct Counted<'a> {
    profile: &'a Profile,
    /// The launches of the run that results are of, by result.
    launches: Option<FxHashMap<usize, u32>>,
}

impl<'a> Counted<'a> {
    /// `timeline` is the run that a report's results were measured in.
    #[must_use]
    pub fn new(profile: &'a Profile, timeline: Option<&'a Profile>) -> Self {
        match profile.metrics.as_deref().filter(|m| m.source.tool == IN_PLACE) {
            None => Self { profile, launches: None },
            Some(metrics) => {
                let joined = timeline.map(|t| join(t, metrics).pairs.into_iter().map(|p| (p.result, p.launch)).collect());
                Self { profile: timeline.unwrap_or(profile), launches: Some(joined.unwrap_or_default()) }
            }
        }
    }

    /// The command that confirms a hint on a subject of the report.
    pub fn command(&self, subject: &Subject, confirm: &Confirm) -> Result<Rerun, String> {
        let launch = match &self.launches {
            None => subject.launch,
            Some(known) => {
                let launch = subject.result.and_then(|r| known.get(&r));
                *launch.ok_or_else(|| "it is not known which launch of the run it was".to_owned())?
            }
        };
        command(self.profile, launch, confirm)
    }
}
