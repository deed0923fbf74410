//! Verifies after a run that the selected launches were profiled.

use super::Selects;
use crate::model::units::format_count;
use crate::model::{Metrics, ResultMetrics, config, kernel, units};

/// Identity of one result in a profiler's report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfiledResult {
    /// The name in the report: function or (possibly simplified) full name.
    pub name: String,
    /// Linker symbol, if the report has it.
    pub mangled: Option<String>,
    pub grid: Option<[u32; 3]>,
    pub block: Option<[u32; 3]>,
    /// The profiler failed to measure this launch.
    pub failed: bool,
    /// Grid and block may have the product of all dimensions in x, because rocprofv3's CSV contains only the product.
    pub products: bool,
}

impl ProfiledResult {
    /// Returns all results of a report.
    pub fn all_results(metrics: &Metrics) -> Vec<Self> {
        let products = metrics.source.tool == "rocprofv3";
        metrics.results.iter().map(|r| Self { products, ..Self::from(r) }).collect()
    }

    /// Returns true if a grid or block is as expected; for rocprofv3, it is enough if the products of the dimensions
    /// agree.
    fn size_matches(&self, have: [u32; 3], want: [u32; 3]) -> bool {
        let product = |d: [u32; 3]| d.iter().map(|&n| u64::from(n)).product::<u64>();
        have == want || (self.products && have[1..] == [1, 1] && product(have) == product(want))
    }
}

impl From<&ResultMetrics> for ProfiledResult {
    fn from(r: &ResultMetrics) -> Self {
        Self {
            name: r.kernel.demangled().to_owned(),
            mangled: r.kernel.mangled.as_deref().map(str::to_owned),
            grid: r.grid,
            block: r.block,
            failed: r.failed,
            products: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All selected launches are present, in order, and kernel, grid and block agree.
    Verified(String),
    /// Differences, one sentence each.
    Differs(Vec<String>),
}

impl Verdict {
    pub fn sentence(&self) -> String {
        match self {
            Self::Verified(text) => format!("verified: {text}"),
            Self::Differs(lines) => format!("differs: {}", lines.join("; ")),
        }
    }
}

fn format_dims(d: Option<[u32; 3]>) -> String {
    d.map_or_else(|| "?".to_owned(), config::format_dim3)
}

/// Compares kernel, grid and block of the selected launches with those of the results, in order. Skips values that are
/// missing on one side, but rejects a result without any comparable value.
pub fn verify(selects: &[Selects], found: &[ProfiledResult]) -> Verdict {
    if found.is_empty() {
        return Verdict::Differs(vec!["the report has no results: no launch was selected".to_owned()]);
    }
    if selects.is_empty() {
        return Verdict::Differs(vec!["no individual launch was selected, so there is nothing to compare".to_owned()]);
    }
    let mut out = Vec::new();
    if found.len() != selects.len() {
        out.push(format!("{} instead of {}", format_count(found.len(), "result"), selects.len()));
    }
    for (i, (want, have)) in selects.iter().zip(found).enumerate() {
        let at = if selects.len() > 1 { format!("result {i}: ") } else { String::new() };
        if have.failed {
            out.push(format!("{at}the profiler could not measure {}", want.kernel));
            continue;
        }
        if let Some(text) = name_differs(want, have) {
            out.push(format!("{at}{text}"));
        }
        for (word, want, size) in [("grid", want.grid, have.grid), ("block", want.block, have.block)] {
            if want.zip(size).is_some_and(|(want, size)| !have.size_matches(size, want)) {
                out.push(format!("{at}{word} {} instead of {}", format_dims(size), format_dims(want)));
            }
        }
        let both = |a: Option<[u32; 3]>, b: Option<[u32; 3]>| a.is_some() && b.is_some();
        if want.kernel != "graph" && !(both(want.grid, have.grid) && both(want.block, have.block)) {
            out.push(format!("{at}grid and block are missing from a report, so nothing can be verified"));
        }
    }
    if !out.is_empty() {
        return Verdict::Differs(if is_reordered(selects, found) {
            vec!["the results are the selected launches, but in a different order".to_owned()]
        } else {
            out
        });
    }
    let one = &selects[0];
    Verdict::Verified(match selects.len() {
        1 if one.grid.is_none() => format!("one {} was profiled (a result does not say which)", one.kernel),
        1 => {
            let alike = match one.alike {
                0 => String::new(),
                n => format!(" ({} other launches look the same)", units::format_grouped(n)),
            };
            format!("{} with grid {} and block {}, as selected{alike}", one.kernel, format_dims(one.grid), format_dims(one.block))
        }
        n => format!("all {n} results have the selected kernels, grids and blocks"),
    })
}

/// Returns true if each selected launch has a result, but in a different order.
fn is_reordered(selects: &[Selects], found: &[ProfiledResult]) -> bool {
    let mut left: Vec<&ProfiledResult> = found.iter().collect();
    selects.len() == found.len()
        && selects.iter().all(|want| {
            let fits = |have: &&ProfiledResult| {
                !have.failed && name_differs(want, have).is_none() && want.grid == have.grid && want.block == have.block
            };
            left.iter().position(fits).map(|at| left.swap_remove(at)).is_some()
        })
}

/// Compares symbols if both are known, otherwise function names, because a printed full name may be simplified.
fn name_differs(want: &Selects, have: &ProfiledResult) -> Option<String> {
    if let (Some(a), Some(b)) = (&want.mangled, &have.mangled)
        && a != b
    {
        let names = (want.demangled.as_deref().unwrap_or(a), if have.name.is_empty() { b } else { &have.name });
        return Some(format!("kernel {} instead of {}", names.1, names.0));
    }
    // ncu prints mangled names on request.
    if want.mangled.as_deref() == Some(have.name.as_str()) || want.demangled.as_deref() == Some(have.name.as_str()) {
        return None;
    }
    let differ = || Some(format!("kernel {} instead of {}", have.name, want.demangled.as_deref().unwrap_or(&want.kernel)));
    if kernel::function_of(&have.name) != want.kernel {
        return differ();
    }
    // Distinguish overloads: a printed name has no namespaces, but it has its parameter types.
    match (parameter_list(&have.name), want.demangled.as_deref().and_then(parameter_list)) {
        (Some(a), Some(b)) if a != b => differ(),
        _ => None,
    }
}

/// Returns the parameters of a full name, without namespaces and template arguments; `None` if the name has none.
pub(super) fn parameter_list(name: &str) -> Option<String> {
    let inside = name.trim_end().strip_suffix(')')?;
    // Search backwards for the parenthesis that opens the list.
    let mut depth = 1_i32;
    let at = inside.char_indices().rev().find(|&(_, c)| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        depth == 0
    })?;
    let (mut out, mut word, mut angle) = (String::new(), String::new(), 0_i32);
    for c in inside[at.0 + 1..].chars() {
        match c {
            '<' => angle += 1,
            '>' => angle -= 1,
            _ if angle > 0 => {}
            ':' => word.clear(),
            c if c.is_alphanumeric() || c == '_' => word.push(c),
            c => {
                out.push_str(&std::mem::take(&mut word));
                if c != ' ' {
                    out.push(c);
                }
            }
        }
    }
    out.push_str(&word);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LaunchId, Nanos};

    fn want() -> Selects {
        Selects {
            kernel: "tk".into(),
            demangled: Some("void a::b::tk<float, (int)3>(T1 *)".into()),
            mangled: Some("_ZN1a1b2tkIfLi3EEEvPT_".into()),
            launch: Some(LaunchId(4)),
            nth: 0,
            skipped: 0,
            grid: Some([5, 1, 1]),
            block: Some([32, 1, 1]),
            duration: Nanos(1),
            alike: 0,
        }
    }

    fn have(name: &str) -> ProfiledResult {
        ProfiledResult { name: name.into(), grid: Some([5, 1, 1]), block: Some([32, 1, 1]), ..ProfiledResult::default() }
    }

    #[test]
    fn the_same_launch_is_verified_however_its_name_is_printed() {
        for name in ["tk", "void a::tk<float, 3>(T1 *)", "void a::b::tk<float, (int)3>(T1 *)", "_ZN1a1b2tkIfLi3EEEvPT_"] {
            let verdict = verify(&[want()], &[have(name)]);
            assert_eq!(verdict.sentence(), "verified: tk with grid 5 and block 32, as selected", "{name}");
        }
    }

    #[test]
    fn parameters_lose_namespaces_and_arguments_of_templates() {
        assert_eq!(
            parameter_list("void a::k<int (*)(float)>(a::b::V<int> *, unsigned long long, const char *)").unwrap(),
            "V*,unsignedlonglong,constchar*"
        );
        assert_eq!(parameter_list("k(V *, unsigned long long, const char *)").unwrap(), "V*,unsignedlonglong,constchar*");
        assert_eq!(parameter_list("c_plain"), None);
        let mut other = Selects { alike: 3, ..want() };
        other.grid = Some([7, 1, 1]);
        let swapped = verify(&[want(), other.clone()], &[ProfiledResult { grid: other.grid, ..have("tk") }, have("tk")]);
        assert!(swapped.sentence().contains("in a different order"), "{}", swapped.sentence());
        let looks = verify(&[other.clone()], &[ProfiledResult { grid: other.grid, ..have("tk") }]);
        assert!(looks.sentence().ends_with("(3 other launches look the same)"), "{}", looks.sentence());
    }

    #[test]
    fn every_difference_is_named() {
        let differs = |found: &[ProfiledResult]| match verify(&[want()], found) {
            Verdict::Differs(lines) => lines.join("; "),
            Verdict::Verified(text) => panic!("{text}"),
        };
        assert!(differs(&[]).contains("no results"));
        assert_eq!(differs(&[have("foo(int *)")]), "kernel foo(int *) instead of void a::b::tk<float, (int)3>(T1 *)");
        assert!(differs(&[have("void tk<float, 3>(T1 *, int)")]).starts_with("kernel void tk"), "an overload");
        assert_eq!(differs(&[ProfiledResult { grid: Some([6, 1, 1]), ..have("tk") }]), "grid 6 instead of 5");
        assert_eq!(differs(&[ProfiledResult { block: Some([64, 2, 1]), ..have("tk") }]), "block 64×2 instead of 32");
        assert!(differs(&[have("tk"), have("tk")]).contains("2 results instead of 1"));
        assert!(differs(&[ProfiledResult { grid: None, ..have("tk") }]).contains("nothing can be verified"));
        assert!(differs(&[ProfiledResult { block: None, ..have("tk") }]).contains("nothing can be verified"));
        assert!(differs(&[ProfiledResult { failed: true, ..have("tk") }]).contains("could not measure"));
        let other = ProfiledResult { mangled: Some("_Z3fooPi".into()), ..have("foo(int *)") };
        assert_eq!(differs(&[other]), "kernel foo(int *) instead of void a::b::tk<float, (int)3>(T1 *)");
    }
}
