//! What can be changed on the re-run screen. One row in [`FIELDS`] each: its value in words, and the choices that it opens.

use super::pick::{Choice, Item, Pick};
use super::rerun::{Choose, LineOf, Request, RerunScreen, change};
use super::{App, Effect, Overlay, Status};
use crate::model::text::clean;
use crate::model::{NameForm, Profile, units};
use crate::rerun::processes::Scope;
use crate::rerun::{Base, CacheControl, ClockControl, Collect, OpenedBy, Options, PartId, Replay, Within, collect, program, shell};
use tui_input::Input;

/// One thing to change.
pub struct Field {
    /// Its word.
    pub title: &'static str,
    /// Pieces of the command that come from it.
    pub parts: &'static [PartId],
    /// What it says when it has no words in the command.
    pub about: &'static str,
    /// Whether it means something here.
    pub applies: fn(&RerunScreen) -> bool,
    /// Its value.
    pub value: fn(&RerunScreen, &Profile) -> String,
    /// Lets the user change it.
    pub edit: fn(&mut App) -> Vec<Effect>,
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.title)
    }
}

fn always(_: &RerunScreen) -> bool {
    true
}

/// All fields, in the order of the screen.
pub static FIELDS: &[Field] = &[
    Field {
        title: "profiler",
        parts: &[PartId::Tool],
        about: "NVIDIA's kernel profiler.",
        applies: always,
        value: |_, _| "ncu".to_owned(),
        edit: |app| nothing(app, "it is ncu; there is nothing to choose"),
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
        about: "The form of the name that ncu compares.",
        applies: |s| !s.request.options.whole_graph && !as_range(s) && !matches!(s.request.choose, Choose::Graph(_)),
        value: |s, _| {
            let base = s.rerun().map_or(s.request.options.base.0, |r| r.base);
            let better = s.alternatives().iter().any(|a| a.better && a.options.base != s.request.options.base);
            format!("{}{}", base.word(), if better { "; mangled counts fewer kernels" } else { "" })
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
            (s.picked.as_ref().is_some_and(|p| !p.around.is_empty()) && !opening) || s.request.options.within != Within::Everything
        },
        value: |s, p| match s.request.options.within {
            Within::Everything if s.picked.as_ref().is_some_and(|p| p.gated) => "what the capture saw".to_owned(),
            Within::Everything => "everything".to_owned(),
            Within::Range(range, None) => format!("NVTX ranges {}", clean(&p.ranges.label(range.name))),
            Within::Range(range, Some(n)) => format!("NVTX range {}, number {n}", clean(&p.ranges.label(range.name))),
        },
        edit: within,
    },
    Field {
        title: "opened by",
        parts: &[PartId::Gate],
        about: "What opened the capture: the re-run must begin to count at the same place.",
        applies: |s| s.picked.as_ref().is_some_and(|p| p.gated) || s.request.options.opened_by.is_some(),
        value: |s, p| match s.picked.as_ref().and_then(|p| p.opened) {
            Some(OpenedBy::Start) => "the start of the program".to_owned(),
            Some(OpenedBy::ProfilerApi(1)) => "cudaProfilerStart".to_owned(),
            Some(OpenedBy::ProfilerApi(n)) => format!("cudaProfilerStart number {n}"),
            Some(OpenedBy::Range(r)) => format!("NVTX range {}", clean(&p.ranges.label(r.name))),
            None | Some(OpenedBy::Late) => "unknown: a delay, a hot key, a range?".to_owned(),
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
        edit: |app| nothing(app, "this follows from the report; there is nothing to choose"),
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
        edit: |app| line(app, LineOf::Rank, |s| s.request.options.rank.map_or_else(String::new, |r| r.to_string())),
    },
    Field {
        title: "collect",
        parts: &[PartId::Collect],
        about: "What is measured.",
        applies: always,
        value: |s, _| s.request.options.collect.label(),
        edit: collecting,
    },
    Field {
        title: "clocks",
        parts: &[PartId::Clocks],
        about: "ncu locks the clocks to their base: comparable between runs, slower than in production.",
        applies: always,
        value: |s, _| match s.request.options.clock {
            ClockControl::Base => "locked to base".to_owned(),
            ClockControl::None => "left alone".to_owned(),
        },
        edit: |app| with(app, |o| o.clock = if o.clock == ClockControl::Base { ClockControl::None } else { ClockControl::Base }),
    },
    Field {
        title: "caches",
        parts: &[PartId::Caches],
        about: "ncu flushes all caches before every pass: each starts cold.",
        applies: always,
        value: |s, _| match s.request.options.cache {
            CacheControl::All => "flushed before each pass".to_owned(),
            CacheControl::None => "left alone".to_owned(),
        },
        edit: |app| with(app, |o| o.cache = if o.cache == CacheControl::All { CacheControl::None } else { CacheControl::All }),
    },
    Field {
        title: "replay",
        parts: &[PartId::Replay],
        about: "The kernel runs again for every pass, its memory restored between them.",
        applies: always,
        value: |s, _| {
            let range =
                s.rerun().is_some_and(|r| r.parts.iter().any(|p| p.id == PartId::Replay && p.words.iter().any(|w| w == "app-range")));
            match s.request.options.replay {
                None if range => "app-range: it cannot be replayed alone".to_owned(),
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
        about: "The report holds no CUDA sources; with them the program must be built with -lineinfo.",
        applies: always,
        value: |s, _| {
            if s.request.options.import_source || s.request.options.collect.wants_source() {
                "in the report".to_owned()
            } else {
                "not in the report".to_owned()
            }
        },
        edit: |app| with(app, |o| o.import_source = !o.import_source),
    },
    Field {
        title: "afterwards",
        parts: &[PartId::End],
        about: "After the last result the program runs on to its end, without the profiler.",
        applies: always,
        value: |s, _| if s.request.options.kill { "the program is ended".to_owned() } else { "the program runs on".to_owned() },
        edit: |app| with(app, |o| o.kill = !o.kill),
    },
    Field {
        title: "report",
        parts: &[PartId::Output],
        about: "The file that ncu writes.",
        applies: always,
        value: |s, _| {
            let name = s.plan().map_or_else(String::new, |p| {
                p.folder
                    .clone()
                    .map_or_else(|| p.commands.first().map_or_else(String::new, |c| format!("{}.ncu-rep", c.output)), |f| format!("{f}/"))
            });
            let over = if s.request.options.overwrite { ", overwritten if it is there" } else { "" };
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
                program::From::Nowhere => "not in the report: ⏎ to type it".to_owned(),
                _ => clean(&shell::line(&program.argv)).into_owned(),
            }
        },
        edit: |app| {
            let Some((screen, profile)) = here(app) else { return Vec::new() };
            let program = program::of(profile, &screen.request.options);
            let text = if program.from == program::From::Nowhere { String::new() } else { shell::line(&program.argv) };
            line(app, LineOf::Program, |_| text.clone())
        },
    },
    Field {
        title: "directory",
        parts: &[],
        about: "The directory to run it in: a script goes there first.",
        applies: always,
        value: |s, p| program::of(p, &s.request.options).directory.map_or_else(|| "where you are".to_owned(), |d| clean(&d).into_owned()),
        edit: |app| {
            let Some((screen, profile)) = here(app) else { return Vec::new() };
            let text = program::of(profile, &screen.request.options).directory.unwrap_or_default();
            line(app, LineOf::Directory, |_| text.clone())
        },
    },
];

fn nothing(app: &mut App, why: &str) -> Vec<Effect> {
    app.status = Some(Status { text: why.to_owned(), error: false });
    Vec::new()
}

/// Whether a range is measured, no launch.
fn as_range(s: &RerunScreen) -> bool {
    s.rerun().is_some_and(|r| r.selects.is_empty())
}

fn here(app: &App) -> Option<(&RerunScreen, &Profile)> {
    let report = app.report()?;
    Some((report.rerun.as_ref()?, report.profile.as_deref()?))
}

/// Changes the options, and asks for the command anew.
fn with(app: &mut App, set: impl FnOnce(&mut Options)) -> Vec<Effect> {
    let Some((screen, _)) = here(app) else {
        return Vec::new();
    };
    let mut request = screen.request.clone();
    set(&mut request.options);
    change(app, request)
}

fn line(app: &mut App, what: LineOf, text: impl FnOnce(&RerunScreen) -> String) -> Vec<Effect> {
    let Some((screen, _)) = here(app) else {
        return Vec::new();
    };
    app.overlay = Some(Overlay::Line(what, Input::new(text(screen))));
    Vec::new()
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
        self.items.push(Item { label: label.into(), hint: hint.into(), letter: Some(letter), choice });
    }
}

fn pick(app: &mut App, title: &'static str, fill: impl FnOnce(&mut Choices<'_>, &RerunScreen, &Profile)) -> Vec<Effect> {
    let Some((screen, profile)) = here(app) else {
        return Vec::new();
    };
    let now = screen.request.clone();
    let mut choices = Choices { now: &now, items: Vec::new() };
    fill(&mut choices, screen, profile);
    let items = choices.items;
    app.overlay = Some(Overlay::Pick(Pick::by_letter(title, items, Some(&Choice::Request(Box::new(now))))));
    Vec::new()
}

fn launches_word(s: &RerunScreen, p: &Profile) -> String {
    let each = if s.rows.len() > 1 { format!(" of each of {} groups", s.rows.len()) } else { String::new() };
    if as_range(s) {
        return "the range around it, not the launch".to_owned();
    }
    let found = s.plan().map_or(0, |p| p.commands.iter().map(|c| c.selects.len()).sum::<usize>());
    let many = if found > 1 { format!(" ({found})") } else { String::new() };
    let graph = if s.request.options.whole_graph { ", with the whole graph around it" } else { "" };
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
        Choose::Inside(range) => format!("every one in NVTX ranges {}{many}", clean(&p.ranges.label(range.name))),
    }
}

fn launches(app: &mut App) -> Vec<Effect> {
    pick(app, "launches to profile", |c, s, p| {
        let to = |choose: Choose| {
            move |r: &mut Request| {
                r.choose = choose;
                r.options.whole_graph = false;
                r.options.within = Within::Everything;
            }
        };
        if let Choose::One(l) = s.origin {
            c.add(format!("launch {}", units::grouped(i64::from(l.0))), "the one that was selected", 'o', to(s.origin.clone()));
        }
        c.add("median", "nearest to the median duration: a typical one", 'm', to(Choose::Median));
        c.add("slowest", "longest duration", 's', to(Choose::Slowest(1)));
        c.add("slowest and median", "to see what the slow one does differently", 'b', to(Choose::SlowestAndMedian));
        c.add("3 slowest", "", '3', to(Choose::Slowest(3)));
        c.add("10 slowest", "", '0', to(Choose::Slowest(10)));
        c.add("first", "first in launch order: often cold", 'f', to(Choose::First));
        let Some(picked) = &s.picked else { return };
        for (e, letter) in picked.around.iter().take(4).zip('w'..) {
            let label = clean(&p.ranges.label(e.range.name)).into_owned();
            c.add(format!("every one in {label}"), "all launches of this kernel in NVTX ranges of that name", letter, |r| {
                r.choose = Choose::Inside(e.range);
                r.options.whole_graph = false;
                r.options.within = Within::Range(e.range, None);
            });
        }
        if picked.graphs > 0 {
            c.push(
                "a CUDA graph …",
                format!("one of {} that were traced whole, by number", picked.graphs),
                'G',
                Choice::Line(LineOf::Graph),
            );
        }
        if picked.node && picked.launches.len() == 1 {
            c.add("whole CUDA graph", "the graph launch that it belongs to, as one result", 'g', |r| r.options.whole_graph = true);
        }
    })
}

fn base(app: &mut App) -> Vec<Effect> {
    pick(app, "name that ncu compares", |c, _, _| {
        let to = |base: NameForm| move |r: &mut Request| r.options.base = Base(base);
        c.add("function", "last identifier: readable, shared by overloads and instantiations", 'f', to(NameForm::Function));
        c.add("mangled", "linker symbol: shared by nothing, fits this build", 'm', to(NameForm::Mangled));
        c.add("demangled", "full C++ name as nvcc spells it", 'd', to(NameForm::Demangled));
    })
}

fn within(app: &mut App) -> Vec<Effect> {
    pick(app, "count launches in", |c, s, p| {
        c.add("everything", "from the start of the program, or of the capture", 'e', |r| r.options.within = Within::Everything);
        let Some(picked) = &s.picked else { return };
        for (e, letter) in picked.around.iter().take(6).zip('1'..) {
            let label = clean(&p.ranges.label(e.range.name)).into_owned();
            let hint = format!("NVTX ranges of this name; {} in the report", e.of);
            c.add(label.clone(), hint, letter, |r| r.options.within = Within::Range(e.range, None));
            if let Some(n) = e.number().filter(|_| !picked.gated) {
                c.add(
                    format!("{label}, number {n}"),
                    "only this one of them",
                    char::from_u32(u32::from(letter) - u32::from('1') + u32::from('a')).unwrap_or('z'),
                    |r| {
                        r.options.within = Within::Range(e.range, Some(n));
                    },
                );
            }
        }
    })
}

fn opened(app: &mut App) -> Vec<Effect> {
    pick(app, "the capture was opened by", |c, s, p| {
        let to = |by: Option<OpenedBy>| move |r: &mut Request| r.options.opened_by = by;
        c.add("as the report says", "", 'r', to(None));
        c.add("cudaProfilerStart", "nsys profile -c cudaProfilerApi", 'p', to(Some(OpenedBy::ProfilerApi(1))));
        c.add("cudaProfilerStart, 2nd", "the second report of --capture-range-end=repeat", '2', to(Some(OpenedBy::ProfilerApi(2))));
        c.add("start of the program", "nothing is missing before", 's', to(Some(OpenedBy::Start)));
        c.add("unknown", "a delay, a hot key, `nsys start`", 'u', to(Some(OpenedBy::Late)));
        let Some(picked) = &s.picked else { return };
        for (e, letter) in picked.around.iter().take(5).zip('a'..) {
            let label = clean(&p.ranges.label(e.range.name)).into_owned();
            c.add(format!("NVTX range {label}"), "nsys profile -c nvtx", letter, to(Some(OpenedBy::Range(e.range))));
        }
    })
}

fn collecting(app: &mut App) -> Vec<Effect> {
    pick(app, "what to collect, for each launch", |c, _, _| {
        let figure = |f: collect::Figure| format!("{} pass{}, {:.2} s", f.passes, if f.passes == 1 { "" } else { "es" }, f.seconds);
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

fn replay(app: &mut App) -> Vec<Effect> {
    pick(app, "replay", |c, _, _| {
        let to = |replay: Option<Replay>| move |r: &mut Request| r.options.replay = replay;
        c.add("as the kernel needs", "kernel, or app-range for one that waits for other GPUs", 'a', to(None));
        c.add("kernel", "the kernel again for every pass; memory is saved and restored", 'k', to(Some(Replay::Kernel)));
        c.add(
            "application",
            "the program again for every pass; for much memory, must be deterministic",
            'p',
            to(Some(Replay::Application)),
        );
        c.add("app-range", "the program again, and the range measured as one", 'r', to(Some(Replay::AppRange)));
    })
}

fn output(app: &mut App) -> Vec<Effect> {
    pick(app, "report", |c, s, _| {
        c.push("name …", "without .ncu-rep", 'n', Choice::Line(LineOf::Output));
        let over = s.request.options.overwrite;
        let (label, hint) = if over {
            ("keep one that is there", "ncu refuses to start then")
        } else {
            ("overwrite one that is there", "--force-overwrite")
        };
        c.add(label, hint, 'o', |r| r.options.overwrite = !over);
        c.add("name of its own", "from the kernel and the launch", 'd', |r| r.options.output = None);
    })
}

/// The text that a line begins with.
#[must_use]
pub fn line_text(app: &App, what: LineOf) -> String {
    let Some((screen, _)) = here(app) else {
        return String::new();
    };
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
