//! Rank digests (`warpscope digest`): kernel totals and the figures needed to compare the ranks of a job, without
//! launches.

use super::input::Bytes;
use super::{ImportError, Importer, Input, Job};
use crate::launch::open;
use crate::model::digest::Digest;
use crate::model::kernel::function_of;
use crate::model::{Device, Kernel, KernelId, KernelTotal, Nanos, Note, NoteKind, Profile, Severity, Source};
use std::io::Read;
use std::sync::Arc;

/// Maximum number of bytes to read from a digest file. Real digests are below 1 MiB, no matter how long the report is.
const MOST: u64 = 64 << 20;

pub struct WarpscopeDigest;

impl Importer for WarpscopeDigest {
    fn name(&self) -> &'static str {
        "warpscope digest"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".wsd"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".wsd"]
    }

    fn knows(&self, input: &Input) -> bool {
        Digest::is_digest(&input.head)
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, _: &Job<'_>) -> Result<Profile, ImportError> {
        let mut bytes = Vec::new();
        match &input.bytes {
            Bytes::File(path) => {
                let file = open::open_regular(path).map_err(|e| ImportError::io(path, e))?;
                file.take(MOST).read_to_end(&mut bytes).map_err(|e| ImportError::io(path, e))?;
            }
            Bytes::BuiltIn(built_in) => bytes.extend_from_slice(built_in),
        }
        let refused = |what| ImportError::refused(&input.path, what, "make it again with `warpscope digest`");
        let digest = Digest::from_bytes(&bytes).map_err(refused)?;
        Ok(build_profile(digest, input))
    }
}

fn build_profile(digest: Digest, input: &Input) -> Profile {
    let mut profile = Profile::new(Source { tool: digest.tool.clone(), version: None, schema: None, file: input.path.clone() });
    for k in &digest.kernels {
        profile.totals.push(KernelTotal {
            kernel: KernelId(u32::try_from(profile.kernels.len()).unwrap_or(u32::MAX)),
            count: k.count,
            total: Nanos(k.total),
            min: Nanos(k.min),
            max: Nanos(k.max),
            median_ns: None,
            stddev_ns: None,
        });
        profile.kernels.push(Kernel {
            function: Some(function_of(&k.name).into()),
            demangled: Some(k.name.as_str().into()),
            ..Kernel::default()
        });
    }
    profile.devices = vec![Device { id: digest.device.unwrap_or(0), name: digest.device_name.clone(), ..Device::default() }];
    profile.rank.rank = digest.rank;
    profile.rank.world = digest.world;
    profile.rank.host.clone_from(&digest.host);
    let of = if digest.file.is_empty() { String::new() } else { format!(" of {}", digest.file.rsplit('/').next().unwrap_or_default()) };
    let text = format!("This is a digest{of}: totals of its kernels and what ranks are judged by, without launches.");
    profile.notes.push(Note::new(Severity::Info, NoteKind::Empty, text).with_fix("open that report for launches, timeline and re-runs"));
    profile.digest = Some(Arc::new(digest));
    profile
}
