//! Groups launches by one of nine criteria and ranks the groups.

use super::kernel_group_stats::{Sums, compute_sums};
use super::readable::readable_name;
use super::triage::judged_time::JudgedTime;
use super::{Family, Paths, Stats};
use crate::model::{Kernel, KernelId, LaunchSite, NoteKind, Profile};
use std::collections::HashMap;
use std::sync::Arc;

/// Criterion by which launches are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// Function with its template arguments, by its [readable name](super::readable).
    Kernel,
    /// Function name, which merges overloads, instantiations and namespaces.
    Name,
    Demangled,
    Mangled,
    /// Grid, block, shared memory and registers.
    Config,
    /// Stream, within its context, device and process.
    Stream,
    Device,
    Process,
    /// Path of the NVTX ranges around the launching call.
    Nvtx,
    /// Source line of the program at which the kernel was captured into a CUDA graph.
    Line,
}

impl GroupBy {
    pub const ALL: [Self; 10] = [
        Self::Kernel,
        Self::Name,
        Self::Demangled,
        Self::Mangled,
        Self::Config,
        Self::Stream,
        Self::Device,
        Self::Process,
        Self::Nvtx,
        Self::Line,
    ];

    /// Name used on the command line.
    pub fn cli_name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Name => "name",
            Self::Demangled => "demangled",
            Self::Mangled => "mangled",
            Self::Config => "config",
            Self::Stream => "stream",
            Self::Device => "device",
            Self::Process => "process",
            Self::Nvtx => "nvtx",
            Self::Line => "line",
        }
    }

    /// Noun for a group, used as the column header.
    pub fn group_noun(self) -> &'static str {
        match self {
            Self::Kernel | Self::Name | Self::Demangled | Self::Mangled => "kernel",
            Self::Config => "configuration",
            Self::Nvtx => "NVTX range",
            other => other.cli_name(),
        }
    }

    /// Returns true if grouping needs the [`Paths`] of the launches.
    pub fn needs_paths(self) -> bool {
        matches!(self, Self::Nvtx | Self::Line)
    }

    /// Returns true if each group is one kernel (or its overloads).
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel | Self::Name | Self::Demangled | Self::Mangled)
    }
}

#[derive(Clone, Debug)]
pub struct GroupRow {
    pub name: String,
    /// Kernel of the group, or the longest-running one if there are several; `None` if groups are not kernels.
    pub kernel: Option<KernelId>,
    /// Exact name of that kernel.
    pub exact: Option<Arc<str>>,
    /// Number of distinct kernels in the group.
    pub kernels: u32,
    pub stats: Stats,
    /// Share of the total time of all launches, percent.
    pub share_percent: f64,
    /// Family guessed from the name.
    pub family: Family,
    /// Rank among all groups by name: comparing ranks is faster than comparing names.
    pub name_rank: u32,
}

/// Launch column that determines the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Kernel,
    Config,
    Place,
    Path,
    Line,
}

/// All launches, grouped.
#[derive(Clone, Debug)]
pub struct Grouping {
    pub by: GroupBy,
    /// The groups, longest total first.
    pub rows: Vec<GroupRow>,
    /// Total duration of all launches in ns.
    pub total_ns: i64,
    pub launches: u64,
    /// Reason why the launches could not be grouped.
    pub unavailable: Option<&'static str>,
    /// Window of launch starts to which the grouping is limited, ns: from, to.
    pub window: Option<(i64, i64)>,
    /// Parts of the window outside of which no launch counts; `None` if the window has no holes.
    parts: Option<Arc<JudgedTime>>,
    key: Key,
    /// Maps a value of the key column to an index into `rows`; the last entry is for launches that have no value.
    row_of: Vec<u32>,
}

/// Names of the groups, and the group of each value of the key column.
struct Groups {
    names: Vec<String>,
    of: Vec<u32>,
}

impl Groups {
    fn by_name(values: impl Iterator<Item = String>, without: Option<&str>) -> Self {
        let mut ids: HashMap<String, u32> = HashMap::new();
        let mut names = Vec::new();
        let of = values
            .chain(without.map(str::to_owned))
            .map(|name| {
                *ids.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        Self { names, of }
    }
}

fn stream_name(profile: &Profile, p: &LaunchSite) -> String {
    let number = |n: Option<u32>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let process = p.pid.map_or_else(String::new, |pid| format!(" · pid {pid}"));
    format!("stream {} · context {} · {}{process}", number(p.stream), number(p.context), device_name(profile, p))
}

fn device_name(profile: &Profile, p: &LaunchSite) -> String {
    match (profile.device_of(p), p.ordinal) {
        (Some(d), _) => format!("GPU {} {}", d.id, d.short_name()),
        (None, Some(ordinal)) => format!("device {ordinal}"),
        (None, None) => "unknown device".to_owned(),
    }
}

fn process_name(profile: &Profile, p: &LaunchSite) -> String {
    let Some(pid) = p.pid else {
        return "unknown process".to_owned();
    };
    match profile.processes.iter().find(|x| x.pid == pid).and_then(|x| x.name.as_deref()) {
        Some(name) => format!("pid {pid} · {}", name.rsplit('/').next().unwrap_or(name)),
        None => format!("pid {pid}"),
    }
}

impl Grouping {
    /// Groups all launches. `paths` is needed if [`GroupBy::needs_paths`].
    pub fn from_profile(profile: &Profile, by: GroupBy, paths: Option<&Paths>) -> Self {
        Self::from_window(profile, by, paths, None)
    }

    /// Groups the launches that started in a window, ns: from, to (exclusive).
    pub fn from_window(profile: &Profile, by: GroupBy, paths: Option<&Paths>, window: Option<(i64, i64)>) -> Self {
        Self::from_parts(profile, by, paths, window, None)
    }

    /// Groups the launches that started in these parts of a window.
    pub fn from_parts(
        profile: &Profile,
        by: GroupBy,
        paths: Option<&Paths>,
        window: Option<(i64, i64)>,
        parts: Option<Arc<JudgedTime>>,
    ) -> Self {
        let (kernel, config, place) = profile.launches.group_keys();
        let no_paths: &[u32] = &[];
        let (key, column) = match by {
            GroupBy::Kernel | GroupBy::Name | GroupBy::Demangled | GroupBy::Mangled => (Key::Kernel, kernel),
            GroupBy::Config => (Key::Config, config),
            GroupBy::Stream | GroupBy::Device | GroupBy::Process => (Key::Place, place),
            GroupBy::Nvtx => (Key::Path, paths.map_or(no_paths, |p| &p.of_launch)),
            GroupBy::Line => (Key::Line, paths.map_or(no_paths, |p| &p.lines.of_launch)),
        };
        let groups = match by {
            GroupBy::Kernel => Groups::by_name(profile.kernels.iter().map(|k| readable_name(k).into_owned()), None),
            GroupBy::Name => Groups::by_name(profile.kernels.iter().map(|k| k.function().to_owned()), None),
            GroupBy::Demangled => Groups::by_name(profile.kernels.iter().map(|k| k.demangled().to_owned()), None),
            GroupBy::Mangled => Groups::by_name(profile.kernels.iter().map(|k| k.mangled().to_owned()), None),
            GroupBy::Config => Groups::by_name(profile.configs.iter().map(|c| c.label_for(profile.is_amd())), None),
            GroupBy::Stream => Groups::by_name(profile.places.iter().map(|p| stream_name(profile, p)), None),
            GroupBy::Device => Groups::by_name(profile.places.iter().map(|p| device_name(profile, p)), None),
            GroupBy::Process => Groups::by_name(profile.places.iter().map(|p| process_name(profile, p)), None),
            GroupBy::Nvtx => {
                // Only paths with launches need names.
                let mut used = vec![false; paths.map_or(0, |p| p.nodes.len())];
                for &path in column {
                    if let Some(used) = used.get_mut(path as usize) {
                        *used = true;
                    }
                }
                let label = |(i, used): (usize, &bool)| match paths {
                    Some(p) if *used => p.path_label(profile, u32::try_from(i).unwrap_or(u32::MAX)),
                    _ => String::new(),
                };
                Groups::by_name(used.iter().enumerate().map(label), Some("(no range)"))
            }
            GroupBy::Line => {
                Groups::by_name(paths.iter().flat_map(|p| &p.lines.names).cloned(), Some("(not in a graph whose capture was recorded)"))
            }
        };
        let mut out = Self { by, rows: Vec::new(), total_ns: 0, launches: 0, unavailable: None, window, parts, key, row_of: Vec::new() };
        if !profile.totals.is_empty() {
            out.fill_from_totals(profile);
            return out;
        }
        if column.is_empty() && !profile.launches.is_empty() {
            out.unavailable = Some(match by {
                GroupBy::Nvtx if profile.notes.iter().any(|n| n.kind == NoteKind::Damaged && n.text.starts_with("NVTX")) => {
                    "its NVTX ranges could not be read"
                }
                GroupBy::Nvtx => "the report has no NVTX ranges or operators",
                GroupBy::Line => "the report has no lines at which graphs were captured",
                _ if !profile.complete => "not read yet",
                _ => "not in the report",
            });
            return out;
        }
        out.fill_from_launches(profile, column, &groups);
        out
    }

    fn fill_from_launches(&mut self, profile: &Profile, column: &[u32], groups: &Groups) {
        let last = groups.of.len().saturating_sub(1);
        let group = |value: u32| groups.of.get((value as usize).min(last)).map_or(0, |&g| g as usize);
        let kernels = if self.by.is_kernel() { profile.kernels.len() } else { 0 };
        let launches = &profile.launches;
        let n = groups.names.len();
        let Sums { stats, kernel_ns, kernel_launches } = match (self.window, launches.short_durations()) {
            (None, Some(short)) => compute_sums(column, n, kernels, |_, v| Some(group(v)), |row| short[row]),
            (None, None) => {
                // If some launches have no times, skip those, since their durations are unknown; if none has times,
                // count all of them.
                let some = profile.coverage.untimed > 0;
                let known = |row: usize, v: u32| (!some || launches.has_duration(row)).then(|| group(v));
                compute_sums(column, n, kernels, known, |row| launches.duration(row))
            }
            (Some((from, to)), _) => {
                let inside = |row: usize, v: u32| {
                    let known = profile.has_time(row);
                    let start = launches.start(row);
                    (known && (from..to).contains(&start) && self.parts.as_ref().is_none_or(|p| p.contains(start))).then(|| group(v))
                };
                compute_sums(column, n, kernels, inside, |row| launches.duration(row))
            }
        };
        self.launches = stats.iter().flatten().map(|s| s.count).sum();
        self.total_ns = stats.iter().flatten().map(|s| s.total).fold(0, i64::saturating_add);
        let mut longest: Vec<(Option<u32>, u32)> = vec![(None, 0); groups.names.len()];
        for (kernel, &ns) in kernel_ns.iter().enumerate() {
            if kernel_launches[kernel] == 0 {
                continue;
            }
            let slot = &mut longest[groups.of[kernel] as usize];
            slot.1 += 1;
            if slot.0.is_none_or(|k| kernel_ns[k as usize] < ns) {
                slot.0 = u32::try_from(kernel).ok();
            }
        }
        let mut rows: Vec<(usize, GroupRow)> = stats
            .into_iter()
            .enumerate()
            .filter_map(|(g, stats)| {
                let (kernel, kernels) = longest[g];
                Some((g, self.build_row(profile, groups.names[g].clone(), kernel.map(KernelId), kernels, stats?)))
            })
            .collect();
        rows.sort_by(|(_, a), (_, b)| b.stats.total.cmp(&a.stats.total).then_with(|| a.name.cmp(&b.name)));
        let mut row_of_group = vec![u32::MAX; groups.names.len()];
        for (row, (g, _)) in rows.iter().enumerate() {
            row_of_group[*g] = u32::try_from(row).unwrap_or(u32::MAX);
        }
        self.row_of = groups.of.iter().map(|&g| row_of_group[g as usize]).collect();
        self.rows = rows.into_iter().map(|(_, row)| row).collect();
        self.rank_names();
    }

    fn rank_names(&mut self) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|&a, &b| self.rows[a].name.cmp(&self.rows[b].name));
        for (rank, row) in (0..).zip(order) {
            self.rows[row].name_rank = rank;
        }
    }

    fn build_row(&self, profile: &Profile, name: String, kernel: Option<KernelId>, kernels: u32, stats: Stats) -> GroupRow {
        let family = match kernel.and_then(|k| profile.kernels.get(k.0 as usize)) {
            Some(k) => Family::guess(k.function(), k.demangled()),
            None => Family::Other,
        };
        let exact = kernel.and_then(|k| profile.kernels.get(k.0 as usize)).and_then(|k| k.demangled.clone().or_else(|| k.spelled.clone()));
        let share_percent = if self.total_ns > 0 { stats.total as f64 / self.total_ns as f64 * 100.0 } else { 0.0 };
        GroupRow { name, kernel, exact, kernels, stats, share_percent, family, name_rank: 0 }
    }

    /// Builds rows from totals, for a report without individual launches. Totals can only be grouped by name.
    fn fill_from_totals(&mut self, profile: &Profile) {
        if !matches!(self.by, GroupBy::Kernel | GroupBy::Demangled | GroupBy::Name) {
            self.unavailable = Some("the report has per-kernel totals only");
            return;
        }
        self.total_ns = profile.totals.iter().map(|t| t.total.0).fold(0, i64::saturating_add);
        self.launches = profile.totals.iter().map(|t| t.count).fold(0, u64::saturating_add);
        let mut merged: Vec<(String, KernelId, u32, Stats)> = Vec::new();
        let mut at: HashMap<String, usize> = HashMap::new();
        for t in &profile.totals {
            let Some(kernel) = profile.kernels.get(t.kernel.0 as usize) else {
                continue;
            };
            let name = match self.by {
                GroupBy::Kernel => readable_name(kernel).into_owned(),
                GroupBy::Name => kernel.function().to_owned(),
                _ => kernel.demangled().to_owned(),
            };
            let stats = Stats {
                count: t.count,
                total: t.total.0,
                min: t.min.0,
                max: t.max.0,
                avg: t.total.0 as f64 / t.count as f64,
                median: t.median_ns,
                stddev: t.stddev_ns,
                p99: None,
                histogram: None,
            };
            match at.get(&name) {
                // The median and deviation of merged groups cannot be derived from those of the parts.
                Some(&i) => {
                    let (_, kernel, kernels, s) = &mut merged[i];
                    if stats.total > s.total {
                        *kernel = t.kernel;
                    }
                    *kernels += 1;
                    *s = Stats {
                        count: s.count + stats.count,
                        total: s.total.saturating_add(stats.total),
                        min: s.min.min(stats.min),
                        max: s.max.max(stats.max),
                        avg: (s.total as f64 + stats.total as f64) / (s.count + stats.count) as f64,
                        median: None,
                        stddev: None,
                        p99: None,
                        histogram: None,
                    };
                }
                None => {
                    at.insert(name.clone(), merged.len());
                    merged.push((name, t.kernel, 1, stats));
                }
            }
        }
        self.rows =
            merged.into_iter().map(|(name, kernel, kernels, stats)| self.build_row(profile, name, Some(kernel), kernels, stats)).collect();
        self.rows.sort_by(|a, b| b.stats.total.cmp(&a.stats.total).then_with(|| a.name.cmp(&b.name)));
        self.rank_names();
    }

    /// Returns the row of the group that contains a launch; `None` outside the window.
    pub fn row_of(&self, profile: &Profile, paths: Option<&Paths>, launch: usize) -> Option<usize> {
        let inside = |start: i64| {
            self.window.is_none_or(|(from, to)| (from..to).contains(&start)) && self.parts.as_ref().is_none_or(|p| p.contains(start))
        };
        if launch < profile.launches.len() && !inside(profile.launches.start(launch)) {
            return None;
        }
        self.row_of_group(profile, paths, launch)
    }

    /// Returns the row of the group that contains a launch, even if the launch itself is outside the window.
    pub fn row_of_group(&self, profile: &Profile, paths: Option<&Paths>, launch: usize) -> Option<usize> {
        let (kernel, config, place) = profile.launches.group_keys();
        let column = match self.key {
            Key::Kernel => kernel,
            Key::Config => config,
            Key::Place => place,
            Key::Path => &paths?.of_launch,
            Key::Line => &paths?.lines.of_launch,
        };
        let value = *column.get(launch)? as usize;
        self.row_of.get(value.min(self.row_of.len().checked_sub(1)?)).filter(|&&r| r != u32::MAX).map(|&r| r as usize)
    }

    /// Rows with the names of some rows of another grouping by the same criterion; `None` if one is missing.
    pub fn rows_named(&self, other: &Self, rows: &[usize]) -> Option<Vec<usize>> {
        let row_of = |row: &usize| self.rows.iter().position(|own| Some(&own.name) == other.rows.get(*row).map(|r| &r.name));
        rows.iter().map(row_of).collect::<Option<Vec<_>>>().filter(|_| self.by == other.by)
    }

    /// Launches of a row, in launch order.
    pub fn row_launches(&self, profile: &Profile, paths: Option<&Paths>, row: usize) -> Vec<u32> {
        let n = u32::try_from(profile.launches.len()).unwrap_or(u32::MAX);
        (0..n).filter(|&launch| self.row_of(profile, paths, launch as usize) == Some(row)).collect()
    }
}

/// Returns true if a row's name, or another form of its kernel's name, contains `word`, which must be lowercase.
pub fn is_named(kernels: &[Kernel], row: &GroupRow, word: &str) -> bool {
    let kernel = row.kernel.and_then(|k| kernels.get(k.0 as usize));
    let names = kernel.map(|k| [k.function(), k.demangled()]).into_iter().flatten();
    std::iter::once(row.name.as_str()).chain(names).any(|n| n.to_lowercase().contains(word))
}
