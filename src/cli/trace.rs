//! `warpscope trace`: executes the program with the tracer loaded into it.

use super::args::Trace;
use super::values::named_range;
use super::{Failure, print};
use crate::import::cache;
use crate::launch::tracer::{
    Chosen, Gate, Measure, Record, explain_failed_start, find_hidden_gpu, find_libraries, find_obstacle, is_there, loads_address_sanitizer,
    traced_command, try_to_write, write_object,
};
use crate::model::Bytes;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

fn range_gate(named: &str, nth: Option<u32>) -> Result<Gate, Failure> {
    let (domain, text) = named_range(named).map_err(Failure::wrong)?;
    Ok(Gate::Nvtx { domain, text, nth })
}

/// Minimum room for a trace, bytes.
const LEAST_ROOM: u64 = 64 << 20;

/// Checks that files can be written to a folder, and warns if it is nearly full.
fn check_writable(folder: &Path) -> Result<(), Failure> {
    let refused = |e| Failure::unable(format!("{}: nothing can be written there ({e}); name another place with -o", folder.display()));
    let room = try_to_write(folder).map_err(refused)?;
    if room < LEAST_ROOM {
        let left = Bytes(room);
        print::note(&format!("warning: {} has {left} left, which a trace may fill; name another place with -o", folder.display()));
    }
    Ok(())
}

/// Replaces this process with the program. Returns only on failure.
pub fn exec_traced(args: &Trace) -> Failure {
    match start_tracer(args) {
        Err(failure) => failure,
        Ok(never) => match never {},
    }
}

fn start_tracer(args: &Trace) -> Result<std::convert::Infallible, Failure> {
    let ms = |s: f64| (s * 1000.0).max(1.0) as u64;
    // The argument group allows only one of these options.
    let gate = match args {
        Trace { profiler_api: true, .. } => Some(Gate::ProfilerApi),
        Trace { closed: true, .. } => Some(Gate::ByHand),
        Trace { overhead: Some(percent), .. } => Some(Gate::Overhead((percent * 100.0).round().max(1.0) as u32)),
        Trace { range: Some(named), nth, .. } => Some(range_gate(named, *nth)?),
        Trace { kernel: Some(name), .. } => Some(Gate::Kernel(name.clone())),
        Trace { after_launches: Some(n), .. } => Some(Gate::Launches(*n)),
        Trace { delay, .. } => delay.map(|s| Gate::Delay(ms(s))),
    };
    let output = std::path::absolute(&args.output)?;
    let folder = output.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        let shown = folder.display();
        return Err(Failure::wrong(format!("the folder {shown} does not exist; `mkdir -p {shown}` creates it")));
    }
    let words: Vec<String> = args.program.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let first = words.first().map_or("", String::as_str);
    // The program itself may not be allowed to write either, but then nothing can be said before.
    check_writable(folder)?;
    let obstacle = find_obstacle(&words);
    if let Some(obstacle) = &obstacle {
        print::note(&format!("warning: {obstacle}"));
    }
    let record = Record {
        output,
        lean: args.lean,
        all_calls: args.api == "all",
        whole_graphs: args.graphs == "whole",
        stack_rate: if args.stacks == "off" { 0 } else { args.stack_rate },
        memory: args.memory,
        gate,
        length: args.seconds.map(ms),
        keep: args.keep_last.map(ms),
        preload: !args.no_preload && !loads_address_sanitizer(first),
        plan: None,
        ranks: args.ranks.clone(),
    };
    let failed = |e: crate::launch::tracer::Unable| Failure::unable(e.to_string());
    let object = write_object(&cache::default_folder()).map_err(failed)?;
    // Always write a plan: the user may request a kernel while the program runs.
    let survey = args.survey.map_or(0, super::values::to_thousandths);
    let measure = Measure {
        survey,
        chosen: args.measure.iter().cloned().chain(args.stalls.iter().map(|c| Chosen { stalls: true, ..c.clone() })).collect(),
        only: args.which.launch_filter().map_err(Failure::wrong)?,
        questions: args.which.questions.clone(),
    };
    let record = Record { plan: Some(measure.write_plan(&cache::default_folder()).map_err(failed)?), ..record };
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut all = find_libraries(Path::new("/"), &words, variable);
    if let Some(path) = &args.cupti {
        if !path.is_file() {
            return Err(Failure::wrong(format!("{}: no such file", path.display())));
        }
        all.insert(0, crate::launch::tracer::Library { path: std::path::absolute(path)?, of: "named" });
    }
    let mut command = traced_command(&record, &args.program, &object, &all).map_err(failed)?;
    // This process becomes the program: it says at its end if nothing was recorded, unless the reason was just said.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    if obstacle.is_none() {
        command.env("WARPSCOPE_TRACE_ROOT", format!("{}:{now}", std::process::id()));
    }
    let ranks = (!args.ranks.is_empty()).then(|| "only the ranks that `--ranks` names are recorded: leave it out".to_owned());
    let hidden = find_hidden_gpu(Path::new("/"), |name| std::env::var_os(name));
    command.env("WARPSCOPE_TRACE_WHY", ranks.into_iter().chain(hidden).collect::<Vec<_>>().join("; "));
    // Start no sampler for a program that cannot be started: sampling would overwrite the samples of an earlier run.
    let starts = is_there(first);
    if let Some(url) = args.metrics.as_ref().filter(|_| starts) {
        super::server_metrics::start_sampling(url, &record.output);
    }
    let error = command.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    let why = explain_failed_start(first, &error).map_or_else(String::new, |why| format!(": {why}"));
    print::error(&format!("cannot start {first}: {error}{why}"));
    if args.survey.is_some() && super::values::parse_percent(first).is_ok() {
        print::error(&format!("a percentage is written `--survey={first}`"));
    }
    Err(Failure { text: String::new(), code, reason: crate::cli::Reason::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_hold_an_at_sign() {
        let of = |named: &str| range_gate(named, None).ok();
        let gate =
            |domain: Option<&str>, text: &str| Some(Gate::Nvtx { domain: domain.map(str::to_owned), text: text.to_owned(), nth: None });
        assert_eq!(of("step"), gate(None, "step"));
        assert_eq!(of("step@LLM"), gate(Some("LLM"), "step"));
        assert_eq!(of("a\\@b@LLM"), gate(Some("LLM"), "a@b"));
        assert_eq!(of("a\\@b"), gate(None, "a@b"));
        assert_eq!(of("x@a:b"), None);
    }
}
