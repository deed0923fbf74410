//! A kernel's binary: its functions, and which source line each instruction came from (DWARF line tables, when it was built with `-lineinfo`).

use crate::model::code::{Function, SourceFile};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LittleEndian};
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

fn table(data: &[u8], by_section: &HashMap<usize, usize>, out: &mut Cubin) -> gimli::Result<()> {
    let section = DebugLine::new(data, LittleEndian);
    let mut at = 0;
    let mut rows_left = MOST_ROWS;
    let mut files: HashMap<String, u32> = HashMap::new();
    while at < data.len() {
        let program = section.program(DebugLineOffset(at), 8, None, None)?;
        // The length does not count itself.
        let length = program.header().unit_length();
        at = at.saturating_add(length).saturating_add(4);
        let mut rows = program.rows();
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        while let Some((header, row)) = rows.next_row()? {
            let Some(left) = rows_left.checked_sub(1) else { return Ok(()) };
            rows_left = left;
            let index = row.file_index();
            let file = *numbers.entry(index).or_insert_with(|| {
                let name = header.file(index).map(|f| path(header, f)).unwrap_or_default();
                let next = u32::try_from(out.files.len() + 1).unwrap_or(u32::MAX);
                *files.entry(name.clone()).or_insert_with(|| {
                    out.files.push(SourceFile { name: Arc::from(name), text: None, from_disk: false });
                    next
                })
            });
            let address = row.address();
            let section = usize::try_from(address >> SECTION_SHIFT).unwrap_or(usize::MAX);
            let Some(function) = by_section.get(&section).and_then(|&f| out.functions.get_mut(f)) else { continue };
            let offset = address & ((1 << SECTION_SHIFT) - 1);
            let line = if row.end_sequence() { 0 } else { row.line().map_or(0, |l| u32::try_from(l.get()).unwrap_or(u32::MAX)) };
            match function.lines.last_mut() {
                // Of several rows for one instruction the last counts.
                Some(last) if last.0 == offset => *last = (offset, file, line),
                _ => function.lines.push((offset, file, line)),
            }
        }
    }
    Ok(())
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

fn path(header: &gimli::LineProgramHeader<Slice<'_>>, file: &gimli::FileEntry<Slice<'_>>) -> String {
    let text = |value: AttributeValue<Slice<'_>>| match value {
        AttributeValue::String(s) => s.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let name = text(file.path_name());
    let folder = file.directory(header).map(text).unwrap_or_default();
    if name.starts_with('/') || folder.is_empty() { name } else { format!("{folder}/{name}") }
}
