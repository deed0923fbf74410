//! Reads the code of a result on demand: binary and sources stored in the report, source files from disk if the
//! report has none, and instructions from NVIDIA's disassembler if installed.

use super::cubin;
use super::proto;
use super::wire::{Form, Wire};
use crate::import::input::Bytes;
use crate::import::source_file::{self, source_folders};
use crate::import::{Cancel, ImportError, Input};
use crate::launch;
use crate::model::code::{Code, Function};
use crate::model::metrics::Sampled;
use crate::model::sections::InstanceKey;
use crate::model::{Details, Metrics, Value};
use prost::Message;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of source files to read from disk.
const MOST_FILES: usize = 64;
/// Timeout for a disassembler.
const PATIENCE: Duration = Duration::from_secs(20);
/// Memory overhead of a symbol, bytes.
const SYMBOL: usize = 64;
/// Maximum number of instructions to keep.
const MOST_INSTRUCTIONS: usize = 2_000_000;

/// Reads the code of a result. `tools` are the installed disassemblers, in the order in which to try them.
pub fn read_code(
    input: &Input,
    metrics: &Metrics,
    result: usize,
    details: &Details,
    tools: &[PathBuf],
    cancel: &Cancel,
) -> Result<Code, ImportError> {
    let mut code = Code::default();
    let mut stored: HashMap<String, String> = HashMap::new();
    let mut addresses: HashMap<String, u64> = HashMap::new();
    let mut wire = Wire::open(&input.path, &input.bytes, input.size)?;
    let mut binary = None;
    for source in metrics.sources.iter().filter(|s| details.sources.contains(&s.reference)) {
        wire.seek_to(source.place.at)?;
        let end = source.place.at.saturating_add(source.place.length);
        stored_code(&mut wire, end, &mut binary, &mut stored, &mut addresses)?;
    }
    let first = first_address(metrics, result, details);
    match &binary {
        None => code.remarks.push("the report has no binary of this kernel: addresses only".to_owned()),
        Some(binary) => match cubin::read_cubin(binary, cancel) {
            None => code.remarks.push("the binary in the report is not an ELF file: addresses only".to_owned()),
            Some(found) => {
                code.files = found.files;
                code.functions = found.functions;
            }
        },
    }
    let own = metrics.results.get(result).and_then(|r| r.kernel.mangled.clone());
    for function in &mut code.functions {
        let known = addresses.get(&*function.name).copied();
        // Metric values include the address of the kernel, even if symbols are missing.
        function.address = known.or(first.filter(|_| own.as_deref() == Some(&*function.name))).unwrap_or(0);
    }
    code.functions.retain(|f| f.address > 0);
    code.functions.sort_by_key(|f| f.address);
    if code.functions.is_empty()
        && let Some(address) = first
    {
        // Add the kernel as the only function, because offsets from its start are more useful than absolute addresses.
        code.functions.push(Function { name: own.unwrap_or_else(|| Arc::from("kernel")), address, ..Function::default() });
    }
    if binary.is_some() && code.functions.iter().all(|f| f.lines.is_empty()) {
        code.remarks.push(NO_LINES.to_owned());
    }
    let folders = source_folders(&input.path, metrics.directory.as_deref());
    add_texts(&mut code, Some(&stored), &folders);
    if let Some(binary) = binary {
        let report = match &input.bytes {
            Bytes::File(path) => Some((path.as_path(), result)),
            Bytes::BuiltIn(_) => None,
        };
        disassemble_code(&mut code, &[(&binary, None)], details, tools, report, cancel);
    }
    Ok(code)
}

const NO_LINES: &str = "no line information: build with nvcc -lineinfo (or your compiler's equivalent) to see source lines";

/// Reads the code of a launch that was sampled during the run; `modules` are the stored binaries.
pub fn of_modules(
    input: &Input,
    metrics: &Metrics,
    sampled: &Sampled,
    modules: &BTreeMap<u64, Vec<u8>>,
    tools: &[PathBuf],
    cancel: &Cancel,
) -> Code {
    let mut code = Code::default();
    let wanted: HashMap<(u64, &str), u64> = sampled.functions.iter().map(|f| ((f.module, &*f.name), f.address)).collect();
    for (module, binary) in modules {
        let Some(found) = cubin::read_cubin(binary, cancel) else { continue };
        let before = u32::try_from(code.files.len()).unwrap_or(u32::MAX);
        code.files.extend(found.files);
        for mut function in found.functions {
            let Some(address) = wanted.get(&(*module, &*function.name)) else { continue };
            function.address = *address;
            for line in function.lines.iter_mut().filter(|l| l.1 > 0) {
                line.1 = line.1.saturating_add(before);
            }
            code.functions.push(function);
        }
    }
    if modules.is_empty() {
        let why = "the trace does not have this kernel's code, so there are offsets only (`warpscope help measure` says when it is kept)";
        code.remarks.push(why.to_owned());
    } else if code.functions.iter().all(|f| f.lines.is_empty()) {
        code.remarks.push(NO_LINES.to_owned());
    }
    let known: HashSet<u64> = code.functions.iter().map(|f| f.address).collect();
    let rest = sampled.functions.iter().filter(|f| !known.contains(&f.address));
    code.functions.extend(rest.map(|f| Function { name: f.name.clone(), address: f.address, ..Function::default() }));
    code.functions.sort_by_key(|f| f.address);
    add_texts(&mut code, None, &source_folders(&input.path, metrics.directory.as_deref()));
    if !modules.is_empty() {
        // ncu can disassemble reports, but not binaries.
        let tools: Vec<PathBuf> = tools.iter().filter(|t| t.file_name().is_none_or(|n| n != "ncu")).cloned().collect();
        let of = |module: u64| sampled.functions.iter().filter(move |f| f.module == module).map(|f| f.address).collect();
        let binaries: Vec<(&[u8], Option<HashSet<u64>>)> = modules.iter().map(|(m, b)| (b.as_slice(), Some(of(*m)))).collect();
        disassemble_code(&mut code, &binaries, &sampled.details, &tools, None, cancel);
    }
    code
}

/// Disassembles the instructions using the first tool that succeeds. If there are several binaries, each is
/// accompanied by the addresses of its functions.
fn disassemble_code(
    code: &mut Code,
    binaries: &[(&[u8], Option<HashSet<u64>>)],
    details: &Details,
    tools: &[PathBuf],
    report: Option<(&Path, usize)>,
    cancel: &Cancel,
) {
    if tools.is_empty() {
        let which = if report.is_some() { "none of cuobjdump, nvdisasm and ncu" } else { "neither cuobjdump nor nvdisasm" };
        code.remarks.push(format!("no SASS text: {which} is on PATH (they come with the CUDA toolkit)"));
    }
    let before = code.remarks.len();
    for tool in tools {
        for (binary, only) in binaries {
            read_instructions(code, binary, only.as_ref(), details, tool, report, cancel);
        }
        if code.functions.iter().any(|f| !f.instructions.is_empty()) {
            // Remove the errors from tools tried earlier.
            code.remarks.truncate(before);
            break;
        }
    }
}

/// Reads the code stored in the report: binary, source files, and addresses of functions.
fn stored_code(
    wire: &mut Wire,
    end: u64,
    binary: &mut Option<Vec<u8>>,
    stored: &mut HashMap<String, String>,
    addresses: &mut HashMap<String, u64>,
) -> Result<(), ImportError> {
    while let Some((number, form)) = wire.next_field(end)? {
        match (number, form) {
            (4, Form::Bytes) if binary.is_none() => *binary = Some(wire.read_field_bytes(end)?).filter(|b| !b.is_empty()),
            // Sources and symbols are lists within a nested message.
            (8 | 9, Form::Bytes) => {
                let to = wire.bytes_end(end)?;
                while let Some((inner, form)) = wire.next_field(to)? {
                    if (inner, form) != (1, Form::Bytes) {
                        wire.skip_value(form, to)?;
                        continue;
                    }
                    let bytes = wire.read_field_bytes(to)?;
                    let damaged = || wire.damage_error("source", "it cannot be read");
                    // Items have no repeated fields, so their memory is bounded by their encoded size.
                    if number == 8 {
                        let file = proto::SourceFile::decode(&*bytes).map_err(|_| damaged())?;
                        if let (Some(name), Some(text)) =
                            (proto::decode_lossy(file.name), proto::decode_lossy(file.content).filter(|c| !c.is_empty()))
                        {
                            wire.charge_memory(name.len() + text.len())?;
                            stored.insert(name, text);
                        }
                    } else {
                        let symbol = proto::Symbol::decode(&*bytes).map_err(|_| damaged())?;
                        if let (Some(name), Some(address)) = (symbol.name, symbol.address.filter(|a| *a > 0)) {
                            wire.charge_memory(SYMBOL + name.len())?;
                            addresses.insert(name, address);
                        }
                    }
                }
            }
            _ => wire.skip_value(form, end)?,
        }
    }
    Ok(())
}

/// Returns the start address of the kernel, which is instance 0 of `launch__function_pcs`.
fn first_address(metrics: &Metrics, result: usize, details: &Details) -> Option<u64> {
    metrics.results.get(result)?;
    let id = metrics.names.iter().position(|n| &**n == "launch__function_pcs")?;
    let instances = details.instances.get(&u32::try_from(id).ok()?)?;
    instances.iter().find_map(|(key, value)| match (key, value) {
        (InstanceKey::Number(0) | InstanceKey::None, Value::Integer(address)) => Some(*address),
        _ => None,
    })
}

/// Adds the contents of the source files that instructions refer to, from the report or from disk.
fn add_texts(code: &mut Code, stored: Option<&HashMap<String, String>>, folders: &[PathBuf]) {
    let used: HashSet<u32> = code.functions.iter().flat_map(|f| f.lines.iter().map(|l| l.1)).collect();
    let (mut disk, mut missing) = (0, 0);
    for (at, file) in code.files.iter_mut().enumerate() {
        if !u32::try_from(at + 1).is_ok_and(|n| used.contains(&n)) {
            continue;
        }
        if let Some(text) = stored.and_then(|s| s.get(&*file.name)) {
            file.text = Some(Arc::from(text.as_str()));
        } else if disk < MOST_FILES
            && let Some(text) = source_file::read_source(&file.name, folders)
        {
            (file.text, file.from_disk) = (Some(Arc::from(text)), true);
            disk += 1;
        } else {
            missing += 1;
        }
    }
    if disk > 0 {
        let how = if stored.is_some() { ": profile with --import-source yes to store it" } else { "" };
        code.remarks.push(format!("source text is from this disk and may have changed since{how}"));
    }
    if missing > 0 && code.files.iter().all(|f| f.text.is_none()) {
        let place =
            if stored.is_some() { "it is neither in the report (--import-source yes) nor on this disk" } else { "it is not on this disk" };
        code.remarks.push(format!("no source text: {place} below the program's folder, the report's, or the current one"));
    }
}

/// Finds disassemblers on PATH and in the toolkit's default directory, best first: `cuobjdump` resolves branch
/// targets, `nvdisasm` prints labels instead, and `ncu` starts more slowly and must support the chip.
pub fn find_disassemblers() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|p| p.is_absolute()).chain([PathBuf::from("/usr/local/cuda/bin")]).collect();
    let tools = ["cuobjdump", "nvdisasm", "ncu"].into_iter();
    tools.filter_map(|tool| folders.iter().map(|f| f.join(tool)).find(|p| p.is_file())).collect()
}

fn read_instructions(
    code: &mut Code,
    binary: &[u8],
    only: Option<&HashSet<u64>>,
    details: &Details,
    tool: &Path,
    report: Option<(&Path, usize)>,
    cancel: &Cancel,
) {
    let name = tool.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut command = Command::new(tool);
    // Keep the temporary file until the child has exited.
    let mut file = None;
    if name == "ncu" {
        let Some((path, result)) = report else {
            code.remarks.push("no SASS text: ncu can read it from a file only".to_owned());
            return;
        };
        // Ignore configuration files: a `config.ncu-cfg` could make ncu overwrite any file with its log.
        command.args(["--config-file", "off", "--import"]).arg(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        command.args(["--page", "source", "--csv", "--print-source", "sass", "--launch-count", "1", "--launch-skip"]);
        command.arg(result.to_string());
    } else {
        let made = tempfile::Builder::new().prefix("warpscope-").suffix(".cubin").tempfile();
        let Some(mut made) = made.ok().filter(|f| f.as_file().metadata().is_ok()) else {
            code.remarks.push("no SASS text: could not create a temporary file for the disassembler".to_owned());
            return;
        };
        if made.write_all(binary).is_err() {
            code.remarks.push("no SASS text: the disk is full".to_owned());
            return;
        }
        command.arg(if name == "cuobjdump" { "-sass" } else { "-c" }).arg(made.path());
        file = Some(made);
    }
    let wanted: HashSet<u64> = details
        .instances
        .values()
        .flatten()
        .filter_map(|(k, _)| if let InstanceKey::Number(n) = k { Some(*n) } else { None })
        .filter_map(|a| code.find_function(a).map(|(f, _)| f.address))
        .collect();
    let by_name: HashMap<Arc<str>, usize> = code
        .functions
        .iter()
        .enumerate()
        .filter(|(_, f)| wanted.contains(&f.address) && only.is_none_or(|o| o.contains(&f.address)))
        .map(|(i, f)| (f.name.clone(), i))
        .collect();
    let mut current: Option<usize> = None;
    let mut found: Vec<Vec<(u64, Arc<str>)>> = vec![Vec::new(); code.functions.len()];
    let mut left = MOST_INSTRUCTIONS;
    let until = Instant::now() + PATIENCE;
    let ended = launch::run_query(
        &mut command,
        |line| {
            if let Some((address, text)) = page_row(line).filter(|_| name == "ncu") {
                if let Some((at, offset)) = find_function(&code.functions, address).filter(|_| left > 0) {
                    left -= 1;
                    found[at].push((offset, Arc::from(text)));
                }
            } else if let Some(function) = function_head(line) {
                current = by_name.get(function).copied();
            } else if let (Some(at), Some((offset, text))) = (current, parse_instruction(line))
                && left > 0
            {
                left -= 1;
                found[at].push((offset, Arc::from(text)));
            }
        },
        || cancel.is_cancelled() || Instant::now() > until,
    );
    drop(file);
    match ended {
        Err(e) => code.remarks.push(format!("no SASS text: {name} could not be started: {e}")),
        Ok(ended) if ended.cancelled => code.remarks.push(format!("no SASS text: {name} took longer than {} s", PATIENCE.as_secs())),
        Ok(ended) => {
            if found.iter().all(Vec::is_empty) {
                let why = ended.log.last().cloned().unwrap_or_default();
                code.remarks.push(format!("no SASS text: {name} printed none: {why}"));
            }
        }
    }
    for (function, mut list) in code.functions.iter_mut().zip(found) {
        list.sort_by_key(|i| i.0);
        list.dedup_by_key(|i| i.0);
        if !list.is_empty() {
            function.instructions = list;
        }
    }
}

/// Returns the index of the function at an address, and the offset within it.
fn find_function(functions: &[Function], address: u64) -> Option<(usize, u64)> {
    let at = functions.partition_point(|f| f.address <= address).checked_sub(1)?;
    functions.get(at).map(|f| (at, address - f.address))
}

/// Parses a row of ncu's source page into address and instruction: `"0x7f…","   LDC R1, c[0x0][0x28] ",…`.
fn page_row(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.strip_prefix("\"0x")?.split_once("\",\"")?;
    let text = rest.split("\",").next()?.trim().trim_end_matches(['"', ';']).trim_end();
    Some((u64::from_str_radix(address, 16).ok()?, text)).filter(|r| !r.1.is_empty())
}

/// Parses the line that starts a function: `.text.NAME:` from nvdisasm, `Function : NAME` from cuobjdump.
fn function_head(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(name) = line.strip_prefix("Function :") {
        return Some(name.trim());
    }
    line.strip_prefix(".text.").and_then(|l| l.strip_suffix(':'))
}

/// Parses an instruction into offset and text: `/*0010*/  MOV R1, c[0x0][0x28] ;  /* 0x… */`.
fn parse_instruction(line: &str) -> Option<(u64, &str)> {
    let (offset, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let offset = u64::from_str_radix(offset.trim(), 16).ok()?;
    let text = rest.split("/*").next()?.trim().trim_end_matches(';').trim_end();
    (!text.is_empty()).then_some((offset, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_of_the_programs_folders_are_shown() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        let put = |name: &str| {
            let path = folder.join(name);
            std::fs::write(&path, name).unwrap();
            path.display().to_string()
        };
        let folders = [folder.clone()];
        assert_eq!(source_file::read_source(&put("k.cu"), &folders).as_deref(), Some("k.cu"));
        for name in ["secrets.env", "id_rsa", ".git/x.py", ".hidden.py"] {
            assert_eq!(source_file::read_source(&put(name), &folders), None, "{name}");
        }
        let outside = home.path().join("other.cu");
        std::fs::write(&outside, "x").unwrap();
        assert_eq!(source_file::read_source(&outside.display().to_string(), &folders), None);
        std::os::unix::fs::symlink(&outside, folder.join("link.cu")).unwrap();
        assert_eq!(source_file::read_source(&folder.join("link.cu").display().to_string(), &folders), None);
        // A report may give any path as the directory of its program.
        let input = Input::built_in("x", b"");
        let of = |directory: &str| source_folders(&input.path, Some(directory));
        assert!(of(&folder.display().to_string()).contains(&folder));
        assert!(!of("/").contains(&PathBuf::from("/")) && !of("/home").contains(&PathBuf::from("/home")));
    }

    #[test]
    fn lines_of_both_disassemblers_are_understood() {
        assert_eq!(
            parse_instruction("        /*0010*/                   S2R R0, SR_TID.X ;                /* 0x00000000000 */"),
            Some((0x10, "S2R R0, SR_TID.X"))
        );
        assert_eq!(parse_instruction("        /*00a0*/              @!P0 LDG.E R2, [R2.64] ;"), Some((0xa0, "@!P0 LDG.E R2, [R2.64]")));
        assert_eq!(parse_instruction("                                                        /* 0x000fe40000000f00 */"), None);
        assert_eq!(function_head("\t\tFunction : _Z4tinyPf"), Some("_Z4tinyPf"));
        assert_eq!(function_head(".text._Z4tinyPf:"), Some("_Z4tinyPf"));
        assert_eq!(function_head(".L_x_0:"), None);
        let row = "\"0x7fd17d7a3700\",\"      LDC R1, c[0x0][0x28] \",\"42\",\"22\"";
        assert_eq!(page_row(row), Some((0x7fd1_7d7a_3700, "LDC R1, c[0x0][0x28]")));
        assert_eq!(page_row("\"Address\",\"Source\""), None);
    }
}
