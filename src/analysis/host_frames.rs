//! Frames of host call stacks: choosing the one that represents a stack, and formatting it.

use super::code_origin::{CodeOrigin, short_path};
use crate::model::text::escape_unsafe;
use crate::model::{Samples, StackFrame};

/// Strips the enclosing functions from a qualified name: `collate` for `train.<locals>.collate`.
pub fn function_name(qualified: &str) -> &str {
    let name = qualified.rsplit_once("<locals>.").map_or(qualified, |(_, name)| name);
    // A lambda or comprehension has no name of its own.
    if name.starts_with('<') { qualified } else { name }
}

/// Formats the function, and the file with the executed line: `collate (dataset.py:88)`.
pub fn frame_label(frame: &StackFrame) -> String {
    let function = escape_unsafe(function_name(&frame.function));
    let file = frame.file.as_deref().map(|f| escape_unsafe(short_path(f)));
    match (file, frame.line) {
        (Some(file), Some(line)) => format!("{function} ({file}:{line})"),
        (Some(file), None) => format!("{function} ({file})"),
        (None, _) => function.into_owned(),
    }
}

/// Returns true for comprehensions, generator expressions and lambdas.
pub fn is_nested(frame: &StackFrame) -> bool {
    let last = frame.function.rsplit('.').next().unwrap_or_default();
    frame.python && last.starts_with('<') && last != "<module>"
}

/// Index of the frame to which a stack's time is attributed: the innermost frame of the program's own code, or else of
/// a package, or else the innermost of all. `frames` must begin with the innermost.
pub fn attributed_index(frames: &[(&StackFrame, CodeOrigin)]) -> Option<usize> {
    let mut best: Option<(CodeOrigin, usize)> = None;
    for (at, &(frame, origin)) in frames.iter().enumerate() {
        // A comprehension or lambda belongs to its enclosing function, which usually calls it.
        let inside = is_nested(frame) && frames.get(at + 1).is_some_and(|(caller, _)| caller.file.is_some() && caller.file == frame.file);
        if !inside && best.is_none_or(|b| origin < b.0) {
            best = Some((origin, at));
        }
    }
    best.map(|b| b.1)
}

/// Returns the frame that a stack is attributed to.
pub fn attributed_frame(samples: &Samples, stack: u32) -> Option<&StackFrame> {
    let frames: Vec<(&StackFrame, CodeOrigin)> = samples.frames_of(Some(stack)).map(|f| (f, CodeOrigin::of_frame(f))).collect();
    frames.get(attributed_index(&frames)?).map(|f| f.0)
}
