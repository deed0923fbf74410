//! A kernel's binary: its functions, and which source line each instruction came from (DWARF line tables, when it was built with `-lineinfo`).

use crate::model::code::{Function, SourceFile};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineInstruction, LineRow, LittleEndian, Reader};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use std::collections::HashMap;
use std::sync::Arc;

/// Sections get addresses of their own while the line table is read: an ELF file of CUDA has all of them at zero.
const SECTION_SHIFT: u32 = 40;
/// Rows of line tables that are read at most: a real binary of many kernels has some hundred thousand.
const MOST_ROWS: usize = 20_000_000;

/// What is read of a binary.
#[derive(Debug, Default)]
pub struct Cubin {
    /// Functions, without their addresses.
    pub functions: Vec<Function>,
    /// Files, numbered from 1.
    pub files: Vec<SourceFile>,
}

/// Reads a binary; what is damaged is left out.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<Cubin> {
    let elf = ElfFile64::<object::LittleEndian>::parse(bytes).ok()?;
    let mut out = Cubin::default();
    let mut by_section: HashMap<usize, usize> = HashMap::new();
    for section in elf.sections() {
        if let Some(name) = section.name().ok().and_then(|n| n.strip_prefix(".text.")) {
            by_section.insert(section.index().0, out.functions.len());
            out.functions.push(Function { name: Arc::from(name), size: section.size(), ..Function::default() });
        }
    }
    let Some(lines) = elf.section_by_name(".debug_line") else { return Some(out) };
    let mut data = lines.data().ok()?.to_vec();
    for (offset, relocation) in lines.relocations() {
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let Ok(symbol) = elf.symbol_by_index(symbol) else { continue };
        let Some(section) = symbol.section_index() else { continue };
        let address = ((section.0 as u64) << SECTION_SHIFT)
            .wrapping_add(symbol.address() & ((1 << SECTION_SHIFT) - 1))
            .wrapping_add_signed(relocation.addend());
        if let Some(slot) = usize::try_from(offset).ok().and_then(|o| data.get_mut(o..o.checked_add(8)?)) {
            slot.copy_from_slice(&address.to_le_bytes());
        }
    }
    // What of the table can be read is right; the rest has no lines.
    let _ = table(&data, &by_section, &mut out);
    for function in &mut out.functions {
        function.lines.sort_by_key(|l| l.0);
        function.lines.dedup_by_key(|l| l.0);
    }
    Some(out)
}

/// NVIDIA's own instruction of line tables: rows after it are inlined code, called from the row with this number (from 1, in its sequence; 0
/// for none).
const INLINED_CALL: u8 = 0x90;

fn table(data: &[u8], by_section: &HashMap<usize, usize>, out: &mut Cubin) -> gimli::Result<()> {
    let section = DebugLine::new(data, LittleEndian);
    let mut at = 0;
    let mut rows_left = MOST_ROWS;
    let mut files: HashMap<String, u32> = HashMap::new();
    while at < data.len() {
        let mut program = section.program(DebugLineOffset(at), 8, None, None)?;
        // The length does not count itself.
        let length = program.header().unit_length();
        at = at.saturating_add(length).saturating_add(4);
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        // File, line, and the row that called it, of every row of the sequence so far.
        let mut rows: Vec<(u32, u32, usize)> = Vec::new();
        let mut caller = 0;
        let mut row = LineRow::new(program.header());
        let mut instructions = program.header().instructions();
        while let Some(instruction) = instructions.next_instruction(program.header())? {
            if let LineInstruction::UnknownExtended(code, mut operands) = instruction
                && code.0 == INLINED_CALL
            {
                caller = operands.read_uleb128().map_or(0, |n| usize::try_from(n).unwrap_or(0));
                continue;
            }
            if !row.execute(instruction, &mut program)? {
                continue;
            }
            let Some(left) = rows_left.checked_sub(1) else { return Ok(()) };
            rows_left = left;
            let header = program.header();
            let file = *numbers.entry(row.file_index()).or_insert_with(|| {
                let name = header.file(row.file_index()).map(|f| path(header, f)).unwrap_or_default();
                let next = u32::try_from(out.files.len() + 1).unwrap_or(u32::MAX);
                *files.entry(name.clone()).or_insert_with(|| {
                    out.files.push(SourceFile { name: Arc::from(name), text: None, from_disk: false });
                    next
                })
            });
            let line = if row.end_sequence() { 0 } else { row.line().map_or(0, |l| u32::try_from(l.get()).unwrap_or(u32::MAX)) };
            rows.push((file, line, caller));
            let (file, line) = own(&rows, &out.files);
            let address = row.address();
            if row.end_sequence() {
                caller = 0;
                rows.clear();
            }
            row.reset(program.header());
            let section = usize::try_from(address >> SECTION_SHIFT).unwrap_or(usize::MAX);
            let Some(function) = by_section.get(&section).and_then(|&f| out.functions.get_mut(f)) else { continue };
            let offset = address & ((1 << SECTION_SHIFT) - 1);
            match function.lines.last_mut() {
                // Of several rows for one instruction the last counts.
                Some(last) if last.0 == offset => *last = (offset, file, line),
                _ => function.lines.push((offset, file, line)),
            }
        }
    }
    Ok(())
}

/// Calls of calls that are followed.
const DEEPEST: usize = 64;

/// File and line of the last row; of code that was inlined from a library, of the place in the user's own code that called it.
fn own(rows: &[(u32, u32, usize)], files: &[SourceFile]) -> (u32, u32) {
    let Some(&last) = rows.last() else { return (0, 0) };
    let library = |file: u32| {
        let name = usize::try_from(file).ok().and_then(|f| files.get(f.checked_sub(1)?)).map_or("", |f| &*f.name);
        ["/usr/", "/opt/"].iter().any(|p| name.starts_with(p)) || (name.contains("/cuda") && name.contains("/include/"))
    };
    let mut at = last;
    for _ in 0..DEEPEST {
        if !library(at.0) {
            return (at.0, at.1);
        }
        match at.2.checked_sub(1).and_then(|caller| rows.get(caller)) {
            Some(caller) => at = *caller,
            None => break,
        }
    }
    (last.0, last.1)
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Bytes of a path: Linux opens no longer one.
const LONGEST_PATH: usize = 4096;

fn path(header: &gimli::LineProgramHeader<Slice<'_>>, file: &gimli::FileEntry<Slice<'_>>) -> String {
    let text = |value: AttributeValue<Slice<'_>>| match value {
        AttributeValue::String(s) => s.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let name = text(file.path_name());
    let folder = file.directory(header).map(text).unwrap_or_default();
    let mut all = if name.starts_with('/') || folder.is_empty() { name } else { format!("{folder}/{name}") };
    let end = all.floor_char_boundary(LONGEST_PATH);
    all.truncate(end);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlined_library_code_belongs_to_the_line_that_called_it() {
        let file = |name: &str| SourceFile { name: Arc::from(name), ..SourceFile::default() };
        let files = [file("/home/me/k.cu"), file("/usr/local/cuda/include/crt/mma.hpp"), file("/home/me/helper.cuh")];
        // Row 1 calls; row 2 is inlined there; row 3 is inlined into row 2.
        let rows = [(1, 25, 0), (2, 91, 1), (2, 99, 2)];
        assert_eq!(own(&rows[..2], &files), (1, 25));
        assert_eq!(own(&rows, &files), (1, 25));
        // The user's own helper keeps its lines.
        assert_eq!(own(&[(1, 25, 0), (3, 7, 1)], &files), (3, 7));
        // Without a caller, or in a circle, the place itself.
        assert_eq!(own(&[(2, 91, 0)], &files), (2, 91));
        assert_eq!(own(&[(2, 91, 1)], &files), (2, 91));
        assert_eq!(own(&[], &files), (0, 0));
    }
}
