//! Kernel code: functions, instructions and source lines.

use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// Path at compile time.
    pub name: Arc<str>,
    /// Contents, from the report or from disk.
    pub text: Option<Arc<str>>,
    /// True if the contents were read from disk, where the file may have changed since compilation.
    pub from_disk: bool,
}

/// A function in the binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    pub name: Arc<str>,
    /// Address at the time of profiling.
    pub address: u64,
    /// Code size in bytes.
    pub size: u64,
    /// Line table, sorted by offset: offset of the first instruction, file number and line (both starting at 1).
    pub lines: Vec<(u64, u32, u32)>,
    /// Instructions as (offset, text), sorted by offset; empty if not disassembled.
    pub instructions: Vec<(u64, Arc<str>)>,
}

/// Source files and functions of a profiled kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Files, numbered from 1 as in [`Function::lines`].
    pub files: Vec<SourceFile>,
    /// Functions, sorted by address.
    pub functions: Vec<Function>,
    /// Explains which parts are missing, and why.
    pub remarks: Vec<String>,
}

impl Code {
    /// Finds the function at an address, and the offset within it.
    pub fn find_function(&self, address: u64) -> Option<(&Function, u64)> {
        let next = self.functions.partition_point(|f| f.address <= address);
        let function = self.functions.get(next.checked_sub(1)?)?;
        let offset = address - function.address;
        (function.size == 0 || offset < function.size).then_some((function, offset))
    }
}

impl Function {
    /// File number and line at an offset.
    pub fn line_at(&self, offset: u64) -> Option<(u32, u32)> {
        let next = self.lines.partition_point(|l| l.0 <= offset);
        self.lines.get(next.checked_sub(1)?).map(|l| (l.1, l.2)).filter(|l| l.1 > 0)
    }

    /// Text of the instruction at an offset.
    pub fn instruction_at(&self, offset: u64) -> Option<&Arc<str>> {
        self.instructions.binary_search_by_key(&offset, |i| i.0).ok().and_then(|at| self.instructions.get(at)).map(|i| &i.1)
    }
}
