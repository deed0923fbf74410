//! Columns for launches.

use super::column::{Column, Outputs, columns_of};
use super::sort::Sort;
use super::value::{Unit, Value};
use crate::analysis::{Occupancy, Paths};
use crate::model::{Bytes, Kernel, LaunchConfig, LaunchSite, Nanos, Profile};
use std::borrow::Cow;

/// A launch, with the data for its cells.
#[derive(Clone, Copy)]
pub struct LaunchRow<'p> {
    pub profile: &'p Profile,
    pub paths: Option<&'p Paths>,
    /// Index in launch order.
    pub launch: usize,
    /// Index among the launches with this function name in this process, from 0.
    pub nth: u32,
    /// Median duration of the listed launches, ns.
    pub median: Option<f64>,
    /// For a launch with an ncu result: true if the result is of this launch, false if it is of a similar one, and the
    /// duration under ncu. ncu runs at a different clock frequency, so that duration is kept apart from the timeline's.
    pub measured: Option<(bool, Option<Nanos>)>,
}

impl<'p> LaunchRow<'p> {
    pub fn new(profile: &'p Profile, paths: Option<&'p Paths>, launch: u32, nth: u32) -> Self {
        Self { profile, paths, launch: launch as usize, nth, median: None, measured: None }
    }

    pub fn kernel(&self) -> Option<&'p Kernel> {
        self.profile.kernels.get(self.profile.launches.kernel(self.launch).0 as usize)
    }

    fn place(&self) -> Option<&'p LaunchSite> {
        self.profile.launches.place(self.launch).and_then(|p| self.profile.places.get(p.0 as usize))
    }

    fn config(&self) -> Option<&'p LaunchConfig> {
        self.profile.launches.config(self.launch).and_then(|c| self.profile.configs.get(c.0 as usize))
    }

    fn device(&self) -> Option<u32> {
        let place = self.place()?;
        self.profile.device_of(place).map(|d| d.id).or(place.ordinal)
    }

    fn occupancy(&self) -> Option<f64> {
        let device = self.place().and_then(|p| self.profile.device_of(p))?;
        Occupancy::from_config(self.config()?, device).map(|o| o.percent)
    }
}

fn bytes<'a>(of: Option<Bytes>) -> Value<'a> {
    Value::maybe_int(of.map(|b| b.0))
}

/// Difference from the median: `+12%`, or `·` if there is none.
fn versus_median<'a>(r: &LaunchRow<'_>) -> Value<'a> {
    let Some(median) = r.median.filter(|&m| m > 0.0 && r.profile.has_time(r.launch)) else { return Value::Absent };
    let percent = (r.profile.launches.duration(r.launch) as f64 / median - 1.0) * 100.0;
    Value::Text(if percent.abs() < 0.5 {
        "·".into()
    } else if percent > 9999.0 {
        ">100×".into()
    } else {
        format!("{percent:+.0}%").into()
    })
}

fn measured_duration<'a>(r: &LaunchRow<'_>) -> Value<'a> {
    let Some((exact, duration)) = r.measured else { return Value::Absent };
    let mark = if exact { "◆" } else { "◇" };
    Value::Text(duration.map_or(Cow::Borrowed(mark), |d| format!("{mark} {d}").into()))
}

fn axis<'a>(dims: Option<[u32; 3]>, axis: usize) -> Value<'a> {
    Value::maybe_int(dims.map(|d| d[axis]))
}

pub const LAUNCH: Sort = Sort::ascending("launch", 'l');

type LaunchColumn<'p> = Column<LaunchRow<'p>>;

pub fn columns<'p>() -> Vec<LaunchColumn<'p>> {
    const MACHINE: Outputs = Outputs::CSV.with(Outputs::JSON);
    vec![
        LaunchColumn::new("launch", "launch", Unit::Index, "number in launch order, from 0, as a re-run counts", |r| Value::int(r.launch))
            .and_parquet()
            .on_screen(10)
            .sorted(LAUNCH),
        LaunchColumn::new("kernel", "kernel", Unit::Text, "function, without namespace and arguments", |r| {
            Value::text(r.kernel().map_or("", Kernel::function))
        })
        .and_parquet(),
        LaunchColumn::new("nth", "nth (0…)", Unit::Index, "number among the launches of this function in this process, from 0", |r| {
            Value::int(r.nth)
        })
        .priority(1)
        .on_screen(9),
        LaunchColumn::new("start_ns", "start", Unit::Time, "start on the device, from the report's 0", |r| {
            let launches = &r.profile.launches;
            Value::maybe_int((launches.has_start_times() && r.profile.has_time(r.launch)).then(|| launches.start(r.launch)))
        })
        .and_parquet()
        .priority(3)
        .on_screen(13)
        .sorted(Sort::ascending("start", 's')),
        LaunchColumn::new("epoch_ns", "since 1970", Unit::Ns, "start since 1970, by the machine's clock", |r| {
            Value::maybe_int(r.profile.clock.epoch_ns.map(|e| e.saturating_add(r.profile.launches.start(r.launch))))
        })
        .only(Outputs::PARQUET),
        LaunchColumn::new("duration_ns", "duration", Unit::Ns, "duration on the device", |r| {
            if r.profile.has_time(r.launch) { Value::Int(r.profile.launches.duration(r.launch)) } else { Value::Absent }
        })
        .weighing()
        .and_parquet()
        .on_screen(9)
        .sorted(Sort::descending("duration", 'd')),
        LaunchColumn::new("measured", "ncu", Unit::Text, "duration that ncu measured, at its own clocks", measured_duration)
            .only(Outputs::NONE)
            .priority(1)
            .on_screen(11),
        LaunchColumn::new("versus_median", "vs p50", Unit::Text, "change against the median", versus_median)
            .only(Outputs::NONE)
            .priority(1)
            .on_screen(7),
        LaunchColumn::new("call_start_ns", "call", Unit::Ns, "start of the call that launched it, from the report's 0", |r| {
            Value::maybe_int(r.profile.launches.call(r.launch).map(|c| c.0))
        })
        .only(Outputs::PARQUET),
        LaunchColumn::new("call_duration_ns", "call took", Unit::Ns, "duration of the call that launched it", |r| {
            Value::maybe_int(r.profile.launches.call(r.launch).map(|c| c.1))
        })
        .only(Outputs::PARQUET),
        LaunchColumn::new("grid", "grid", Unit::Dims, "blocks in the grid", |r| Value::maybe_dims(r.config().and_then(|c| c.grid)))
            .priority(2)
            .on_screen(12)
            .sorted(Sort::descending("grid", 'g')),
        LaunchColumn::new("block", "block", Unit::Dims, "threads of a block", |r| Value::maybe_dims(r.config().and_then(|c| c.block)))
            .priority(2)
            .on_screen(9),
        LaunchColumn::new("grid_x", "grid x", Unit::Id, "blocks", |r| axis(r.config().and_then(|c| c.grid), 0)).only(Outputs::PARQUET),
        LaunchColumn::new("grid_y", "grid y", Unit::Id, "blocks", |r| axis(r.config().and_then(|c| c.grid), 1)).only(Outputs::PARQUET),
        LaunchColumn::new("grid_z", "grid z", Unit::Id, "blocks", |r| axis(r.config().and_then(|c| c.grid), 2)).only(Outputs::PARQUET),
        LaunchColumn::new("block_x", "block x", Unit::Id, "threads", |r| axis(r.config().and_then(|c| c.block), 0)).only(Outputs::PARQUET),
        LaunchColumn::new("block_y", "block y", Unit::Id, "threads", |r| axis(r.config().and_then(|c| c.block), 1)).only(Outputs::PARQUET),
        LaunchColumn::new("block_z", "block z", Unit::Id, "threads", |r| axis(r.config().and_then(|c| c.block), 2)).only(Outputs::PARQUET),
        LaunchColumn::new("registers", "regs", Unit::Id, "registers of a thread", |r| {
            Value::maybe_int(r.config().and_then(|c| c.registers))
        })
        .and_parquet()
        .priority(6)
        .on_screen(5),
        LaunchColumn::new("static_shared_bytes", "static", Unit::Bytes, "shared memory of a block, as declared", |r| {
            bytes(r.config().and_then(|c| c.static_shared))
        })
        .and_parquet()
        .priority(7),
        LaunchColumn::new("dynamic_shared_bytes", "dynamic", Unit::Bytes, "shared memory of a block, as requested by the launch", |r| {
            bytes(r.config().and_then(|c| c.dynamic_shared))
        })
        .and_parquet()
        .priority(7),
        LaunchColumn::new("shared_bytes", "shared", Unit::Bytes, "shared memory of a block", |r| {
            bytes(r.config().and_then(LaunchConfig::shared_memory))
        })
        .only(Outputs::NONE)
        .priority(6)
        .on_screen(9),
        LaunchColumn::new("occupancy_percent", "occ", Unit::WholePercent, "theoretical occupancy", |r| Value::maybe_real(r.occupancy()))
            .only(Outputs::NONE)
            .priority(7)
            .on_screen(5),
        LaunchColumn::new("device", "gpu", Unit::Id, "number of the GPU", |r| Value::maybe_int(r.device()))
            .and_parquet()
            .priority(8)
            .on_screen(4),
        LaunchColumn::new("context", "ctx", Unit::Id, "CUDA context", |r| Value::maybe_int(r.place().and_then(|p| p.context)))
            .only(MACHINE.with(Outputs::PARQUET)),
        LaunchColumn::new("stream", "stream", Unit::Id, "stream or queue", |r| Value::maybe_int(r.place().and_then(|p| p.stream)))
            .and_parquet()
            .priority(4)
            .on_screen(6)
            .sorted(Sort::ascending("stream", 't')),
        LaunchColumn::new("pid", "pid", Unit::Id, "process", |r| Value::maybe_int(r.place().and_then(|p| p.pid)))
            .and_parquet()
            .priority(9)
            .on_screen(8),
        LaunchColumn::new("tid", "tid", Unit::Id, "operating-system thread that launched it", |r| {
            Value::maybe_int(r.place().and_then(|p| p.thread))
        })
        .only(MACHINE),
        LaunchColumn::new("thread", "thread", Unit::Id, "operating-system thread that launched it", |r| {
            Value::maybe_int(r.place().and_then(|p| p.thread))
        })
        .only(Outputs::PARQUET),
        LaunchColumn::new("graph_node", "graph node", Unit::Id, "node of the CUDA graph that launched it", |r| {
            Value::maybe_int(r.profile.launches.graph_node(r.launch))
        })
        .only(MACHINE.with(Outputs::PARQUET)),
        LaunchColumn::new("nvtx", "nvtx", Unit::Path, "ranges around the launch, outermost first", |r| {
            let names = r.paths.and_then(|p| Some(p.path_names(r.profile, p.launch_path(r.launch)?)));
            Value::Path(names.unwrap_or_default().into_iter().map(Cow::Owned).collect())
        })
        .priority(9),
        LaunchColumn::new("demangled", "demangled", Unit::Text, "full C++ name of the kernel", |r| {
            Value::text(r.kernel().map_or("", Kernel::demangled))
        })
        .only(MACHINE.with(Outputs::PARQUET)),
    ]
}

/// Sorts launches, each given with its *nth*; ties are in launch order.
pub fn sort_launches(profile: &Profile, by: Sort, rows: &mut [(u32, u32)], ascending: bool) {
    let columns = columns_of(columns(), Outputs::SCREEN);
    let Some(value) = by.column(&columns).filter(|_| by != LAUNCH || !ascending).map(|c| c.value) else { return };
    let key = |&(launch, nth): &(u32, u32)| value(&LaunchRow::new(profile, None, launch, nth)).sort_key();
    if ascending {
        rows.sort_unstable_by_key(|r| (key(r), r.0));
    } else {
        rows.sort_unstable_by_key(|r| (std::cmp::Reverse(key(r)), r.0));
    }
}
