//! Profiles from XLA's profiler (JAX, `TensorFlow`, PyTorch/XLA): `*.xplane.pb`, a serialized `XSpace`. Field numbers
//! are from the published `xplane.proto` (openxla/xla, `third_party/tsl/tsl/profiler/protobuf`).
//!
//! A plane is a GPU (`/device:GPU:0`) or the host (`/host:CPU`); its lines are streams or threads, and names are
//! stored once per plane.

use super::sizes::{kernel_details, parse_size};
use super::tracks::Named;
use super::{Details, Slices, shorten_name};
use crate::import::input::{Bytes, Input};
use crate::import::rocm::protobuf::{Fields, Value};
use crate::import::{Budget, ImportError, Importer, Job};
use crate::launch::open;
use crate::model::{Bytes as Size, Device, Note, NoteKind, Pace, Profile, Severity, Source, Vendor};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Memory for a name of a plane, bytes, excluding its characters, which stay in the file.
const NAME: u64 = 64;
/// Picoseconds per nanosecond.
const PS: i64 = 1_000;
/// Field of a space that holds a plane.
const PLANE: u64 = 1;

/// Names of a plane's events or statistics, by id.
type Names<'a> = FxHashMap<u64, &'a [u8]>;

/// A plane, split into its parts.
#[derive(Default)]
struct Plane<'a> {
    name: Cow<'a, str>,
    lines: Vec<&'a [u8]>,
    events: Names<'a>,
    stats: Names<'a>,
    /// Statistics about the plane itself, which are properties of the GPU.
    own: Vec<&'a [u8]>,
    torn: bool,
}

/// A statistic: a number or a string.
enum Stat<'a> {
    Number(i64),
    Real(f64),
    Text(&'a [u8]),
}

impl Stat<'_> {
    fn number(&self) -> Option<i64> {
        match self {
            Self::Number(n) => Some(*n),
            Self::Real(x) => Some(*x as i64),
            Self::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        }
    }

    fn text(&self) -> Cow<'_, str> {
        if let Self::Text(text) = self { String::from_utf8_lossy(text) } else { Cow::Borrowed("") }
    }
}

/// Reads the id and name from an entry in a map of ids to metadata.
fn read_name(entry: &[u8]) -> (u64, &[u8]) {
    let (mut id, mut name): (u64, &[u8]) = (0, &[]);
    for (field, value) in Fields::new(entry) {
        match (field, value) {
            (1, Value::Number(n)) => id = n,
            (2, Value::Bytes(metadata)) => {
                for (field, value) in Fields::new(metadata) {
                    if let (2, Value::Bytes(text)) = (field, value) {
                        name = text;
                    }
                }
            }
            _ => {}
        }
    }
    (id, name)
}

impl<'a> Plane<'a> {
    fn from_message(message: &'a [u8], budget: &Budget) -> Result<Self, ImportError> {
        let mut out = Self::default();
        let mut fields = Fields::new(message);
        for (field, value) in fields.by_ref() {
            match (field, value) {
                (2, Value::Bytes(name)) => out.name = String::from_utf8_lossy(name),
                (3, Value::Bytes(line)) => out.lines.push(line),
                (4 | 5, Value::Bytes(entry)) => {
                    budget.charge_bytes(NAME)?;
                    let (id, name) = read_name(entry);
                    if field == 4 { &mut out.events } else { &mut out.stats }.insert(id, name);
                }
                (6, Value::Bytes(stat)) => out.own.push(stat),
                _ => {}
            }
        }
        out.torn = fields.torn;
        Ok(out)
    }

    /// Reads the name and value of a statistic.
    fn read_stat(&self, message: &'a [u8]) -> Option<(&'a [u8], Stat<'a>)> {
        let (mut id, mut found) = (0, None);
        for (field, value) in Fields::new(message) {
            match (field, value) {
                (1, Value::Number(n)) => id = n,
                (2, Value::Number(n)) => found = Some(Stat::Real(f64::from_bits(n))),
                (3 | 4, Value::Number(n)) => found = Some(Stat::Number(n.cast_signed())),
                (5 | 6, Value::Bytes(text)) => found = Some(Stat::Text(text)),
                // The value is the name of another statistic.
                (7, Value::Number(n)) => found = self.stats.get(&n).map(|text| Stat::Text(text)),
                _ => {}
            }
        }
        Some((self.stats.get(&id).copied()?, found?))
    }

    /// Ordinal of the GPU.
    fn gpu(&self) -> Option<u32> {
        self.name.strip_prefix("/device:GPU:")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }
}

#[derive(Default)]
struct Reader {
    slices: Slices,
    /// Names of the tracks, by track id.
    tracks: Vec<Named>,
    devices: Vec<Device>,
    torn: bool,
}

impl Reader {
    fn read_plane(&mut self, plane: &Plane<'_>, number: u32, budget: &Budget, pace: &Pace) -> Result<(), ImportError> {
        self.torn |= plane.torn;
        if let Some(id) = plane.gpu() {
            self.devices.push(describe_device(plane, id));
        }
        // Look up each string only once per plane.
        let mut names: FxHashMap<u64, u32> = FxHashMap::default();
        let none = self.slices.intern_text("");
        for line in &plane.lines {
            let (mut name, mut display, mut id, mut began) = (&[][..], &[][..], 0, 0);
            for (field, value) in Fields::new(line) {
                match (field, value) {
                    (1, Value::Number(n)) => id = n,
                    (2, Value::Bytes(text)) => name = text,
                    (11, Value::Bytes(text)) => display = text,
                    (3, Value::Number(n)) => began = n.cast_signed(),
                    _ => {}
                }
            }
            let track = u32::try_from(self.tracks.len()).unwrap_or(u32::MAX);
            let shown = String::from_utf8_lossy(if display.is_empty() { name } else { display });
            self.tracks.push(Named {
                process: shorten_name(&plane.name).to_owned(),
                track: shorten_name(&shown).to_owned(),
                pid: number,
                tid: id as u32,
            });
            let mut fields = Fields::new(line);
            for (field, value) in fields.by_ref() {
                let (4, Value::Bytes(event)) = (field, value) else { continue };
                // The caller reports the cancellation.
                if !pace.count_steps(event.len() + 1) {
                    return Ok(());
                }
                self.read_event(plane, event, (track, began, none), &mut names);
                budget.charge_bytes(self.slices.take_memory())?;
            }
            self.torn |= fields.torn;
        }
        Ok(())
    }

    fn read_event(&mut self, plane: &Plane<'_>, event: &[u8], (track, began, none): (u32, i64, u32), names: &mut FxHashMap<u64, u32>) {
        let (mut id, mut offset, mut duration) = (0, None, 0);
        let mut details = Details::default();
        for (field, value) in Fields::new(event) {
            match (field, value) {
                (1, Value::Number(n)) => id = n,
                (2, Value::Number(n)) => offset = Some(n.cast_signed()),
                (3, Value::Number(n)) => duration = n.cast_signed(),
                (4, Value::Bytes(stat)) => read_details(plane, stat, &mut details),
                // Events that are merely counted have no times.
                (5, Value::Number(_)) => return,
                _ => {}
            }
        }
        let offset = offset.unwrap_or(0);
        let name = *names.entry(id).or_insert_with(|| {
            let text = plane.events.get(&id).copied().unwrap_or_default();
            self.slices.intern_text(&String::from_utf8_lossy(text))
        });
        // Round both ends, so that neighbors do not overlap.
        let start = began.saturating_add(offset.div_euclid(PS));
        let end = began.saturating_add(offset.saturating_add(duration).div_euclid(PS));
        self.slices.add_slice(track, (name, none), start, end.saturating_sub(start), details);
    }
}

fn read_details(plane: &Plane<'_>, stat: &[u8], details: &mut Details) {
    // Few of an event's statistics are launch details, so compare names before decoding values.
    let Some(id) = Fields::new(stat).find(|(field, _)| *field == 1).and_then(|(_, value)| value.number()) else { return };
    let name = plane.stats.get(&id).copied().unwrap_or_default();
    if !matches!(name, b"correlation_id" | b"kernel_details" | b"memcpy_details" | b"memset_details" | b"device_id") {
        return;
    }
    let Some((_, value)) = plane.read_stat(stat) else { return };
    match name {
        b"correlation_id" => details.correlation = value.number(),
        b"kernel_details" => kernel_details(&value.text(), &mut details.config),
        b"memcpy_details" | b"memset_details" => details.bytes = parse_size(&value.text()),
        _ => {}
    }
}

fn describe_device(plane: &Plane<'_>, id: u32) -> Device {
    let mut out = Device { id, ..Device::default() };
    let (mut major, mut minor) = (None, None);
    for (name, value) in plane.own.iter().filter_map(|stat| plane.read_stat(stat)) {
        let number = value.number().filter(|&n| n > 0);
        match name {
            b"core_count" => out.sm_count = number.and_then(|n| u32::try_from(n).ok()),
            // The value is in kHz.
            b"clock_rate" => out.clock_hz = number.and_then(|n| u64::try_from(n).ok()?.checked_mul(1_000)),
            b"memory_size" => out.memory = number.and_then(|n| u64::try_from(n).ok()).map(Size),
            b"memory_bandwidth" => out.memory_bandwidth = number.and_then(|n| u64::try_from(n).ok()),
            b"compute_cap_major" => major = value.number().and_then(|n| u32::try_from(n).ok()),
            b"compute_cap_minor" => minor = value.number().and_then(|n| u32::try_from(n).ok()),
            b"device_vendor" => out.maker = if value.text().eq_ignore_ascii_case("amd") { Vendor::Amd } else { Vendor::Nvidia },
            b"device_type_string" | b"device_name" => out.name = Some(value.text().into_owned()).filter(|t| !t.is_empty()),
            _ => {}
        }
    }
    out.compute_capability = major.zip(minor);
    out
}

/// Returns true if the first bytes of a file start a plane of an `XSpace`.
fn is_space(head: &[u8]) -> bool {
    let Some((&0x0a, rest)) = head.split_first() else { return false };
    // A plane is longer than the bytes read so far, so look only at its beginning.
    let Some(length) = rest.iter().position(|b| *b < 128).filter(|n| *n < 10) else { return false };
    Fields::new(&rest[length + 1..]).take(2).find_map(|(field, value)| (field == 2).then_some(value)).and_then(Value::bytes).is_some_and(
        |name| ["/host:", "/device:", "Task Environment", "#Chip", "/custom:"].iter().any(|start| name.starts_with(start.as_bytes())),
    )
}

fn read_space(input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let bytes: Cow<'_, [u8]> = match &input.bytes {
        Bytes::File(path) => Cow::Owned(open::read_regular(path).map_err(|e| ImportError::io(path, e))?),
        Bytes::BuiltIn(bytes) => Cow::Borrowed(*bytes),
    };
    let (budget, pace) = (input.memory_budget(), job.cancel.pace());
    let mut reader = Reader::default();
    let mut fields = Fields::new(&bytes);
    let (mut n, mut done) = (0, 0);
    for (field, value) in fields.by_ref() {
        let (PLANE, Value::Bytes(message)) = (field, value) else { continue };
        n += 1;
        reader.read_plane(&Plane::from_message(message, &budget)?, n, &budget, &pace)?;
        done += message.len() as u64;
        job.report_progress("planes", done, bytes.len() as u64);
    }
    reader.torn |= fields.torn;
    let Reader { slices, tracks, devices, torn } = reader;
    let source = Source { tool: "XLA profiler".to_owned(), version: None, schema: None, file: input.path.clone() };
    let named = |track: u32| tracks.get(track as usize).cloned().unwrap_or_default();
    let built = slices.into_profile(&named, source, job);
    if job.cancel.is_cancelled() {
        return Err(ImportError::Cancelled { path: input.path.clone() });
    }
    let Some(mut profile) = built else {
        let what = "a profile of XLA without kernels of a GPU";
        return Err(ImportError::refused(
            &input.path,
            what,
            "trace a step that runs on the GPU; TensorBoard's profiler opens those of TPUs",
        ));
    };
    for device in &mut profile.devices {
        if let Some(described) = devices.iter().find(|d| d.id == device.id) {
            let maker = if described.maker == Vendor::Unknown { device.maker } else { described.maker };
            *device = Device { maker, ..described.clone() };
        }
    }
    if torn {
        let text = "The file ends in the middle of a record: what came later is missing.";
        profile.notes.push(Note::new(Severity::Error, NoteKind::Lost, text));
    }
    Ok(profile)
}

/// Importer for profiles from XLA's profiler.
pub struct XlaProfile;

impl Importer for XlaProfile {
    fn name(&self) -> &'static str {
        "XLA profile (JAX, TensorFlow)"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".xplane.pb"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".xplane.pb"]
    }

    fn knows(&self, input: &Input) -> bool {
        is_space(&input.head)
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        read_space(input, job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Wants;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()][..], bytes].concat()
    }

    /// A name of an event (`kind` 4) or a statistic (5).
    fn named(kind: u8, id: u8, name: &str) -> Vec<u8> {
        field(kind, &[vec![8, id], field(2, &[vec![8, id], field(2, name.as_bytes())].concat())].concat())
    }

    #[test]
    fn the_vendor_and_values_by_reference() {
        let own = field(6, &[vec![8, 1], field(5, b"AMD")].concat());
        // The launch details are stored as the name of statistic 3. The events are one of 7 µs that starts at 1 ns,
        // and events that are merely counted.
        let details = field(4, &[8, 2, 56, 3]);
        let event = field(4, &[vec![8, 9, 16, 232, 7, 24, 216, 159, 171, 3], details].concat());
        let counted = field(4, &[8, 9, 40, 5]);
        let line = field(3, &[field(2, b"Stream #4(Compute)"), event, counted].concat());
        let stats = [named(5, 1, "device_vendor"), named(5, 2, "kernel_details"), named(5, 3, "regs:8 grid:2,1,1 block:64,1,1")].concat();
        let plane = [field(2, b"/device:GPU:3"), line, named(4, 9, "gemm"), stats, own].concat();
        let mut bytes = vec![0x0a];
        let mut length = plane.len();
        while length > 127 {
            bytes.push(u8::try_from(length & 127).unwrap() | 128);
            length >>= 7;
        }
        bytes.push(u8::try_from(length).unwrap());
        bytes.extend(plane);
        let input = Input::built_in("x.xplane.pb", Box::leak(bytes.into_boxed_slice()));
        assert!(XlaProfile.knows(&input));
        let profile = XlaProfile.read(&input, &Job::new(Wants::ALL, &|_| {})).unwrap();
        assert_eq!((profile.devices[0].id, profile.devices[0].maker), (3, Vendor::Amd));
        assert_eq!((profile.launches.len(), profile.launches.duration(0)), (1, 7_000));
        let config = &profile.configs[profile.launches.config(0).unwrap().0 as usize];
        assert_eq!((config.grid, config.block, config.registers), (Some([2, 1, 1]), Some([64, 1, 1]), Some(8)));
    }

    #[test]
    fn other_files_are_not_taken() {
        for head in [
            &b""[..],
            b"\x0a",
            b"\x0a\x05\x12\x03abc",
            b"{\"a\":1}",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"SQLite format 3\0",
        ] {
            assert!(!is_space(head), "{head:?}");
        }
    }
}
