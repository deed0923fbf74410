//! Launches and metrics that `run` and `trace` measure.

use super::values::named_range;
use crate::launch::tracer::{NvtxRange, Only, question_names};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};

/// Three dimensions; omitted ones are 1.
pub type Size = [u32; 3];

/// Launches for `--measure`, `--stalls` and `--survey`, and the metrics.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Which {
    /// For --measure and --stalls: only launches with this grid, in blocks; others are not counted.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_size)]
    pub only_grid: Option<Size>,
    /// For --measure and --stalls: only launches with this block, in threads; others are not counted.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_size)]
    pub only_block: Option<Size>,
    /// For --measure and --stalls: only launches inside this NVTX range: NAME, or NAME@DOMAIN; others are not
    /// counted.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub only_range: Option<String>,
    /// Only the N-th of these ranges, from 1.
    #[arg(long, value_name = "N", requires = "only_range", value_parser = clap::value_parser!(u32).range(1..))]
    pub only_nth: Option<u32>,
    /// Measure only what answers these questions, in fewer passes; the first comes first [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(question_names()))]
    pub questions: Vec<String>,
}

fn parse_size(text: &str) -> Result<Size, String> {
    let parts: Option<Vec<u32>> = text.split([',', 'x']).map(|p| p.trim().parse().ok().filter(|n| *n > 0)).collect();
    match parts.as_deref() {
        Some(&[x]) => Ok([x, 1, 1]),
        Some(&[x, y]) => Ok([x, y, 1]),
        Some(&[x, y, z]) => Ok([x, y, z]),
        _ => Err("one to three numbers, such as 128 or 16,16,1".to_owned()),
    }
}

impl Which {
    /// Returns the filter for launches by grid, block and NVTX range.
    pub fn launch_filter(&self) -> Result<Only, String> {
        let range = self.only_range.as_deref().map(named_range).transpose()?;
        let range = range.map(|(domain, text)| NvtxRange { domain, text, nth: self.only_nth });
        Ok(Only { grid: self.only_grid, block: self.only_block, range })
    }

    /// Returns the selection as options for `warpscope trace`.
    pub fn to_args(&self) -> Vec<[String; 2]> {
        let list = |size: Size| size.map(|n| n.to_string()).join(",");
        let all = [
            ("--only-grid", self.only_grid.map(list)),
            ("--only-block", self.only_block.map(list)),
            ("--only-range", self.only_range.clone()),
            ("--only-nth", self.only_nth.map(|n| n.to_string())),
            ("--questions", (!self.questions.is_empty()).then(|| self.questions.join(","))),
        ];
        all.into_iter().filter_map(|(word, value)| Some([word.to_owned(), value?])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("128"), Ok([128, 1, 1]));
        assert_eq!(parse_size("16,8"), Ok([16, 8, 1]));
        assert_eq!(parse_size("16x8x2"), Ok([16, 8, 2]));
        for wrong in ["", "0", "1,2,3,4", "a", "1,,2", "-1"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
