//! Rows for Python functions, native modules, stacks, and samples of launching threads.

use super::varint::Cursor;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    pub number: u32,
    /// String ids.
    pub file: u32,
    pub name: u32,
    pub first_line: i64,
    /// Minor version of Python 3, which determines the encoding of `lines`.
    pub minor: u32,
    pub lines: Vec<u8>,
}

/// An executable or library. Frames refer to it as their function if their function is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleRow {
    /// Number among the functions.
    pub number: u32,
    /// String id.
    pub path: u32,
    /// GNU build id; empty if it has none.
    pub build_id: Vec<u8>,
    /// Size of the file, and time of its last modification in seconds since 1970; 0 if unknown.
    pub file_bytes: u64,
    pub file_time: u64,
}

/// A function in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFunctionRow {
    pub number: u32,
    pub module: u32,
    /// Virtual address in the file.
    pub start: u64,
}

/// A frame on top of another stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackRow {
    pub number: u32,
    /// Stack of the caller; 0 for the outermost frame.
    pub caller: u32,
    /// Function id, or module id; 0 if frames are missing here because the stack was too deep.
    pub function: u32,
    /// Offset of the instruction within the function, bytes; in a module, its virtual address in the file.
    pub offset: i64,
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRow {
    pub thread: u32,
    /// Time in nanoseconds since 1970.
    pub time: i64,
    /// Stack id; 0 if there is none.
    pub stack: u32,
    pub activity: u8,
}

impl ModuleRow {
    pub fn size(&self) -> usize {
        self.build_id.len()
    }
}

impl FunctionRow {
    pub fn size(&self) -> usize {
        self.lines.len()
    }
}

pub fn read_function(c: &mut Cursor<'_>) -> Option<FunctionRow> {
    Some(FunctionRow {
        number: c.read_u32()?,
        file: c.read_u32()?,
        name: c.read_u32()?,
        first_line: c.read_signed()?,
        minor: c.read_u32()?,
        lines: c.read_text()?.to_vec(),
    })
}

pub fn read_module(c: &mut Cursor<'_>) -> Option<ModuleRow> {
    Some(ModuleRow {
        number: c.read_u32()?,
        path: c.read_u32()?,
        build_id: c.read_text()?.to_vec(),
        file_bytes: c.read_varint()?,
        file_time: c.read_varint()?,
    })
}

pub fn read_native_function(c: &mut Cursor<'_>) -> Option<NativeFunctionRow> {
    Some(NativeFunctionRow { number: c.read_u32()?, module: c.read_u32()?, start: c.read_varint()? })
}

pub fn read_stack(c: &mut Cursor<'_>) -> Option<StackRow> {
    Some(StackRow { number: c.read_u32()?, caller: c.read_u32()?, function: c.read_u32()?, offset: c.read_signed()? })
}

/// Reads a row, which is relative to the previous row of its block.
pub fn read_sample(c: &mut Cursor<'_>, before: &mut SampleRow) -> Option<SampleRow> {
    const MICROSECOND: i64 = 1000;
    let moved = |from: u32, by: i64| u32::try_from(i64::from(from).checked_add(by)?).ok();
    *before = SampleRow {
        thread: moved(before.thread, c.read_signed()?)?,
        time: before.time.checked_add(c.read_signed()?.checked_mul(MICROSECOND)?)?,
        stack: moved(before.stack, c.read_signed()?)?,
        activity: c.read_byte()?,
    };
    Some(*before)
}

impl SampleRow {
    /// Values that precede the first row of a block.
    pub const START: Self = Self { thread: 0, time: 0, stack: 0, activity: 0 };
}
