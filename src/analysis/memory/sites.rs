//! Allocation sites: stacks, each summarized on one line.

use crate::analysis::code_origin::is_generated;
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::name_pattern::name_pattern;
use crate::model::api_call::NONE;
use crate::model::{Frame, Profile, RangeOrigin, Stacks};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Placeholder for the file name in frames of operators.
const OPERATOR: &str = "(operator)";
/// Placeholder for the file name in frames of ranges that the program marked.
const RANGE: &str = "(range)";
/// Maximum length of a name, in characters.
const LONGEST: usize = 100;
/// Maximum number of enclosing ranges kept for an allocation, innermost first.
const DEEPEST: usize = 64;

/// A line of code, or an operator, that allocates memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Name such as `leak (mem.py:7)`, or the best substitute available.
    pub name: String,
    /// Library function or operator called on this line; empty if the line itself allocates.
    pub inner: String,
    /// One stack of the site.
    pub stack: u32,
}

impl Site {
    /// Formats both names on one line.
    pub fn summary_line(&self) -> String {
        if self.inner.is_empty() { self.name.clone() } else { format!("{} · {}", self.name, self.inner) }
    }
}

/// All allocation sites in a report.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    pub stacks: Arc<Stacks>,
    /// Stack of each event of the report; [`NONE`] if unknown.
    pub stack_of: Vec<u32>,
    list: Vec<Site>,
    /// Site of each stack.
    of_stack: Vec<u32>,
}

impl Sites {
    pub fn from_profile(profile: &Profile) -> Self {
        let memory = &profile.memory;
        let (stacks, stack_of) =
            if memory.stacks.is_empty() { by_ranges(profile) } else { (memory.stacks.clone(), memory.stack_of.clone()) };
        let mut known: FxHashMap<(Option<&Frame>, Option<&Frame>), u32> = FxHashMap::default();
        let (mut list, mut of_stack) = (Vec::new(), Vec::new());
        for stack in 0..u32::try_from(stacks.len()).unwrap_or(NONE) {
            let (inner, own) = key_frames(&stacks, stack);
            let site = *known.entry((inner, own)).or_insert_with(|| {
                let name = own.or(inner).map_or_else(|| "(no stack)".to_owned(), frame_name);
                let inner = inner.filter(|_| own.is_some() && own != inner).map_or_else(String::new, frame_name);
                list.push(Site { name, inner, stack });
                u32::try_from(list.len() - 1).unwrap_or(NONE)
            });
            of_stack.push(site);
        }
        drop(known);
        Self { stacks: Arc::new(stacks), stack_of, list, of_stack }
    }

    /// Returns the site of a stack; [`NONE`] if unknown.
    pub fn site_of_stack(&self, stack: u32) -> u32 {
        self.of_stack.get(stack as usize).copied().unwrap_or(NONE)
    }

    /// Returns the innermost frame of the program itself.
    pub fn own_frame(&self, stack: u32) -> Option<&Frame> {
        key_frames(&self.stacks, stack).1
    }

    pub fn get(&self, site: u32) -> Option<&Site> {
        self.list.get(site as usize)
    }

    /// Returns true if any stack is known.
    pub fn has_stacks(&self) -> bool {
        !self.list.is_empty()
    }
}

/// Last component of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Formats the name of a frame: `leak (mem.py:7)`.
pub fn frame_name(frame: &Frame) -> String {
    let (function, file) = (cut_end(&frame.function, LONGEST), cut_middle(file_name(&frame.file), LONGEST));
    match &*frame.file {
        OPERATOR | RANGE | "" | "??" => function,
        _ if frame.line == 0 => format!("{function} ({file})"),
        _ => format!("{function} ({file}:{})", frame.line),
    }
}

/// Returns true for a native frame below Python.
fn is_native(frame: &Frame) -> bool {
    let file = &*frame.file;
    let ends = |e: &str| file.ends_with(e);
    file.is_empty() || file == "??" || ends(".cpp") || ends(".c") || ends(".h") || ends(".cc") || ends(".cu") || ends(".so")
}

/// Returns true for a frame in Python, `PyTorch` or another library, as opposed to the program.
pub fn is_library(frame: &Frame) -> bool {
    let file = &*frame.file;
    file == OPERATOR
        || file.starts_with('<')
        || file.starts_with("torch/")
        || is_generated(file)
        || ["/site-packages/", "/dist-packages/", "/lib/python3", "/torch/nn/", "/torch/optim/"].iter().any(|p| file.contains(p))
}

/// Returns the innermost informative frame, and the program's own innermost frame.
fn key_frames(stacks: &Stacks, stack: u32) -> (Option<&Frame>, Option<&Frame>) {
    let own = stacks.frames_of(stack).find(|f| !is_native(f) && !is_library(f));
    // Each allocation of a compiled program has a line of generated code of its own, which says nothing beside the
    // program's. Users do not know most C++ frames, but they recognize the operator.
    let told = |f: &&Frame| !is_native(f) && (own.is_none() || !is_generated(&f.file));
    let inner = stacks.frames_of(stack).find(told).or_else(|| stacks.frames_of(stack).find(|f| f.function.starts_with("at::_ops::")));
    (inner, own)
}

/// Converts a range to a frame; `None` for ranges that do not refer to a place in the code.
fn range_frame(name: &str, origin: RangeOrigin) -> Option<Frame> {
    let text = |t: &str| -> Arc<str> { Arc::from(t) };
    match origin {
        RangeOrigin::Operator => Some(Frame { function: text(name), file: text(OPERATOR), line: 0 }),
        // torch/nn/modules/linear.py(124): forward
        RangeOrigin::Python => {
            let (place, function) = name.split_once("): ")?;
            let (file, line) = place.rsplit_once('(')?;
            Some(Frame { function: text(function), file: text(file), line: line.parse().ok()? })
        }
        origin if origin.is_hardware() => None,
        _ if name.starts_with("ProfilerStep#") => None,
        _ => Some(Frame { function: name_pattern(name).into(), file: text(RANGE), line: 0 }),
    }
}

/// Ranges of a thread, in order of start (longest first if they start together), and the thread's allocations.
type OfThread = (Vec<u32>, Vec<u32>);

/// Builds stacks from the ranges, operators and Python functions around each allocation.
fn by_ranges(profile: &Profile) -> (Stacks, Vec<u32>) {
    let ranges = &profile.ranges;
    let events = &profile.memory.events;
    if ranges.is_empty() || events.is_empty() {
        return (Stacks::default(), Vec::new());
    }
    let mut stacks = Stacks::default();
    // Frame by name and origin.
    let mut frames: FxHashMap<(u32, RangeOrigin), u32> = FxHashMap::default();
    let mut known: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let mut stack_of = vec![NONE; events.len()];
    let mut threads: FxHashMap<(u32, u32), OfThread> = FxHashMap::default();
    for (row, event) in (0_u32..).zip(events) {
        threads.entry((event.pid, event.tid)).or_default().1.push(row);
    }
    for (row, range) in (0_u32..).zip(ranges.iter()) {
        let (pid, tid) = ranges.threads.get(range.thread as usize).copied().unwrap_or_default();
        // Allocations on an unknown thread get the ranges of all threads in their process.
        for key in [(pid, tid), (pid, 0)] {
            if let Some(thread) = threads.get_mut(&key) {
                thread.0.push(row);
            }
            if tid == 0 {
                break;
            }
        }
    }
    for (mut rows, allocations) in threads.into_values() {
        rows.sort_by_key(|&r| {
            let range = ranges.get(r as usize);
            (range.start, std::cmp::Reverse(range.end))
        });
        let mut open: Vec<(i64, u32)> = Vec::new();
        let mut next = rows.into_iter().peekable();
        for event in allocations {
            let time = events[event as usize].time;
            while let Some(range) = next.next_if(|&r| ranges.get(r as usize).start <= time).map(|r| ranges.get(r as usize)) {
                open.retain(|o| o.0 >= range.start);
                let index = *frames.entry((range.name, range.origin)).or_insert_with(|| {
                    let name = ranges.names.get(range.name as usize).map_or("", |n| &*n.1);
                    range_frame(name, range.origin).map_or(NONE, |frame| {
                        stacks.frames.push(frame);
                        u32::try_from(stacks.frames.len() - 1).unwrap_or(NONE)
                    })
                });
                if index != NONE {
                    open.push((range.end, index));
                }
            }
            open.retain(|o| o.0 >= time);
            if open.is_empty() {
                continue;
            }
            let stack: Vec<u32> = open.iter().rev().take(DEEPEST).map(|o| o.1).collect();
            stack_of[event as usize] = match known.get(&stack) {
                Some(&index) => index,
                None => {
                    let index = stacks.push(stack.iter().copied());
                    known.insert(stack, index);
                    index
                }
            };
        }
    }
    (stacks, stack_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of generated code do not split what one line of the program allocates.
    #[test]
    fn a_compiled_program_allocates_at_its_own_lines() {
        let frame = |function: &str, file: &str, line| Frame { function: function.into(), file: file.into(), line };
        let frames = vec![
            frame("call", "/tmp/torchinductor_me/ab/cab.py", 9_935),
            frame("call", "/tmp/torchinductor_me/ab/cab.py", 7_001),
            frame("run", "/usr/lib/python3/dist-packages/torch/_inductor/utils.py", 12),
            frame("forward", "/home/me/transformer.py", 22),
        ];
        let mut stacks = Stacks::default();
        stacks.frames = frames;
        let compiled: Vec<u32> = [[0, 2, 3], [1, 2, 3]].map(|stack| stacks.push(stack)).to_vec();
        let alone = stacks.push([0, 2]);
        let keys: Vec<_> = compiled.iter().map(|&stack| key_frames(&stacks, stack)).collect();
        assert_eq!(keys[0], keys[1]);
        assert_eq!(keys[0].1.map(|f| f.line), Some(22));
        // Without a line of the program, the generated one is all there is.
        assert_eq!(key_frames(&stacks, alone).0.map(|f| f.line), Some(9_935));
    }
}
