//! Value parsers of the command line.

use crate::analysis::GroupBy;
use crate::analysis::table::{Sort, kernels, launches, sort_orders};
use crate::app::KeyScope;
use crate::config::ColorMode;
use crate::launch::tracer::Chosen;
use crate::model::NameForm;
use crate::report::document::Renderer;
use crate::report::{Format, PageFormat};
use crate::rerun::{CacheControl, ClockControl, Replay};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses a number of seconds, greater than 0 and below 10⁹.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s < 1e9 => Ok(s),
        _ => Err("a number of seconds, such as 30 or 0.5".to_owned()),
    }
}

/// A type from another layer whose values have command-line names.
pub trait Words: Clone + Send + Sync + 'static {
    /// Returns all values with their names, in the order of the help text.
    fn all() -> Vec<(Self, &'static str)>;

    /// Alternative name of a value, which is not listed.
    const ALIAS: Option<(&'static str, &'static str)> = None;
}

/// Returns the parser of an option that accepts one of these names.
pub fn word_parser<T: Words>() -> impl TypedValueParser<Value = T> {
    let of = |alias: &str| T::ALIAS.filter(|a| a.0 == alias).map(|a| a.1);
    let value = |word: &'static str| match T::ALIAS.filter(|a| a.1 == word) {
        Some((alias, _)) => PossibleValue::new(word).alias(alias),
        None => PossibleValue::new(word),
    };
    PossibleValuesParser::new(T::all().into_iter().map(|w| value(w.1)))
        .try_map(move |text| T::all().into_iter().find(|w| w.1 == of(&text).unwrap_or(&text)).map(|w| w.0).ok_or("unknown value"))
}

macro_rules! words {
    ($type:ty: $($value:ident => $word:literal),+ $(,)?) => {
        impl Words for $type {
            fn all() -> Vec<(Self, &'static str)> {
                vec![$((Self::$value, $word)),+]
            }
        }
    };
}

words!(NameForm: Function => "function", Demangled => "demangled", Mangled => "mangled");
words!(ClockControl: Base => "base", None => "none");
words!(CacheControl: All => "all", None => "none");
words!(Replay: Kernel => "kernel", Application => "application", AppRange => "app-range");

impl Words for Format {
    fn all() -> Vec<(Self, &'static str)> {
        vec![(Self::Table, "table"), (Self::Csv, "csv"), (Self::Json, "json"), (Self::Md, "md")]
    }

    // Accept the word that `rerun` uses for this format.
    const ALIAS: Option<(&'static str, &'static str)> = Some(("text", "table"));
}

impl Words for PageFormat {
    fn all() -> Vec<(Self, &'static str)> {
        use Renderer::{Html, Markdown, Text};
        vec![
            (Self::Page(Text), "table"),
            (Self::Csv, "csv"),
            (Self::Json, "json"),
            (Self::Page(Markdown), "md"),
            (Self::Page(Html), "html"),
        ]
    }

    const ALIAS: Option<(&'static str, &'static str)> = Format::ALIAS;
}

impl Words for GroupBy {
    fn all() -> Vec<(Self, &'static str)> {
        Self::ALL.iter().map(|g| (*g, g.cli_name())).collect()
    }
}

impl Words for KeyScope {
    fn all() -> Vec<(Self, &'static str)> {
        Self::LINKS.iter().map(|(word, screen)| (*screen, *word)).collect()
    }
}

impl Words for ColorMode {
    fn all() -> Vec<(Self, &'static str)> {
        Self::ALL.iter().map(|(word, mode)| (*mode, *word)).collect()
    }
}

fn sort_parser(orders: Vec<(Sort, &'static str)>) -> impl TypedValueParser<Value = Sort> {
    PossibleValuesParser::new(orders.iter().map(|(sort, _)| sort.word))
        .try_map(move |text| orders.iter().find(|o| o.0.word == text).map(|o| o.0).ok_or("unknown value"))
}

/// Returns the parser of a sort order of kernels.
pub fn kernel_sort_parser() -> impl TypedValueParser<Value = Sort> {
    sort_parser(sort_orders(&kernels::columns(GroupBy::Kernel)))
}

/// Returns the parser of a sort order of launches.
pub fn launch_sort_parser() -> impl TypedValueParser<Value = Sort> {
    sort_parser(sort_orders(&launches::columns()))
}

/// Parses a percentage of a run's time, greater than 0 and at most 100.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let value = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0);
    value.ok_or_else(|| "a number above 0 and at most 100".to_owned())
}

/// Converts a percentage greater than 0 to whole thousandths, at least one.
pub fn to_thousandths(percent: f64) -> u32 {
    (percent * 10.0).round().max(1.0) as u32
}

/// Parses a rank, or a range of ranks such as `0-7`; returns the first and the last.
pub fn parse_ranks(text: &str) -> Result<(u32, u32), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let pair = first.trim().parse().ok().zip(last.trim().parse().ok());
    pair.filter(|(first, last)| first <= last).ok_or_else(|| "ranks such as 0,8,16 or 0-7".to_owned())
}

/// Splits the name of a range into domain and label; an `@` in the name is written `\@`.
pub fn named_range(named: &str) -> Result<(Option<String>, String), String> {
    let at = named.char_indices().rev().find(|&(i, c)| c == '@' && !named[..i].ends_with('\\')).map(|(i, _)| i);
    let (text, domain) = at.map_or((named, None), |i| (&named[..i], Some(named[i + 1..].to_owned())));
    if domain.as_ref().is_some_and(|d| d.contains(':')) {
        return Err("a domain with a colon in its name cannot be chosen".to_owned());
    }
    Ok((domain, text.replace("\\@", "@")))
}

/// Parses a kernel to measure, with `#N` for a single launch.
pub fn parse_kernel(text: &str) -> Result<Chosen, String> {
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

/// Validates a kernel to measure and returns the text unchanged.
pub fn check_kernel(text: &str) -> Result<String, String> {
    parse_kernel(text).map(|_| text.to_owned())
}

/// Parses the URL of a metrics page, or `auto`. Only HTTP: the page is on this machine or inside a cluster.
pub fn parse_metrics_url(text: &str) -> Result<String, String> {
    let named = |rest: &str| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace);
    if text == "auto" || text.strip_prefix("http://").is_some_and(named) {
        // Default to the path that Prometheus reads.
        let path = text.strip_prefix("http://").is_none_or(|rest| rest.trim_end_matches('/').contains('/'));
        Ok(if path { text.to_owned() } else { format!("{}/metrics", text.trim_end_matches('/')) })
    } else {
        Err("write a URL such as http://127.0.0.1:8000/metrics".to_owned())
    }
}
