//! Upper bounds on report sizes, for commands that limit them.

use super::super::collect::{Collect, Figure};
use super::torch::TRACE_SECONDS;

/// Bytes per result with the metrics of the recipe `scan`: 26.2 MiB for 2,595 launches (H200, ncu 2025.3.1).
const SCAN_BYTES: u64 = 11_000;
/// Growth of PyTorch's compressed trace, bytes per second, measured at 110,000 events per second (H200, torch 2.11).
/// PyTorch first writes an uncompressed trace if the name does not end in `.gz`.
const TRACE_BYTES: u64 = 1_700_000;

/// Returns the expected size, bytes; `None` if the command does not limit the size, as with nsys.
pub fn expected_bytes(tool: &str, argv: &[String]) -> Option<u64> {
    let value = |name: &str| {
        argv.iter()
            .enumerate()
            .find_map(|(i, w)| if w == name { argv.get(i + 1).map(String::as_str) } else { w.strip_prefix(name)?.strip_prefix('=') })
    };
    match tool {
        "ncu" => {
            let count: u64 = value("--launch-count")?.parse().ok()?;
            let sections: Vec<String> =
                argv.iter().zip(argv.iter().skip(1)).filter(|(option, _)| *option == "--section").map(|(_, id)| id.clone()).collect();
            let figure = |collect: Collect| collect.cost_per_result().map(|(Figure { bytes, .. }, _)| bytes);
            let each = match (value("--set"), value("--metrics")) {
                (Some(set), _) => figure(Collect::Set(set.to_owned()))?,
                (None, Some(_)) if sections.is_empty() => SCAN_BYTES,
                _ => figure(Collect::Sections(sections))?,
            };
            Some(each.saturating_mul(count))
        }
        "torch" => {
            let seconds = value("--seconds").map_or(Some(TRACE_SECONDS), |s| s.parse().ok())?;
            Some(seconds.saturating_mul(TRACE_BYTES))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_bounded_has_a_size() {
        let of = |tool: &str, line: &str| expected_bytes(tool, &line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("ncu", "ncu --launch-count 10 --set full --export x ./app"), Some(9_300_000));
        assert_eq!(of("ncu", "ncu --launch-count 2 --section SpeedOfLight --section LaunchStats ./app"), Some(98_000));
        assert_eq!(of("ncu", "ncu --launch-count 2000 --metrics gpu__time_duration.sum ./app"), Some(22_000_000));
        assert_eq!(of("ncu", "ncu --set full ./app"), None);
        assert_eq!(of("nsys", "nsys profile ./app"), None);
        assert_eq!(of("torch", "python3 w.py --seconds 10 --trace x a.py"), Some(17_000_000));
    }
}
