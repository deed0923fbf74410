//! Types for times and sizes, and how they are displayed.

use std::fmt;

/// A time or duration in nanoseconds. Times are relative to the start of the session and may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Formats with three significant digits: `1.23`, `12.3`, `123`; larger values get thousands separators.
fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 999.5 {
        format_grouped(value.round() as i64)
    } else if magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Formats a share, 0 to 1, as a percentage: `87%`, `7.3%`.
pub fn format_share(share: f64) -> String {
    let p = share * 100.0;
    if p != 0.0 && p.abs() < 9.95 { format_percent(p) } else { format_whole_percent(p) }
}

/// Formats an integer with a `,` between groups of three digits; values beyond `i64` are shown as its maximum.
pub fn format_grouped(value: impl TryInto<i64>) -> String {
    let value = value.try_into().unwrap_or(i64::MAX);
    let digits = value.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0 {
        out.push('-');
    }
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats a number together with its noun: `1 launch`, `1,045 launches`, `2 processes`, `3 queries`.
pub fn format_count(n: impl TryInto<i64>, noun: &str) -> String {
    let n = n.try_into().unwrap_or(i64::MAX);
    format!("{} {}", format_grouped(n), plural_noun(n, noun))
}

/// Returns the singular or plural of a noun, depending on `n`.
pub fn plural_noun(n: impl TryInto<i64>, noun: &str) -> String {
    if n.try_into().is_ok_and(|n| n == 1) {
        return noun.to_owned();
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if ["ch", "sh", "s", "x"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

impl Nanos {
    /// Value in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Formats a duration given in nanoseconds, which may be fractional.
    pub fn format_ns(ns: f64) -> String {
        let magnitude = ns.abs();
        let (value, unit) = if magnitude < 999.5 {
            if magnitude.fract() == 0.0 {
                return format!("{ns:.0} ns");
            }
            (ns, "ns")
        } else if magnitude < 999_500.0 {
            (ns / 1e3, "µs")
        } else if magnitude < 999_500_000.0 {
            (ns / 1e6, "ms")
        } else {
            (ns / 1e9, "s")
        };
        format!("{} {unit}", three_digits(value))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Self::format_ns(self.0 as f64))
    }
}

impl fmt::Display for Bytes {
    /// Uses binary multiples (`KiB`), as in specifications of shared memory and L2.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1023.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 || (value.fract() == 0.0 && value < 1000.0) {
            f.pad(&format!("{value:.0} {}", UNITS[unit]))
        } else {
            f.pad(&format!("{} {}", three_digits(value), UNITS[unit]))
        }
    }
}

/// A formatted number and its unit.
pub type Shown = (String, String);

/// Formats with three digits and a decimal prefix (K = 1000), as ncu does.
pub fn format_scaled(value: f64, unit: &str) -> Shown {
    const PREFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")];
    match PREFIXES.iter().find(|(by, _)| value.abs() >= *by) {
        Some((by, prefix)) => (format_digits(value / by), format!("{prefix}{unit}")),
        None => (format_plain(value), unit.to_owned()),
    }
}

fn format_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats without a prefix: whole numbers grouped, others with two decimals, tiny ones with three significant digits.
pub fn format_plain(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        format_grouped(value as i64)
    } else if size >= 1e15 || (size > 0.0 && size < 0.005) {
        format!("{value:.2e}")
    } else if size >= 1_000.0 {
        format_grouped(value.round() as i64)
    } else {
        format!("{value:.2}")
    }
}

/// Distance from 100 % within which a percentage counts as 100 %, to allow for rounding errors in sums of shares.
const WHOLE: f64 = 1e-6;

/// Formats a percentage with one decimal. Values close to 100 or 0 are not rounded to them: `99.9%`, `<0.1%`.
pub fn format_percent(percent: f64) -> String {
    match percent {
        p if p > 0.0 && p < 0.05 => "<0.1%".to_owned(),
        p if (99.95..100.0 - WHOLE).contains(&p) => "99.9%".to_owned(),
        p => format!("{p:.1}%"),
    }
}

/// Formats a percentage without decimals. A value that would be rounded to 100 without being 100 keeps a decimal:
/// `99.5%`.
pub fn format_whole_percent(percent: f64) -> String {
    match percent {
        p if p > 0.0 && p < 0.5 => "<1%".to_owned(),
        p if (99.5..100.0 - WHOLE).contains(&p) => format_percent(p),
        p => format!("{p:.0}%"),
    }
}

/// Formats a relative change in percent, with its sign. From +1000 % (elevenfold) on, it is shown as a factor:
/// `+30262.4%` becomes `×304`.
pub fn format_percent_change(percent: f64) -> String {
    let factor = percent / 100.0 + 1.0;
    match percent {
        // Zero has no sign.
        p if p.abs() < 0.05 => "0.0%".to_owned(),
        p if p < 1000.0 => format!("{p:+.1}%"),
        _ if factor < 100.0 => format!("×{factor:.1}"),
        _ if factor <= 1000.0 => format!("×{factor:.0}"),
        // Beyond that, the first value was close to zero, and exact digits would be misleading.
        _ => ">×1000".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_growth_is_a_factor() {
        let of = [0.01, -12.34, 999.9, 1000.0, 30_262.4, 4_000_000.0, 1e12].map(format_percent_change);
        assert_eq!(of, ["0.0%", "-12.3%", "+999.9%", "×11.0", "×304", ">×1000", ">×1000"]);
    }

    #[test]
    fn one_is_singular() {
        let all = [
            format_count(1, "launch"),
            format_count(1_045_u64, "launch"),
            format_count(0_usize, "row"),
            format_count(2, "query"),
            format_count(3, "process"),
            format_count(2, "key"),
        ];
        assert_eq!(all, ["1 launch", "1,045 launches", "0 rows", "2 queries", "3 processes", "2 keys"]);
    }

    #[test]
    fn durations_keep_three_digits_and_change_unit_before_they_grow_a_fourth() {
        for (ns, want) in [
            (0.0, "0 ns"),
            (999.0, "999 ns"),
            (999.6, "1.00 µs"),
            (1_234.0, "1.23 µs"),
            (12_345.0, "12.3 µs"),
            (999_400.0, "999 µs"),
            (999_600.0, "1.00 ms"),
            (18_432_000.0, "18.4 ms"),
            (1_234_000_000_000.0, "1,234 s"),
            (-15_700.0, "-15.7 µs"),
        ] {
            assert_eq!(Nanos::format_ns(ns), want, "{ns}");
        }
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(49_152).to_string(), "48 KiB");
        assert_eq!(Bytes(62_914_560).to_string(), "60 MiB");
        assert_eq!(Bytes(150_109_880_320).to_string(), "140 GiB");
    }

    #[test]
    fn grouped_numbers_and_small_shares() {
        assert_eq!(format_grouped(-1_234_567), "-1,234,567");
        assert_eq!(format_grouped(999), "999");
        assert_eq!(format_percent(0.01), "<0.1%");
        assert_eq!(format_percent(0.0), "0.0%");
    }

    #[test]
    fn only_a_whole_is_100_percent() {
        assert_eq!([99.94, 99.96, 99.999_999_999, 100.0].map(format_percent), ["99.9%", "99.9%", "100.0%", "100.0%"]);
        assert_eq!(
            [0.0, 0.3, 0.6, 99.4, 99.51, 100.0, 101.2].map(format_whole_percent),
            ["0%", "<1%", "1%", "99%", "99.5%", "100%", "101%"]
        );
        assert_eq!([0.0, 0.000_1, 0.05, 0.998, 1.0].map(format_share), ["0%", "<0.1%", "5.0%", "99.8%", "100%"]);
    }
}
