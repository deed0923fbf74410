//! A recipe: the data it records, and the command that it builds for a program.

use super::prepared::{Accepts, Place, Prepared, Wanted, is_multirun};
use crate::rerun::command::CommandPart;
use std::fmt::Debug;

/// A way to record a program.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    pub id: &'a str,
    /// The profiler: a row in `src/launch/profiler.rs`.
    pub tool: &'a str,
    /// Short description of the data that it records.
    pub about: &'a str,
    /// When to use the recipe.
    pub when: &'a str,
    pub cost: &'a str,
    /// The recipe requires the name of an NVTX range.
    pub needs_range: bool,
    pub(super) builder: &'a dyn CommandBuilder,
}

/// Builds the commands of a profiler's recipes, in the profiler's own file.
pub(super) trait CommandBuilder: Debug + Sync {
    /// Builds the command of the recipe `id`. The error is one sentence.
    fn prepare(&self, id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String>;

    /// Options that the recipe does not ignore.
    fn accepts(&self) -> &'static [Accepts] {
        &[]
    }

    /// Rest of the sentence "recipe … takes no …" for an NVTX range that the recipe would ignore.
    fn range_refusal(&self) -> &'static str {
        "NVTX range"
    }

    /// Rest of the sentence "recipe … takes no …" for a launcher whose ranks the recipe does not profile separately.
    fn ranks_refusal(&self) -> &'static str {
        "separate launcher: put the profiler between launcher and program by hand"
    }

    /// Metrics that the command collects; a test compares their measured cost with the cost in the recipe's
    /// description.
    #[cfg(test)]
    fn collect(&self) -> Option<crate::rerun::collect::Collect> {
        None
    }
}

impl Recipe<'static> {
    pub(super) const fn built_in(
        id: &'static str,
        tool: &'static str,
        builder: &'static dyn CommandBuilder,
        [about, when, cost]: [&'static str; 3],
    ) -> Self {
        Recipe { id, tool, about, when, cost, needs_range: false, builder }
    }
}

impl Recipe<'_> {
    /// Prepares the command. The error is one sentence: an input is missing, or the program is not supported.
    pub fn prepare(&self, wanted: &Wanted) -> Result<Prepared, String> {
        let place = Place::from_output(&wanted.output)?;
        self.check_options(wanted)?;
        let mut prepared = self.builder.prepare(self.id, wanted, &place)?;
        if wanted.program.is_empty() {
            prepared.by_hand = Some("no program given: put it and its arguments at the end".to_owned());
        }
        if is_multirun(&wanted.program) {
            prepared.notes.push(
                "This looks like a Hydra multirun (-m): all its jobs would go into one report. Start one profiler for each job instead, with its overrides and without -m."
                    .to_owned(),
            );
        }
        Ok(prepared)
    }

    /// Returns the parts of the command.
    pub fn parts(&self, wanted: &Wanted) -> Result<Vec<CommandPart>, String> {
        Ok(self.prepare(wanted)?.parts)
    }

    pub fn argv(&self, wanted: &Wanted) -> Result<Vec<String>, String> {
        Ok(self.prepare(wanted)?.argv())
    }

    /// Rejects options that the recipe would ignore.
    fn check_options(&self, wanted: &Wanted) -> Result<(), String> {
        let id = self.id;
        if self.needs_range && wanted.range.is_none() {
            return Err(format!("recipe {id} needs the name of an NVTX range"));
        }
        let accepts = self.builder.accepts();
        let takes_range = self.needs_range || accepts.contains(&Accepts::Range);
        let refuse = |given: bool, takes: bool, what: &str| {
            if given && !takes { Err(format!("recipe {id} takes no {what}")) } else { Ok(()) }
        };
        refuse(wanted.range.is_some(), takes_range, self.builder.range_refusal())?;
        refuse(wanted.kernel.is_some(), accepts.contains(&Accepts::Kernel), "kernel: it does not choose among them")?;
        refuse(
            wanted.skip.is_some() || wanted.count.is_some(),
            accepts.contains(&Accepts::Launches),
            "number of launches: it does not choose among them",
        )?;
        refuse(wanted.seconds.is_some(), accepts.contains(&Accepts::Seconds), "seconds: it records from beginning to end")?;
        refuse(wanted.ranks, accepts.contains(&Accepts::Ranks), self.builder.ranks_refusal())?;
        if wanted.count == Some(0) {
            return Err("0 launches would profile nothing: give at least 1".to_owned());
        }
        Ok(())
    }
}
