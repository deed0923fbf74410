//! Launch selection in ncu reports. An ncu report contains only the launches that ncu was told to profile. If its
//! command line is recorded and can be parsed, launches are counted as that command counted them; otherwise the number
//! of earlier launches is unknown, and the re-run has a warning.

use super::facts::Facts;
use super::warning::{Warning, warning};
use super::{Options, PartId, Rerun};
use crate::model::{LaunchOrder, Metrics, NameForm, Profile, Severity, argv};

/// Launches selected by an ncu command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Value of `--kernel-name`.
    pub name: Option<String>,
    /// Value of `--kernel-name-base`.
    pub base: NameForm,
    /// Value of `--launch-skip`.
    pub skip: usize,
    /// Value of `--launch-count`.
    pub count: Option<usize>,
    /// Value of `--nvtx-include`.
    pub range: Option<String>,
}

impl Selection {
    /// Returns the selection of the command that produced these results. Returns `None` if the command is missing from
    /// the report, selects by other options, or may be split incorrectly: ncu joins the words with blanks without
    /// quoting them, so a different word could be mistaken for the program.
    pub fn from_metrics(metrics: &Metrics) -> Option<Self> {
        let line = argv::parse_command_line(&metrics.tool_argv)?;
        let known = metrics.program.first().or(metrics.process.as_ref())?;
        if !argv::same_program(line.program.first()?, known) {
            return None;
        }
        let mut out = Self { name: None, base: NameForm::Function, skip: 0, count: None, range: None };
        for (option, value) in line.options {
            match option {
                "-k" | "--kernel-name" if out.name.is_none() => out.name = Some(value?),
                "--kernel-name-base" => {
                    out.base = match value?.as_str() {
                        "function" => NameForm::Function,
                        "demangled" => NameForm::Demangled,
                        "mangled" => NameForm::Mangled,
                        _ => return None,
                    };
                }
                "-s" | "--launch-skip" => out.skip = value?.parse().ok().filter(|n| *n < usize::MAX / 2)?,
                "-c" | "--launch-count" => out.count = Some(value?.parse().ok()?),
                // Several conditions are not supported.
                "--nvtx-include" if out.range.is_none() => out.range = Some(value?),
                "-k"
                | "--kernel-name"
                | "--kernel-id"
                | "--kernel-regex"
                | "--kernel-regex-base"
                | "--launch-skip-before-match"
                | "--nvtx-include"
                | "--nvtx-exclude"
                | "--nvtx-push-pop-scope"
                | "--range-filter"
                | "--devices"
                | "--profile-from-start"
                | "--disable-profiler-start-stop"
                | "--filter-mode"
                | "--replay-mode"
                | "--target-processes-filter"
                | "--rename-kernels"
                | "--graph-profiling" => return None,
                _ => {}
            }
        }
        Some(out)
    }
}

fn has_one_process(profile: &Profile) -> bool {
    let mut pids = profile.places.iter().filter_map(|p| p.pid);
    pids.next().is_none_or(|first| pids.all(|p| p == first))
}

/// Returns true if ncu profiled every launch of the only process, so that counting the results counts the launches.
pub fn has_all_launches(profile: &Profile) -> bool {
    let everything = |s: Selection| s.name.is_none() && s.skip == 0 && s.count.is_none() && s.range.is_none();
    has_one_process(profile) && profile.metrics.as_ref().and_then(|m| Selection::from_metrics(m)).is_some_and(everything)
}

/// Changes the command for results of this report so that it counts launches as the report's own command did.
pub fn as_before(profile: &Profile, rows: &[usize], options: &Options, rerun: &mut Rerun) {
    let Some(metrics) = profile.metrics.as_ref().filter(|_| profile.order == LaunchOrder::Chosen) else { return };
    let Some(selection) = Selection::from_metrics(metrics) else { return };
    let one_process = has_one_process(profile);
    let in_a_row = rows.windows(2).all(|w| w[1] == w[0] + 1);
    // Keep options that the user explicitly set.
    let usual = Options::default();
    let asked = options.base != usual.base || options.within != usual.within || options.whole_graph;
    let (Some(&first), false, true, true) = (rows.first(), asked, one_process, in_a_row) else { return };
    for part in &mut rerun.parts {
        match part.id {
            PartId::Name => {
                part.words.clear();
                if let Some(name) = &selection.name {
                    if selection.base != NameForm::Function {
                        part.words.extend(["--kernel-name-base".to_owned(), selection.base.as_str().to_owned()]);
                    }
                    part.words.extend(["--kernel-name".to_owned(), name.clone()]);
                }
                "The name that the report's own command selected by.".clone_into(&mut part.why);
            }
            PartId::Which => {
                let skip = selection.skip + first;
                part.words = ["--launch-skip".to_owned(), skip.to_string(), "--launch-count".to_owned(), rows.len().to_string()].to_vec();
                part.why = format!(
                    "The report's own command skipped {} launches and then profiled every one that it selected: result {first} is the next after {skip}.",
                    selection.skip
                );
            }
            PartId::Gate => {
                if let Some(range) = &selection.range {
                    part.words = ["--nvtx", "--nvtx-include", range].map(str::to_owned).to_vec();
                    "The range that the report's own command counted in.".clone_into(&mut part.why);
                }
            }
            _ => {}
        }
    }
    if let Some(range) = selection.range.filter(|_| !rerun.parts.iter().any(|p| p.id == PartId::Gate)) {
        let at = rerun.parts.iter().position(|p| p.id == PartId::Name).unwrap_or(1);
        let words = ["--nvtx", "--nvtx-include", &range].map(str::to_owned).to_vec();
        let why = "The range that the report's own command counted in.".to_owned();
        rerun.parts.insert(at, super::CommandPart { id: PartId::Gate, words, why });
    }
    for selects in &mut rerun.selects {
        selects.skipped = selection.skip as u64;
    }
    rerun.warnings.retain(|w| w.id != "chosen-launches");
}

/// Warns if launches before the selected one may be missing from the report.
pub fn check_chosen_launches(f: &Facts<'_>) -> Option<Warning> {
    (f.profile.order == LaunchOrder::Chosen).then(|| {
        warning(
            "chosen-launches",
            Severity::Warning,
            "ncu was told to skip launches in this report, or the report does not say: earlier launches are not counted.",
        )
        .with_fix("open the timeline (nsys) alongside this report and start from the launch there")
        .mark_inexact()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Selection> {
        let tool_argv = line.split(' ').map(str::to_owned).collect();
        Selection::from_metrics(&Metrics { tool_argv, process: Some("/opt/app".to_owned()), ..Metrics::default() })
    }

    #[test]
    fn a_command_is_read_up_to_its_program() {
        let s = of("ncu --kernel-name regex:gemm --launch-skip=5 -c 4 --nvtx --nvtx-include a/ -o x ./app -k other -s 9").unwrap();
        assert_eq!(
            s,
            Selection { name: Some("regex:gemm".into()), base: NameForm::Function, skip: 5, count: Some(4), range: Some("a/".into()) }
        );
        // A value may equal the program's name, and short options may be joined to their values.
        let s = of("ncu -o app -k gemm -s100 -c1 ./app").unwrap();
        assert_eq!((s.name.as_deref(), s.skip, s.count), (Some("gemm"), 100, Some(1)));
        // A name with a blank was split: its second part is where the program would be.
        assert_eq!(of("ncu -k regex:void foo -s 3 ./app"), None);
        assert_eq!(of("ncu --kernel-id ::x:3 ./app"), None);
        assert_eq!(of("ncu --nvtx-include a/ --nvtx-include b/ ./app"), None);
        assert_eq!(of("ncu"), None);
    }
}
