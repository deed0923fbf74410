//! Assembles a shareable report.

use super::block::{Block, Document};
use super::{kernels, memory, run};
use crate::analysis::memory::Usage;
use crate::analysis::triage::Triage;
use crate::model::{Bytes, Profile};
use crate::report::ranks::{self, Together};
use crate::report::triage::verdict_text;

/// A report and its analysis.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub profile: &'a Profile,
    pub triage: Option<&'a Triage>,
    pub usage: Option<&'a Usage>,
}

/// Builds one shareable report from the given reports.
pub fn build_handout<'a>(given: &[Given<'_>], ranks: Option<&Together<'a>>) -> Document<'a> {
    let names: Vec<String> = given.iter().map(|g| g.profile.file_name()).collect();
    let title = match &names[..] {
        [one] => one.clone(),
        [first, ..] => format!("{first} and {} more", names.len() - 1),
        [] => "nothing".to_owned(),
    };
    let mut blocks = vec![Block::Heading(1, title)];
    if let Some(ranks) = ranks {
        blocks.push(Block::Heading(2, "Ranks".to_owned()));
        blocks.extend(ranks::document(ranks).blocks);
    }
    for of in given {
        if given.len() > 1 {
            blocks.push(Block::Heading(2, of.profile.file_name()));
        }
        append_report(of, &mut blocks);
    }
    blocks.push(Block::Text(format!("Made by warpscope {}.", env!("CARGO_PKG_VERSION"))));
    Document { blocks }
}

fn append_report(of: &Given<'_>, blocks: &mut Vec<Block<'_>>) {
    let profile = of.profile;
    let verdict = of.triage.and_then(verdict_text).map(|(id, headline)| format!("{id}: {headline}"));
    let memory_verdict = of.usage.and_then(Usage::main).and_then(|d| d.findings.first()).map(|f| format!("{}: {}", f.id.id(), f.headline));
    let kernel = profile.metrics.as_ref().and_then(|m| kernels::verdict_text(profile, m));
    blocks.extend(verdict.or(memory_verdict).or(kernel).map(Block::Text));
    blocks.push(Block::List(machine_facts(profile)));
    if !profile.capture.argv.is_empty() {
        blocks.push(Block::Command(profile.capture.argv.clone()));
    }
    if let Some(triage) = of.triage {
        blocks.extend(run::blocks(profile, triage));
    }
    match &profile.metrics {
        Some(metrics) => blocks.extend(kernels::of_results(profile, metrics, None)),
        None => blocks.extend(kernels::of_launches(profile)),
    }
    // Add kernels that were measured while the program ran.
    if let Some((measured, metrics)) = profile.measured.as_deref().and_then(|m| Some((m, m.metrics.as_ref()?))) {
        blocks.extend(kernels::of_results(measured, metrics, Some(profile)));
    }
    if let Some(usage) = of.usage {
        blocks.extend(memory::blocks(profile, usage));
    }
    let commands: Vec<Vec<String>> =
        of.triage.iter().flat_map(|t| &t.findings).filter_map(|f| f.confirm.as_ref()).map(|c| c.argv.clone()).collect();
    if !commands.is_empty() {
        blocks.push(Block::Heading(3, "Commands that would tell more".to_owned()));
        let mut seen = std::collections::HashSet::new();
        blocks.extend(commands.into_iter().filter(|c| seen.insert(c.clone())).map(Block::Command));
    }
    let notes: Vec<String> = profile.notes.iter().map(crate::model::Note::to_sentence).collect();
    if !notes.is_empty() {
        blocks.push(Block::Heading(3, "About the report".to_owned()));
        blocks.push(Block::List(notes));
    }
}

/// Describes the tool, GPUs and program.
fn machine_facts(profile: &Profile) -> Vec<String> {
    let source = &profile.source;
    let version = source.version.as_ref().map_or_else(String::new, |v| format!(" {v}"));
    let mut out = vec![format!("Report of {}{version}", source.tool)];
    for device in &profile.devices {
        let mut words = vec![format!("GPU {}", device.id)];
        words.extend(device.name.clone());
        words.extend(device.compute_capability.map(|(major, minor)| format!("compute capability {major}.{minor}")));
        words.extend(device.memory.map(|m: Bytes| format!("{m} of memory")));
        out.push(words.join(", "));
    }
    out.extend(profile.rank.rank.map(|r| format!("Rank {r}")));
    out
}
