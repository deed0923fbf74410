//! Code of a kernel: functions with their instructions and the corresponding source lines.

use std::sync::Arc;

/// A source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// Path at compilation.
    pub name: Arc<str>,
    /// Contents: stored in the report, or read from disk.
    pub text: Option<Arc<str>>,
    /// The text is from disk, and may have changed since.
    pub from_disk: bool,
}

/// A function of the binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    pub name: Arc<str>,
    /// Address at the time of profiling.
    pub address: u64,
    /// Bytes of its code.
    pub size: u64,
    /// Line table: offset from which on instructions belong to a file (from 1) and line (from 1); by offset.
    pub lines: Vec<(u64, u32, u32)>,
    /// Offset and text of its instructions, if disassembled; by offset.
    pub instructions: Vec<(u64, Arc<str>)>,
}

/// Code of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Files, numbered from 1 as in [`Function::lines`].
    pub files: Vec<SourceFile>,
    /// By address.
    pub functions: Vec<Function>,
    /// Remarks on missing parts and their reasons.
    pub remarks: Vec<String>,
}

impl Code {
    /// Function at an address, and the offset in it.
    pub fn find_function(&self, address: u64) -> Option<(&Function, u64)> {
        let next = self.functions.partition_point(|f| f.address <= address);
        let function = self.functions.get(next.checked_sub(1)?)?;
        let offset = address - function.address;
        (function.size == 0 || offset < function.size).then_some((function, offset))
    }
}

impl Function {
    /// File and line at an offset.
    pub fn line_at(&self, offset: u64) -> Option<(u32, u32)> {
        let next = self.lines.partition_point(|l| l.0 <= offset);
        self.lines.get(next.checked_sub(1)?).map(|l| (l.1, l.2)).filter(|l| l.1 > 0)
    }

    /// Text of the instruction at an offset.
    pub fn instruction_at(&self, offset: u64) -> Option<&Arc<str>> {
        self.instructions.binary_search_by_key(&offset, |i| i.0).ok().and_then(|at| self.instructions.get(at)).map(|i| &i.1)
    }
}
