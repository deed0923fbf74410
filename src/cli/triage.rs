//! `warpscope triage`.

use super::triage_args::Triage;
use super::{FAILED, Failure, interrupt, print};
use crate::analysis::triage::{self, Scope, Verdict};
use crate::import::Wants;
use crate::model::Cancel;
use crate::report::{self, Format};
use std::path::Path;

/// Says what limits a run.
pub fn triage(args: &Triage, nsys: Option<&Path>) -> Result<(), Failure> {
    let mut judged = Vec::new();
    for file in &args.files {
        let profile = interrupt::open(file, nsys.map(Path::to_owned), Wants::TRIAGE)?;
        let shown = file.display();
        if profile.metrics.is_some() {
            return Err(Failure::wrong(format!(
                "{shown}: this is a report of ncu, which has no timeline; `warpscope hints` judges its kernels"
            )));
        }
        let window = match &args.range {
            None => None,
            Some(name) => Some(triage::range_window(&profile, name).ok_or_else(|| {
                Failure::wrong(format!(
                    "{shown}: no range is called {name:?}, or nothing was launched in it; `warpscope ranges` lists them"
                ))
            })?),
        };
        let scope = Scope { window, device: args.device };
        let found = triage::triage(&profile, &scope, &Cancel::default());
        print::warn(&profile);
        let Some(found) = found else {
            return Err(Failure::wrong(match args.device {
                Some(device) => format!("{shown}: nothing ran on device {device}"),
                None => format!("{shown}: nothing ran on a GPU, or the report has no times"),
            }));
        };
        judged.push((profile, found));
    }
    let width = print::terminal_width();
    let shown: Vec<report::triage::Judged<'_>> = judged.iter().map(|(p, t)| (p, t)).collect();
    print::to_stdout(|out| match print::format_or_default(args.format) {
        Format::Json => report::triage::json(out, &shown),
        Format::Csv => report::triage::csv(out, &shown, width),
        Format::Md => report::triage::markdown(out, &shown),
        Format::Table => report::triage::page(out, &shown, width.unwrap_or(110)),
    })?;
    let found = |id: &Verdict| judged.iter().any(|(_, t)| t.findings.iter().any(|f| f.id == *id || f.effects.iter().any(|e| e.0 == *id)));
    let failed: Vec<&str> = args.fail_on.iter().filter_map(|id| Verdict::of(id)).filter(found).map(Verdict::id).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure { text: format!("found: {}", failed.join(", ")), code: FAILED }) }
}
