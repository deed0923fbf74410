//! `--from` and `--to`: a time window.

/// A window of time.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Between {
    /// Begin of the window in the report's own time: 1.25s, 340ms, 12us, 500ns; without a unit, seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub from: Option<i64>,
    /// End of the window.
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub to: Option<i64>,
}

impl Between {
    /// Returns the window in ns, with open ends replaced by the extreme values; `None` if neither end was given.
    pub fn to_window(self) -> Result<Option<(i64, i64)>, String> {
        match (self.from, self.to) {
            (None, None) => Ok(None),
            (from, to) => {
                let window = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
                if window.0 < window.1 { Ok(Some(window)) } else { Err("--from must lie before --to".to_owned()) }
            }
        }
    }
}

/// Parses a time with a unit (ns, us, µs, ms or s) or in seconds; returns ns.
pub fn parse_time(text: &str) -> Result<i64, String> {
    const UNITS: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let text = text.trim();
    let (number, factor) = UNITS.iter().find_map(|(unit, f)| Some((text.strip_suffix(unit)?, *f))).unwrap_or((text, 1e9));
    match number.trim().parse::<f64>() {
        // Half a year is longer than any report.
        Ok(n) if n.is_finite() && (n * factor).abs() < 1.6e16 => Ok((n * factor).round() as i64),
        _ => Err("write a time such as 1.25s, 340ms, 12us or 500ns".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let all = ["1.25s", "340ms", "12us", "12µs", "500ns", "2", "-1ms"].map(|t| parse_time(t).unwrap());
        assert_eq!(all, [1_250_000_000, 340_000_000, 12_000, 12_000, 500, 2_000_000_000, -1_000_000]);
        assert!(parse_time("soon").is_err() && parse_time("1e30s").is_err() && parse_time("").is_err());
    }
}
