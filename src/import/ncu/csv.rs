//! Reader for the output of ncu, raw or details page: with `--csv` a table, else text (`text_page.rs`), surrounded by
//! lines from the profiler and, in a live log, by lines from the program.

use super::numbers::{Decimal, Evidence, base_unit, parse_number};
use super::text_page::{PageLine, ResultLine, TextPage};
use super::units;
use crate::import::{Budget, ImportError, Input, Job};
use crate::model::{Kernel, Metrics, Note, NoteKind, ResultKind, ResultMetrics, Severity, Value};
use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a record, bytes; a raw row of the full set has 40,000 bytes.
const MOST_RECORD: usize = 4 << 20;
/// Maximum number of digits in a row number.
const LONGEST_NUMBER: usize = 20;
/// Maximum number of profiler errors to keep.
const MOST_ERRORS: usize = 20;

/// Columns that are not metrics.
const FACTS: [&str; 21] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Section Name",
    "Metric Name",
    "Metric Unit",
    "Metric Value",
    "Rule Name",
    "Rule Type",
    "Rule Description",
    "Estimated Speedup Type",
    "Estimated Speedup",
];

#[derive(Default)]
struct Header {
    titles: Vec<String>,
    /// Metric of each column; `None` for columns that are not metrics.
    metrics: Vec<Option<u32>>,
    /// Columns of a details page: section, metric, unit and value.
    details: Option<[usize; 4]>,
    /// Index of the last required column. Rows of small tables in a details page may have fewer columns than the
    /// header.
    last_fact: usize,
    /// True if fields are quoted, as ncu does; spreadsheet programs may remove the quotes.
    quoted: bool,
}

impl Header {
    fn find_column(&self, title: &str) -> Option<usize> {
        self.titles.iter().position(|t| t == title)
    }
}

/// A metric value that has not been parsed, and the factor of its unit.
struct Cell {
    metric: u32,
    text: String,
    scale: f64,
}

struct Reader {
    out: Metrics,
    cells: Vec<Vec<Cell>>,
    /// Index of the first cell of each metric in the last result.
    there: HashMap<u32, usize>,
    budget: Budget,
    /// True if the memory budget is exhausted.
    full: bool,
    index: HashMap<String, u32>,
    header: Option<Header>,
    /// Unit factor of each column on the raw page.
    scales: Vec<f64>,
    /// Key of the current result: process, id and kernel.
    current: Option<[String; 3]>,
    page: TextPage,
    /// Process and section of a page of text.
    pid: Option<u32>,
    section: String,
    errors: Vec<String>,
    /// True if the text contains lines from the profiler.
    profiled: bool,
    /// A profiler warning that explains why results are missing.
    warning: Option<String>,
}

/// Reads the text. `decimal` is the decimal separator, if specified by the user.
pub fn read_csv(
    input: &Input,
    reader: impl BufRead,
    job: &Job<'_>,
    out: Metrics,
    decimal: Option<Decimal>,
) -> Result<Metrics, ImportError> {
    let (path, budget) = (&*input.path, input.memory_budget());
    let mut state = Reader {
        out,
        cells: Vec::new(),
        there: HashMap::new(),
        budget,
        full: false,
        index: HashMap::new(),
        header: None,
        scales: Vec::new(),
        current: None,
        page: TextPage::default(),
        pid: None,
        section: String::new(),
        errors: Vec::new(),
        warning: None,
        profiled: false,
    };
    state.read_lines(path, reader, job)?;
    if state.header.is_none() && state.out.results.is_empty() {
        return Err(state.refusal_error(path));
    }
    Ok(state.finish(decimal))
}

/// Returns true if a line has an odd number of quotes, which means that it leaves a quote open or closes one.
fn odd_quotes(line: &str) -> bool {
    !line.bytes().filter(|&b| b == b'"').count().is_multiple_of(2)
}

/// Returns true if a line begins a table row. The first field must be a number, and quoted if the header is quoted,
/// because the program may print numbers too. On the raw page, the first field in the row of units is not a number.
fn begins_row(line: &str, quoted: bool) -> bool {
    let line = if quoted { line.strip_prefix('"') } else { Some(line) };
    // Limit the number of digits, because a line with millions of digits would be scanned again for every line after
    // it.
    let digits = |l: &str| l.bytes().take(LONGEST_NUMBER).take_while(u8::is_ascii_digit).count();
    let rest = line.and_then(|l| l.get(digits(l)..));
    rest.is_some_and(|r| r.starts_with(if quoted { "\"," } else { "," }))
}

fn split_fields(record: &str) -> Vec<String> {
    let mut one = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(record.as_bytes());
    one.records().next().and_then(Result::ok).map(|r| r.iter().map(str::to_owned).collect()).unwrap_or_default()
}

/// Parses `(128, 1, 1)` or `128,1,1`.
fn parse_dims(text: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = text.trim_matches(['(', ')', ' ']).split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().ok()?;
    <[u32; 3]>::try_from(numbers).ok()
}

/// Builds a kernel from its name, whose form depends on an ncu option that is not in the output.
fn parse_kernel(name: &str) -> Kernel {
    let text = Some(Arc::from(name)).filter(|_| !name.is_empty());
    match name {
        _ if name.starts_with("_Z") => Kernel { mangled: text, ..Kernel::default() },
        _ if name.contains(['(', ' ', '<', ':']) => Kernel { demangled: text, ..Kernel::default() },
        _ => Kernel { function: text, ..Kernel::default() },
    }
}

impl Reader {
    fn read_lines(&mut self, path: &Path, mut reader: impl BufRead, job: &Job<'_>) -> Result<(), ImportError> {
        let (mut bytes, mut open, mut odd) = (Vec::new(), String::new(), false);
        let pace = job.cancel.pace();
        loop {
            if !pace.count_steps(bytes.len() + 1) || job.cancel.is_cancelled() {
                return Err(ImportError::Cancelled { path: path.to_owned() });
            }
            bytes.clear();
            let limit = u64::try_from(MOST_RECORD).unwrap_or(u64::MAX);
            if reader.by_ref().take(limit).read_until(b'\n', &mut bytes).map_err(|e| ImportError::io(path, e))? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&bytes);
            let line = text.trim_start_matches('\u{feff}');
            let quoted = self.header.as_ref().is_some_and(|h| h.quoted);
            if !open.is_empty() && !begins_row(line, quoted) && open.len() + line.len() <= MOST_RECORD {
                // A rule's text may contain line breaks.
                open.push_str(line);
                odd ^= odd_quotes(line);
            } else {
                if !open.is_empty() {
                    self.note_damage("a row has an unclosed quote");
                }
                open.clear();
                open.push_str(line);
                odd = odd_quotes(line);
            }
            let row = self.header.is_some() && begins_row(&open, quoted);
            if row && odd {
                continue;
            }
            if row {
                self.read_row(&open);
                if self.full {
                    return Err(self.budget.exceeded_error());
                }
            } else {
                self.read_other_line(&open);
            }
            open.clear();
        }
        if !open.is_empty() {
            self.note_damage("its last row is truncated");
        }
        Ok(())
    }

    fn note_damage(&mut self, why: &str) {
        let after = self.out.results.len().checked_sub(1).map_or_else(String::new, |n| format!(" after result {n}"));
        let note = Note::new(Severity::Error, NoteKind::Damaged, format!("The CSV is damaged{after} ({why})"));
        if self.out.notes.last() != Some(&note) && self.out.notes.len() < MOST_ERRORS {
            self.out.notes.push(note);
        }
    }

    /// Reads a line outside of the table: a header, or output from the profiler or the program.
    fn read_other_line(&mut self, line: &str) {
        if line.starts_with("\"ID\",") || line.starts_with("ID,") {
            let titles = split_fields(line);
            if titles.iter().any(|t| t == "Kernel Name") {
                self.open_table(titles, line.starts_with('"'));
            }
        } else if line.starts_with("==PROF==") {
            self.profiled = true;
        } else if let Some(error) = line.strip_prefix("==ERROR==") {
            if self.errors.len() < MOST_ERRORS {
                self.errors.push(error.trim().to_owned());
            }
        } else if let Some(warning) = line.strip_prefix("==WARNING==").filter(|w| w.contains("No kernels") || w.contains("No results")) {
            self.warning.get_or_insert_with(|| warning.trim().to_owned());
        } else if self.header.is_none() {
            self.read_page_line(line);
        }
    }

    fn read_page_line(&mut self, line: &str) {
        let within = !self.out.results.is_empty();
        match self.page.read_line(line, within) {
            PageLine::Process(pid) => self.pid = Some(pid),
            PageLine::Result(found) => {
                self.section.clear();
                let pid = self.pid;
                self.begin_result(&found, pid);
            }
            PageLine::Section(section) => section.clone_into(&mut self.section),
            PageLine::Metric(m) => {
                let section = std::mem::take(&mut self.section);
                // A mark of values with a problem, which only text has.
                self.read_details(&section, m.name, m.unit, m.value.trim_start_matches("(!) "));
                self.section = section;
            }
            PageLine::Other => {}
        }
    }

    fn begin_result(&mut self, found: &ResultLine<'_>, pid: Option<u32>) {
        let kind = match found.name {
            "range" => ResultKind::Range,
            "graph" => ResultKind::Graph,
            "cmdlist" => ResultKind::CommandList,
            _ => ResultKind::Kernel,
        };
        let failed = kind == ResultKind::Kernel && found.grid == Some([0; 3]);
        self.out.results.push(ResultMetrics {
            kind,
            kernel: parse_kernel(found.name),
            grid: found.grid.filter(|_| kind == ResultKind::Kernel && !failed),
            block: found.block.filter(|_| kind == ResultKind::Kernel && !failed),
            pid,
            device: found.device,
            compute_capability: found.compute_capability,
            context: found.context,
            stream: found.stream,
            failed,
            ..ResultMetrics::from_values(Vec::new())
        });
        self.cells.push(Vec::new());
        self.there.clear();
    }

    fn open_table(&mut self, titles: Vec<String>, quoted: bool) {
        let mut header = Header { titles, quoted, ..Header::default() };
        let details = ["Section Name", "Metric Name", "Metric Unit", "Metric Value"].map(|t| header.find_column(t));
        if let [Some(a), Some(b), Some(c), Some(d)] = details {
            header.details = Some([a, b, c, d]);
        } else {
            // Columns with `Domain:` contain the open NVTX ranges.
            let is_metric = |t: &String| !t.is_empty() && !FACTS.contains(&t.as_str()) && !t.contains("Domain:");
            header.metrics = header.titles.clone().iter().map(|t| is_metric(t).then(|| self.metric_id(t))).collect();
        }
        let needs = |t: &String| ["Kernel Name", "CC", "Metric Value"].contains(&t.as_str());
        header.last_fact = header.titles.iter().rposition(needs).unwrap_or_default();
        self.scales = vec![1.0; header.titles.len()];
        self.header = Some(header);
        self.current = None;
    }

    fn metric_id(&mut self, name: &str) -> u32 {
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        let at = u32::try_from(self.out.names.len()).unwrap_or(u32::MAX);
        self.out.names.push(Arc::from(name));
        self.out.units.push(Arc::from(""));
        self.index.insert(name.to_owned(), at);
        at
    }

    fn set_unit(&mut self, metric: u32, unit: &str) -> f64 {
        let (base, scale) = base_unit(unit.trim());
        // For some percentages that newer versions report, ncu 2024.1.1 prints the unit of the base quantity.
        let name = self.out.names.get(metric as usize).map_or("", |n| n);
        let base = if scale.to_bits() == 1.0_f64.to_bits() && units::metric_unit(name) == "%" { "%".to_owned() } else { base };
        if let Some(known) = self.out.units.get_mut(metric as usize).filter(|u| u.is_empty()) {
            *known = Arc::from(base.as_str());
        }
        scale
    }

    fn read_row(&mut self, record: &str) {
        let Some(header) = self.header.take() else { return };
        let row = split_fields(record);
        let text = |i: usize| row.get(i).map_or("", String::as_str).trim();
        let of = |title: &str| header.find_column(title).map_or("", text);
        if text(0).is_empty() {
            if header.details.is_none() {
                let scale = |(i, metric): (usize, &Option<u32>)| metric.map_or(1.0, |metric| self.set_unit(metric, text(i)));
                self.scales = header.metrics.iter().enumerate().map(scale).collect();
            }
        } else if !of("Kernel Name").is_empty()
            && row.len() > header.last_fact
            && header.find_column("Process ID").is_none_or(|i| text(i).parse::<u32>().is_ok())
        {
            let key = [of("Process ID"), text(0), of("Kernel Name")].map(str::to_owned);
            // The raw page has one row per result; the details page has many.
            if header.details.is_none() || self.current.as_ref() != Some(&key) {
                self.current = Some(key);
                let found = ResultLine {
                    name: of("Kernel Name"),
                    grid: parse_dims(of("Grid Size")),
                    block: parse_dims(of("Block Size")),
                    context: of("Context").parse().ok(),
                    stream: of("Stream").parse().ok(),
                    device: of("Device").parse().ok(),
                    compute_capability: of("CC").split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))),
                };
                self.begin_result(&found, of("Process ID").parse().ok());
            }
            if let Some([section, name, unit, value]) = header.details {
                self.read_details(text(section), text(name), text(unit), text(value));
            } else {
                for (i, metric) in header.metrics.iter().enumerate() {
                    if let Some(metric) = metric {
                        self.add_cell(*metric, text(i), self.scales.get(i).copied().unwrap_or(1.0));
                    }
                }
                if row.len() < header.titles.len() {
                    self.note_damage("a row is shorter than its header");
                }
            }
        }
        self.header = Some(header);
    }

    /// Reads a row of the details page, which is one metric or one rule. A label may occur in several sections;
    /// metric names are unique.
    fn read_details(&mut self, section: &str, name: &str, unit: &str, value: &str) {
        if name.is_empty() {
            return;
        }
        let real = name.contains("__") && !name.contains(' ');
        let full = if real || section.is_empty() { name.to_owned() } else { format!("{section}: {name}") };
        let metric = self.metric_id(&full);
        let scale = self.set_unit(metric, unit);
        let before = self.there.get(&metric).and_then(|at| self.cells.last()?.get(*at)).map(|c| c.text == value);
        match before {
            None => self.add_cell(metric, value, scale),
            // A metric name has the same value in all sections, but two metrics in a section may have the same label.
            Some(false) if !real => {
                let second = self.metric_id(&format!("{full} (2)"));
                let scale = self.set_unit(second, unit);
                if !self.there.contains_key(&second) {
                    self.add_cell(second, value, scale);
                }
            }
            Some(_) => {}
        }
    }

    fn add_cell(&mut self, metric: u32, text: &str, scale: f64) {
        if matches!(text, "" | "n/a" | "no data") {
            return;
        }
        self.full |= !self.budget.try_spend((text.len() + size_of::<Cell>()) as u64);
        if let Some(cells) = self.cells.last_mut() {
            self.there.entry(metric).or_insert(cells.len());
            cells.push(Cell { metric, text: text.to_owned(), scale });
        }
    }

    fn finish(mut self, decimal: Option<Decimal>) -> Metrics {
        let mut evidence = Evidence::default();
        for cell in self.cells.iter().flatten() {
            evidence.add_cell(&cell.text);
        }
        if evidence.is_ambiguous() && decimal.is_none() {
            let text = "The CSV does not show whether 117.344 means 117 or 117 thousand; it is read the way ncu writes whole numbers, with thousands separators";
            self.out.notes.push(Note {
                fix: Some("use --decimal if that is wrong, and run ncu with LC_ALL=C".to_owned()),
                ..Note::new(Severity::Warning, NoteKind::Guess, text)
            });
        }
        for (result, cells) in self.out.results.iter_mut().zip(self.cells) {
            result.values = cells.into_iter().map(|c| (c.metric, parse_value(&c, &evidence, decimal))).collect();
        }
        if self.out.results.is_empty() {
            self.out.notes.push(
                Note::new(Severity::Warning, NoteKind::Empty, "The table has no results")
                    .with_fix("check ncu's filters, and that the command that wrote the table ended well"),
            );
        }
        for error in self.errors {
            self.out.notes.push(Note::new(Severity::Error, NoteKind::Tool, format!("ncu: {error}")));
        }
        self.out
    }

    /// Returns the error for text that contains no table.
    fn refusal_error(&self, path: &Path) -> ImportError {
        let Some(error) = self.errors.first().or(self.warning.as_ref()) else {
            if self.profiled {
                let next = "if ncu wrote a report (--export), open that; else leave --print-summary out";
                return ImportError::refused(path, "a log of ncu without a table of results", next);
            }
            return ImportError::refused(
                path,
                "not an Nsight Compute report",
                "name a .ncu-rep, or what ncu prints, with or without --csv",
            );
        };
        let next = if self.errors.iter().any(|e| e.contains("ERR_NVGPUCTRPERM")) {
            "run ncu as root, or give the program CAP_PERFMON (in a container --cap-add=PERFMON or SYS_ADMIN), or load the nvidia module with \
             NVreg_RestrictProfilingToAdminUsers=0"
        } else if self.errors.is_empty() {
            "check --kernel-name, --launch-skip and the range filters of the command"
        } else {
            "fix that and run it again"
        };
        ImportError::refused(path, format!("ncu wrote no results: {error}"), next)
    }
}

fn parse_value(cell: &Cell, evidence: &Evidence, decimal: Option<Decimal>) -> Value {
    match parse_number(&cell.text, evidence, decimal) {
        None => Value::Text(Arc::from(cell.text.as_str())),
        Some(n) if n.fract() == 0.0 && (0.0..9e15).contains(&n) && cell.scale.to_bits() == 1.0_f64.to_bits() => Value::Integer(n as u64),
        Some(n) => Value::Float(n * cell.scale),
    }
}
