//! Formats that are recognized but not supported, with error messages.

use super::error::ImportError;
use super::input::Input;

/// A recognized format: how to detect it, its description, and advice.
struct Known {
    is: fn(&[u8]) -> bool,
    what: &'static str,
    /// Next step; empty if there is no advice other than the list of supported formats.
    next: &'static str,
}

fn text_has(head: &[u8], needles: &[&str]) -> bool {
    let text = String::from_utf8_lossy(head);
    needles.iter().all(|n| text.contains(n))
}

fn json_like(head: &[u8]) -> bool {
    matches!(head.trim_ascii_start().first(), Some(b'{' | b'['))
}

static KNOWN: &[Known] = &[
    Known {
        is: |h| h.starts_with(b"version https://git-lfs"),
        what: "a Git LFS pointer, not the report itself",
        next: "fetch the file with `git lfs pull`",
    },
    Known {
        is: |h| h.starts_with(b"U3w[END]NVIDIA Nsight Systems Stream"),
        what: "an unfinished Nsight Systems stream (.qdstrm)",
        next: "import it with the QdstrmImporter of the nsys that recorded it, then open the .nsys-rep",
    },
    Known {
        is: |h| {
            [
                "Time (%),Total Time",
                "API Start (ns)",
                "NVTX Range,",
                "Total (MB),Count",
                "PID,TID,DevId,Count",
                "Start (ns),End (ns),Duration",
            ]
            .iter()
            .any(|w| text_has(h, &[w]))
        },
        what: "an `nsys stats` CSV of a report without kernel times",
        next: "of these, cuda_gpu_trace, cuda_gpu_kern_sum and cuda_gpu_kern_gb_sum can be opened; better, open the .nsys-rep or its SQLite export",
    },
    Known { is: |h| h == b"NVR", what: "a truncated Nsight Compute report (.ncu-rep)", next: "copy it again from where it was recorded" },
    Known {
        is: |h| text_has(h, &["\"Kernel Name\"", "\"Metric Name\""]),
        what: "Nsight Compute text output without its usual columns",
        next: "print it with `ncu --import REPORT --csv --page raw`",
    },
    Known {
        is: |h| h.starts_with(b"WSD"),
        what: "the digest of a rank, made by `warpscope digest`",
        next: "lay it beside those of the other ranks: `warpscope ranks FILE…`",
    },
    Known {
        is: |h| text_has(h, &["Self CPU %", "# of Calls"]),
        what: "a table of torch.profiler (`key_averages().table()`), which has no kernels of their own",
        next: "save the trace in the program, `prof.export_chrome_trace(\"trace.json\")`, and open that",
    },
    Known {
        is: |h| h.starts_with(b"==") && text_has(h, &["NVPROF is profiling"]) || text_has(h, &["GPU activities:", "Time(%)"]),
        what: "the output of nvprof, which CUDA 13 no longer has",
        next: "record with `warpscope run -- PROGRAM`, or with nsys",
    },
    Known {
        is: |h| h.starts_with(b"OTF2"),
        what: "an OTF2 archive, such as rocprofv3 writes with `--output-format otf2`",
        next: "record with `--output-format rocpd` or csv",
    },
    Known {
        is: |h| {
            text_has(h, &["\"rocprofiler-sdk"])
                || text_has(h, &["Kernel_Name"])
                || text_has(h, &["KernelName", "gpu-id"])
                || text_has(h, &["Agent_Id"])
        },
        what: "a table of AMD's profilers without single kernels",
        next: "open the database, the JSON or the kernel trace of the run",
    },
    Known {
        is: super::torch_memory_snapshot::is_pickle,
        what: "a Python pickle, but no memory snapshot of PyTorch",
        next: "name the file that torch.cuda.memory._dump_snapshot wrote",
    },
    Known { is: |h| h.is_empty(), what: "an empty archive", next: "compress the report again" },
    Known {
        is: |h| h.starts_with(&[0x1f, 0x8b]) || h.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]),
        what: "compressed more than once",
        next: "decompress it once",
    },
    Known { is: |h| h.starts_with(b"%PDF"), what: "a PDF document", next: "" },
    Known { is: |h| h.starts_with(b"#!"), what: "a script", next: "" },
    Known { is: json_like, what: "JSON that is not a profile warpscope knows", next: "" },
];

/// Returns the error for a file that no importer accepts. `reads` lists the supported formats with their
/// suffixes.
pub fn unsupported_error(input: &Input, reads: &str) -> ImportError {
    match KNOWN.iter().find(|k| (k.is)(&input.head)) {
        Some(Known { what, next: "", .. }) => ImportError::refused(&input.path, *what, format!("this version reads {reads}")),
        Some(known) => ImportError::refused(&input.path, known.what, known.next),
        None => ImportError::Unknown { path: input.path.clone(), head: head_for_people(&input.head) },
    }
}

/// Formats the first bytes as text if printable, otherwise in hexadecimal.
fn head_for_people(head: &[u8]) -> String {
    let first = &head[..head.len().min(16)];
    match std::str::from_utf8(first) {
        Ok(text) if text.chars().all(|c| !c.is_control()) => format!("{text:?}"),
        _ => first.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(bytes: &'static [u8]) -> String {
        unsupported_error(&Input::built_in("x", bytes), "A (.a)").to_string()
    }

    #[test]
    fn each_known_kind_gets_its_own_sentence() {
        assert!(sentence(b"version https://git-lfs.github.com/spec/v1\n").contains("git lfs pull"));
        assert!(sentence(b"NVR").contains("truncated"));
        assert!(sentence(b"---\n Name  Self CPU %  Self CUDA  # of Calls\n").contains("export_chrome_trace"));
        assert!(sentence(b"==27694== NVPROF is profiling process 27694, command: a.out\n").contains("nvprof"));
        assert!(sentence(b"OTF2 archive").contains("rocpd"));
        assert!(sentence(b"U3w[END]NVIDIA Nsight Systems Stream").contains("QdstrmImporter"));
    }

    #[test]
    fn unknown_bytes_are_shown_safely() {
        assert!(sentence(b"\x1b[31mhello").contains("it starts with 1b 5b 33 31 6d 68 65 6c 6c 6f;"));
        assert!(sentence(b"hello").contains("it starts with \"hello\";"));
    }
}
