//! Trees in `MessagePack` (triton-lang/triton, `third_party/proton/csrc/lib/Data/Dump/HatchetMsgPack.cpp`).

use super::tree::{Devices, Properties, Tree};
use crate::import::{ImportError, Input, Job};
use rmp::Marker;
use rmp::decode;

/// First bytes of a tree: a list of two items, the first of which is the map of the root with its frame first.
const START: &[u8] = b"\x92\x83\xa5frame";

/// Returns true if a file starts like a tree in `MessagePack`.
pub fn is_tree(head: &[u8]) -> bool {
    head.starts_with(START)
}

/// A value; lists and maps are followed by their items or pairs.
#[derive(Debug, PartialEq)]
enum Token<'a> {
    Number(f64),
    Text(&'a [u8]),
    List(u32),
    Map(u32),
    Other,
}

/// The file ends within a value, or contains an unexpected value.
#[derive(Debug, PartialEq)]
struct Damaged;

/// The part of a file that has not been read yet.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn skip_bytes(&mut self, count: u32) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = usize::try_from(count).ok().and_then(|n| self.rest.split_at_checked(n)).ok_or(Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    fn next_token(&mut self) -> Result<Token<'a>, Damaged> {
        let rest = &mut self.rest;
        Ok(match Marker::from_u8(*rest.first().ok_or(Damaged)?) {
            Marker::U64 => Token::Number(decode::read_u64(rest).map_err(|_| Damaged)? as f64),
            Marker::FixPos(_)
            | Marker::FixNeg(_)
            | Marker::U8
            | Marker::U16
            | Marker::U32
            | Marker::I8
            | Marker::I16
            | Marker::I32
            | Marker::I64 => Token::Number(decode::read_int::<i64, _>(rest).map_err(|_| Damaged)? as f64),
            Marker::F32 => Token::Number(f64::from(decode::read_f32(rest).map_err(|_| Damaged)?)),
            Marker::F64 => Token::Number(decode::read_f64(rest).map_err(|_| Damaged)?),
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                let length = decode::read_str_len(rest).map_err(|_| Damaged)?;
                Token::Text(self.skip_bytes(length)?)
            }
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => Token::List(decode::read_array_len(rest).map_err(|_| Damaged)?),
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => Token::Map(decode::read_map_len(rest).map_err(|_| Damaged)?),
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
                let length = decode::read_bin_len(rest).map_err(|_| Damaged)?;
                self.skip_bytes(length)?;
                Token::Other
            }
            Marker::Null | Marker::True | Marker::False => {
                self.skip_bytes(1)?;
                Token::Other
            }
            _ => {
                let meta = decode::read_ext_meta(rest).map_err(|_| Damaged)?;
                self.skip_bytes(meta.size)?;
                Token::Other
            }
        })
    }

    fn next_text(&mut self) -> Result<&'a [u8], Damaged> {
        if let Token::Text(text) = self.next_token()? { Ok(text) } else { Err(Damaged) }
    }

    fn next_map(&mut self) -> Result<u32, Damaged> {
        if let Token::Map(pairs) = self.next_token()? { Ok(pairs) } else { Err(Damaged) }
    }

    /// Skips the rest of a value; returns the number of values that it contains.
    fn skip_value(&mut self, token: &Token<'_>) -> Result<usize, Damaged> {
        let inside = |token: &Token<'_>| match token {
            Token::List(n) => u64::from(*n),
            Token::Map(n) => 2 * u64::from(*n),
            _ => 0,
        };
        let (mut left, mut skipped) = (inside(token), 0);
        while left > 0 {
            left += inside(&self.next_token()?);
            left -= 1;
            skipped += 1;
        }
        Ok(skipped)
    }
}

/// A node whose members are being read.
struct Open {
    index: u32,
    /// Number of members left to read.
    members: u32,
    /// Number of children left to read in the current list.
    children: u32,
}

/// Reads a tree and the properties of the GPUs.
pub fn read_tree<'a>(bytes: &'a [u8], input: &Input, job: &Job<'_>) -> Result<Tree<'a>, ImportError> {
    let mut reader = Reader { rest: bytes };
    let damaged = |_: Damaged| ImportError::damaged(&input.path, "its tree", "it ends early");
    let budget = input.memory_budget();
    let pace = job.cancel.pace();
    let mut out = Tree::default();
    if reader.next_token().map_err(damaged)? != Token::List(2) {
        return Err(damaged(Damaged));
    }
    let members = reader.next_map().map_err(damaged)?;
    // Avoid recursion, because trees of Python frames are deep.
    let mut open = vec![Open { index: out.add_node(None, &budget)?, members, children: 0 }];
    while let Some(at) = open.last_mut() {
        if !pace.count_steps(1) {
            return Err(ImportError::Cancelled { path: input.path.clone() });
        }
        let index = at.index;
        if at.children > 0 {
            at.children -= 1;
            let members = reader.next_map().map_err(damaged)?;
            budget.charge_bytes(size_of::<Open>() as u64)?;
            open.push(Open { index: out.add_node(Some(index), &budget)?, members, children: 0 });
            continue;
        }
        if at.members == 0 {
            open.pop();
            continue;
        }
        at.members -= 1;
        let key = reader.next_text().map_err(damaged)?;
        let value = reader.next_token().map_err(damaged)?;
        let Some(node) = out.nodes.get_mut(index as usize) else { continue };
        match (key, value) {
            (b"children", Token::List(children)) => at.children = children,
            (b"frame", Token::Map(pairs)) => {
                for _ in 0..pairs {
                    let key = reader.next_text().map_err(damaged)?;
                    match reader.next_token().map_err(damaged)? {
                        Token::Text(name) if key == b"name" => node.name = String::from_utf8_lossy(name),
                        other => _ = pace.count_steps(reader.skip_value(&other).map_err(damaged)?),
                    }
                }
            }
            (b"metrics", Token::Map(pairs)) => {
                for _ in 0..pairs {
                    budget.charge_bytes(48)?;
                    let name = String::from_utf8_lossy(reader.next_text().map_err(damaged)?);
                    let value = match reader.next_token().map_err(damaged)? {
                        Token::Number(value) => Some(value),
                        Token::Text(text) => std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()),
                        other => {
                            pace.count_steps(reader.skip_value(&other).map_err(damaged)?);
                            None
                        }
                    };
                    node.set_metric(name, value);
                }
            }
            (_, other) => _ = pace.count_steps(reader.skip_value(&other).map_err(damaged)?),
        }
    }
    // Even if the properties are damaged, the kernels can be read.
    match read_devices(&mut reader) {
        Ok(devices) => out.devices = devices,
        Err(Damaged) => out.broken += 1,
    }
    Ok(out)
}

fn read_devices(reader: &mut Reader<'_>) -> Result<Devices, Damaged> {
    let mut out = Devices::new();
    for _ in 0..reader.next_map()? {
        let kind = String::from_utf8_lossy(reader.next_text()?).into_owned();
        let devices = out.entry(kind).or_default();
        for _ in 0..reader.next_map()? {
            let id = String::from_utf8_lossy(reader.next_text()?).into_owned();
            let properties: &mut Properties = devices.entry(id).or_default();
            for _ in 0..reader.next_map()? {
                let key = reader.next_text()?;
                let (number, text) = match reader.next_token()? {
                    Token::Number(n) => (n as u64, String::new()),
                    Token::Text(text) => (0, String::from_utf8_lossy(text).into_owned()),
                    other => {
                        reader.skip_value(&other)?;
                        continue;
                    }
                };
                match key {
                    b"arch" => properties.arch = text,
                    b"bus_width" => properties.bus_width = number,
                    b"clock_rate" => properties.clock_rate = number,
                    b"memory_clock_rate" => properties.memory_clock_rate = number,
                    b"num_sms" => properties.num_sms = u32::try_from(number).unwrap_or(0),
                    _ => {}
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_a_token_or_skipped() {
        let text = b"\x07\xff\xcc\xc8\xcd\x01\x00\xce\x00\x01\x00\x00\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00\
            \xd3\x80\x00\x00\x00\x00\x00\x00\x00\xca\x3f\x80\x00\x00\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xa2ab\xd9\x01c\x92\x81\xc0\xc2\xc0\xc4\x02xy\xd4\x01\x00\xdc\x00\x00";
        let mut reader = Reader { rest: text };
        let numbers: [f64; 12] =
            [7.0, -1.0, 200.0, 256.0, 65536.0, u64::MAX as f64, -128.0, -32768.0, -2_147_483_648.0, i64::MIN as f64, 1.0, 1.5];
        for number in numbers {
            assert_eq!(reader.next_token(), Ok(Token::Number(number)));
        }
        assert_eq!(reader.next_token(), Ok(Token::Text(b"ab")));
        assert_eq!(reader.next_token(), Ok(Token::Text(b"c")));
        let list = reader.next_token().unwrap();
        assert_eq!(list, Token::List(2));
        assert_eq!(reader.skip_value(&list), Ok(4));
        assert_eq!((reader.next_token(), reader.next_token()), (Ok(Token::Other), Ok(Token::Other)));
        assert_eq!(reader.next_token(), Ok(Token::List(0)));
        assert_eq!(reader.next_token(), Err(Damaged));
    }
}
