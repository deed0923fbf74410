//! Packets of a Perfetto trace, including compressed packets.

use crate::import::rocm::protobuf::{Fields, Value};
use crate::import::{Budget, ImportError};
use crate::model::Pace;
use flate2::read::ZlibDecoder;
use std::borrow::Cow;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Packet field that contains compressed packets.
const COMPRESSED: u64 = 50;
/// Number of bytes to decompress at a time.
const PIECE: usize = 1 << 16;

/// Packets as they would be in an uncompressed file; `torn` is true if some compressed packets are missing.
pub struct Packets<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub torn: bool,
}

fn compressed_data(packet: &[u8]) -> Option<&[u8]> {
    Fields::new(packet).find(|(field, _)| *field == COMPRESSED).and_then(|(_, value)| value.bytes())
}

fn iter_packets(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    Fields::new(bytes).filter_map(|(field, value)| if let (1, Value::Bytes(packet)) = (field, value) { Some(packet) } else { None })
}

/// Replaces compressed packets with their contents. All memory is charged to the budget, because a few kilobytes may
/// decompress to gigabytes.
pub fn unpack_packets<'a>(bytes: Cow<'a, [u8]>, path: &Path, budget: &Budget, pace: &Pace) -> Result<Packets<'a>, ImportError> {
    // If the job was canceled, the loop below returns the error.
    if !iter_packets(&bytes).any(|packet| !pace.count_steps(1) || compressed_data(packet).is_some()) {
        return Ok(Packets { bytes, torn: false });
    }
    let (mut out, mut torn) = (Vec::new(), false);
    for packet in iter_packets(&bytes) {
        if !pace.count_steps(packet.len() + 1) {
            return Err(ImportError::Cancelled { path: path.to_owned() });
        }
        match compressed_data(packet) {
            // The compressed data consists of packets in the same format as a file.
            Some(data) => torn |= !unpack_data(data, &mut out, path, budget, pace)?,
            None => {
                budget.charge_bytes(packet.len() as u64)?;
                write_packet(packet, &mut out);
            }
        }
    }
    Ok(Packets { bytes: Cow::Owned(out), torn })
}

/// Decompresses data and appends it to `out`; returns false if the data is damaged or truncated, and an error if the
/// budget is exceeded.
fn unpack_data(data: &[u8], out: &mut Vec<u8>, path: &Path, budget: &Budget, pace: &Pace) -> Result<bool, ImportError> {
    let mut decoder = ZlibDecoder::new(data);
    let mut piece = vec![0; PIECE];
    loop {
        let read = match decoder.read(&mut piece) {
            Ok(0) => return Ok(true),
            Ok(read) => read,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => return Ok(false),
            Err(e) => return Err(ImportError::io(path, e)),
        };
        if !pace.count_steps(read) {
            return Err(ImportError::Cancelled { path: path.to_owned() });
        }
        budget.charge_bytes(read as u64)?;
        out.try_reserve(read).map_err(|e| ImportError::io(path, e.into()))?;
        out.extend_from_slice(&piece[..read]);
    }
}

/// Writes a packet as a field of the trace.
fn write_packet(packet: &[u8], out: &mut Vec<u8>) {
    out.push(0x0a);
    let mut n = packet.len();
    while n > 127 {
        out.push((n & 127) as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
    out.extend_from_slice(packet);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Cancel;
    use std::io::Write;

    fn zipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        write_packet(bytes, &mut body);
        let key = u16::from(number) << 3 | 2;
        let mut out = if key > 127 { vec![(key & 127) as u8 | 128, (key >> 7) as u8] } else { vec![key as u8] };
        out.extend_from_slice(&body[1..]);
        out
    }

    fn of(bytes: &[u8], cancel: &Cancel) -> Result<(Vec<u8>, bool), ImportError> {
        let path = Path::new("x");
        let found = unpack_packets(Cow::Borrowed(bytes), path, &Budget::from_stored_size(path, bytes.len() as u64), &cancel.pace())?;
        Ok((found.bytes.into_owned(), found.torn))
    }

    #[test]
    fn packets_in_packets_are_found_cut_refused_and_left() {
        let plain = [field(1, b"\x08\x01"), field(1, b"\x08\x02")].concat();
        let data = zipped(&plain);
        let trace = |data: &[u8]| [field(1, b"\x08\x03"), field(1, &field(50, data))].concat();
        let cancel = Cancel::default();
        let wanted = [field(1, b"\x08\x03"), plain.clone()].concat();
        assert_eq!(of(&trace(&data), &cancel).unwrap(), (wanted, false));
        assert_eq!(of(&plain, &cancel).unwrap(), (plain.clone(), false));
        for cut in 1..data.len() {
            assert!(of(&trace(&data[..cut]), &cancel).unwrap().1, "{cut}");
        }
        // 80 MB of zeros in 80 kB, as a single packet and as many packets.
        let bomb = zipped(&vec![0; 80 << 20]);
        let pieces: Vec<u8> = (0..80).flat_map(|_| field(1, &field(50, &zipped(&vec![0; 1 << 20])))).collect();
        for bomb in [trace(&bomb), pieces] {
            let refused = of(&bomb, &cancel).unwrap_err().to_string();
            assert!(refused.contains("MB of memory"), "{refused}");
        }
        let steps = cancel.steps_done();
        cancel.cancel();
        assert!(matches!(of(&trace(&bomb), &cancel), Err(ImportError::Cancelled { .. })));
        assert!(cancel.steps_done() - steps < 1 << 20);
    }
}
