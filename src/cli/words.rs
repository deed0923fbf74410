//! The words of the command line for what other layers choose among.

use crate::analysis::launch_list::LaunchSort;
use crate::analysis::{GroupBy, SortBy};
use crate::app::Show;
use crate::config::ColorMode;
use crate::launch::tracer::Chosen;
use crate::model::NameForm;
use crate::report::Format;
use crate::rerun::{CacheControl, ClockControl, Replay};
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// A number of seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s < 1e9 => Ok(s),
        _ => Err("a number of seconds, such as 30 or 0.5".to_owned()),
    }
}

/// Words of an option whose values are this program's own types.
macro_rules! words {
    ($type:ty: $($value:expr => $word:literal),+ $(,)?) => {
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$($value),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                [$(($value, $word)),+].into_iter().find(|(v, _)| v == self).map(|(_, w)| PossibleValue::new(w))
            }
        }
    };
}

words!(NameForm: NameForm::Function => "function", NameForm::Demangled => "demangled", NameForm::Mangled => "mangled");
words!(ClockControl: ClockControl::Base => "base", ClockControl::None => "none");
words!(CacheControl: CacheControl::All => "all", CacheControl::None => "none");
words!(Replay: Replay::Kernel => "kernel", Replay::Application => "application", Replay::AppRange => "app-range");

impl ValueEnum for GroupBy {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl ValueEnum for SortBy {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl ValueEnum for LaunchSort {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Table, Self::Csv, Self::Json, Self::Md]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Table => "table",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Md => "md",
        }))
    }
}

impl ValueEnum for Show {
    fn value_variants<'a>() -> &'a [Self] {
        const LIST: [Show; Show::ALL.len()] = {
            let mut out = [Show::Overview; Show::ALL.len()];
            let mut i = 0;
            while i < out.len() {
                out[i] = Show::ALL[i].1;
                i += 1;
            }
            out
        };
        &LIST
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl ValueEnum for ColorMode {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::None, Self::Sixteen, Self::Indexed, Self::True]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Self::ALL.iter().find(|(_, m)| m == self).map(|(w, _)| PossibleValue::new(*w))
    }
}
/// A share of a run's time, above 0 and at most 100.
pub fn percent(text: &str) -> Result<f64, String> {
    let value = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0);
    value.ok_or_else(|| "a number above 0 and at most 100".to_owned())
}

/// A percentage above 0 as whole thousandths, at least one.
pub fn thousandths(percent: f64) -> u32 {
    (percent * 10.0).round().max(1.0) as u32
}

/// A rank, or a range of them.
pub fn ranks(text: &str) -> Result<(u32, u32), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let pair = first.trim().parse().ok().zip(last.trim().parse().ok());
    pair.filter(|(first, last)| first <= last).ok_or_else(|| "ranks such as 0,8,16 or 0-7".to_owned())
}

/// The domain and the text of a range as it is named on the command line: an `@` of the name itself is written `\@`.
pub fn named_range(named: &str) -> Result<(Option<String>, String), String> {
    let at = named.char_indices().rev().find(|&(i, c)| c == '@' && !named[..i].ends_with('\\')).map(|(i, _)| i);
    let (text, domain) = at.map_or((named, None), |i| (&named[..i], Some(named[i + 1..].to_owned())));
    if domain.as_ref().is_some_and(|d| d.contains(':')) {
        return Err("a domain with a colon in its name cannot be chosen".to_owned());
    }
    Ok((domain, text.replace("\\@", "@")))
}

/// A kernel whose launches are measured, `#N` behind it for one of them.
pub fn chosen(text: &str) -> Result<Chosen, String> {
    let (kernel, nth) = match text.rsplit_once('#') {
        Some((kernel, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => {
            let n: u64 = n.parse().ok().filter(|n| i64::try_from(*n).is_ok()).ok_or("the number of the launch is too large")?;
            (kernel, Some(n.checked_sub(1).ok_or("launches are counted from 1")?))
        }
        _ => (text, None),
    };
    if kernel.trim().is_empty() || kernel.ends_with('#') || kernel.len() > 500 || kernel.contains('\n') {
        return Err(
            "this is not a kernel's function or mangled name (of at most 500 bytes), as `warpscope top` has it, or regex:EXPRESSION"
                .to_owned(),
        );
    }
    Ok(Chosen { kernel: kernel.to_owned(), nth, stalls: false })
}

/// The same, as it was written.
pub fn measured(text: &str) -> Result<String, String> {
    chosen(text).map(|_| text.to_owned())
}
