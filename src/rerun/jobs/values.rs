//! Checks individual option values: rocprofv3 uses the values as Python parses them from the file.

use super::JobProblem;
use super::options::{OptionKind, find_option, option_names};
use super::read::{Job, Key, Value, parse_int};
use crate::analysis::fuzzy::nearest_match;
use crate::model::Severity::{Error, Info, Warning};

/// Output formats of rocprofv3.
const FORMATS: [&str; 5] = ["csv", "json", "pftrace", "otf2", "rocpd"];

fn is_false_word(words: &str) -> bool {
    matches!(words.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0" | "n" | "f")
}

fn check_value(key: &Key) -> Vec<JobProblem> {
    let Key { name, value, line } = key;
    let error = |id, text: String| JobProblem::new(Error, id, *line, text);
    let Some((kind, since)) = find_option(name) else {
        let found = error("unknown-option", format!("`{name}` is no option of rocprofv3, which ignores it without a word"));
        let near = nearest_match(name, option_names());
        let dashed = name.replace('-', "_");
        return vec![match near {
            _ if name.contains('-') && find_option(&dashed).is_some() => {
                found.with_fix(format!("write `{dashed}`: in files the names have `_`"))
            }
            Some(near) => found.with_fix(format!("`{near}` is the nearest that exists")),
            None => found,
        }];
    };
    let mut out = Vec::new();
    if !since.is_empty() {
        out.push(JobProblem::new(Info, "newer-release", *line, format!("`{name}` needs ROCm {since} or newer; older ones ignore it")));
    }
    let written = value.to_text();
    match (kind, value) {
        (_, Value::Null) => out.push(JobProblem::new(Warning, "empty-value", *line, format!("`{name}` has no value and is ignored"))),
        (OptionKind::Texts, Value::Text(text)) if name != "kernel_iteration_range" => {
            let pieces: Vec<&str> = text.split([' ', ',']).filter(|p| !p.is_empty()).collect();
            out.push(
                error("letter-by-letter", format!("`{name}` is a text, not a list: rocprofv3 takes it letter by letter"))
                    .with_fix(format!("write `{name}: [{}]`", pieces.join(", "))),
            );
        }
        (OptionKind::Texts, Value::Number(_) | Value::Bool(_) | Value::Map(_)) => out.push(
            error("wrong-type", format!("`{name}: {written}` is no text: rocprofv3 ends with a TypeError before the program starts"))
                .with_fix(if name == "kernel_iteration_range" {
                    format!("write `{name}: '[{written}]'`")
                } else {
                    format!("write `{name}: ['{written}']`")
                }),
        ),
        (OptionKind::Texts, Value::List(list)) => {
            if let Some(wrong) = list.iter().find(|v| !matches!(v, Value::Text(_))) {
                let base = matches!(wrong, Value::Number(n) if n.contains(':'));
                let what = if base { "a number of base 60 in YAML" } else { "no text" };
                let text = format!("`{}` in `{name}` is {what}: rocprofv3 ends with an error before the program starts", wrong.to_text());
                out.push(error("wrong-type", text).with_fix(format!("put it in quotes: '{}'", wrong.to_text())));
            }
        }
        (OptionKind::Groups, value) if !matches!(value, Value::List(l) if l.iter().all(|g| matches!(g, Value::List(_)))) => {
            out.push(error("wrong-type", format!("`{name}` is no list of lists")).with_fix("write it as [[A, B], [C]]"));
        }
        (OptionKind::Trace | OptionKind::Switch, Value::Text(text)) if !text.is_empty() => out.push(
            if is_false_word(text) {
                error("text-means-on", format!("`{name}: '{text}'` is a text, and any text means on"))
            } else {
                JobProblem::new(Warning, "text-means-on", *line, format!("`{name}: '{text}'` is a text, and any text means on"))
            }
            .with_fix("write true or false without quotes"),
        ),
        (OptionKind::Text, Value::List(_) | Value::Map(_)) => {
            out.push(error("wrong-type", format!("`{name}` takes one text; the list would be used as Python prints it")));
        }
        (OptionKind::Mask, Value::Text(text)) if parse_mask(text).is_none() => {
            out.push(
                error("not-a-number", format!("`{name}: '{text}'` is no number: rocprofv3 ends with a ValueError"))
                    .with_fix("write '0x…' or a decimal number"),
            );
        }
        (OptionKind::Mask, Value::Number(text)) if parse_int(text) == Some(0) => out.push(
            JobProblem::new(Warning, "zero-is-default", *line, format!("`{name}: 0` counts as not given, so the default is used"))
                .with_fix("write it as text: '0x0'"),
        ),
        (OptionKind::Mask, Value::List(_) | Value::Map(_) | Value::Bool(_)) => {
            out.push(error("wrong-type", format!("`{name}: {written}` is neither a number nor a text with one")));
        }
        (OptionKind::Number, Value::Text(text)) => {
            out.push(
                JobProblem::new(Warning, "wrong-type", *line, format!("`{name}: '{text}'` is a text where a number is wanted"))
                    .with_fix("leave the quotes out"),
            );
        }
        _ => {}
    }
    out.extend(check_limits(key));
    out
}

/// Parses a string like rocprofv3's `int_auto`: as base 16 if it contains `0x`.
fn parse_mask(text: &str) -> Option<i64> {
    if text.contains("0x") { parse_int(text) } else { text.trim().parse().ok() }
}

/// Checks that values of the right type are within the limits of the option.
fn check_limits(Key { name, value, line }: &Key) -> Vec<JobProblem> {
    let n = match value {
        Value::Number(text) | Value::Text(text) => parse_mask(text).or_else(|| parse_int(text)),
        _ => None,
    };
    let mut out = Vec::new();
    match (name.as_str(), n) {
        ("att_target_cu" | "att_simd_select", Some(n)) if !(0..=15).contains(&n) => {
            out.push(JobProblem::new(Error, "out-of-range", *line, format!("`{name}` is from 0 to 15, not {n}")));
        }
        ("att_buffer_size", Some(n)) if n < 1 << 20 => {
            out.push(JobProblem::new(
                Error,
                "out-of-range",
                *line,
                format!("`{name}` is in bytes and at least 1 MiB for each shader engine, not {n}"),
            ));
        }
        ("att_simd_select", Some(n)) if n > 3 => out.push(JobProblem::new(
            Info,
            "simd-select",
            *line,
            "`att_simd_select` is a mask of SIMDs on CDNA (gfx9) and the number of one, 0 to 3, on RDNA",
        )),
        ("att_perfcounter_ctrl", Some(n)) if !(0..=32).contains(&n) => {
            out.push(JobProblem::new(Error, "out-of-range", *line, format!("`{name}` is from 1 to 32, not {n}")));
        }
        _ => {}
    }
    if name == "output_format"
        && let Value::List(list) = value
    {
        for format in list.iter().map(Value::to_text).filter(|f| !FORMATS.contains(&f.to_ascii_lowercase().as_str())) {
            let text = format!("`{format}` is no format that rocprofv3 writes");
            out.push(JobProblem::new(Error, "unknown-format", *line, text).with_fix(format!("one of {}", FORMATS.join(", "))));
        }
        if list.iter().all(|f| f.to_text().eq_ignore_ascii_case("otf2")) && !list.is_empty() {
            let text = "OTF2 alone cannot be opened by warpscope";
            out.push(JobProblem::new(Info, "otf2", *line, text).with_fix("add json or rocpd"));
        }
    }
    out
}

/// Checks each option of a job separately.
pub(super) fn of_job(job: &Job) -> Vec<JobProblem> {
    let mut findings: Vec<JobProblem> = job.keys.iter().flat_map(check_value).collect();
    // Report a release only once, even if several options require it.
    let mut newest: Vec<&'static str> = Vec::new();
    let mut needing: Vec<&str> = Vec::new();
    for (key, since) in job.keys.iter().filter_map(|k| find_option(&k.name).map(|o| (k, o.1))).filter(|(_, since)| !since.is_empty()) {
        newest.push(since);
        needing.push(&key.name);
    }
    findings.retain(|f| f.id != "newer-release");
    let release = |t: &&str| t.split('.').filter_map(|n| n.parse::<u32>().ok()).collect::<Vec<_>>();
    if let Some(since) = newest.iter().max_by_key(|t| release(t)) {
        let names: Vec<String> =
            needing.iter().filter(|n| find_option(n).is_some_and(|o| o.1 == *since)).map(|n| format!("`{n}`")).collect();
        let text = format!("needs ROCm {since} or newer: older ones ignore {}", names.join(", "));
        findings.push(JobProblem::new(Info, "newer-release", job.line, text));
    }
    findings
}
