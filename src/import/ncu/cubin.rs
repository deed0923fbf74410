//! Reader for kernel binaries: finds the functions, and the source line of each instruction (from DWARF line tables,
//! if compiled with `-lineinfo`).

use crate::import::Cancel;
use crate::model::code::{Function, SourceFile};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineInstruction, LineRow, LittleEndian, Reader};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use std::collections::HashMap;
use std::sync::Arc;

/// Shift for synthetic section addresses in the line table, because all sections of a CUDA ELF file are at address
/// zero.
const SECTION_SHIFT: u32 = 40;
/// Maximum number of line table rows; a real binary with many kernels has several hundred thousand.
const MOST_ROWS: usize = 4_000_000;
/// Maximum total size of file paths, bytes: an entry of a few bytes may refer to a directory name of thousands of
/// bytes.
const MOST_PATHS: usize = 16 << 20;
/// Minimum size of an instruction, bytes: 8 up to Pascal, 16 on later GPUs.
const LEAST_INSTRUCTION: u64 = 8;
/// Number of line table instructions between two checks for cancellation.
const LOOK: usize = 1 << 12;

/// Contents of a kernel binary.
#[derive(Debug, Default)]
pub struct Cubin {
    /// Functions, whose addresses are not known yet.
    pub functions: Vec<Function>,
    /// Files, numbered from 1.
    pub files: Vec<SourceFile>,
}

/// Reads a binary, skipping damaged parts and, after cancellation, the remaining line tables.
pub fn read_cubin(bytes: &[u8], cancel: &Cancel) -> Option<Cubin> {
    let elf = ElfFile64::<object::LittleEndian>::parse(bytes).ok()?;
    let mut out = Cubin::default();
    let mut by_section: HashMap<usize, usize> = HashMap::new();
    for section in elf.sections() {
        if let Some(name) = section.name().ok().and_then(|n| n.strip_prefix(".text.")) {
            by_section.insert(section.index().0, out.functions.len());
            let size = section.size().min(bytes.len() as u64);
            out.functions.push(Function { name: Arc::from(name), size, ..Function::default() });
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
    // Rows read before an error are valid; instructions after them have no lines.
    let _ = read_line_table(&data, &by_section, &mut out, cancel);
    for function in &mut out.functions {
        function.lines.sort_by_key(|l| l.0);
        function.lines.dedup_by_key(|l| l.0);
    }
    Some(out)
}

/// NVIDIA's extended opcode for line tables: the rows that follow are inlined code, called from the row with the
/// given number (starting at 1 within the sequence; 0 for none).
const INLINED_CALL: u8 = 0x90;

/// A row of the current sequence, and its location in user code if known.
struct Row {
    own: Option<(u32, u32)>,
}

fn read_line_table(data: &[u8], by_section: &HashMap<usize, usize>, out: &mut Cubin, cancel: &Cancel) -> gimli::Result<()> {
    let section = DebugLine::new(data, LittleEndian);
    let mut at = 0;
    let mut rows_left = MOST_ROWS;
    let mut files: HashMap<String, u32> = HashMap::new();
    // True for each file that belongs to a library.
    let mut library: Vec<bool> = Vec::new();
    let (mut paths, mut steps) = (0, 0_usize);
    while at < data.len() {
        let mut program = section.program(DebugLineOffset(at), 8, None, None)?;
        // The unit length excludes the length field itself.
        let length = program.header().unit_length();
        at = at.saturating_add(length).saturating_add(4);
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut rows: Vec<Row> = Vec::new();
        let mut caller = 0;
        let mut row = LineRow::new(program.header());
        let mut instructions = program.header().instructions();
        while let Some(instruction) = instructions.next_instruction(program.header())? {
            steps += 1;
            if steps.is_multiple_of(LOOK) && cancel.is_cancelled() {
                return Ok(());
            }
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
                let name = header.file(row.file_index()).map(|f| file_path(header, f)).unwrap_or_default();
                let next = u32::try_from(out.files.len() + 1).unwrap_or(u32::MAX);
                *files.entry(name.clone()).or_insert_with(|| {
                    paths += name.len();
                    library.push(is_library(&name));
                    out.files.push(SourceFile { name: Arc::from(name), text: None, from_disk: false });
                    next
                })
            });
            let line = if row.end_sequence() { 0 } else { row.line().map_or(0, |l| u32::try_from(l.get()).unwrap_or(u32::MAX)) };
            if paths > MOST_PATHS {
                return Ok(());
            }
            let own = user_location(&rows, file, line, caller, &library);
            rows.push(Row { own });
            let (file, line) = own.unwrap_or((file, line));
            let address = row.address();
            if row.end_sequence() {
                caller = 0;
                rows.clear();
            }
            row.reset(program.header());
            let section = usize::try_from(address >> SECTION_SHIFT).unwrap_or(usize::MAX);
            let Some(function) = by_section.get(&section).and_then(|&f| out.functions.get_mut(f)) else { continue };
            let offset = address & ((1 << SECTION_SHIFT) - 1);
            let more = function.lines.len() as u64 <= function.size / LEAST_INSTRUCTION;
            match function.lines.last_mut() {
                // If an instruction has several rows, use the last one.
                Some(last) if last.0 == offset => *last = (offset, file, line),
                // A function cannot have more locations than instructions.
                _ if more => function.lines.push((offset, file, line)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns true if a file belongs to a library or to the CUDA toolkit.
fn is_library(name: &str) -> bool {
    ["/usr/", "/opt/"].iter().any(|p| name.starts_with(p)) || (name.contains("/cuda") && name.contains("/include/"))
}

/// Returns the location of a row in user code: its own location or, for code inlined from a library, that of the
/// calling row (by number, 0 for none). Only earlier rows can be callers.
fn user_location(rows: &[Row], file: u32, line: u32, caller: usize, library: &[bool]) -> Option<(u32, u32)> {
    let of_library = usize::try_from(file).ok().and_then(|f| library.get(f.checked_sub(1)?)).is_some_and(|&l| l);
    if !of_library {
        return Some((file, line));
    }
    let caller = rows.get(caller.checked_sub(1)?)?;
    caller.own
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Maximum length of a path, bytes, as on Linux (`PATH_MAX`).
const LONGEST_PATH: usize = 4096;

fn file_path(header: &gimli::LineProgramHeader<Slice<'_>>, file: &gimli::FileEntry<Slice<'_>>) -> String {
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
        assert!(
            is_library("/usr/local/cuda/include/crt/mma.hpp") && is_library("/home/me/cuda-12/include/x.h") && !is_library("/home/me/k.cu")
        );
        // The files are the user's kernel, a library header, and the user's helper.
        let library = [false, true, false];
        let mut rows: Vec<Row> = Vec::new();
        let mut add = |file, line, caller| {
            let own = user_location(&rows, file, line, caller, &library);
            rows.push(Row { own });
            own
        };
        // Row 1 is the call, row 2 is inlined into row 1, and row 3 is inlined into row 2.
        assert_eq!(add(1, 25, 0), Some((1, 25)));
        assert_eq!(add(2, 91, 1), Some((1, 25)));
        assert_eq!(add(2, 99, 2), Some((1, 25)));
        // A helper written by the user keeps its own lines.
        assert_eq!(add(3, 7, 1), Some((3, 7)));
        // The location is unknown if there is no caller, or if the caller is the row itself or a later one.
        assert_eq!(add(2, 91, 0), None);
        assert_eq!(add(2, 91, 6), None);
        assert_eq!(add(2, 91, 70), None);
    }
}
