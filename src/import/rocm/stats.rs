//! Importer for tables of totals per kernel: rocprofv3's `_kernel_stats.csv` and rocprof's `results.stats.csv`.

use super::rows::strip_kd_suffix;
use crate::import::{ImportError, Job};
use crate::model::kernel::function_of;
use crate::model::{Device, Kernel, KernelId, KernelTotal, Nanos, Note, NoteKind, Profile, Severity, Vendor};
use csv::StringRecord;
use std::io::Read;
use std::path::Path;

/// Returns true if a file starts with the header of a table of totals.
pub fn is_stats_table(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).replace('"', "").trim_start_matches('\u{feff}').trim_end().to_owned();
    line.starts_with("Name,Calls,TotalDurationNs,") || line.starts_with("Name,Calls,Duration (")
}

/// Length in ns of the unit in a column title such as `Duration (Nsec)`, which `rocpd summary` writes.
fn unit_of(column: &str) -> f64 {
    let unit = column.rsplit_once('(').map_or("", |(_, unit)| unit).to_ascii_lowercase();
    match unit.trim_end_matches(')') {
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => 1.0,
    }
}

/// Returns true if a row describes a call, a domain or a copy rather than a kernel.
fn no_kernel(name: &str) -> bool {
    let call =
        ["hip", "__hip", "hsa_", "roctx", "rocdec", "rocjpeg", "MEMORY_", "Copy", "nccl"].iter().any(|start| name.starts_with(start));
    let domain = matches!(name, "KERNEL_DISPATCH" | "SCRATCH_MEMORY" | "ALLOC" | "REALLOC" | "FREE" | "RECLAIM")
        || name.ends_with("_API")
        || name.ends_with("_API_EXT");
    (call && !name.contains(['(', '<', ' ']) && !name.starts_with("ncclDev")) || domain
}

pub fn read_table(from: impl Read, path: &Path, job: &Job<'_>, mut profile: Profile) -> Result<Profile, ImportError> {
    let damaged = |e: csv::Error| ImportError::damaged(path, "its rows", &e);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(from);
    let head = reader.headers().map_err(damaged)?.clone();
    let column = |name: &str| head.iter().position(|h| h.trim().eq_ignore_ascii_case(name));
    // Finds a column of times by either name (the second is without its unit), and its unit in ns.
    let times = |name: &str, other: &str| {
        let named = |h: &str| h.split(" (").next().is_some_and(|h| h.eq_ignore_ascii_case(other)) && h.contains('(');
        let at = column(name).or_else(|| head.iter().position(|h| named(h.trim())))?;
        Some((at, unit_of(head.get(at)?)))
    };
    let (Some(calls), Some((total, unit))) = (column("Calls"), times("TotalDurationNs", "Duration")) else {
        return Err(ImportError::damaged(path, "its header", "no columns of calls and durations"));
    };
    let (least, most, deviation) = (times("MinNs", "Min"), times("MaxNs", "Max"), column("StdDev").or_else(|| column("Std_Dev")));
    // `rocpd summary` writes one table per domain.
    let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let of_others = file.ends_with("_summary.csv") && !file.ends_with("kernels_summary.csv");
    let mut record = StringRecord::new();
    let (mut rows, mut broken, mut others) = (0_u64, 0_u64, 0_u64);
    while reader.read_record(&mut record).map_err(damaged)? {
        if job.cancel.is_cancelled() {
            return Err(ImportError::Cancelled { path: path.to_owned() });
        }
        rows += 1;
        let number = |at: Option<usize>| record.get(at?)?.trim().parse::<f64>().ok().filter(|n| n.is_finite() && (0.0..9e18).contains(n));
        let time = |at: Option<(usize, f64)>| at.and_then(|(at, unit)| Some(number(Some(at))? * unit)).filter(|n| *n < 9e18);
        let (Some(name), Some(count), Some(sum)) = (record.get(0).map(str::trim), number(Some(calls)), time(Some((total, unit)))) else {
            broken += 1;
            continue;
        };
        if of_others || no_kernel(name) {
            others += 1;
            continue;
        }
        if count < 1.0 || name.is_empty() {
            broken += 1;
            continue;
        }
        let average = (sum / count) as i64;
        let (min, max) = (time(least).map_or(average, |n| n as i64), time(most).map_or(average, |n| n as i64));
        let name = strip_kd_suffix(name);
        profile.totals.push(KernelTotal {
            kernel: KernelId(u32::try_from(profile.kernels.len()).unwrap_or(u32::MAX)),
            count: count as u64,
            total: Nanos(sum as i64),
            min: Nanos(min),
            max: Nanos(max),
            median_ns: None,
            stddev_ns: number(deviation).map(|n| n * unit),
        });
        profile.kernels.push(Kernel { function: Some(function_of(name).into()), demangled: Some(name.into()), ..Kernel::default() });
    }
    if profile.totals.is_empty() {
        let what = if others > 0 { "totals of API calls or domains, without kernels" } else { "a table of totals without a row" };
        return Err(ImportError::refused(path, what, "open the _kernel_stats.csv, or better the _results.db, of the run"));
    }
    profile.devices = vec![Device { maker: Vendor::Amd, ..Device::default() }];
    let text = "This table has totals of kernels only: no single launches, configurations, streams, memory copies or ranges.";
    profile.notes.push(
        Note::new(Severity::Warning, NoteKind::Guess, text)
            .with_fix("open the database, the JSON or the kernel trace of the run, if it is there"),
    );
    if least.is_none() || most.is_none() {
        let text = "rocprof's totals have no shortest and no longest launch: the average stands for both.";
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text));
    }
    if broken > 0 {
        let text = format!("{broken} of {rows} rows of this table could not be understood; the rest is shown.");
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_what_is_none() {
        for (name, none) in [
            ("hipLaunchKernel", true),
            ("HIP_API", true),
            ("MEMORY_COPY_HOST_TO_DEVICE", true),
            ("hsa_queue_create", true),
            ("ncclAllReduce", true),
            ("ncclDevKernel_Generic_1(ncclDevKernelArgs)", false),
            ("hip_kernel(float*)", false),
            ("compute_fd_z_kernel", false),
            ("void hip::k<int>(int)", false),
        ] {
            assert_eq!(no_kernel(name), none, "{name}");
        }
        assert!(is_stats_table(b"\"Name\",\"Calls\",\"Duration (Nsec)\",\"Average (Nsec)\"\n"));
        let units = ["Duration (Nsec)", "Max (usec)", "Min (MSEC)", "Duration (sec)", "MinNs"].map(|column| unit_of(column) as u64);
        assert_eq!(units, [1, 1_000, 1_000_000, 1_000_000_000, 1]);
        assert!(
            is_stats_table(b"\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n") && !is_stats_table(b"Name,Calls\n")
        );
    }
}
