//! Generated memory snapshots: a miniature allocator that writes the pickle
//! format of `torch.cuda.memory._dump_snapshot`.

use std::collections::BTreeMap;

/// A pickled Python value.
pub enum Py {
    Int(i64),
    Text(String),
    List(Vec<Py>),
    Dict(Vec<(&'static str, Py)>),
}

pub fn text(t: &str) -> Py {
    Py::Text(t.to_owned())
}

fn write(value: &Py, out: &mut Vec<u8>) {
    match value {
        Py::Int(n) => {
            out.extend([0x8a, 8]);
            out.extend(n.to_le_bytes());
        }
        Py::Text(t) => {
            out.push(b'X');
            out.extend(u32::try_from(t.len()).unwrap().to_le_bytes());
            out.extend(t.as_bytes());
        }
        Py::List(items) => {
            out.extend(b"](");
            items.iter().for_each(|i| write(i, out));
            out.push(b'e');
        }
        Py::Dict(pairs) => {
            out.extend(b"}(");
            for (key, value) in pairs {
                write(&text(key), out);
                write(value, out);
            }
            out.push(b'u');
        }
    }
}

pub fn pickle(value: &Py) -> Vec<u8> {
    let mut out = vec![0x80, 4];
    write(value, &mut out);
    out.push(b'.');
    out
}

const MIB: u64 = 1 << 20;

/// Size of a segment, and its blocks by address: size, requested size, whether in use, line that allocated it.
type Part = (u64, BTreeMap<u64, (u64, u64, bool, i64)>);

/// Model of the large pool of PyTorch's allocator, first fit: segments of 20 MiB for blocks of up to 10
/// MiB, and one segment for each larger block.
#[derive(Default)]
pub struct Allocator {
    time: i64,
    segments: BTreeMap<u64, Part>,
    entries: Vec<Py>,
    /// True if the allocation history is recorded.
    pub recording: bool,
    pub peak: u64,
    next: u64,
}

impl Allocator {
    pub fn new(recording: bool) -> Self {
        Self { recording, next: 1 << 40, ..Self::default() }
    }

    fn frames(line: i64) -> Py {
        let frame = |name: &str, file: &str, line| Py::Dict(vec![("name", text(name)), ("filename", text(file)), ("line", Py::Int(line))]);
        if line == 0 {
            return Py::List(Vec::new());
        }
        Py::List(vec![
            frame("empty", "/usr/lib/python3.12/site-packages/torch/functional.py", 77),
            frame(&format!("f{line}"), "/home/me/train.py", line),
            frame("<module>", "/home/me/train.py", 1),
        ])
    }

    pub fn event(&mut self, action: &str, address: u64, size: u64, line: i64) {
        if self.recording {
            self.time += 10;
            let key = if action == "oom" { "device_free" } else { "addr" };
            self.entries.push(Py::Dict(vec![
                ("action", text(action)),
                (key, Py::Int(address as i64)),
                ("size", Py::Int(size as i64)),
                ("stream", Py::Int(0)),
                ("time_us", Py::Int(1_700_000_000_000_000 + self.time)),
                ("frames", Self::frames(line)),
            ]));
        }
    }

    pub fn wait(&mut self, us: i64) {
        self.time += us;
    }

    pub fn allocated(&self) -> u64 {
        self.segments.values().flat_map(|s| s.1.values()).filter(|b| b.2).map(|b| b.0).sum()
    }

    pub fn reserved(&self) -> u64 {
        self.segments.values().map(|s| s.0).sum()
    }

    pub fn alloc(&mut self, requested: u64, line: i64) -> u64 {
        let size = requested.div_ceil(512) * 512;
        let fits = |s: &Part| s.1.iter().find(|(_, b)| !b.2 && b.0 >= size).map(|(a, _)| *a);
        let found = self.segments.iter().find_map(|(start, s)| fits(s).map(|at| (*start, at)));
        let (start, at) = found.unwrap_or_else(|| {
            let whole = if size > 10 * MIB { size.div_ceil(2 * MIB) * 2 * MIB } else { 20 * MIB };
            let start = self.next;
            self.next += whole + (64 << 20);
            self.segments.insert(start, (whole, BTreeMap::from([(start, (whole, 0, false, 0))])));
            self.event("segment_alloc", start, whole, line);
            (start, start)
        });
        let blocks = &mut self.segments.get_mut(&start).unwrap().1;
        let (there, ..) = blocks[&at];
        // A small remainder stays with the block.
        let size = if size > MIB && there - size <= MIB { there } else { size };
        blocks.insert(at, (size, requested, true, line));
        if there > size {
            blocks.insert(at + size, (there - size, 0, false, 0));
        }
        self.event("alloc", at, requested, line);
        self.peak = self.peak.max(self.allocated());
        at
    }

    pub fn free(&mut self, at: u64) {
        let (&start, _) = self.segments.range(..=at).next_back().unwrap();
        let blocks = &mut self.segments.get_mut(&start).unwrap().1;
        let (mut size, requested, ..) = blocks.remove(&at).unwrap();
        let mut from = at;
        if let Some((&before, b)) = blocks.range(..at).next_back().filter(|(_, b)| !b.2) {
            size += b.0;
            from = before;
            blocks.remove(&before);
        }
        if let Some(b) = blocks.get(&(from + size)).copied().filter(|b| !b.2) {
            blocks.remove(&(from + size));
            size += b.0;
        }
        blocks.insert(from, (size, 0, false, 0));
        self.event("free_requested", at, requested, 0);
        self.event("free_completed", at, requested, 0);
    }

    /// Releases segments that are completely free.
    pub fn empty_cache(&mut self) {
        let free: Vec<u64> = self.segments.iter().filter(|(_, s)| s.1.values().all(|b| !b.2)).map(|(a, _)| *a).collect();
        for start in free {
            let size = self.segments.remove(&start).unwrap().0;
            self.event("segment_free", start, size, 0);
        }
    }

    pub fn written(self) -> Vec<u8> {
        let segments = self
            .segments
            .iter()
            .map(|(start, (size, blocks))| {
                let block = |(address, (size, requested, used, line)): (&u64, &(u64, u64, bool, i64))| {
                    Py::Dict(vec![
                        ("address", Py::Int(*address as i64)),
                        ("size", Py::Int(*size as i64)),
                        ("requested_size", Py::Int(*requested as i64)),
                        ("state", text(if *used { "active_allocated" } else { "inactive" })),
                        ("frames", Self::frames(*line)),
                    ])
                };
                Py::Dict(vec![
                    ("device", Py::Int(0)),
                    ("address", Py::Int(*start as i64)),
                    ("total_size", Py::Int(*size as i64)),
                    ("stream", Py::Int(0)),
                    ("segment_type", text("large")),
                    ("blocks", Py::List(blocks.iter().map(block).collect())),
                ])
            })
            .collect();
        pickle(&Py::Dict(vec![("segments", Py::List(segments)), ("device_traces", Py::List(vec![Py::List(self.entries)]))]))
    }
}
