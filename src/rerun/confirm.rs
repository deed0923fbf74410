//! The re-run that confirms a hint: the launch that the hint is about, and only the sections that decide.

use super::{Collect, Options, Rerun, Target, plan};
use crate::analysis::hints::Confirm;
use crate::model::{LaunchId, Profile};

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
