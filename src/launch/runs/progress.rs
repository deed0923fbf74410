//! Progress of a profiler, parsed from its output lines.

/// Progress of a profiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The program is running under the profiler.
    Connected,
    /// nsys is converting its recording to a report; percent done.
    Report(u8),
    /// ncu is profiling a kernel.
    Kernel {
        /// Name, as shortened by ncu.
        name: String,
        /// Index of the result, 0-based.
        result: u64,
        /// Number of this launch and the total number, if ncu knows the total.
        of: Option<(u64, u64)>,
        /// Completed share of the passes, percent.
        percent: u8,
        /// Number of passes, once it is known.
        passes: Option<u32>,
    },
}

/// Parses a line, which may be incomplete.
pub fn parse_progress(line: &str) -> Option<Progress> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("==PROF== Profiling ") {
        return parse_kernel(rest);
    }
    if line.starts_with("==PROF== Connected to process") {
        return Some(Progress::Connected);
    }
    if line.starts_with("Generating '") || line.starts_with("Processing ") {
        return Some(Progress::Report(0));
    }
    // "[1/1] [=====31%          ] report.nsys-rep"
    let bar = line.strip_prefix('[')?.split_once("] [")?.1;
    let (inside, _) = bar.split_once(']')?;
    let number = inside.split_once('%')?.0.trim_start_matches('=').trim();
    number.parse().ok().filter(|p| *p <= 100).map(Progress::Report)
}

/// Parses `"void foo(int *)" - 3 (4/20): 0%....50%....100% - 10 passes`; releases before 2022 print `"foo" - 1 of 3: …`
/// or no count at all.
fn parse_kernel(rest: &str) -> Option<Progress> {
    let (name, rest) = rest.strip_prefix('"')?.rsplit_once("\" - ").or_else(|| rest.strip_prefix('"')?.rsplit_once('"'))?;
    let (head, tail) = rest.split_once(':').unwrap_or((rest, ""));
    let mut words = head.split_whitespace();
    let result = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
    let of = head
        .split_once('(')
        .and_then(|(_, r)| r.split_once(')'))
        .and_then(|(r, _)| r.split_once('/'))
        .and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    let percent = tail.split('%').filter_map(|p| p.rsplit(['.', ' ']).next()?.parse::<u8>().ok()).filter(|p| *p <= 100).max();
    let passes = tail.rsplit_once(" - ").and_then(|(_, r)| r.split_whitespace().next()?.parse().ok());
    Some(Progress::Kernel { name: name.to_owned(), result, of, percent: percent.unwrap_or(0), passes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_the_tools_print_them() {
        assert_eq!(parse_progress("[1/1] [==18%                       ] r1.nsys-rep"), Some(Progress::Report(18)));
        assert_eq!(parse_progress("[1/1] [0%                          ] r1.nsys-rep"), Some(Progress::Report(0)));
        assert_eq!(parse_progress("[1/1] [========================100%] r1.nsys-rep"), Some(Progress::Report(100)));
        assert_eq!(parse_progress("Generating '/tmp/nsys-report-d39f.qdstrm'"), Some(Progress::Report(0)));
        assert_eq!(parse_progress("==PROF== Connected to process 123 (/usr/bin/python3.12)"), Some(Progress::Connected));
        let kernel = |percent, passes, of| Some(Progress::Kernel { name: "void foo(int *)".into(), result: 3, of, percent, passes });
        let line = "==PROF== Profiling \"void foo(int *)\" - 3 (4/20): 0%....50%....100% - 10 passes";
        assert_eq!(parse_progress(line), kernel(100, Some(10), Some((4, 20))));
        assert_eq!(parse_progress(&line[..line.find("..100").unwrap()]), kernel(50, None, Some((4, 20))));
        assert_eq!(parse_progress("==PROF== Profiling \"void foo(int *)\" - 3: 0%...."), kernel(0, None, None));
        for other in ["", "[1/2] done", "epoch [3/10] [loss 4%", "100%", "==PROF== Profiling ", "[x] [200%] y"] {
            assert_eq!(parse_progress(other), None, "{other}");
        }
    }
}
