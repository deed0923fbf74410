//! Looks up source lines and inlined functions of native code in DWARF debug information.

use super::native_names::demangle_function;
use super::native_symbols::{Allowance, Parts};
use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use std::borrow::Cow;
use std::sync::Arc;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A source location: a function, and a line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFrame {
    pub function: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
}

/// Maximum number of functions per address: the innermost inlined functions, and the function that contains them.
const MOST_INLINED: usize = 16;

/// DWARF sections needed to find lines and inlined functions.
const SECTIONS: [SectionId; 10] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
];

/// Finds the functions at these addresses, innermost first; nothing for addresses without line information.
pub fn find_lines(parts: &Parts<'_>, addresses: &[u64], allowance: &mut Allowance) -> Vec<Vec<SourceFrame>> {
    let mut sections: Vec<(SectionId, Cow<'_, [u8]>)> = Vec::new();
    for id in SECTIONS {
        match parts.section(id.name(), allowance) {
            Some((_, data)) => sections.push((id, data)),
            // Nothing can be found without the first section, `.debug_info`.
            None if sections.is_empty() => return Vec::new(),
            None => {}
        }
    }
    let load = |id: SectionId| -> Result<Slice<'_>, gimli::Error> {
        let data = sections.iter().find(|s| s.0 == id).map_or(&[][..], |s| &s.1);
        Ok(EndianSlice::new(data, LittleEndian))
    };
    let Ok(dwarf) = Dwarf::load(load) else { return Vec::new() };
    let Ok(context) = Context::from_dwarf(dwarf) else { return Vec::new() };
    addresses.iter().map(|&address| find_frames(&context, address).unwrap_or_default()).collect()
}

fn find_frames(context: &Context<Slice<'_>>, address: u64) -> Result<Vec<SourceFrame>, gimli::Error> {
    let mut frames = context.find_frames(address).skip_all_loads()?;
    let mut out = Vec::new();
    while let Some(frame) = frames.next()? {
        let place = frame.location;
        let name = frame.function.and_then(|f| f.raw_name().ok().map(|n| demangle_function(&n)));
        if out.len() < MOST_INLINED {
            out.push(SourceFrame {
                function: name,
                file: place.as_ref().and_then(|l| l.file).map(Arc::from),
                line: place.as_ref().and_then(|l| l.line).filter(|&line| line > 0),
            });
        }
    }
    Ok(out)
}
