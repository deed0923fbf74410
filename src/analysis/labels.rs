//! Short kernel labels that stay distinct within a table.
//!
//! A kernel is labeled with its function name. If several kernels in the table share it, the label adds the template
//! arguments that differ, then the parameters, then the namespace. A label that is still too long for its column loses
//! its middle, but keeps the part that differs.

use std::collections::{HashMap, HashSet};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A demangled name split at its outermost brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    scope: &'a str,
    pub(super) template: Vec<&'a str>,
    parameters: &'a str,
}

pub(super) fn split_name<'a>(demangled: &'a str, function: &str) -> Parts<'a> {
    // Find the function name at nesting depth 0, after a scope or return type and before arguments or parameters.
    let (mut nesting, mut read) = (0, 0);
    let at = demangled.match_indices(function).map(|(i, _)| i).find(|&i| {
        let before = demangled[..i].chars().next_back();
        let after = demangled[i + function.len()..].chars().next();
        if !matches!(before, None | Some(':' | ' ')) || !matches!(after, None | Some('<' | '(')) {
            return false;
        }
        nesting = demangled[read..i].chars().fold(nesting, next_depth);
        read = i;
        nesting == 0
    });
    let Some(at) = at.filter(|_| !function.is_empty()) else {
        return Parts::default();
    };
    let scope = demangled[..at].trim_start_matches("void ").trim_end_matches("::");
    let rest = &demangled[at + function.len()..];
    let (template, parameters) = match rest.strip_prefix('<') {
        Some(inner) => {
            let end = find_closing(inner);
            (split_arguments(&inner[..end]), inner.get(end + 1..).unwrap_or(""))
        }
        None => (Vec::new(), rest),
    };
    Parts { scope, template, parameters }
}

fn next_depth(depth: i32, c: char) -> i32 {
    match c {
        '<' | '(' | '[' | '{' => depth + 1,
        '>' | ')' | ']' | '}' => depth - 1,
        _ => depth,
    }
}

/// Returns the index of the bracket that closes the one just before `text`.
fn find_closing(text: &str) -> usize {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        if depth == 0 && c == '>' {
            return i;
        }
        depth = next_depth(depth, c);
    }
    text.len()
}

/// Splits at commas outside brackets.
pub(super) fn split_arguments(text: &str) -> Vec<&str> {
    let (mut out, mut start, mut depth) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        if c == ',' && depth == 0 {
            out.push(text[start..i].trim());
            start = i + 1;
        }
        depth = next_depth(depth, c);
    }
    out.push(text[start..].trim());
    out
}

/// Tells which parts of the name a label includes.
#[derive(Clone, Copy)]
struct Shown {
    template: bool,
    parameters: bool,
    scope: bool,
}

/// Parts that differ among kernels with the same function name.
struct Differences {
    scope: bool,
    parameters: bool,
    template: bool,
    /// Template arguments that differ, by position; `None` if the number of arguments differs, in which case all are
    /// shown.
    arguments: Option<Vec<bool>>,
}

impl Differences {
    fn between(all: &[Parts<'_>]) -> Self {
        let Some(first) = all.first() else { return Self { scope: false, parameters: false, template: false, arguments: None } };
        let any = |differs: &dyn Fn(&Parts<'_>) -> bool| all.iter().any(differs);
        let same_number = !any(&|p| p.template.len() != first.template.len());
        Self {
            scope: any(&|p| p.scope != first.scope),
            parameters: any(&|p| p.parameters != first.parameters),
            template: any(&|p| p.template != first.template),
            arguments: same_number.then(|| first.template.iter().enumerate().map(|(i, a)| any(&|p| p.template[i] != *a)).collect()),
        }
    }
}

/// Builds labels for kernels, each given as function name, demangled name, and a name that distinguishes kernels for
/// which both are equal.
pub fn label_kernels(rows: &[(&str, &str, &str)]) -> Vec<String> {
    let mut by_function: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, (function, ..)) in rows.iter().enumerate() {
        by_function.entry(function).or_default().push(i);
    }
    let mut out: Vec<String> = rows.iter().map(|(function, ..)| (*function).to_owned()).collect();
    for (function, group) in by_function {
        if group.len() == 1 {
            continue;
        }
        let taken: Vec<Parts<'_>> = group.iter().map(|&i| split_name(rows[i].1, function)).collect();
        let differences = Differences::between(&taken);
        let steps = [
            (true, false, false),
            (false, true, false),
            (true, true, false),
            (false, false, true),
            (true, false, true),
            (true, true, true),
        ];
        for (template, parameters, scope) in steps {
            let labels: Vec<String> =
                taken.iter().map(|p| build_label(function, p, &differences, Shown { template, parameters, scope })).collect();
            let done = all_distinct(&labels);
            for (&i, label) in group.iter().zip(labels) {
                out[i] = label;
            }
            if done {
                break;
            }
        }
    }
    tell_apart(&mut out, |i| rows[i].2);
    out
}

fn build_label(function: &str, own: &Parts<'_>, differences: &Differences, shown: Shown) -> String {
    let mut out = String::new();
    if shown.scope && differences.scope && !own.scope.is_empty() {
        out.push_str(own.scope);
        out.push_str("::");
    }
    out.push_str(function);
    if shown.template && differences.template {
        out.push('<');
        let mut elided = false;
        for (i, argument) in own.template.iter().enumerate() {
            let differs = differences.arguments.as_ref().is_none_or(|a| a[i]);
            if !differs && elided {
                continue;
            }
            if !out.ends_with('<') {
                out.push_str(", ");
            }
            out.push_str(if differs { argument } else { "…" });
            elided = !differs;
        }
        out.push('>');
    }
    if shown.parameters && differences.parameters {
        out.push_str(own.parameters);
    }
    out
}

fn all_distinct(labels: &[String]) -> bool {
    let mut seen = HashSet::new();
    labels.iter().all(|l| seen.insert(l))
}

/// Replaces equal labels with longer names, and numbers labels that are still equal.
fn tell_apart<'a>(labels: &mut [String], name: impl Fn(usize) -> &'a str) {
    for longer in [true, false] {
        let mut count: HashMap<&str, u32> = HashMap::new();
        for label in labels.iter() {
            *count.entry(label).or_default() += 1;
        }
        let twins: Vec<usize> = labels.iter().enumerate().filter(|(_, l)| count[l.as_str()] > 1).map(|(i, _)| i).collect();
        for (n, i) in twins.into_iter().enumerate() {
            labels[i] = if longer { name(i).to_owned() } else { format!("{} #{}", labels[i], n + 1) };
        }
    }
}

/// Display width in columns.
pub fn display_width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Returns the first `columns` columns of a string.
fn take_head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (i, g) in text.grapheme_indices(true) {
        used += display_width(g);
        if used > columns {
            return &text[..i];
        }
    }
    text
}

/// Returns the last `columns` columns of a string.
fn take_tail(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (i, g) in text.grapheme_indices(true).rev() {
        used += display_width(g);
        if used > columns {
            return &text[i + g.len()..];
        }
    }
    text
}

/// Truncates a string and appends `…`.
pub fn cut_end(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    match columns {
        0 => String::new(),
        n => format!("{}…", take_head(text, n - 1)),
    }
}

/// Replaces the middle of a string with `…`, keeping more of the beginning than of the end.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    if columns < 5 {
        return cut_end(text, columns);
    }
    let end = (columns - 1) * 2 / 5;
    format!("{}…{}", take_head(text, columns - 1 - end), take_tail(text, end))
}

/// Shortens two names to a width, keeping their difference visible.
pub fn cut_pair(a: &str, b: &str, columns: usize) -> (String, String) {
    let (short_a, short_b) = (cut_middle(a, columns), cut_middle(b, columns));
    if a == b || short_a != short_b && display_width(a).max(display_width(b)) <= columns {
        return (short_a, short_b);
    }
    // Start slightly before the first difference.
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let from = same.saturating_sub(columns / 4);
    let shown = |name: &str| {
        if from < 2 {
            return cut_middle(name, columns);
        }
        cut_end(&format!("…{}", name.chars().skip(from).collect::<String>()), columns)
    };
    let (x, y) = (shown(a), shown(b));
    if x == y { (short_a, short_b) } else { (x, y) }
}

/// Shortens a label to a number of columns: first the bracketed suffix of a [readable name](super::readable), then the
/// middle.
pub fn cut_label(label: &str, columns: usize) -> String {
    let said = label.find(" (").filter(|_| label.ends_with(')')).map_or(usize::MAX, |at| display_width(&label[..at]));
    if said <= columns { cut_end(label, columns) } else { cut_middle(label, columns) }
}

/// Fits labels into a column, keeping distinct labels distinct where the column is wide enough. If cutting the middle
/// would make two labels equal, the cut moves so that their difference stays visible; if that fails, too, they are
/// numbered.
pub fn fit_labels(labels: &[String], columns: usize) -> Vec<String> {
    let mut out: Vec<String> = labels.iter().map(|l| cut_label(l, columns)).collect();
    let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, text) in out.iter().enumerate() {
        by_text.entry(text.clone()).or_default().push(i);
    }
    for twins in by_text.into_values().filter(|t| t.len() > 1) {
        let common = twins[1..].iter().fold(usize::MAX, |n, &i| n.min(common_prefix(&labels[twins[0]], &labels[i])));
        for &i in &twins {
            out[i] = cut_around(&labels[i], common, columns);
        }
    }
    number_twins(&mut out, labels, columns);
    out
}

/// Numbers labels that are still equal, avoiding the labels of other rows.
fn number_twins(out: &mut [String], labels: &[String], columns: usize) {
    let mut count: HashMap<String, u32> = HashMap::new();
    for text in out.iter() {
        *count.entry(text.clone()).or_default() += 1;
    }
    let mut taken: HashSet<String> = count.iter().filter(|(_, n)| **n == 1).map(|(t, _)| t.clone()).collect();
    let mut next = 1_u64;
    for (i, text) in out.iter_mut().enumerate() {
        if count.get(text.as_str()).is_none_or(|&n| n == 1) {
            continue;
        }
        loop {
            let mark = format!("#{next}");
            let numbered = format!("{}{mark}", cut_end(&labels[i], columns.saturating_sub(mark.len())));
            next += 1;
            if display_width(&numbered) > columns || taken.insert(numbered.clone()) {
                *text = numbered;
                break;
            }
        }
    }
}

/// Numbers equal labels, regardless of width.
pub fn make_distinct(labels: &mut [String]) {
    let all = labels.to_vec();
    number_twins(labels, &all, usize::MAX);
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.graphemes(true).zip(b.graphemes(true)).take_while(|(x, y)| x == y).map(|(x, _)| x.len()).sum()
}

/// Joins the beginning of a string and the part around byte `at`.
fn cut_around(text: &str, at: usize, columns: usize) -> String {
    if columns < 8 || display_width(text) <= columns {
        return cut_end(text, columns);
    }
    let start = take_head(text, columns / 3);
    // A few characters of context before the difference.
    let from = text[..at.min(text.len())].grapheme_indices(true).rev().nth(2).map_or(0, |(i, _)| i).max(start.len());
    let rest = &text[from..];
    let room = columns - display_width(start) - 1;
    if display_width(rest) <= room {
        return format!("{start}…{}", take_tail(text, room));
    }
    format!("{start}…{}", cut_end(rest, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_added() {
        let rows = [
            ("copy", "void at::copy<float, (int)4, x>(T1 *)", "_Z1"),
            ("copy", "void at::copy<float, (int)8, x>(T1 *)", "_Z2"),
            ("foo", "foo(int *)", "_Z3"),
            ("foo", "foo(float *)", "_Z4"),
            ("scale", "void ops::scale<int>(int)", "_Z5"),
            ("scale", "void ops::detail::scale<int>(int)", "_Z6"),
            ("alone", "void n::alone<a, b>(c)", "_Z7"),
        ];
        assert_eq!(
            label_kernels(&rows),
            ["copy<…, (int)4, …>", "copy<…, (int)8, …>", "foo(int *)", "foo(float *)", "ops::scale", "ops::detail::scale", "alone"]
        );
    }

    #[test]
    fn equal_names_are_told_apart_by_symbol_and_then_by_number() {
        assert_eq!(label_kernels(&[("k", "k(int)", "_Z1"), ("k", "k(int)", "_Z2")]), ["_Z1", "_Z2"]);
        assert_eq!(label_kernels(&[("k", "k", "k"), ("k", "k", "k")]), ["k #1", "k #2"]);
    }

    #[test]
    fn fitting_keeps_labels_distinct() {
        let long: Vec<String> =
            (0..30).map(|i| format!("a_very_long_kernel_name_with_common_head_{i:02}_and_a_common_tail_that_is_long_too")).collect();
        for columns in [8, 12, 20, 33, 60, 200] {
            let fitted = fit_labels(&long, columns);
            assert!(all_distinct(&fitted), "{columns}: {fitted:?}");
            assert!(fitted.iter().all(|f| display_width(f) <= columns), "{columns}");
        }
    }

    #[test]
    fn wide_and_combining_characters_are_cut_whole() {
        assert_eq!(cut_end("カーネル", 5), "カー…");
        assert_eq!(display_width(&cut_middle("e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", 6)), 6);
        assert_eq!(cut_end("abc", 0), "");
    }

    #[test]
    fn what_differs_between_two_names_is_seen() {
        let (a, b) = ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT");
        assert_eq!(cut_pair(a, b, 40), (a.to_owned(), b.to_owned()));
        let (x, y) = cut_pair(a, b, 16);
        assert_ne!(x, y);
        assert!(display_width(&x) <= 16 && display_width(&y) <= 16 && x.contains("4x1") && y.contains("2x1"), "{x} {y}");
        assert_eq!(cut_pair("copy", "copy", 16), ("copy".to_owned(), "copy".to_owned()));
        assert_eq!(cut_pair("matmul_naive", "matmul_tiled", 8), ("…l_naive".to_owned(), "…l_tiled".to_owned()));
    }
}
