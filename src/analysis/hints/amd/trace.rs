//! Rules for thread traces and PC samples. They are based on wave cycles, each of which is spent at an instruction or
//! idle before it.

use super::facts::Amd;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Evidence, Hint, Sure, Threshold};
use crate::model::units::{format_grouped, format_share};

/// Minimum share of the waves' cycles for a kind of wait to matter.
const WAIT: Threshold = Threshold { op: "≥", value: 20.0, source: "our bound; NVIDIA's CPIStall rule has 30%" };

/// Size of the smallest instruction cache among CDNA and RDNA GPUs, bytes.
const CACHE: f64 = 32_768.0;

/// Minimum number of samples for their shares to mean anything; an assumption.
const FEW_SAMPLES: f64 = 30.0;

/// Returns true if the true share may be below [`WAIT`], by the lower end of Wilson's 95% interval, or if there are too
/// few samples to say.
fn is_by_chance(share: f64, samples: f64) -> bool {
    let z2 = 1.96_f64.powi(2);
    let middle = share + z2 / (2.0 * samples);
    let spread = 1.96 * (share * (1.0 - share) / samples + z2 / (4.0 * samples * samples)).sqrt();
    samples < FEW_SAMPLES || (middle - spread) / (1.0 + z2 / samples) * 100.0 < WAIT.value
}

/// Creates a hint about a kind of wait.
fn wait_hint(amd: &Amd<'_>, id: Diagnosis, kinds: &[&str], what: &str, actions: &[&str]) -> Option<Hint> {
    let share = kinds.iter().filter_map(|k| amd.wave_share(k)).sum::<f64>();
    if share * 100.0 < WAIT.value {
        return None;
    }
    let samples = amd.get("PC_Samples");
    let (unit, headline) = if let Some(all) = samples {
        let [found, all] = [share * all, all].map(|n| format_grouped(n.round() as i64));
        ("samples", format!("in {found} of {all} samples ({}), waves are {what}", format_share(share)))
    } else {
        ("cycles", format!("waves spend {} of their cycles {what}", format_share(share)))
    };
    Some(
        Hint::new(id, share, headline)
            .with_gain_basis("the cycles that waves spend there, if nothing else takes their place")
            .with_confidence(if samples.is_some_and(|all| is_by_chance(share, all)) { Sure::Possible } else { Sure::Likely })
            .with_evidence(
                [Evidence::from_value(&format!("of the waves' {unit}"), share * 100.0, "%", Some(WAIT))]
                    .into_iter()
                    .chain(kinds.iter().map(|k| amd.evidence(&format!("{unit} at {k}"), &amd.name_at(k), None)))
                    .chain([amd.evidence(
                        "hottest instruction, with idle time before it",
                        "Latency and idle of the hottest instruction",
                        None,
                    )]),
            )
            .with_actions(actions)
            .with_confirmation(
                &[],
                false,
                // Samples have no times.
                if samples.is_some() {
                    "the instructions, hottest first: the source screen"
                } else {
                    "the instructions, hottest first: the source screen; when each wave waits: its timeline"
                },
            ),
    )
}

/// Rule for `memory-latency`: cycles that waves spend waiting for vector memory, or at memory instructions that are not
/// accepted at once.
pub fn memory_waits(amd: &Amd<'_>) -> Option<Hint> {
    wait_hint(
        amd,
        Diagnosis::MemoryLatency,
        &["s_waitcnt vmcnt", "s_waitcnt vmcnt, lgkmcnt", "s_waitcnt vscnt", "VMEM"],
        "waiting for vector memory (s_waitcnt vmcnt, and loads and stores that are not taken at once)",
        &[
            "issue loads earlier: load the next tile before the current one is used, and wait with the largest vmcnt that is right",
            "fewer and wider loads: 16 bytes a lane (global_load_dwordx4) instead of single values",
            "more waves on the CU, so that others run meanwhile",
        ],
    )
}

/// Rule for `dependency-latency`: LDS and scalar loads.
pub fn lds_waits(amd: &Amd<'_>) -> Option<Hint> {
    // Samples may miss an instruction that was executed; a trace has all of them.
    let traced = amd.get("PC_Samples").is_none();
    if traced && amd.wave_share("LDS").is_none() && amd.wave_share("SMEM").is_some() {
        return wait_hint(
            amd,
            Diagnosis::Dependencies,
            &["s_waitcnt lgkmcnt", "SMEM"],
            "waiting for scalar loads (s_waitcnt lgkmcnt): of kernel arguments, and of other values that all lanes share",
            &[
                "load them at the start, with one wide load (s_load_dwordx8), and put independent work before their first use",
                "more work for each wave: a wave loads its arguments once",
            ],
        );
    }
    wait_hint(
        amd,
        Diagnosis::Dependencies,
        &["s_waitcnt lgkmcnt", "LDS", "SMEM"],
        "waiting for LDS or scalar loads (s_waitcnt lgkmcnt)",
        &[
            "read from LDS a step ahead of its use (software pipelining), and put independent work between",
            "wider LDS accesses (ds_read_b128), without bank conflicts",
        ],
    )
}

/// Rule for `barrier-stalls`.
pub fn barrier_waits(amd: &Amd<'_>) -> Option<Hint> {
    wait_hint(
        amd,
        Diagnosis::Barriers,
        &["s_barrier"],
        "waiting for the other waves of their workgroup (s_barrier)",
        &[
            "give the waves of a workgroup equal work between barriers; fewer barriers (double-buffered LDS needs one a step)",
            "smaller workgroups: fewer waves wait for each other",
        ],
    )
}

/// Minimum share of the idle cycles at the start of cache lines, if these are at most so large a part of the
/// instructions: idle cycles for other reasons would be spread over all of them. Our own choice; 94% at 10% of the
/// instructions in a kernel with long straight code on an MI300X, 38% in one of loops.
const AT_LINES: f64 = 0.7;
const OF_INSTRUCTIONS: f64 = 0.25;

/// Share of the idle cycles in which waves wait for the code of the next cache line; `None` if they are not there.
fn idle_for_lines(amd: &Amd<'_>) -> Option<f64> {
    let (all, at) = (amd.get("Executed instructions of the code")?, amd.get("Of them at the start of a cache line")?);
    let share = amd.get("Idle at the start of cache lines")? / amd.get("Idle").filter(|n| *n > 0.0)?;
    (share >= AT_LINES && at <= OF_INSTRUCTIONS * all).then_some(share)
}

/// Rule for `instruction-cache`: waves without an instruction to execute.
pub fn idle_waves(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.get("Idle")? / amd.wave_cycles()?;
    if let Some(part) = idle_for_lines(amd).filter(|_| share * 100.0 >= WAIT.value) {
        let at = share * part;
        return Some(
            Hint::new(
                Diagnosis::InstructionCache,
                at,
                format!(
                    "waves have no instruction to execute in {} of their cycles, {} of that where the code enters a new cache line: it is being fetched",
                    format_share(share),
                    format_share(part)
                ),
            )
            .with_gain_basis("the cycles in which code is fetched, if it is there before it is needed")
            .with_confidence(Sure::Likely)
            .with_evidence([
                Evidence::from_value("idle, of the waves' cycles", share * 100.0, "%", Some(WAIT)),
                amd.evidence("idle cycles at the start of cache lines", "Idle at the start of cache lines", None),
                amd.evidence("idle cycles", "Idle", None),
                amd.evidence("instructions at the start of a cache line", "Of them at the start of a cache line", None),
                amd.evidence("executed instructions of the code", "Executed instructions of the code", None),
            ])
            .with_actions(&[
                "less straight code that runs once: loops in place of full unrolling, so that a line is used again after it was fetched",
                "longer kernels: the first waves on a CU fetch the code, and later ones find it in the cache (more workgroups, or a persistent kernel)",
            ])
            .with_confirmation(&[], false, "the instructions by idle time: the source screen; when each wave idles: its timeline"),
        );
    }
    // Waves are idle for other reasons, too. Code that fits into the cache is not fetched again, so fetching cannot be
    // the reason there.
    if share * 100.0 < WAIT.value || amd.get("Code size")? < CACHE {
        return None;
    }
    Some(
        Hint::new(
            Diagnosis::InstructionCache,
            share,
            format!("waves have no instruction to execute in {} of their cycles", format_share(share)),
        )
        .with_gain_basis("the cycles between instructions; some belong to other waves' turns")
        .with_confidence(Sure::Possible)
        .with_evidence([
            Evidence::from_value("idle, of the waves' cycles", share * 100.0, "%", Some(WAIT)),
            amd.evidence("idle cycles", "Idle", None),
        ])
        .with_actions(&[
            "smaller loops and less unrolling, so that the code fits in the instruction cache (32 to 64 KiB)",
            "fewer jumps between far functions: inline what is hot",
        ])
        .with_confirmation(&[], false, "the instructions by idle time: the source screen; when each wave idles: its timeline"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_few_samples_may_be_chance() {
        for (share, samples, chance) in
            [(0.43, 14.0, true), (0.43, 40.0, false), (0.22, 400.0, true), (0.26, 400.0, false), (0.9, 29.0, true)]
        {
            assert_eq!(is_by_chance(share, samples), chance, "{share} of {samples}");
        }
    }
}
