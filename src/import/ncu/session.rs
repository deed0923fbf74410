//! Session data of a report: machines, versions, and the program with its working directory and environment. This
//! data is private and is read only on explicit request.

use super::blocks::{Blocks, Item};
use super::proto::{FullProcess, FullSession, decode_lossy};
use crate::import::importer::Fact;
use crate::import::{ImportError, Input};

/// Reads all facts, in report order.
pub fn read_facts(input: &Input) -> Result<Vec<Fact>, ImportError> {
    let mut out: Vec<Fact> = Vec::new();
    let mut add = |word: &'static str, text: Option<String>| {
        if let Some(text) = text.filter(|t| !t.is_empty())
            && !out.iter().any(|(w, t)| *w == word && *t == text)
        {
            out.push((word, text));
        }
    };
    let mut blocks = Blocks::open(input)?;
    loop {
        match blocks.next_item() {
            Ok(Some(Item::Header(header))) => {
                let Some(session) = header.session else {
                    if let Some(Ok(p)) = header.process.map(|p| blocks.wire.decode_message::<FullProcess>(&p, "process")) {
                        add("process", decode_lossy(p.name));
                        add("host", decode_lossy(p.host));
                    }
                    continue;
                };
                let Ok(session) = blocks.wire.decode_message::<FullSession>(&session, "session") else { continue };
                for system in [("host", session.host), ("target", session.target)] {
                    if let (word, Some(s)) = system {
                        add(word, decode_lossy(s.computer));
                        add("system", s.os);
                        add("processor", s.processor);
                    }
                }
                for v in session.versions {
                    add("version", v.provider.zip(v.version).map(|(p, v)| format!("{p} {v}")));
                }
                for d in session.devices {
                    add("device", d.name.map(|n| format!("{} {n}", d.id.unwrap_or_default())));
                }
                if let Some(p) = session.program {
                    let arguments = decode_lossy(p.arguments).unwrap_or_default();
                    add("program", decode_lossy(p.path).map(|path| format!("{path} {arguments}").trim_end().to_owned()));
                    add("directory", decode_lossy(p.directory));
                    add("environment", decode_lossy(p.environment));
                }
                add("command", decode_lossy(session.command_line));
                add("created", session.created.filter(|&c| c > 0).map(|c| format!("{c} s after 1970-01-01 UTC")));
            }
            Ok(Some(Item::Message(..))) => {}
            Ok(None) => return Ok(out),
            // Facts that precede the damage are valid.
            Err(ImportError::Damaged { .. }) if !out.is_empty() => return Ok(out),
            Err(e) => return Err(e),
        }
    }
}
