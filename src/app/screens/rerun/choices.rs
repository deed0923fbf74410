//! Choices for the fields of the re-run screen: lists of complete requests

use super::state::RerunScreen;
use crate::app::overlay::{Item, LineOf, OverlayKind, PickAction, PickList};
use crate::model::text::escape_unsafe;
use crate::model::{NameForm, Profile, units};
use crate::rerun::{Base, Choose, Collect, OpenedBy, Options, Profiler, Replay, Request, Within, collect, tracer_measure};
use tui_input::Input;

/// Result of editing a field.
pub enum Edit {
    /// The field cannot be changed, for this reason.
    Nothing(&'static str),
    /// The field changes the request to this one.
    Ask(Box<Request>),
    /// The user must choose from a list or type a value.
    Over(Box<OverlayKind>),
}

/// Returns true if ncu is used: neither rocprofv3 nor the tracer has these options.
pub(super) fn is_ncu(s: &RerunScreen) -> bool {
    s.current_rerun().is_none_or(|r| r.tool == "ncu") && !is_traced(s)
}

pub(super) fn is_rocprof(s: &RerunScreen) -> bool {
    s.current_rerun().is_some_and(|r| r.tool == "rocprofv3")
}

/// Returns true if the built-in tracer is used.
pub(super) fn is_traced(s: &RerunScreen) -> bool {
    s.request.options.profiler == Profiler::InPlace && !is_rocprof(s)
}

/// Applies a change to the options of the current request.
pub(super) fn with_options(s: &RerunScreen, set: impl FnOnce(&mut Options)) -> Edit {
    let mut request = s.request.clone();
    set(&mut request.options);
    Edit::Ask(Box::new(request))
}

pub(super) fn edit_line(what: LineOf, text: String) -> Edit {
    Edit::Over(Box::new(OverlayKind::Line(what, Input::new(text))))
}

/// Builds a list of complete requests.
pub(super) struct Choices<'a> {
    now: &'a Request,
    items: Vec<Item>,
}

impl Choices<'_> {
    pub(super) fn add_request(&mut self, label: impl Into<String>, hint: impl Into<String>, letter: char, set: impl FnOnce(&mut Request)) {
        let mut request = self.now.clone();
        set(&mut request);
        self.push(label, hint, letter, PickAction::Request(Box::new(request)));
    }

    fn push(&mut self, label: impl Into<String>, hint: impl Into<String>, letter: char, choice: PickAction) {
        self.items.push(Item::new(label, hint, letter, choice));
    }
}

pub(super) fn pick_request(s: &RerunScreen, title: &'static str, fill: impl FnOnce(&mut Choices<'_>)) -> Edit {
    let mut choices = Choices { now: &s.request, items: Vec::new() };
    fill(&mut choices);
    let now = PickAction::Request(Box::new(s.request.clone()));
    Edit::Over(Box::new(PickList::by_letter(title, choices.items, Some(&now)).into()))
}

pub(super) fn edit_launches(s: &RerunScreen, p: &Profile) -> Edit {
    pick_request(s, "launches to profile", |c| {
        let to = |choose: Choose| {
            move |r: &mut Request| {
                r.choose = choose;
                r.options.whole_graph = false;
                r.options.within = Within::Everything;
            }
        };
        if let Choose::One(l) = s.origin {
            c.add_request(format!("launch {}", units::format_grouped(i64::from(l.0))), "the selected launch", 'o', to(s.origin.clone()));
        }
        c.add_request("median", "typical: the median of the shape that takes the most time", 'm', to(Choose::Median));
        c.add_request("slowest", "longest duration", 's', to(Choose::Slowest(1)));
        c.add_request("slowest and median", "to see what differs in the slow one", 'b', to(Choose::SlowestAndMedian));
        c.add_request("3 slowest", "", '3', to(Choose::Slowest(3)));
        c.add_request("10 slowest", "", '0', to(Choose::Slowest(10)));
        c.add_request("first", "first in launch order: often cold", 'f', to(Choose::First));
        let Some(picked) = &s.picked else { return };
        // ncu and the tracer can count launches inside a range; rocprofv3 cannot, so it receives launch numbers
        // instead.
        let counted = !is_rocprof(s);
        for (e, letter) in picked.around.iter().take(4).zip('w'..) {
            let label = escape_unsafe(&p.ranges.label(e.range.name)).into_owned();
            c.add_request(format!("every launch in {label}"), "all launches of this kernel in NVTX ranges of that name", letter, |r| {
                r.choose = Choose::Inside(e.range);
                r.options.whole_graph = false;
                r.options.within = if counted { Within::Range(e.range, None) } else { Within::Everything };
            });
        }
        if picked.graphs > 0 && !is_traced(s) {
            c.push(
                "a CUDA graph …",
                format!("one of {} traced as a whole, by number", picked.graphs),
                'G',
                PickAction::Line(LineOf::Graph),
            );
        }
        if picked.node && picked.launches.len() == 1 && !is_traced(s) {
            c.add_request("whole CUDA graph", "the graph launch it belongs to, as a single result", 'g', |r| r.options.whole_graph = true);
        }
    })
}

pub(super) fn edit_base(s: &RerunScreen, _: &Profile) -> Edit {
    let all = !is_traced(s);
    pick_request(s, "name that is matched", |c| {
        let to = |base: NameForm| move |r: &mut Request| r.options.base = Base(base);
        c.add_request("function", "last identifier: readable, shared by overloads and instantiations", 'f', to(NameForm::Function));
        c.add_request("mangled", "linker symbol: unique, but specific to this build", 'm', to(NameForm::Mangled));
        if all {
            c.add_request("demangled", "full C++ name as nvcc spells it", 'd', to(NameForm::Demangled));
        }
    })
}

pub(super) fn edit_within(s: &RerunScreen, p: &Profile) -> Edit {
    pick_request(s, "count launches in", |c| {
        c.add_request("everything", "from the start of the program, or of the capture", 'e', |r| r.options.within = Within::Everything);
        let Some(picked) = &s.picked else { return };
        for (e, letter) in picked.around.iter().take(6).zip('1'..) {
            let label = escape_unsafe(&p.ranges.label(e.range.name)).into_owned();
            let hint = format!("NVTX ranges of this name; {} in the report", e.of);
            c.add_request(label.clone(), hint, letter, |r| r.options.within = Within::Range(e.range, None));
            if let Some(n) = e.filter_number().filter(|_| !picked.gated) {
                c.add_request(
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

pub(super) fn edit_opened_by(s: &RerunScreen, p: &Profile) -> Edit {
    pick_request(s, "the capture was opened by", |c| {
        let to = |by: Option<OpenedBy>| move |r: &mut Request| r.options.opened_by = by;
        c.add_request("as the report says", "", 'r', to(None));
        c.add_request("cudaProfilerStart", "nsys profile -c cudaProfilerApi", 'p', to(Some(OpenedBy::ProfilerApi(1))));
        c.add_request("cudaProfilerStart, 2nd", "the second report of --capture-range-end=repeat", '2', to(Some(OpenedBy::ProfilerApi(2))));
        c.add_request("start of the program", "nothing is missing before it", 's', to(Some(OpenedBy::Start)));
        c.add_request("unknown", "a delay, a hotkey, `nsys start`", 'u', to(Some(OpenedBy::Late)));
        let Some(picked) = &s.picked else { return };
        for (e, letter) in picked.around.iter().take(5).zip('a'..) {
            let label = escape_unsafe(&p.ranges.label(e.range.name)).into_owned();
            c.add_request(format!("NVTX range {label}"), "nsys profile -c nvtx", letter, to(Some(OpenedBy::Range(e.range))));
        }
    })
}

pub(super) fn edit_collect(s: &RerunScreen, _: &Profile) -> Edit {
    if is_traced(s) {
        return pick_request(s, "what to measure per launch", |c| {
            let all = Options::default().collect;
            c.add_request("all counters", tracer_measure::describe_metrics(&all), 'a', |r| r.options.collect = all.clone());
            for (q, letter) in collect::QUESTIONS.iter().zip('1'..) {
                let hint = format!("{}: {}", tracer_measure::describe_metrics(&Collect::Question(q.word)), q.asks);
                c.add_request(q.word, hint, letter, |r| r.options.collect = Collect::Question(q.word));
            }
        });
    }
    if is_rocprof(s) {
        return pick_request(s, "which counters to collect", |c| {
            let all = Options::default().collect;
            c.add_request("waves and units", "how busy the compute units are, and with what", 'w', |r| r.options.collect = all);
            if let Some(q) = collect::find_question("memory") {
                c.add_request("memory", "bytes read from memory", 'm', |r| r.options.collect = Collect::Question(q.word));
            }
            c.push("counters …", "by name", 'c', PickAction::Line(LineOf::Sections));
        });
    }
    pick_request(s, "what to collect per launch", |c| {
        let figure = |f: collect::Figure| format!("{}, {:.2} s", units::format_count(f.passes, "pass"), f.seconds);
        for (set, letter) in collect::SETS.iter().zip(['b', 'd', 'f', 'r', 'p', 'n']) {
            let hint = format!("{}: {}", figure(set.figure), set.about);
            c.add_request(set.word, hint, letter, |r| r.options.collect = Collect::Set(set.word.to_owned()));
        }
        for (q, letter) in collect::QUESTIONS.iter().zip('1'..) {
            let hint = format!("{}: {}", figure(q.figure), q.asks);
            c.add_request(q.word, hint, letter, |r| r.options.collect = Collect::Question(q.word));
        }
        c.push("sections …", "by identifier", 's', PickAction::Line(LineOf::Sections));
    })
}

pub(super) fn edit_replay(s: &RerunScreen, _: &Profile) -> Edit {
    pick_request(s, "replay", |c| {
        let to = |replay: Option<Replay>| move |r: &mut Request| r.options.replay = replay;
        c.add_request("as the kernel needs", "kernel, or app-range for kernels that wait for other GPUs", 'a', to(None));
        c.add_request("kernel", "replay the kernel for each pass; memory is saved and restored", 'k', to(Some(Replay::Kernel)));
        c.add_request(
            "application",
            "rerun the program for each pass; for large memory footprints, must be deterministic",
            'p',
            to(Some(Replay::Application)),
        );
        c.add_request("app-range", "rerun the program, and measure the range as one", 'r', to(Some(Replay::AppRange)));
    })
}

pub(super) fn edit_output(s: &RerunScreen, _: &Profile) -> Edit {
    pick_request(s, "report", |c| {
        c.push("name …", "without its ending", 'n', PickAction::Line(LineOf::Output));
        if !is_ncu(s) {
            c.add_request("default name", "from the kernel and the launch", 'd', |r| r.options.output = None);
            return;
        }
        let over = s.request.options.overwrite;
        let (label, hint) = if over {
            ("keep an existing report", "ncu then refuses to start")
        } else {
            ("overwrite an existing report", "--force-overwrite")
        };
        c.add_request(label, hint, 'o', |r| r.options.overwrite = !over);
        c.add_request("default name", "from the kernel and the launch", 'd', |r| r.options.output = None);
    })
}
