//! What can be changed on the re-run screen. One row in [`FIELDS`] each: its value in words, and the choices that it opens.

use super::state::RerunScreen;
use crate::analysis::next::key_of;
use crate::app::over::{Choice, Item, LineOf, Pick, What};
use crate::model::text::clean;
use crate::model::{NameForm, Profile, units};
use crate::rerun::processes::Scope;
use crate::rerun::{
    Base, CacheControl, Choose, ClockControl, Collect, OpenedBy, Options, PartId, Replay, Request, Rerun, Within, collect, program, shell,
};
use tui_input::Input;

/// One thing to change.
pub struct Field {
    pub title: &'static str,
    /// Pieces of the command that come from it.
    pub parts: &'static [PartId],
    /// What it says when it has no words in the command.
    pub about: &'static str,
    /// Whether it means something here.
    pub applies: fn(&RerunScreen) -> bool,
    pub value: fn(&RerunScreen, &Profile) -> String,
    /// Lets the user change it.
    pub edit: fn(&RerunScreen, &Profile) -> Edit,
}

/// What changing a field comes to.
pub enum Edit {
    /// There is nothing to choose, and why.
    Nothing(&'static str),
    /// This is asked for.
    Ask(Box<Request>),
    /// The user chooses or types.
    Over(Box<What>),
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.title)
    }
}

fn always(_: &RerunScreen) -> bool {
    true
}

/// What only ncu does: rocprofv3 has no such options.
fn ncu(s: &RerunScreen) -> bool {
    s.rerun().is_none_or(|r| r.tool != "rocprofv3")
}

/// The counters that rocprofv3 collects.
fn counters(s: &RerunScreen) -> Option<String> {
    let part = s.rerun().filter(|_| !ncu(s))?.parts.iter().find(|p| p.id == PartId::Collect)?;
    Some(part.words.get(1..)?.join(" "))
}

/// All fields, in the order of the screen.
pub static FIELDS: &[Field] = &[
    Field {
        title: "profiler",
        parts: &[PartId::Tool],
        about: "NVIDIA's kernel profiler.",
        applies: always,
        value: |s, _| s.rerun().map_or("ncu", |r| r.tool).to_owned(),
        edit: |_, _| Edit::Nothing("the profiler is the one for this GPU"),
    },
    Field {
        title: "launches",
        parts: &[PartId::Which, PartId::Graphs],
        about: "Which launches are profiled.",
        applies: always,
        value: |s, p| launches_word(s, p),
        edit: launches,
    },
    Field {
        title: "name",
        parts: &[PartId::Name],
        about: "The form of the kernel name that ncu matches.",
        applies: |s| ncu(s) && !s.request.options.whole_graph && !as_range(s) && !matches!(s.request.choose, Choose::Graph(_)),
        value: |s, _| {
            let base = s.rerun().map_or(s.request.options.base.0, |r| r.base);
            let better = s.alternatives().iter().any(|a| a.better && a.options.base != s.request.options.base);
            format!("{}{}", base.word(), if better { "; mangled matches fewer kernels" } else { "" })
        },
        edit: base,
    },
    Field {
        title: "counted in",
        parts: &[PartId::Gate],
        about: "All launches of the program are counted.",
        applies: |s| {
            // Inside the range that opened the capture nothing else can be asked for.
            let opening = s.picked.as_ref().is_some_and(|p| matches!(p.opened, Some(OpenedBy::Range(_))));
            ncu(s) && (s.picked.as_ref().is_some_and(|p| !p.around.is_empty()) && !opening)
                || s.request.options.within != Within::Everything
        },
        value: |s, p| match s.request.options.within {
            Within::Everything if s.picked.as_ref().is_some_and(|p| p.gated) => "what was captured".to_owned(),
            Within::Everything => "everything".to_owned(),
            Within::Range(range, None) => format!("NVTX ranges {}", clean(&p.ranges.label(range.name))),
            Within::Range(range, Some(n)) => format!("NVTX range {}, number {n}", clean(&p.ranges.label(range.name))),
        },
        edit: within,
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
            Some(OpenedBy::Range(r)) => format!("NVTX range {}", clean(&p.ranges.label(r.name))),
            None | Some(OpenedBy::Late) => "unknown: a delay, a hotkey, a range?".to_owned(),
        },
        edit: opened,
    },
    Field {
        title: "processes",
        parts: &[PartId::Processes],
        about: "Which processes ncu follows.",
        applies: |s| {
            s.rerun().is_some_and(|r| r.parts.iter().any(|p| p.id == PartId::Processes))
                && !s.picked.as_ref().is_some_and(|p| matches!(p.scope, Some(Scope::AtOnce { .. })))
        },
        value: |s, _| match s.picked.as_ref().and_then(|p| p.scope.as_ref()) {
            Some(Scope::InTurn(n)) => format!("{n}, one after another"),
            Some(Scope::ByName(name)) => format!("only {}", clean(name)),
            _ => "all".to_owned(),
        },
        edit: |_, _| Edit::Nothing("this is determined by the report"),
    },
    Field {
        title: "rank",
        parts: &[PartId::Processes],
        about: "Which of the processes is profiled.",
        applies: |s| s.picked.as_ref().is_some_and(|p| matches!(p.scope, Some(Scope::AtOnce { .. }))),
        value: |s, _| match s.picked.as_ref().and_then(|p| p.scope.as_ref()) {
            Some(Scope::AtOnce { rank, processes, .. }) => format!("{rank} of {processes}"),
            _ => String::new(),
        },
        edit: |s, _| line(LineOf::Rank, s.request.options.rank.map_or_else(String::new, |r| r.to_string())),
    },
    Field {
        title: "collect",
        parts: &[PartId::Collect],
        about: "What is measured.",
        applies: always,
        value: |s, _| counters(s).unwrap_or_else(|| s.request.options.collect.label()),
        edit: collecting,
    },
    Field {
        title: "clocks",
        parts: &[PartId::Clocks],
        about: "ncu locks the clocks to base: comparable between runs, but slower than in production.",
        applies: ncu,
        value: |s, _| match s.request.options.clock {
            ClockControl::Base => "locked to base".to_owned(),
            ClockControl::None => "not locked".to_owned(),
        },
        edit: |s, _| with(s, |o| o.clock = if o.clock == ClockControl::Base { ClockControl::None } else { ClockControl::Base }),
    },
    Field {
        title: "caches",
        parts: &[PartId::Caches],
        about: "ncu flushes all caches before each replay pass, so every pass starts cold.",
        applies: ncu,
        value: |s, _| match s.request.options.cache {
            CacheControl::All => "flushed before each pass".to_owned(),
            CacheControl::None => "not flushed".to_owned(),
        },
        edit: |s, _| with(s, |o| o.cache = if o.cache == CacheControl::All { CacheControl::None } else { CacheControl::All }),
    },
    Field {
        title: "replay",
        parts: &[PartId::Replay],
        about: "The kernel is replayed for each pass, with its memory restored in between.",
        applies: ncu,
        value: |s, _| {
            let range =
                s.rerun().is_some_and(|r| r.parts.iter().any(|p| p.id == PartId::Replay && p.words.iter().any(|w| w == "app-range")));
            match s.request.options.replay {
                None if range => "app-range: the kernel cannot be replayed alone".to_owned(),
                None | Some(Replay::Kernel) => "kernel".to_owned(),
                Some(Replay::Application) => "application".to_owned(),
                Some(Replay::AppRange) => "app-range".to_owned(),
            }
        },
        edit: replay,
    },
    Field {
        title: "sources",
        parts: &[PartId::Source],
        about: "CUDA source is not imported into the report; importing it needs a program built with -lineinfo.",
        applies: ncu,
        value: |s, _| {
            if s.request.options.import_source || s.request.options.collect.wants_source() {
                "imported".to_owned()
            } else {
                "not imported".to_owned()
            }
        },
        edit: |s, _| with(s, |o| o.import_source = !o.import_source),
    },
    Field {
        title: "afterwards",
        parts: &[PartId::End],
        about: "After the last result the program runs to completion without profiling.",
        applies: ncu,
        value: |s, _| if s.request.options.kill { "the program is terminated".to_owned() } else { "the program keeps running".to_owned() },
        edit: |s, _| with(s, |o| o.kill = !o.kill),
    },
    Field {
        title: "report",
        parts: &[PartId::Output],
        about: "The report that the profiler writes.",
        applies: always,
        value: |s, _| {
            let name = s.plan().map_or_else(String::new, |p| {
                p.folder.clone().map_or_else(|| p.commands.first().map_or_else(String::new, Rerun::report), |f| format!("{f}/"))
            });
            let over = if s.request.options.overwrite { ", overwritten if it exists" } else { "" };
            format!("{}{over}", clean(&name))
        },
        edit: output,
    },
    Field {
        title: "program",
        parts: &[PartId::Program],
        about: "The program and its arguments.",
        applies: always,
        value: |s, p| {
            let program = program::of(p, &s.request.options);
            match program.from {
                program::From::Nowhere => format!("not in the report: {} to type it", key_of("open")),
                _ => clean(&shell::line(&program.argv)).into_owned(),
            }
        },
        edit: |s, p| {
            let program = program::of(p, &s.request.options);
            line(LineOf::Program, if program.from == program::From::Nowhere { String::new() } else { shell::line(&program.argv) })
        },
    },
    Field {
        title: "directory",
        parts: &[],
        about: "The working directory: a script changes to it first.",
        applies: always,
        value: |s, p| {
            program::of(p, &s.request.options).directory.map_or_else(|| "the current directory".to_owned(), |d| clean(&d).into_owned())
        },
        edit: |s, p| line(LineOf::Directory, program::of(p, &s.request.options).directory.unwrap_or_default()),
    },
];

/// Whether a range is measured, no launch.
fn as_range(s: &RerunScreen) -> bool {
    s.rerun().is_some_and(|r| r.selects.is_empty())
}

/// The same with other options.
fn with(s: &RerunScreen, set: impl FnOnce(&mut Options)) -> Edit {
    let mut request = s.request.clone();
    set(&mut request.options);
    Edit::Ask(Box::new(request))
}

fn line(what: LineOf, text: String) -> Edit {
    Edit::Over(Box::new(What::Line(what, Input::new(text))))
}

/// A list whose items are whole requests.
struct Choices<'a> {
    now: &'a Request,
    items: Vec<Item>,
}

impl Choices<'_> {
    fn add(&mut self, label: impl Into<String>, hint: impl Into<String>, letter: char, set: impl FnOnce(&mut Request)) {
        let mut request = self.now.clone();
        set(&mut request);
        self.push(label, hint, letter, Choice::Request(Box::new(request)));
    }

    fn push(&mut self, label: impl Into<String>, hint: impl Into<String>, letter: char, choice: Choice) {
        self.items.push(Item::new(label, hint, letter, choice));
    }
}

fn pick(s: &RerunScreen, title: &'static str, fill: impl FnOnce(&mut Choices<'_>)) -> Edit {
    let mut choices = Choices { now: &s.request, items: Vec::new() };
    fill(&mut choices);
    let now = Choice::Request(Box::new(s.request.clone()));
    Edit::Over(Box::new(Pick::by_letter(title, choices.items, Some(&now)).into()))
}

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
        format!("{word}{each}{}{graph}", id.map_or_else(String::new, |l| format!(": launch {}", units::grouped(i64::from(l.0)))))
    };
    match &s.request.choose {
        Choose::One(l) => format!("launch {}{graph}", units::grouped(i64::from(l.0))),
        Choose::Median => one("the median"),
        Choose::First => one("the first"),
        Choose::Slowest(1) => one("the slowest"),
        Choose::Slowest(n) => format!("the {n} slowest{each}"),
        Choose::SlowestAndMedian => format!("the slowest and the median{each}{many}"),
        Choose::Graph(n) => format!("graph launch {n}"),
        Choose::Inside(range) => format!("every launch in NVTX ranges {}{many}", clean(&p.ranges.label(range.name))),
    }
}

fn launches(s: &RerunScreen, p: &Profile) -> Edit {
    pick(s, "launches to profile", |c| {
        let to = |choose: Choose| {
            move |r: &mut Request| {
                r.choose = choose;
                r.options.whole_graph = false;
                r.options.within = Within::Everything;
            }
        };
        if let Choose::One(l) = s.origin {
            c.add(format!("launch {}", units::grouped(i64::from(l.0))), "the selected launch", 'o', to(s.origin.clone()));
        }
        c.add("median", "closest to the median duration: typical", 'm', to(Choose::Median));
        c.add("slowest", "longest duration", 's', to(Choose::Slowest(1)));
        c.add("slowest and median", "to see what differs in the slow one", 'b', to(Choose::SlowestAndMedian));
        c.add("3 slowest", "", '3', to(Choose::Slowest(3)));
        c.add("10 slowest", "", '0', to(Choose::Slowest(10)));
        c.add("first", "first in launch order: often cold", 'f', to(Choose::First));
        let Some(picked) = &s.picked else { return };
        // ncu counts inside the range; rocprofv3 cannot, and is told the numbers instead.
        let counted = ncu(s);
        for (e, letter) in picked.around.iter().take(4).zip('w'..) {
            let label = clean(&p.ranges.label(e.range.name)).into_owned();
            c.add(format!("every launch in {label}"), "all launches of this kernel in NVTX ranges of that name", letter, |r| {
                r.choose = Choose::Inside(e.range);
                r.options.whole_graph = false;
                r.options.within = if counted { Within::Range(e.range, None) } else { Within::Everything };
            });
        }
        if picked.graphs > 0 {
            c.push("a CUDA graph …", format!("one of {} traced as a whole, by number", picked.graphs), 'G', Choice::Line(LineOf::Graph));
        }
        if picked.node && picked.launches.len() == 1 {
            c.add("whole CUDA graph", "the graph launch it belongs to, as a single result", 'g', |r| r.options.whole_graph = true);
        }
    })
}

fn base(s: &RerunScreen, _: &Profile) -> Edit {
    pick(s, "name that ncu matches", |c| {
        let to = |base: NameForm| move |r: &mut Request| r.options.base = Base(base);
        c.add("function", "last identifier: readable, shared by overloads and instantiations", 'f', to(NameForm::Function));
        c.add("mangled", "linker symbol: unique, but specific to this build", 'm', to(NameForm::Mangled));
        c.add("demangled", "full C++ name as nvcc spells it", 'd', to(NameForm::Demangled));
    })
}

fn within(s: &RerunScreen, p: &Profile) -> Edit {
    pick(s, "count launches in", |c| {
        c.add("everything", "from the start of the program, or of the capture", 'e', |r| r.options.within = Within::Everything);
        let Some(picked) = &s.picked else { return };
        for (e, letter) in picked.around.iter().take(6).zip('1'..) {
            let label = clean(&p.ranges.label(e.range.name)).into_owned();
            let hint = format!("NVTX ranges of this name; {} in the report", e.of);
            c.add(label.clone(), hint, letter, |r| r.options.within = Within::Range(e.range, None));
            if let Some(n) = e.number().filter(|_| !picked.gated) {
                c.add(
                    format!("{label}, number {n}"),
                    "only this one",
                    char::from_u32(u32::from(letter) - u32::from('1') + u32::from('a')).unwrap_or('z'),
                    |r| {
                        r.options.within = Within::Range(e.range, Some(n));
                    },
                );
            }
        }
    })
}

fn opened(s: &RerunScreen, p: &Profile) -> Edit {
    pick(s, "the capture was opened by", |c| {
        let to = |by: Option<OpenedBy>| move |r: &mut Request| r.options.opened_by = by;
        c.add("as the report says", "", 'r', to(None));
        c.add("cudaProfilerStart", "nsys profile -c cudaProfilerApi", 'p', to(Some(OpenedBy::ProfilerApi(1))));
        c.add("cudaProfilerStart, 2nd", "the second report of --capture-range-end=repeat", '2', to(Some(OpenedBy::ProfilerApi(2))));
        c.add("start of the program", "nothing is missing before it", 's', to(Some(OpenedBy::Start)));
        c.add("unknown", "a delay, a hotkey, `nsys start`", 'u', to(Some(OpenedBy::Late)));
        let Some(picked) = &s.picked else { return };
        for (e, letter) in picked.around.iter().take(5).zip('a'..) {
            let label = clean(&p.ranges.label(e.range.name)).into_owned();
            c.add(format!("NVTX range {label}"), "nsys profile -c nvtx", letter, to(Some(OpenedBy::Range(e.range))));
        }
    })
}

fn collecting(s: &RerunScreen, _: &Profile) -> Edit {
    if !ncu(s) {
        return pick(s, "which counters to collect", |c| {
            let all = Options::first_look().collect;
            c.add("waves and units", "how busy the compute units are, and with what", 'w', |r| r.options.collect = all);
            if let Some(q) = collect::question("memory") {
                c.add("memory", "bytes read from memory", 'm', |r| r.options.collect = Collect::Question(q.word));
            }
            c.push("counters …", "by name", 'c', Choice::Line(LineOf::Sections));
        });
    }
    pick(s, "what to collect per launch", |c| {
        let figure = |f: collect::Figure| format!("{}, {:.2} s", units::count(f.passes, "pass"), f.seconds);
        for (set, letter) in collect::SETS.iter().zip(['b', 'd', 'f', 'r', 'p', 'n']) {
            let hint = format!("{}: {}", figure(set.figure), set.about);
            c.add(set.word, hint, letter, |r| r.options.collect = Collect::Set(set.word.to_owned()));
        }
        for (q, letter) in collect::QUESTIONS.iter().zip('1'..) {
            let hint = format!("{}: {}", figure(q.figure), q.asks);
            c.add(q.word, hint, letter, |r| r.options.collect = Collect::Question(q.word));
        }
        c.push("sections …", "by identifier", 's', Choice::Line(LineOf::Sections));
    })
}

fn replay(s: &RerunScreen, _: &Profile) -> Edit {
    pick(s, "replay", |c| {
        let to = |replay: Option<Replay>| move |r: &mut Request| r.options.replay = replay;
        c.add("as the kernel needs", "kernel, or app-range for kernels that wait for other GPUs", 'a', to(None));
        c.add("kernel", "replay the kernel for each pass; memory is saved and restored", 'k', to(Some(Replay::Kernel)));
        c.add(
            "application",
            "rerun the program for each pass; for large memory footprints, must be deterministic",
            'p',
            to(Some(Replay::Application)),
        );
        c.add("app-range", "rerun the program, and measure the range as one", 'r', to(Some(Replay::AppRange)));
    })
}

fn output(s: &RerunScreen, _: &Profile) -> Edit {
    pick(s, "report", |c| {
        c.push("name …", "without its ending", 'n', Choice::Line(LineOf::Output));
        if !ncu(s) {
            c.add("default name", "from the kernel and the launch", 'd', |r| r.options.output = None);
            return;
        }
        let over = s.request.options.overwrite;
        let (label, hint) = if over {
            ("keep an existing report", "ncu then refuses to start")
        } else {
            ("overwrite an existing report", "--force-overwrite")
        };
        c.add(label, hint, 'o', |r| r.options.overwrite = !over);
        c.add("default name", "from the kernel and the launch", 'd', |r| r.options.output = None);
    })
}

/// The text that a line begins with.
#[must_use]
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
