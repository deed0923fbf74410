//! Model of ncu's launch selection, based on measurements on an H200 and independent of the program's code: takes an
//! argv and a list of launches, and returns the launches that ncu would profile. Unknown options are errors.

use regex::Regex;

/// A range open at a launch.
#[derive(Clone, Debug)]
pub struct Open {
    pub domain: Option<&'static str>,
    pub text: String,
    /// Instance number of this name in its process, from 1.
    pub instance: u32,
}

/// One launch, in host call order.
#[derive(Clone, Debug, Default)]
pub struct Event {
    pub pid: u32,
    pub function: String,
    pub demangled: String,
    pub mangled: String,
    pub grid: u32,
    /// Number of the graph launch it belongs to.
    pub graph: Option<u32>,
    /// Push/pop ranges open on its thread.
    pub stack: Vec<Open>,
    /// Start/end ranges open in its process.
    pub process_ranges: Vec<Open>,
    /// Number of the enclosing cudaProfilerStart … Stop, from 1.
    pub profiler: Option<u32>,
    /// True if a cudaProfilerStop preceded the launch without a later cudaProfilerStart.
    pub stopped: bool,
}

/// Indices of the events of a result (several for a graph).
pub type Selected = Vec<Vec<usize>>;

#[derive(Debug, Default)]
struct Parsed {
    name: Option<String>,
    base: String,
    kernel_id: Option<String>,
    skip: Option<usize>,
    count: Option<usize>,
    graph: bool,
    from_start_off: bool,
    range_filter: Option<String>,
    nvtx: bool,
    include: Vec<String>,
    application_only: bool,
    ignore_api: bool,
}

fn parse(argv: &[String]) -> Result<Parsed, String> {
    let mut p = Parsed { base: "function".into(), ..Parsed::default() };
    let mut words = argv.iter().skip(1).peekable();
    while let Some(word) = words.next_if(|w| w.starts_with('-')) {
        if word == "--" {
            return Err("ncu takes -- for an ambiguous option".into());
        }
        if word == "--nvtx" {
            p.nvtx = true;
            continue;
        }
        if word == "--force-overwrite" {
            continue;
        }
        if word == "--disable-profiler-start-stop" {
            p.ignore_api = true;
            continue;
        }
        let value = words.next().ok_or("an option without its value")?.clone();
        let once = |slot: &mut Option<String>| if slot.replace(value.clone()).is_some() { Err(format!("{word} twice")) } else { Ok(()) };
        match word.as_str() {
            "--kernel-name" => once(&mut p.name)?,
            "--kernel-name-base" => p.base.clone_from(&value),
            "--kernel-id" => once(&mut p.kernel_id)?,
            "--launch-skip" => p.skip = Some(value.parse().map_err(|_| "bad skip")?),
            "--launch-count" => p.count = Some(value.parse().ok().filter(|&n| n > 0).ok_or("Please specify non-zero launch count.")?),
            "--graph-profiling" => p.graph = value == "graph",
            "--profile-from-start" => p.from_start_off = value == "off",
            "--range-filter" => once(&mut p.range_filter)?,
            "--nvtx-include" => p.include.push(value),
            "--target-processes" => p.application_only = value == "application-only",
            "--config-file" | "--set" | "--section" | "--export" | "--clock-control" | "--cache-control" | "--replay-mode"
            | "--import-source" | "--kill" => {}
            other => return Err(format!("unrecognised option '{other}'")),
        }
    }
    if words.next().is_none() {
        return Err("no program".into());
    }
    if p.skip.is_some() && p.kernel_id.is_some() {
        return Err("The option --launch-skip is not compatible with --kernel-id".into());
    }
    if p.name.is_some() && p.kernel_id.is_some() {
        return Err("--kernel-name is silently ignored beside --kernel-id".into());
    }
    if !p.include.is_empty() && !p.nvtx {
        return Err("--nvtx-include requires --nvtx".into());
    }
    Ok(p)
}

/// Parses an NVTX expression of one element: domain, text, whether it is push/pop.
fn element(expression: &str) -> Result<(Option<String>, String, bool), String> {
    let (mut parts, mut slash, mut escaped) = (vec![String::new()], false, false);
    for c in expression.chars() {
        if slash {
            return Err(format!("nested ranges in {expression}"));
        }
        if escaped {
            parts.last_mut().unwrap().push(c);
            escaped = false;
            continue;
        }
        match c {
            '\\' => escaped = true,
            '@' => parts.push(String::new()),
            '/' => slash = true,
            ',' | '[' | ']' | '*' | '+' => return Err(format!("an operator in {expression}")),
            c => parts.last_mut().unwrap().push(c),
        }
    }
    let text = parts.pop().unwrap();
    if text.is_empty() {
        return Err("a lone / crashes the target".into());
    }
    Ok((parts.pop(), text, slash))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("regex:") {
        Some(regex) => Regex::new(regex).unwrap().is_match(name),
        None => pattern == name,
    }
}

/// Returns the launches that ncu profiles, or its error.
pub fn select(argv: &[String], events: &[Event]) -> Result<Selected, String> {
    let p = parse(argv)?;
    let filter: Vec<&str> = p.range_filter.as_deref().map(|f| f.split(':').collect()).unwrap_or_default();
    if !filter.is_empty() && filter.len() != 3 {
        return Err(format!("Invalid range filter {filter:?}"));
    }
    let number = |i: usize| filter.get(i).filter(|t| !t.is_empty()).map(|t| t.parse::<u32>().unwrap());
    let elements: Vec<_> = p.include.iter().map(|e| element(e)).collect::<Result<_, _>>()?;
    let root = events.first().map_or(0, |e| e.pid);
    // Whole graph launches as units, if requested.
    let mut units: Vec<(Vec<usize>, &Event)> = Vec::new();
    for (i, e) in events.iter().enumerate() {
        match units.last_mut() {
            Some((of, first)) if p.graph && e.graph.is_some() && e.graph == first.graph && e.pid == first.pid => of.push(i),
            _ => units.push((vec![i], e)),
        }
    }
    let name_of = |e: &Event| -> String {
        if p.graph && e.graph.is_some() {
            return "graph".into();
        }
        match p.base.as_str() {
            "function" => e.function.clone(),
            "demangled" => e.demangled.clone(),
            "mangled" => e.mangled.clone(),
            other => panic!("no base {other}"),
        }
    };
    let mut counts: std::collections::BTreeMap<String, u32> = std::collections::BTreeMap::new();
    let (mut seen, mut out) = (0, Vec::new());
    let many = events.iter().any(|e| e.pid != root);
    for (indices, e) in units {
        if p.application_only && e.pid != root {
            continue;
        }
        // 1. Profiler state.
        let open = match number(1) {
            Some(n) => e.profiler == Some(n),
            None if p.ignore_api => true,
            None if p.from_start_off => e.profiler.is_some(),
            None => !e.stopped,
        };
        // 2. NVTX.
        let inside = elements.is_empty()
            || elements.iter().any(|(domain, text, push_pop)| {
                let list = if *push_pop { &e.stack } else { &e.process_ranges };
                list.iter().any(|r| r.domain == domain.as_deref() && matches(text, &r.text) && number(2).is_none_or(|n| n == r.instance))
            });
        if !open || !inside {
            continue;
        }
        // 3. Name, 4. numbers.
        let name = name_of(e);
        if let Some(id) = &p.kernel_id {
            if many {
                return Err("--kernel-id counts differently in each process".into());
            }
            let fields: Vec<&str> = id.split(':').collect();
            let (pattern, invocation) = match &fields[..] {
                ["", "", name, n] => ((*name).to_owned(), *n),
                ["", "", "regex", name, n] => (format!("regex:{name}"), *n),
                _ => return Err(format!("Invalid kernel identifier {id}")),
            };
            if !matches(&pattern, &name) {
                continue;
            }
            let nth = counts.entry(name).or_default();
            *nth += 1;
            if Regex::new(&format!("^(?:{invocation})$")).unwrap().is_match(&nth.to_string()) {
                out.push(indices);
            }
        } else {
            if p.name.as_ref().is_some_and(|n| !matches(n, &name)) {
                continue;
            }
            seen += 1;
            if seen > p.skip.unwrap_or(0) {
                out.push(indices);
            }
        }
        if p.count.is_some_and(|n| out.len() >= n) {
            break;
        }
    }
    Ok(out)
}

/// The model must agree with command lines that were really run (`captures` and probe of the predecessor project).
#[test]
fn the_model_selects_what_ncu_selected() {
    let event = |function: &str, demangled: &str, grid: u32| Event {
        pid: 1,
        function: function.into(),
        demangled: demangled.into(),
        mangled: format!("_Z{}{function}", function.len()),
        grid,
        ..Event::default()
    };
    let seq: Vec<Event> = [
        ("foo", "foo(int *)"),
        ("foobar", "foobar(int *)"),
        ("foo", "foo(int *)"),
        ("c_plain", "c_plain"),
        ("foo", "foo(float *)"),
        ("foobar", "foobar(int *)"),
        ("foo", "foo(int *)"),
        ("c_plain", "c_plain"),
        ("foo", "foo(int *)"),
        ("foobar", "foobar(int *)"),
        ("foo", "foo(int *)"),
        ("c_plain", "c_plain"),
    ]
    .iter()
    .zip(1..)
    .map(|((f, d), grid)| event(f, d, grid))
    .collect();
    let grids = |line: &str| -> Vec<u32> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        select(&argv, &seq).unwrap_or_else(|e| panic!("{line}: {e}")).iter().map(|s| seq[s[0]].grid).collect()
    };
    assert_eq!(grids("ncu --kernel-name foo --launch-skip 4 --launch-count 1 ./k"), [9]);
    assert_eq!(grids("ncu --kernel-name regex:^foo$ --launch-skip 5 --launch-count 1 ./k"), [11]);
    assert_eq!(grids("ncu --kernel-name regex:foo --launch-skip 8 --launch-count 1 ./k"), [11]);
    assert_eq!(grids("ncu --kernel-name c_plain --launch-skip 1 ./k"), [8, 12]);
    assert_eq!(grids("ncu --kernel-id ::c_plain:2 ./k"), [8]);
    assert_eq!(grids("ncu --kernel-id ::regex:foo:2 ./k"), [3, 6]);
    assert_eq!(grids("ncu --kernel-id ::foo:2|4 ./k"), [3, 7]);
    assert_eq!(grids("ncu --kernel-name fo ./k"), [0; 0]);
    let bad = |line: &str| select(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), &seq).unwrap_err();
    assert!(bad("ncu --kernel-id foo:2 ./k").contains("Invalid kernel identifier"));
    assert!(bad("ncu --kernel-id ::foo:2 --launch-skip 1 ./k").contains("not compatible"));
    assert!(bad("ncu --nvtx-include A/ ./k").contains("requires --nvtx"));
    assert!(bad("ncu --kernel-name foo -- ./k").contains("--"));
}
