//! A recipe: the data it records, and the command that it builds for a program.

use super::prepared::{Accepts, Place, Plain, Prepared, Wanted, is_multirun};
use super::user::User;
use super::{amd, ncu, nsys, servers, trace};
use crate::rerun::command::CommandPart;

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
    pub(super) how: RecipeKind<'a>,
}

/// Implementation of a recipe.
#[derive(Clone, Copy, Debug)]
pub(super) enum RecipeKind<'a> {
    Nsys(nsys::Timeline),
    Ncu(ncu::NcuJob),
    Plain(Plain),
    Trace(trace::Options),
    Rocprof(amd::Job),
    Server(servers::Server),
    User(&'a User),
}

impl Recipe<'_> {
    /// Prepares the command. The error is one sentence: an input is missing, or the program is not supported.
    pub fn prepare(&self, wanted: &Wanted) -> Result<Prepared, String> {
        let place = Place::from_output(&wanted.output)?;
        self.check_options(wanted)?;
        let mut prepared = match self.how {
            RecipeKind::Nsys(timeline) => nsys::prepare(self.id, &timeline, wanted, &place)?,
            RecipeKind::Ncu(counters) => ncu::prepare(&counters, wanted, &place)?,
            RecipeKind::Plain(plain) => (plain.prepare)(wanted, &place)?,
            RecipeKind::Trace(options) => trace::prepare(&options, wanted, &place),
            RecipeKind::Rocprof(job) => amd::prepare(job, wanted, &place)?,
            RecipeKind::Server(server) => servers::prepare(server, wanted, &place)?,
            RecipeKind::User(user) => user.prepare(wanted, &place),
        };
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
        let by_user = matches!(self.how, RecipeKind::User(_));
        let accepts: &[Accepts] = match self.how {
            RecipeKind::Nsys(_) => &[Accepts::Ranks],
            RecipeKind::Ncu(_) => &[Accepts::Range, Accepts::Launches, Accepts::Kernel, Accepts::Ranks],
            RecipeKind::Plain(plain) => plain.accepts,
            RecipeKind::Trace(_) => &[Accepts::Seconds],
            RecipeKind::Rocprof(job) if job.supports_filters() => &[Accepts::Launches, Accepts::Kernel],
            RecipeKind::Server(server) if server.counts_iterations() => &[Accepts::Launches],
            RecipeKind::Rocprof(_) | RecipeKind::Server(_) | RecipeKind::User(_) => &[],
        };
        let takes_range = self.needs_range || accepts.contains(&Accepts::Range);
        let refuse = |given: bool, takes: bool, what: &str| {
            if given && !takes { Err(format!("recipe {id} takes no {what}")) } else { Ok(()) }
        };
        refuse(wanted.range.is_some(), takes_range, if by_user { "range: its argv has no {RANGE}" } else { "NVTX range" })?;
        refuse(wanted.kernel.is_some(), accepts.contains(&Accepts::Kernel), "kernel: it does not choose among them")?;
        refuse(
            wanted.skip.is_some() || wanted.count.is_some(),
            accepts.contains(&Accepts::Launches),
            "number of launches: it does not choose among them",
        )?;
        refuse(wanted.seconds.is_some(), accepts.contains(&Accepts::Seconds), "seconds: it records from beginning to end")?;
        if wanted.ranks && matches!(self.how, RecipeKind::Trace(_)) {
            return Err(format!("recipe {id} writes a trace for each process anyway: leave --ranks out"));
        }
        refuse(
            wanted.ranks,
            accepts.contains(&Accepts::Ranks),
            "separate launcher: put the profiler between launcher and program by hand",
        )?;
        if wanted.count == Some(0) {
            return Err("0 launches would profile nothing: give at least 1".to_owned());
        }
        Ok(())
    }
}
