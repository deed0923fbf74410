//! Frames of native code: a module and an address, which become functions and lines if the module's file is still there.

use super::host_sample_rows::{ModuleRow, StackRow};
use super::names::Names;
use super::native_lines::{SourceFrame, find_lines};
use super::native_names::demangle_function;
use super::native_symbols::{Allowance, ModuleFile};
use crate::model::StackFrame;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// Largest number of modules whose files are opened.
const MOST_MODULES: usize = 1024;

/// Frames by module number and address, innermost first: inlined functions are frames of their own.
pub type NativeFrames = FxHashMap<(u32, i64), Vec<StackFrame>>;

/// Names the native frames of a process.
pub fn build_frames(names: &Names, modules: &[ModuleRow], stacks: &[StackRow]) -> NativeFrames {
    let mut wanted: FxHashMap<u32, Vec<u64>> = modules.iter().take(MOST_MODULES).map(|m| (m.number, Vec::new())).collect();
    for row in stacks {
        if let Some(addresses) = wanted.get_mut(&row.function) {
            addresses.push(row.offset.cast_unsigned());
        }
    }
    let mut out = NativeFrames::default();
    let mut allowance = Allowance::default();
    for module in modules {
        let Some(mut addresses) = wanted.remove(&module.number) else { continue };
        addresses.sort_unstable();
        addresses.dedup();
        let path = names.get(module.path).unwrap_or_else(|| "[unknown]".into());
        let beside = names.executable.as_deref().is_some_and(|program| is_beside(&path, program));
        for (address, frames) in addresses.iter().zip(frames_of(&path, module, &addresses, &mut allowance)) {
            let named = frames.into_iter().map(|frame| StackFrame {
                function: frame.function.unwrap_or_else(|| address_name(&path, *address)),
                file: Some(frame.file.unwrap_or_else(|| path.clone())),
                line: frame.line,
                python: false,
                module: Some(path.clone()),
                beside,
            });
            out.insert((module.number, address.cast_signed()), named.collect());
        }
    }
    out
}

/// Name of a function without a symbol: `program+0x1234`.
fn address_name(path: &str, address: u64) -> Arc<str> {
    Arc::from(format!("{}+0x{address:x}", path.rsplit('/').next().unwrap_or(path)))
}

fn frames_of(path: &Arc<str>, module: &ModuleRow, addresses: &[u64], allowance: &mut Allowance) -> Vec<Vec<SourceFrame>> {
    let bare = |name: Arc<str>| vec![SourceFrame { function: Some(name), file: None, line: None }];
    let unknown = || addresses.iter().map(|&a| bare(address_name(path, a))).collect();
    let is_file = path.starts_with('/');
    let Some(file) = is_file.then(|| ModuleFile::open_module(Path::new(&**path), module)).flatten() else { return unknown() };
    let Some(parts) = file.parts() else { return unknown() };
    let has_all = parts.has_section(".debug_info") && parts.has_section(".symtab");
    let debug = if has_all { None } else { ModuleFile::open_debug(&module.build_id) };
    let debug_parts = debug.as_ref().and_then(ModuleFile::parts);
    let mut symbols = parts.find_symbols(addresses, allowance);
    if let Some(more) = debug_parts.as_ref().map(|p| p.find_symbols(addresses, allowance)) {
        for (symbol, other) in symbols.iter_mut().zip(more) {
            *symbol = other.or(symbol.take());
        }
    }
    let described = debug_parts.as_ref().filter(|p| p.has_section(".debug_info")).unwrap_or(&parts);
    let mut lines = if described.has_section(".debug_info") { find_lines(described, addresses, allowance) } else { Vec::new() };
    lines.resize(addresses.len(), Vec::new());
    let starts = if symbols.iter().all(Option::is_some) { Vec::new() } else { parts.find_starts(addresses, allowance) };
    let linkage = parts.linkage_tables();
    let mut out = Vec::with_capacity(addresses.len());
    for (at, ((symbol, mut frames), &address)) in symbols.into_iter().zip(lines).zip(addresses).enumerate() {
        let name = match symbol {
            Some(symbol) => demangle_function(&symbol.name),
            None if linkage.iter().any(|table| table.contains(&address)) => Arc::from("[plt]"),
            None => address_name(path, starts.get(at).copied().flatten().unwrap_or(address)),
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

/// Returns true for a library in the folder of the program, or below it: it belongs to the program.
fn is_beside(module: &str, program: &str) -> bool {
    let Some((folder, _)) = program.rsplit_once('/') else { return false };
    // Programs that are installed share their folder with others.
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
