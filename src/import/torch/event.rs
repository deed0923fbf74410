//! Trace events: raw fields and how to interpret them.
//!
//! Field types differ between versions (`pid` may be a number or a string), so fields are kept as raw text and parsed
//! on use.

use crate::import::{Parts, Wants};
use crate::model::RangeOrigin;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Extracts certain keys of an object; if a key is duplicated, the last one wins.
struct Pick<const N: usize>([&'static str; N]);

/// Raw value of each key; `None` if the key is absent.
pub type Picked<'a, const N: usize> = [Option<&'a RawValue>; N];

/// Deserializes a key into its index in the list.
struct Key<'k, const N: usize>(&'k [&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Key<'_, N> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<const N: usize> Visitor<'_> for Key<'_, N> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|k| k.eq_ignore_ascii_case(key)))
    }
}

impl<'de, const N: usize> DeserializeSeed<'de> for Pick<N> {
    type Value = Picked<'de, N>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Pick<N> {
    type Value = Picked<'de, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut out = [None; N];
        while let Some(at) = map.next_key_seed(Key(&self.0))? {
            match at {
                Some(at) => out[at] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(out)
    }
}

pub fn pick_keys<'a, const N: usize>(text: &'a str, keys: [&'static str; N]) -> Option<Picked<'a, N>> {
    let mut from = serde_json::Deserializer::from_str(text);
    let out = Pick(keys).deserialize(&mut from).ok()?;
    from.end().ok().map(|()| out)
}

/// Returns the contents of a string, or the text of a number.
pub fn unquote_text(raw: &RawValue) -> Cow<'_, str> {
    let text = raw.get();
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        None => Cow::Borrowed(text),
        Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
        Some(inner) => match serde_json::from_str(text) {
            Ok(unescaped) => Cow::Owned(unescaped),
            // Unpaired surrogates cannot be decoded, so keep the escaped text.
            Err(_) => Cow::Owned(inner.to_owned()),
        },
    }
}

/// Parses an integer, with or without quotes. Numbers above `i64::MAX` are negative numbers written as unsigned.
pub fn parse_integer(raw: &RawValue) -> Option<i64> {
    let text = unquote_text(raw);
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse::<u64>().ok().map(u64::cast_signed)).or_else(|| {
        let real: f64 = text.parse().ok()?;
        (real.is_finite() && real.abs() < 9e18).then_some(real as i64)
    })
}

pub fn parse_u32(raw: Option<&RawValue>) -> Option<u32> {
    raw.and_then(parse_integer).and_then(|n| u32::try_from(n).ok())
}

/// Upper limit of valid times, ns: about a century.
pub const MOST_NS: i64 = 3_200_000_000_000_000_000;

/// Maximum duration, ns: eleven days is implausible on a GPU, and sums of thousands of such durations still fit into
/// 64 bits.
pub const LONGEST_NS: i64 = 1_000_000_000_000_000;

/// Parses µs into ns without rounding errors: an `f64` holding the µs since 1970 cannot represent single ns.
pub fn parse_nanoseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |t| (-1, t));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let plain = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let ns = if !whole.is_empty() && plain(whole) && plain(fraction) {
        let mut ns = whole.parse::<i64>().ok()?.checked_mul(1000)?;
        for (place, digit) in [100, 10, 1].into_iter().zip(fraction.bytes()) {
            ns = ns.checked_add(place * i64::from(digit - b'0'))?;
        }
        // Round based on the fourth digit.
        ns.checked_add(i64::from(fraction.as_bytes().get(3).is_some_and(|d| *d >= b'5')))?
    } else {
        let real: f64 = digits.parse().ok()?;
        (real * 1000.0).is_finite().then_some((real * 1000.0).round() as i64)?
    };
    (ns.unsigned_abs() < MOST_NS.unsigned_abs()).then_some(sign * ns)
}

/// Position of an event in the trace: batch number, and index within the batch.
pub type At = (u64, u32);

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A kernel running on the GPU.
    Kernel,
    /// A memcpy on the GPU.
    Copy,
    /// A memset on the GPU.
    Set,
    /// A CUDA or HIP runtime or driver call.
    Call,
    /// An operator, or a range marked by the program, on the host.
    Range,
    Python,
    /// An allocation or free by one of PyTorch's allocators.
    Memory,
    /// A stream waiting, or the host waiting for a device.
    Wait,
    /// Overhead of the profiler.
    Overhead,
    /// The name of a process.
    Process,
    /// The name of a thread.
    Thread,
}

impl EventKind {
    fn is_wanted(self, wants: Wants) -> bool {
        match self {
            Self::Range => wants.has_parts(Parts::RANGES),
            Self::Python => wants.has_parts(Parts::RANGES | Parts::PYTHON),
            Self::Call => with_calls(wants),
            Self::Memory => wants.has_parts(Parts::MEMORY),
            Self::Wait => wants.has_parts(Parts::WAITS),
            Self::Overhead => wants.has_parts(Parts::OVERHEAD),
            Self::Thread => wants.has_parts(Parts::THREADS),
            Self::Kernel | Self::Copy | Self::Set | Self::Process => true,
        }
    }
}

/// An event that the importer uses.
#[derive(Debug)]
pub struct Event<'a> {
    pub kind: EventKind,
    pub name: Cow<'a, str>,
    /// Start, in ns on the trace's clock.
    pub start: i64,
    /// Duration in nanoseconds.
    pub duration: i64,
    /// Process id; for GPU work, the device.
    pub pid: Option<i64>,
    /// Thread id; for GPU work, the stream.
    pub tid: Option<i64>,
    pub origin: RangeOrigin,
    /// True for a runtime call of a vendor other than NVIDIA and AMD.
    pub other: bool,
    args: Option<&'a RawValue>,
}

/// Arguments of a kernel, copy or call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    pub device: Option<u32>,
    pub context: Option<u32>,
    pub stream: Option<u32>,
    /// Correlation id that a launch shares with its call.
    pub correlation: Option<i64>,
    pub grid: Option<[u32; 3]>,
    pub block: Option<[u32; 3]>,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Static plus dynamic shared memory per block, bytes.
    pub shared: Option<u64>,
    /// Number of bytes moved.
    pub bytes: Option<u64>,
    pub node: Option<u64>,
    /// Rank, as written by tools that merge several traces.
    pub rank: Option<u32>,
}

/// Returns true for the category of another vendor's runtime calls, such as `xpu_runtime`, `mtia_runtime` or
/// `privateuse1_driver`.
fn other_maker(category: &str) -> bool {
    let of = category.strip_suffix("_runtime").or_else(|| category.strip_suffix("_driver"));
    of.is_some_and(|of| !of.is_empty() && !["cuda", "hip", "rocm"].iter().any(|known| of.eq_ignore_ascii_case(known)))
}

fn kind_of(phase: &str, category: &str, name: &str) -> Option<EventKind> {
    if phase == "M" {
        return match name {
            "process_name" => Some(EventKind::Process),
            "thread_name" => Some(EventKind::Thread),
            _ => None,
        };
    }
    if phase == "i" && name == "[memory]" {
        return Some(EventKind::Memory);
    }
    if phase != "X" {
        return None;
    }
    // Categories were capitalized until 2022.
    let is = |words: &[&str]| words.iter().any(|w| category.eq_ignore_ascii_case(w));
    if is(&["kernel"]) {
        Some(EventKind::Kernel)
    } else if is(&["gpu_memcpy", "memcpy"]) {
        Some(EventKind::Copy)
    } else if is(&["gpu_memset", "memset"]) {
        Some(EventKind::Set)
    } else if is(&["cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime", "driver"]) || other_maker(category) {
        Some(EventKind::Call)
    } else if is(&["cpu_op", "operator", "user_annotation"]) {
        Some(EventKind::Range)
    } else if is(&["python_function"]) {
        Some(EventKind::Python)
    } else if is(&["cuda_sync"]) {
        Some(EventKind::Wait)
    } else if is(&["overhead"]) {
        Some(EventKind::Overhead)
    } else {
        None
    }
}

/// Returns true for frequent categories that were not requested, recognized in the raw text to avoid parsing.
fn of_no_use(text: &[u8], wants: Wants) -> bool {
    let head = &text[..text.len().min(160)];
    let Some(at) = memchr::memmem::find(head, b"\"cat\"") else { return false };
    let value = head[at + 5..].trim_ascii_start();
    let Some(value) = value.strip_prefix(b":") else { return false };
    let never = [&b"\"ac2g\""[..], b"\"fwdbwd\"", b"\"async_"];
    let (python, memory) = ([&b"\"python_function\""[..]], [&b"\"cpu_instant_event\""[..]]);
    let ranges = [&b"\"cpu_op\""[..], b"\"user_annotation\""];
    let calls = [&b"\"cuda_runtime\""[..], b"\"cuda_driver\""];
    let is = |list: &[&[u8]]| list.iter().any(|c| value.trim_ascii_start().starts_with(c));
    is(&never)
        || !EventKind::Python.is_wanted(wants) && is(&python)
        || !EventKind::Memory.is_wanted(wants) && is(&memory)
        || !wants.has_parts(Parts::RANGES) && is(&ranges)
        || !with_calls(wants) && is(&calls)
}

/// Result of reading the text of an event.
#[derive(Debug)]
pub enum Read<'a> {
    /// An event that the importer uses.
    Event(Event<'a>),
    /// An event to ignore.
    Other,
    Broken,
}

/// Returns true if calls must be read, which also supply the process and thread of a launch.
pub fn with_calls(wants: Wants) -> bool {
    wants.parts.intersects(Parts::CALLS | Parts::DETAILS)
}

/// Reads an event; may skip events that were not requested.
pub fn read_event(text: &[u8], wants: Wants) -> Read<'_> {
    if of_no_use(text, wants) {
        return Read::Other;
    }
    let fields = std::str::from_utf8(text).ok().and_then(|t| pick_keys(t, ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"]));
    let Some([phase, category, name, pid, tid, start, duration, args]) = fields else { return Read::Broken };
    let phase = phase.map(unquote_text).unwrap_or_default();
    let category = category.map(unquote_text).unwrap_or_default();
    let name = name.map(unquote_text).unwrap_or_default();
    let Some(kind) = kind_of(&phase, &category, &name).filter(|k| k.is_wanted(wants)) else { return Read::Other };
    let (pid, tid) = (pid.and_then(parse_integer), tid.and_then(parse_integer));
    let time = |raw: Option<&RawValue>| raw.and_then(|r| parse_nanoseconds(&unquote_text(r)));
    let (start, duration) = match kind {
        EventKind::Process | EventKind::Thread => (0, 0),
        EventKind::Memory => match time(start) {
            Some(start) => (start, 0),
            None => return Read::Broken,
        },
        _ => match (time(start), time(duration).filter(|d| (0..LONGEST_NS).contains(d))) {
            (Some(start), Some(duration)) => (start, duration),
            _ => return Read::Broken,
        },
    };
    let annotation = category.eq_ignore_ascii_case("user_annotation");
    let origin = if annotation { RangeOrigin::Annotation } else { RangeOrigin::Operator };
    let other = kind == EventKind::Call && other_maker(&category);
    Read::Event(Event { kind, name, start, duration, pid, tid, origin, other, args })
}

pub fn parse_dims(raw: Option<&RawValue>) -> Option<[u32; 3]> {
    let list: Vec<f64> = serde_json::from_str(raw?.get()).ok()?;
    let whole = |v: &f64| (*v >= 0.0 && v.fract() == 0.0 && *v <= f64::from(u32::MAX)).then_some(*v as u32);
    match &*list {
        [x, y, z] => Some([whole(x)?, whole(y)?, whole(z)?]),
        _ => None,
    }
}

impl Event<'_> {
    pub fn parse_args(&self) -> Args {
        let keys = [
            "device",
            "context",
            "stream",
            "correlation",
            "grid",
            "block",
            "registers per thread",
            "shared memory",
            "bytes",
            "graph node id",
            "rank",
        ];
        let Some([device, context, stream, correlation, grid, block, registers, shared, bytes, node, rank]) =
            self.args.and_then(|raw| pick_keys(raw.get(), keys))
        else {
            return Args::default();
        };
        let large = |raw: Option<&RawValue>| raw.and_then(parse_integer).and_then(|n| u64::try_from(n).ok());
        Args {
            device: parse_u32(device),
            context: parse_u32(context),
            stream: parse_u32(stream),
            correlation: correlation.and_then(parse_integer),
            grid: parse_dims(grid),
            block: parse_dims(block),
            registers: parse_u32(registers),
            shared: large(shared),
            bytes: large(bytes),
            node: node.and_then(parse_integer).map(i64::cast_unsigned),
            rank: parse_u32(rank),
        }
    }

    /// Extracts certain arguments as raw text.
    pub fn pick_args<const N: usize>(&self, keys: [&'static str; N]) -> Picked<'_, N> {
        self.args.and_then(|raw| pick_keys(raw.get(), keys)).unwrap_or([None; N])
    }

    /// Returns true if the raw text of the arguments contains `words`; this is cheaper than parsing.
    pub fn args_contain(&self, words: &[u8]) -> bool {
        self.args.is_some_and(|raw| memchr::memmem::find(raw.get().as_bytes(), words).is_some())
    }

    /// Name that a process or thread event assigns.
    pub fn given_name(&self) -> Option<String> {
        let [name] = pick_keys(self.args?.get(), ["name"])?;
        name.map(|n| unquote_text(n).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        for (text, ns) in [
            ("4303041829681.463", Some(4_303_041_829_681_463)),
            ("1700000000000000.123", Some(1_700_000_000_000_000_123)),
            ("1.5", Some(1500)),
            ("2", Some(2000)),
            ("0.9999", Some(1000)),
            ("-0.5", Some(-500)),
            ("1e3", Some(1_000_000)),
            ("", None),
            (".", None),
            ("nan", None),
            ("99999999999999999999", None),
            ("9223372036854775.999", None),
            ("--1e30", None),
            ("-+1", None),
            ("1e300", None),
        ] {
            assert_eq!(parse_nanoseconds(text), ns, "{text}");
        }
    }

    #[test]
    fn fields_of_any_type() {
        let text = br#"{"ph":"X","cat":"Kernel","name":"a\"b","pid":"0","tid":7.0,"ts":"1.5","dur":2,"ts":3,"args":{"grid":[1,2,3.0],"block":[1,2],"stream":"7","correlation":18446744073709551615}}"#;
        let Read::Event(event) = read_event(text, Wants::ALL) else { panic!("{:?}", read_event(text, Wants::ALL)) };
        assert_eq!((event.kind, &*event.name, event.start, event.pid, event.tid), (EventKind::Kernel, "a\"b", 3000, Some(0), Some(7)));
        let args = event.parse_args();
        assert_eq!((args.grid, args.block, args.stream, args.correlation), (Some([1, 2, 3]), None, Some(7), Some(-1)));
    }

    #[test]
    fn what_is_not_of_use_and_what_is_broken() {
        assert!(matches!(read_event(br#"{"ph": "X", "cat": "python_function", "name": "not " closed"}"#, Wants::LAUNCHES), Read::Other));
        assert!(matches!(read_event(br#"{"ph": "i", "cat": "kernel"}"#, Wants::ALL), Read::Other));
        assert!(matches!(read_event(br#"{"ph": "X", "cat": "kernel", "ts": 1, "dur": inf}"#, Wants::ALL), Read::Broken));
        assert!(matches!(read_event(br#"{"ph": "X", "cat": "kernel", "ts": 1, "dur": -1}"#, Wants::ALL), Read::Broken));
        assert!(matches!(read_event(b"[1]", Wants::ALL), Read::Broken));
    }
}
