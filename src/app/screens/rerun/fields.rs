//! Fields of the re-run screen, one row of [`FIELDS`] each: the displayed value and its choices

use super::choices::{
    Edit, edit_base, edit_collect, edit_launches, edit_line, edit_opened_by, edit_output, edit_replay, edit_within, is_ncu, is_rocprof,
    is_traced, pick_request, with_options,
};
use super::state::RerunScreen;
use crate::analysis::next_step::key_of;
use crate::app::overlay::LineOf;
use crate::model::text::escape_unsafe;
use crate::model::{Profile, units};
use crate::rerun::processes::Scope;
use crate::rerun::{
    CacheControl, Choose, ClockControl, Collect, OpenedBy, PartId, Profiler, Replay, Request, Rerun, Within, program, shell, tracer_measure,
};

pub struct Field {
    pub title: &'static str,
    /// Parts of the command that the field controls.
    pub parts: &'static [PartId],
    /// Explanation of a field that adds no arguments to the command.
    pub about: &'static str,
    /// Returns true if the field is meaningful for this command.
    pub applies: fn(&RerunScreen) -> bool,
    pub value: fn(&RerunScreen, &Profile) -> String,
    /// Lets the user change the value.
    pub edit: fn(&RerunScreen, &Profile) -> Edit,
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.title)
    }
}

fn always(_: &RerunScreen) -> bool {
    true
}

/// Counters collected by rocprofv3.
fn rocprof_counters(s: &RerunScreen) -> Option<String> {
    let part = s.current_rerun().filter(|_| is_rocprof(s))?.parts.iter().find(|p| p.id == PartId::Collect)?;
    Some(part.words.get(1..)?.join(" "))
}

/// All fields, in display order.
pub static FIELDS: &[Field] = &[
    Field {
        title: "profiler",
        parts: &[PartId::Tool],
        about: "ncu replays the launch; the built-in tracer measures it while the program runs.",
        applies: always,
        value: |s, _| {
            if is_traced(s) { "the built-in tracer".to_owned() } else { s.current_rerun().map_or("ncu", |r| r.tool).to_owned() }
        },
        edit: |s, _| {
            if is_rocprof(s) {
                return Edit::Nothing("the profiler is the one for this GPU");
            }
            pick_request(s, "who measures", |c| {
                let to = |profiler: Profiler| move |r: &mut Request| r.options.profiler = profiler;
                c.add_request(
                    "ncu",
                    "most metrics; the program's other launches take ten times as long, clocks are locked, caches flushed",
                    'n',
                    to(Profiler::Ncu),
                );
                c.add_request(
                    "the built-in tracer",
                    "while the program runs: clocks and caches as they are, with a timeline",
                    't',
                    to(Profiler::InPlace),
                );
            })
        },
    },
    Field {
        title: "launches",
        parts: &[PartId::Which, PartId::Graphs],
        about: "Which launches are profiled.",
        applies: always,
        value: |s, p| launches_word(s, p),
        edit: edit_launches,
    },
    Field {
        title: "name",
        parts: &[PartId::Name],
        about: "The form of the kernel name that is matched.",
        applies: |s| !is_rocprof(s) && !s.request.options.whole_graph && !as_range(s) && !matches!(s.request.choose, Choose::Graph(_)),
        value: |s, _| {
            let base = s.current_rerun().map_or(s.request.options.base.0, |r| r.base);
            let better = s.alternatives().iter().any(|a| a.better && a.options.base != s.request.options.base);
            format!("{}{}", base.as_str(), if better { "; mangled matches fewer kernels" } else { "" })
        },
        edit: edit_base,
    },
    Field {
        title: "scope",
        parts: &[PartId::Gate],
        about: "All launches of the program are counted.",
        applies: |s| {
            // If a range opened the capture, launches cannot be limited to another range.
            let opening = s.picked.as_ref().is_some_and(|p| matches!(p.opened, Some(OpenedBy::Range(_))));
            !is_rocprof(s) && (s.picked.as_ref().is_some_and(|p| !p.around.is_empty()) && !opening)
                || s.request.options.within != Within::Everything
        },
        value: |s, p| match s.request.options.within {
            Within::Everything if s.picked.as_ref().is_some_and(|p| p.gated) => "what was captured".to_owned(),
            Within::Everything => "all launches".to_owned(),
            Within::Range(range, None) => format!("NVTX ranges {}", escape_unsafe(&p.ranges.label(range.name))),
            Within::Range(range, Some(n)) => format!("NVTX range {}, number {n}", escape_unsafe(&p.ranges.label(range.name))),
        },
        edit: edit_within,
    },
    Field {
        title: "opened by",
        parts: &[PartId::Gate],
        about: "What opened the capture: the re-run must start counting at the same point.",
        applies: |s| s.picked.as_ref().is_some_and(|p| p.gated) || s.request.options.opened_by.is_some(),
        value: |s, p| match s.picked.as_ref().and_then(|p| p.opened) {
            Some(OpenedBy::Start) => "the start of the program".to_owned(),
            Some(OpenedBy::ProfilerApi(1)) => "cudaProfilerStart".to_owned(),
            Some(OpenedBy::ProfilerApi(n)) => format!("cudaProfilerStart number {n}"),
            Some(OpenedBy::Range(r)) => format!("NVTX range {}", escape_unsafe(&p.ranges.label(r.name))),
            None | Some(OpenedBy::Late) => "unknown: a delay, a hotkey, a range?".to_owned(),
        },
        edit: edit_opened_by,
    },
    Field {
        title: "processes",
        parts: &[PartId::Processes],
        about: "Which processes are followed.",
        applies: |s| {
            s.current_rerun().is_some_and(|r| r.parts.iter().any(|p| p.id == PartId::Processes))
                && !s.picked.as_ref().is_some_and(|p| matches!(p.scope, Some(Scope::AtOnce { .. })))
        },
        value: |s, _| match s.picked.as_ref().and_then(|p| p.scope.as_ref()) {
            Some(Scope::InTurn(n)) => format!("{n}, one after another"),
            Some(Scope::ByName(name)) => format!("only {}", escape_unsafe(name)),
            _ => "all".to_owned(),
        },
        edit: |_, _| Edit::Nothing("this is determined by the report"),
    },
    Field {
        title: "rank",
        parts: &[PartId::Processes],
        about: "Which of the processes is profiled.",
        applies: |s| s.picked.as_ref().is_some_and(|p| matches!(p.scope, Some(Scope::AtOnce { .. }))),
        value: |s, profile| match s.picked.as_ref().and_then(|p| p.scope.as_ref()) {
            // The job may have more ranks than this report.
            Some(Scope::AtOnce { rank, processes, .. }) => {
                let all = profile.rank.world.map_or(*processes, |world| (*processes).max(world as usize));
                // A report of one process does not say how many others there are.
                if all > 1 { format!("{rank} of {all}") } else { rank.to_string() }
            }
            _ => String::new(),
        },
        edit: |s, _| edit_line(LineOf::Rank, s.request.options.rank.map_or_else(String::new, |r| r.to_string())),
    },
    Field {
        title: "collect",
        parts: &[PartId::Collect],
        about: "What is measured.",
        applies: always,
        value: |s, _| {
            rocprof_counters(s).unwrap_or_else(|| {
                if is_traced(s) {
                    tracer_measure::describe_metrics(&s.request.options.collect).to_owned()
                } else {
                    s.request.options.collect.label()
                }
            })
        },
        edit: edit_collect,
    },
    Field {
        title: "clocks",
        parts: &[PartId::Clocks],
        about: "ncu locks the clocks to base: comparable between runs, but slower than in production.",
        applies: is_ncu,
        value: |s, p| match s.request.options.clock_control(p) {
            ClockControl::Base => "locked to base".to_owned(),
            ClockControl::None => "not locked".to_owned(),
        },
        edit: |s, p| {
            let other = if s.request.options.clock_control(p) == ClockControl::Base { ClockControl::None } else { ClockControl::Base };
            with_options(s, |o| o.clock = Some(other))
        },
    },
    Field {
        title: "caches",
        parts: &[PartId::Caches],
        about: "ncu flushes all caches before each replay pass, so every pass starts cold.",
        applies: is_ncu,
        value: |s, _| match s.request.options.cache {
            CacheControl::All => "flushed before each pass".to_owned(),
            CacheControl::None => "not flushed".to_owned(),
        },
        edit: |s, _| with_options(s, |o| o.cache = if o.cache == CacheControl::All { CacheControl::None } else { CacheControl::All }),
    },
    Field {
        title: "replay",
        parts: &[PartId::Replay],
        about: "The kernel is replayed for each pass, with its memory restored in between.",
        applies: is_ncu,
        value: |s, _| {
            let range = s
                .current_rerun()
                .is_some_and(|r| r.parts.iter().any(|p| p.id == PartId::Replay && p.words.iter().any(|w| w == "app-range")));
            match s.request.options.replay {
                None if range => "app-range: the kernel cannot be replayed alone".to_owned(),
                None | Some(Replay::Kernel) => "kernel".to_owned(),
                Some(Replay::Application) => "application".to_owned(),
                Some(Replay::AppRange) => "app-range".to_owned(),
            }
        },
        edit: edit_replay,
    },
    Field {
        title: "sources",
        parts: &[PartId::Source],
        about: "CUDA source is not imported into the report; importing it needs a program built with -lineinfo.",
        applies: is_ncu,
        value: |s, _| {
            if s.request.options.import_source || s.request.options.collect.wants_source() {
                "imported".to_owned()
            } else {
                "not imported".to_owned()
            }
        },
        edit: |s, _| with_options(s, |o| o.import_source = !o.import_source),
    },
    Field {
        title: "afterwards",
        parts: &[PartId::End],
        about: "After the last result the program runs to completion without profiling.",
        applies: is_ncu,
        value: |s, _| if s.request.options.kill { "the program is terminated".to_owned() } else { "the program keeps running".to_owned() },
        edit: |s, _| with_options(s, |o| o.kill = !o.kill),
    },
    Field {
        title: "report",
        parts: &[PartId::Output],
        about: "The report that the profiler writes.",
        applies: always,
        value: |s, _| {
            let name = s.plan().map_or_else(String::new, |p| {
                p.folder.clone().map_or_else(|| p.commands.first().map_or_else(String::new, Rerun::report_path), |f| format!("{f}/"))
            });
            let over = if s.request.options.overwrite { ", overwritten if it exists" } else { "" };
            format!("{}{over}", escape_unsafe(&name))
        },
        edit: edit_output,
    },
    Field {
        title: "program",
        parts: &[PartId::Program],
        about: "The program and its arguments.",
        applies: always,
        value: |s, p| {
            let program = program::resolve_program(p, &s.request.options);
            match program.from {
                program::From::Nowhere => format!("not in the report: {} to type it", key_of("open")),
                _ => escape_unsafe(&shell::command_line(&program.argv)).into_owned(),
            }
        },
        edit: |s, p| {
            let program = program::resolve_program(p, &s.request.options);
            edit_line(
                LineOf::Program,
                if program.from == program::From::Nowhere { String::new() } else { shell::command_line(&program.argv) },
            )
        },
    },
    Field {
        title: "directory",
        parts: &[],
        about: "The working directory: a script changes to it first.",
        applies: always,
        value: |s, p| {
            program::resolve_program(p, &s.request.options)
                .directory
                .map_or_else(|| "the current directory".to_owned(), |d| escape_unsafe(&d).into_owned())
        },
        edit: |s, p| edit_line(LineOf::Directory, program::resolve_program(p, &s.request.options).directory.unwrap_or_default()),
    },
];

fn launches_word(s: &RerunScreen, p: &Profile) -> String {
    let each = if s.groups.len() > 1 { format!(" of each of {} groups", s.groups.len()) } else { String::new() };
    if as_range(s) {
        return "the enclosing range, not the single launch".to_owned();
    }
    let found = s.plan().map_or(0, |p| p.commands.iter().map(|c| c.selects.len()).sum::<usize>());
    let many = if found > 1 { format!(" ({found})") } else { String::new() };
    let graph = if s.request.options.whole_graph { ", with its whole CUDA graph" } else { "" };
    let one = |word: &str| {
        let id = s.picked.as_ref().filter(|p| p.launches.len() == 1).and_then(|p| p.launches.first());
        format!("{word}{each}{}{graph}", id.map_or_else(String::new, |l| format!(": launch {}", units::format_grouped(i64::from(l.0)))))
    };
    match &s.request.choose {
        Choose::One(l) => format!("launch {}{graph}", units::format_grouped(i64::from(l.0))),
        Choose::Median => one("a typical one"),
        Choose::First => one("the first"),
        Choose::Slowest(1) => one("the slowest"),
        Choose::Slowest(n) => format!("the {n} slowest{each}"),
        Choose::SlowestAndMedian => format!("the slowest and a typical one{each}{many}"),
        Choose::Graph(n) => format!("graph launch {n}"),
        Choose::Inside(range) => format!("every launch in NVTX ranges {}{many}", escape_unsafe(&p.ranges.label(range.name))),
    }
}

/// Returns true if the command measures a range instead of single launches.
fn as_range(s: &RerunScreen) -> bool {
    s.current_rerun().is_some_and(|r| r.selects.is_empty())
}

/// Initial text of an input line.
pub fn line_text(screen: &RerunScreen, what: LineOf) -> String {
    match what {
        LineOf::Output => screen
            .plan()
            .map_or_else(String::new, |p| p.folder.clone().or_else(|| p.commands.first().map(|c| c.output.clone())).unwrap_or_default()),
        LineOf::Sections => match &screen.request.options.collect {
            Collect::Sections(ids) => ids.join(" "),
            _ => String::new(),
        },
        _ => String::new(),
    }
}
