//! Builds the frames of native code. The trace contains modules and addresses, which are resolved to functions and
//! lines if the module's file still exists.

use super::host_sample_rows::{ModuleRow, NativeFunctionRow};
use super::names::Names;
use super::native_lines::{SourceFrame, find_lines};
use super::native_names::demangle_function;
use super::native_symbols::{Allowance, ModuleFile};
use super::rows::Rows;
use crate::model::StackFrame;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of modules per process whose files are opened.
const MOST_MODULES: usize = 1024;

/// Function or module number of a stack row, and its offset.
type RowKey = (u32, i64);

/// Frames of each stack row, with inlined functions first.
pub type NativeFrames = FxHashMap<RowKey, Vec<StackFrame>>;

/// Address of a frame, and the start address of its function if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    address: u64,
    start: Option<u64>,
}

/// Names the native frames of a process.
pub fn build_frames(names: &Names, rows: &Rows) -> NativeFrames {
    let functions: FxHashMap<u32, &NativeFunctionRow> = rows.native_functions.iter().map(|f| (f.number, f)).collect();
    let mut wanted: FxHashMap<u32, Vec<(Place, RowKey)>> = rows.modules.iter().take(MOST_MODULES).map(|m| (m.number, Vec::new())).collect();
    for row in &rows.stacks {
        let (module, place) = match functions.get(&row.function) {
            Some(f) => (f.module, Place { address: f.start.wrapping_add_signed(row.offset), start: Some(f.start) }),
            None => (row.function, Place { address: row.offset.cast_unsigned(), start: None }),
        };
        if let Some(places) = wanted.get_mut(&module) {
            places.push((place, (row.function, row.offset)));
        }
    }
    let mut out = NativeFrames::default();
    let mut allowance = Allowance::default();
    for module in &rows.modules {
        let Some(mut wanted) = wanted.remove(&module.number) else { continue };
        wanted.sort_unstable();
        wanted.dedup();
        let (places, keys): (Vec<Place>, Vec<_>) = wanted.into_iter().unzip();
        let path = names.get(module.path).unwrap_or_else(|| "[unknown]".into());
        let beside = names.executable.as_deref().is_some_and(|program| is_beside(&path, program));
        for (key, frames) in keys.into_iter().zip(frames_of(&path, module, &places, &mut allowance)) {
            let named = frames.into_iter().map(|frame| StackFrame {
                function: frame.function.unwrap_or_else(|| "(unnamed function)".into()),
                file: Some(frame.file.unwrap_or_else(|| path.clone())),
                line: frame.line,
                first_line: false,
                python: false,
                module: Some(path.clone()),
                beside,
            });
            out.insert(key, named.collect());
        }
    }
    out
}

/// Name of a function without a symbol: `program+0x1234`.
fn address_name(path: &str, place: Place) -> Arc<str> {
    Arc::from(format!("{}+0x{:x}", path.rsplit('/').next().unwrap_or(path), place.start.unwrap_or(place.address)))
}

fn frames_of(path: &Arc<str>, module: &ModuleRow, places: &[Place], allowance: &mut Allowance) -> Vec<Vec<SourceFrame>> {
    let bare = |name: Arc<str>| vec![SourceFrame { function: Some(name), file: None, line: None }];
    let unknown = || places.iter().map(|&p| bare(address_name(path, p))).collect();
    let is_file = path.starts_with('/');
    let Some(file) = is_file.then(|| ModuleFile::open_module(Path::new(&**path), module)).flatten() else { return unknown() };
    let Some(parts) = file.parts() else { return unknown() };
    let addresses: Vec<u64> = places.iter().map(|p| p.address).collect();
    let has_all = parts.has_section(".debug_info") && parts.has_section(".symtab");
    let debug = if has_all { None } else { ModuleFile::open_debug(&module.build_id) };
    let debug_parts = debug.as_ref().and_then(ModuleFile::parts);
    let mut symbols = parts.find_symbols(&addresses, allowance);
    if let Some(more) = debug_parts.as_ref().map(|p| p.find_symbols(&addresses, allowance)) {
        for (symbol, other) in symbols.iter_mut().zip(more) {
            *symbol = other.or(symbol.take());
        }
    }
    let described = debug_parts.as_ref().filter(|p| p.has_section(".debug_info")).unwrap_or(&parts);
    let mut lines = if described.has_section(".debug_info") { find_lines(described, &addresses, allowance) } else { Vec::new() };
    lines.resize(addresses.len(), Vec::new());
    let linkage = parts.linkage_tables();
    let mut out = Vec::with_capacity(addresses.len());
    for ((symbol, mut frames), &place) in symbols.into_iter().zip(lines).zip(places) {
        let name = match symbol {
            Some(symbol) => demangle_function(&symbol.name),
            None if linkage.iter().any(|table| table.contains(&place.address)) => Arc::from("[plt]"),
            None => address_name(path, place),
        };
        match frames.last_mut() {
            Some(outermost) => outermost.function.get_or_insert(name),
            None => {
                frames = bare(name);
                out.push(frames);
                continue;
            }
        };
        out.push(frames);
    }
    out
}

/// Returns true if a library is in the program's directory or below it, and therefore considered part of the program.
fn is_beside(module: &str, program: &str) -> bool {
    let Some((folder, _)) = program.rsplit_once('/') else { return false };
    // Installed programs share a directory, so a library there may not belong to this program.
    let shared = folder.ends_with("/bin") || folder.ends_with("/sbin") || folder.matches('/').count() < 2;
    let package = ["/site-packages/", "/dist-packages/"].iter().any(|p| module.contains(p));
    !shared && !package && module.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_beside_the_program_belong_to_it() {
        let program = "/home/me/app/build/train";
        assert!(is_beside("/home/me/app/build/libloader.so", program));
        assert!(is_beside("/home/me/app/build/lib/libloader.so", program));
        assert!(!is_beside("/home/me/app/builder/libloader.so", program));
        assert!(!is_beside("/usr/lib/libz.so.1", program));
        assert!(!is_beside("/usr/bin/libx.so", "/usr/bin/program"));
        assert!(!is_beside("/libx.so", "/program"));
    }
}
