//! `warpscope rerun`: the command that profiles launches again.

use super::failure::Failure;
use super::scope_args::phase_windows;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::fuzzy::nearest_match;
use crate::analysis::triage::Phase;
use crate::import::{Job, Parts, Wants, open};
use crate::model::{KernelId, LaunchId, NameForm, Profile, RangeKind, Severity};
use crate::report;
use crate::report::document::Renderer;
use crate::rerun::Replay;
use crate::rerun::{
    self, Base, CacheControl, ClockControl, Collect, OpenedBy, Options, Plan, ProfiledResult, Profiler, RangeName, Target, Verdict, Within,
    collect, nvtx, script, select_launches,
};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;

/// `warpscope rerun`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct RerunArgs {
    /// Report.
    pub file: PathBuf,
    /// The launch, by its number in `warpscope launches`; several with commas.
    #[arg(long, value_name = "ID", allow_negative_numbers = true, value_delimiter = ',', conflicts_with_all = ["kernel", "top", "graph", "nth", "slowest", "median", "every"], help_heading = "Which launches")]
    pub launch: Vec<u32>,
    /// A launch of this kernel: an exact function or demangled name, otherwise a fuzzy match that must be unique. The median launch by default.
    #[arg(long, value_name = "SEL", conflicts_with_all = ["top", "graph"], help_heading = "Which launches")]
    pub kernel: Option<String>,
    /// One launch of each of the N kernels that take the most time; the commands come in launch order.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "graph", help_heading = "Which launches")]
    pub top: Option<u16>,
    /// The Nth launch of a CUDA graph, from 0, in a report with graphs traced as a whole.
    #[arg(long, value_name = "N", conflicts_with_all = ["nth", "slowest", "median", "every", "within", "whole_graph", "base"], help_heading = "Which launches")]
    pub graph: Option<u32>,
    /// The Nth launch of the kernel's function in its process, from 0.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Which launches")]
    pub nth: Option<u64>,
    /// The slowest launch, or with =K the K slowest; without --kernel, of all kernels.
    #[arg(long, value_name = "K", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Which launches")]
    pub slowest: Option<u16>,
    /// The launch nearest to the median duration; with --slowest both.
    #[arg(long, help_heading = "Which launches")]
    pub median: bool,
    /// Every launch.
    #[arg(long, conflicts_with_all = ["nth", "slowest", "median"], help_heading = "Which launches")]
    pub every: bool,
    /// The whole CUDA graph that the launch belongs to.
    #[arg(long, help_heading = "Which launches")]
    pub whole_graph: bool,
    /// Form of the kernel name that ncu matches [default: function].
    #[arg(long, value_name = "FORM", help_heading = "Counting", value_parser = word_parser::<NameForm>())]
    pub base: Option<NameForm>,
    /// Choose only among the launches in this phase of the run. `--launch-skip` still counts from the start of the program.
    #[arg(long, value_name = "PHASE", help_heading = "Which launches", conflicts_with_all = ["launch", "graph"], value_parser = PossibleValuesParser::new(Phase::ALL.map(|p| p.1)))]
    pub phase: Option<String>,
    /// Only launches inside this NVTX range are chosen and counted.
    #[arg(long, value_name = "RANGE", help_heading = "Counting")]
    pub within: Option<String>,
    /// Only number N of these ranges, from 1.
    #[arg(long, value_name = "N", requires = "within", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Counting")]
    pub instance: Option<u32>,
    /// Start of the capture, if it is not in the report: start, profiler, profiler:N, nvtx:RANGE, late.
    #[arg(long, value_name = "WHAT", help_heading = "Counting")]
    pub opened_by: Option<String>,
    /// Rank of the process to profile where several launch the kernel at the same time.
    #[arg(long, value_name = "N", help_heading = "Counting")]
    pub rank: Option<u32>,
    /// Set of sections: basic, detailed, full, roofline, pmsampling, nvlink [default: detailed].
    #[arg(long, value_name = "SET", conflicts_with_all = ["section", "question"], help_heading = "Collecting")]
    pub set: Option<String>,
    /// A section by its identifier; may be repeated.
    #[arg(long, value_name = "ID", conflicts_with = "question", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Collecting")]
    pub section: Vec<String>,
    /// The sections that answer a question: bound, memory, stalls, compute, occupancy, source.
    #[arg(long, value_name = "WORD", help_heading = "Collecting")]
    pub question: Option<String>,
    /// Clocks: base locks them, none does not [default: base].
    #[arg(long, value_name = "MODE", help_heading = "Collecting", value_parser = word_parser::<ClockControl>())]
    pub clock_control: Option<ClockControl>,
    /// Caches: all flushes them before each pass, none does not [default: all].
    #[arg(long, value_name = "MODE", help_heading = "Collecting", value_parser = word_parser::<CacheControl>())]
    pub cache_control: Option<CacheControl>,
    /// Replay: kernel, application, app-range [default: kernel, or app-range for kernels that wait for other GPUs].
    #[arg(long, value_name = "MODE", help_heading = "Collecting", value_parser = word_parser::<Replay>())]
    pub replay_mode: Option<Replay>,
    /// Measure with the built-in tracer while the program runs, not with ncu.
    #[arg(long, conflicts_with_all = ["set", "section", "replay_mode", "whole_graph", "import_source", "kill"], help_heading = "Collecting")]
    pub in_place: bool,
    /// Import CUDA source into the report.
    #[arg(long, help_heading = "Collecting")]
    pub import_source: bool,
    /// Terminate the program after the last result.
    #[arg(long, help_heading = "Collecting")]
    pub kill: bool,
    /// Report to write, without .ncu-rep [default: from kernel and launch; for several commands a directory].
    #[arg(long, short = 'o', value_name = "PATH", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Output")]
    pub export: Option<String>,
    /// Overwrite the report if it exists.
    #[arg(long, short = 'f', help_heading = "Output")]
    pub force_overwrite: bool,
    /// Working directory of the program [default: as recorded].
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub directory: Option<String>,
    /// Compare results (.ncu-rep, CSV, or what rocprofv3 wrote; several in the order of the commands) with what is selected, instead of printing the command.
    #[arg(long, value_name = "RESULT", num_args = 1.., help_heading = "Output")]
    pub verify: Vec<PathBuf>,
    /// Print no command, and exit with 1, if one may profile another launch than the chosen one.
    #[arg(long, conflicts_with = "verify", help_heading = "Output")]
    pub exact: bool,
    /// Output format [default: text on a terminal, else shell].
    #[arg(long, help_heading = "Output")]
    pub format: Option<RerunFormat>,
    /// The program and its arguments [default: as recorded].
    #[arg(last = true, value_name = "CMD")]
    pub program: Vec<String>,
}

/// Output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RerunFormat {
    /// Explained, for people.
    #[value(alias = "table")]
    Text,
    /// Explained, as Markdown for a ticket or a chat.
    Md,
    /// Explained, as an HTML page.
    Html,
    /// One line for a POSIX shell.
    Shell,
    /// A shell script.
    Script,
    /// JSON with stable field names.
    Json,
}

/// `warpscope rerun`: prints the command, or verifies its results.
pub fn print_rerun(args: &RerunArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    // Finding a phase requires the steps of the run; graphs that contain only copies are found by these copies.
    let wants = if args.phase.is_some() { Wants::TRIAGE } else { Wants::LAUNCHES.with(Parts::MEMOPS) };
    let profile = interrupt::open_report(&args.file, nsys, wants)?;
    let mut options = parse_options(args, profile.is_amd())?;
    if let Some(text) = &args.opened_by {
        options.opened_by = Some(opened_by(&profile, text)?);
    }
    if let Some(label) = &args.within {
        options.within = Within::Range(find_range(&profile, label, None)?, args.instance);
    }
    let target = resolve_target(args, &profile, &options)?;
    // If a range name is used both as push/pop and as start/end, choose the kind that encloses the launch.
    if let (Some(label), Target::Launches(launches)) = (&args.within, &target)
        && let Some(first) = launches.first()
    {
        options.within = Within::Range(find_range(&profile, label, Some(*first))?, args.instance);
    }
    let plan = rerun::plan(&profile, &target, &options).map_err(|e| Failure::wrong(format!("{}: {e}", args.file.display())))?;
    if !args.verify.is_empty() {
        return verify_results(&plan, &args.verify);
    }
    if let Some(command) = plan.commands.iter().find(|c| args.exact && !c.is_exact()) {
        let because = command.warnings.iter().find(|w| w.inexact).map_or_else(String::new, |w| format!(": {}", w.to_sentence()));
        return Err(Failure::found(format!("{}: the command is not exact{because}", args.file.display())));
    }
    let terminal = std::io::stdout().is_terminal();
    let format = args.format.unwrap_or(if terminal { RerunFormat::Text } else { RerunFormat::Shell });
    if format == RerunFormat::Shell {
        // Print warnings to stderr, because scripts may run the command without printing it.
        for command in &plan.commands {
            for w in &command.warnings {
                // The command is printed and the exit code is 0, so no warning is called an error here.
                print::error(&format!("{}: {}", w.severity.min(Severity::Warning).as_str(), w.to_sentence()));
            }
        }
        if plan.commands.iter().any(|c| !c.is_exact()) {
            print::error("note: --exact ends with 1 instead of printing a command that is not exact");
        }
    }
    let held = |c: char| c.is_control() && c != '\n';
    if terminal && plan.commands.iter().any(|c| c.argv().iter().any(|w| w.contains(held))) {
        print::error("a name contains control characters, shown here as ^X; `--format shell` into a file keeps them unchanged");
    }
    let made_from = profile.source.file.display().to_string();
    print::to_stdout(|out| match format {
        RerunFormat::Json => report::rerun::write_json(out, &profile, &plan),
        RerunFormat::Shell => report::rerun::shell_lines(out, &plan, terminal),
        RerunFormat::Script => {
            let text = script::shell_script(&plan, &made_from);
            if terminal {
                text.lines().try_for_each(|l| writeln!(out, "{}", crate::model::text::escape_unsafe(l)))
            } else {
                out.write_all(text.as_bytes())
            }
        }
        RerunFormat::Text => report::rerun::document(&plan).write(out, Renderer::Text, Some(print::page_width())),
        RerunFormat::Md => report::rerun::document(&plan).write(out, Renderer::Markdown, None),
        RerunFormat::Html => report::rerun::document(&plan).write(out, Renderer::Html, None),
    })
}

fn parse_options(args: &RerunArgs, amd: bool) -> Result<Options, Failure> {
    let collect = if let Some(word) = &args.question {
        let Some(q) = collect::find_question(word) else {
            let near = nearest_match(word, collect::QUESTIONS.iter().map(|q| q.word));
            let words = collect::QUESTIONS.iter().map(|q| q.word).collect::<Vec<_>>().join(", ");
            return Err(Failure::usage(near.map_or_else(
                || format!("unknown question `{word}`; the questions are {words}"),
                |n| format!("unknown question `{word}`; did you mean `{n}`?"),
            )));
        };
        Collect::Question(q.word)
    } else if !args.section.is_empty() {
        Collect::Sections(args.section.clone())
    } else {
        args.set.clone().map_or_else(Collect::default, Collect::Set)
    };
    if let Some(set) = args.set.as_ref().filter(|_| amd) {
        print::error(&format!(
            "warning: `{set}` is a set of ncu's sections; on AMD GPUs `--section` names counters, or `--question` what to ask"
        ));
    }
    for (what, name, known) in named_collections(&collect) {
        if amd && what == "section" && known.contains(&name.as_str()) {
            return Err(Failure::wrong(format!(
                "`{name}` is a section of ncu; of AMD's GPUs `--section` names counters of rocprofv3, such as SQ_WAVES"
            )));
        }
        // Given an unknown set, ncu only prints a warning and profiles nothing.
        if !amd && !known.contains(&name.as_str()) && !name.starts_with("regex:") {
            let near = nearest_match(&name, known.iter().copied());
            let hint = near.map_or_else(|| format!("ncu has {}", known.join(", ")), |n| format!("did you mean `{n}`?"));
            if what == "set" {
                return Err(Failure::usage(format!("unknown {what} `{name}`; {hint}")));
            }
            print::note(&format!("warning: `{name}` is not a {what} that warpscope knows; {hint}"));
        }
    }
    Ok(Options {
        profiler: if args.in_place { Profiler::InPlace } else { Profiler::Ncu },
        base: Base(args.base.unwrap_or(NameForm::Function)),
        collect,
        clock: args.clock_control,
        cache: args.cache_control.unwrap_or(CacheControl::All),
        replay: args.replay_mode,
        import_source: args.import_source,
        kill: args.kill,
        overwrite: args.force_overwrite,
        output: args.export.clone().map(|o| o.strip_suffix(".ncu-rep").filter(|s| !s.is_empty()).map_or(o.clone(), str::to_owned)),
        program: (!args.program.is_empty()).then(|| args.program.clone()),
        directory: args.directory.clone(),
        opened_by: None,
        within: Within::Everything,
        whole_graph: args.whole_graph,
        rank: args.rank,
    })
}

fn named_collections(collect: &Collect) -> Vec<(&'static str, String, Vec<&'static str>)> {
    match collect {
        Collect::Set(word) => vec![("set", word.clone(), collect::SETS.iter().map(|s| s.word).collect())],
        Collect::Sections(ids) => ids.iter().map(|id| ("section", id.clone(), collect::SECTIONS.iter().map(|s| s.id).collect())).collect(),
        Collect::Question(_) => Vec::new(),
    }
}

/// Finds a range by its label; if both kinds exist, chooses the one that encloses the launch.
fn find_range(profile: &Profile, label: &str, launch: Option<LaunchId>) -> Result<RangeName, Failure> {
    let named = nvtx::ranges_by_label(profile, label);
    let around = launch.map(|l| nvtx::enclosing_ranges(profile, l.0 as usize)).unwrap_or_default();
    if let Some(range) = named.iter().find(|r| around.iter().any(|e| e.range == **r)).or_else(|| named.first()) {
        return Ok(*range);
    }
    let labels: Vec<String> = (0..).zip(&profile.ranges.names).map(|(i, _)| profile.ranges.label(i)).collect();
    let near = nearest_match(label, labels.iter().map(String::as_str));
    let hint = match near {
        _ if labels.is_empty() => "the report has no ranges".to_owned(),
        _ if profile.ranges.has_annotations() => {
            "the operators of a PyTorch trace are not NVTX ranges, and ncu does not see them".to_owned()
        }
        Some(near) => format!("did you mean {near:?}?"),
        None if label.contains(" › ") => "name one range, without those around it".to_owned(),
        None => "`warpscope top --by nvtx` lists them".to_owned(),
    };
    Err(Failure::wrong(format!("no range {label:?}; {hint}")))
}

fn opened_by(profile: &Profile, text: &str) -> Result<OpenedBy, Failure> {
    let (word, rest) = text.split_once(':').map_or((text, None), |(w, r)| (w, Some(r)));
    Ok(match (word, rest) {
        ("start", None) => OpenedBy::Start,
        ("late", None) => OpenedBy::Late,
        ("profiler", None) => OpenedBy::ProfilerApi(1),
        ("profiler", Some(n)) => match n.parse() {
            Ok(n) if n > 0 => OpenedBy::ProfilerApi(n),
            _ => return Err(Failure::usage(format!("--opened-by profiler:{n}: write the number of the range, from 1"))),
        },
        ("nvtx", Some(label)) => {
            let found = find_range(profile, label, None)?;
            OpenedBy::Range(RangeName {
                kind: if found.kind == RangeKind::StartEnd { RangeKind::StartEnd } else { RangeKind::PushPop },
                ..found
            })
        }
        _ => return Err(Failure::usage(format!("--opened-by {text}: write start, profiler, profiler:N, nvtx:RANGE or late"))),
    })
}

/// Returns the launches or the graph to profile.
fn resolve_target(args: &RerunArgs, profile: &Profile, options: &Options) -> Result<Target, Failure> {
    if let Some(graph) = args.graph {
        return Ok(Target::Graph(graph));
    }
    if !args.launch.is_empty() {
        return Ok(Target::Launches(args.launch.iter().copied().map(LaunchId).collect()));
    }
    let groups: Vec<BTreeSet<KernelId>> = match (&args.kernel, args.top) {
        (Some(selector), _) => vec![print::select_kernels(&profile.kernels, &args.file, selector, print::LISTS_KERNELS)?],
        (None, Some(n)) => select_launches::top_kernels(profile, n.into()),
        // The slowest launches of all kernels.
        (None, None) if args.slowest.is_some() => {
            vec![(0..profile.kernels.len()).filter_map(|k| Some(KernelId(u32::try_from(k).ok()?))).collect()]
        }
        (None, None) => {
            return Err(Failure::usage(
                "say which launch: --launch ID, --kernel NAME (with --nth N, --slowest, --median or --every), --slowest, --top N or --graph N",
            ));
        }
    };
    let phase = args.phase.as_deref().and_then(Phase::of);
    if phase.is_some() {
        print::require_times(profile, &args.file)?;
    }
    let in_phase = phase.map_or_else(String::new, |p| format!(" in the phase {}", p.word()));
    let windows = phase.map(|p| phase_windows(profile, &args.file.display().to_string(), p, None)).transpose()?;
    let mut out = Vec::new();
    for kernels in groups {
        let mut launches = select_launches::of_kernels(profile, &kernels);
        if let Some(windows) = &windows {
            let start = |l: &LaunchId| profile.launches.start(l.0 as usize);
            launches.retain(|l| windows.iter().any(|w| (w.0..w.1).contains(&start(l))));
        }
        if let Within::Range(range, instance) = options.within {
            launches = select_launches::inside(profile, &launches, range, instance);
        }
        if launches.is_empty() {
            let place = args.within.as_ref().map_or_else(String::new, |r| format!(" inside the NVTX range {r:?}"));
            return Err(Failure::wrong(format!("{}: no launch of this kernel{place}{in_phase}", args.file.display())));
        }
        let mut picked = Vec::new();
        if args.every {
            picked.clone_from(&launches);
        }
        if let Some(n) = args.slowest {
            picked.extend(select_launches::slowest(profile, &launches, n.into()));
        }
        if let Some(nth) = args.nth {
            let found = select_launches::nth_of(profile, &launches, nth);
            if found.len() > 1 && args.top.is_none() {
                let list = found.iter().map(|l| l.0.to_string()).collect::<Vec<_>>().join(", ");
                return Err(Failure::wrong(format!("{} processes have such a launch; choose one with --launch: {list}", found.len())));
            }
            if found.is_empty() {
                let name = args.kernel.as_deref().unwrap_or("one of the kernels");
                return Err(Failure::wrong(format!(
                    "{}: {name} has no launch number {nth}{in_phase}; they are counted from 0",
                    args.file.display()
                )));
            }
            picked.extend(found);
        }
        // Default: the median launch.
        if args.median || picked.is_empty() {
            picked.extend(select_launches::median(profile, &launches));
        }
        out.extend(picked);
    }
    out.sort_unstable();
    out.dedup();
    Ok(Target::Launches(out))
}

/// Compares results with the selected launches.
fn verify_results(plan: &Plan, results: &[PathBuf]) -> Result<(), Failure> {
    let mut found = Vec::new();
    // Results of one run repeat the same notes.
    let mut said = std::collections::BTreeSet::new();
    for result in results {
        let metrics = open::read_results(result, &Job::new(Wants::ALL, &|_| {}))?;
        let new: Vec<_> = metrics.notes.iter().filter(|n| said.insert(n.to_sentence())).collect();
        print::notes(&result.display().to_string(), new.into_iter());
        found.extend(ProfiledResult::all_results(&metrics));
    }
    let selects: Vec<_> = plan.commands.iter().flat_map(|c| c.selects.iter().cloned()).collect();
    let verdict = rerun::verify(&selects, &found);
    print::lines(&[crate::model::text::escape_unsafe(&verdict.sentence()).into_owned()])?;
    match verdict {
        Verdict::Verified(_) => Ok(()),
        Verdict::Differs(_) => Err(Failure::found("")),
    }
}
