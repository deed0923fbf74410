//! Theoretical occupancy of AMD CDNA GPUs: workgroups per compute unit.
//!
//! Source: LLVM's AMDGPU occupancy rules, and rocprofiler-compute's machine descriptions (ROCm/rocm-systems
//! @1b1610fc2b): a SIMD has 512 vector registers for a wave, shared by architectural and accumulation registers and
//! allocated in steps of 8, and holds 8 waves; a compute unit has four SIMDs, 16 workgroups of more than one wave, and
//! LDS in steps of 512 bytes (CDNA4: 160 KiB in steps of 1,280). Scalar registers are ignored: they can only lower the
//! result, and LLVM and older documents disagree about them. RDNA is not modelled.

use crate::model::{Device, LaunchConfig};

/// Limits of an architecture.
struct Chip {
    lds: u64,
    lds_step: u64,
}

const SIMDS: u32 = 4;
const WAVES_PER_SIMD: u32 = 8;
const REGISTERS: u32 = 512;
const REGISTER_STEP: u32 = 8;
/// Maximum number of workgroups of a compute unit, if they need barriers.
const WORKGROUPS: u32 = 16;

fn find_chip(arch: &str) -> Option<Chip> {
    match arch {
        "gfx90a" | "gfx942" => Some(Chip { lds: 64 << 10, lds_step: 512 }),
        "gfx950" => Some(Chip { lds: 160 << 10, lds_step: 1280 }),
        _ => None,
    }
}

/// Occupancy of a compute unit by workgroups.
pub(super) struct Held {
    /// Waves of a workgroup, and maximum waves of a compute unit.
    pub waves: u32,
    pub most: u32,
    /// Workgroups that each resource allows: waves, registers, LDS, workgroups. `None` if it is not a limit.
    pub by: [Option<u32>; 4],
}

/// Computes the occupancy; `None` if its inputs are unknown.
pub(super) fn compute_occupancy(config: &LaunchConfig, device: &Device) -> Option<Held> {
    let chip = find_chip(device.arch.as_deref()?)?;
    let threads = u32::try_from(config.threads_per_block()?).ok().filter(|&t| t > 0)?;
    let waves = threads.div_ceil(device.warp_size.unwrap_or(64));
    let registers = config.registers.filter(|&r| r > 0 && r <= REGISTERS)?;
    let per_simd = (REGISTERS / registers.next_multiple_of(REGISTER_STEP)).min(WAVES_PER_SIMD);
    let lds = config.shared_memory()?.0.checked_next_multiple_of(chip.lds_step)?;
    let most = SIMDS * WAVES_PER_SIMD;
    let by_lds = (lds > 0).then(|| u32::try_from(chip.lds / lds).unwrap_or(u32::MAX));
    // Registers that allow all waves are not a limit by themselves.
    let by_registers = (per_simd < WAVES_PER_SIMD).then_some(per_simd * SIMDS / waves);
    let by_groups = if waves > 1 { WORKGROUPS } else { most };
    Some(Held { waves, most, by: [Some(most / waves), by_registers, by_lds, Some(by_groups)] })
}

#[cfg(test)]
mod tests {
    use crate::analysis::{Limiter, Occupancy};
    use crate::model::{Bytes, Device, LaunchConfig, Vendor};

    fn mi300x() -> Device {
        Device { maker: Vendor::Amd, arch: Some("gfx942".into()), warp_size: Some(64), sm_count: Some(304), ..Device::default() }
    }

    fn of(threads: u32, registers: u32, lds: u64) -> Occupancy {
        let config = LaunchConfig {
            grid: Some([608, 1, 1]),
            block: Some([threads, 1, 1]),
            registers: Some(registers),
            static_shared: Some(Bytes(lds)),
            ..LaunchConfig::default()
        };
        Occupancy::from_config(&config, &mi300x()).unwrap()
    }

    /// Steps of LLVM's table for 512 registers (registers → waves): 64 → 8, 72 → 7, 80 → 6, 96 → 5, 128 → 4, 168 → 3,
    /// 256 → 2, 512 → 1.
    #[test]
    fn registers_give_the_waves_of_llvm_s_table() {
        for (registers, waves) in [
            (16, 8),
            (64, 8),
            (65, 7),
            (72, 7),
            (73, 6),
            (80, 6),
            (96, 5),
            (97, 4),
            (128, 4),
            (129, 3),
            (168, 3),
            (169, 2),
            (256, 2),
            (257, 1),
            (512, 1),
        ] {
            assert_eq!(of(64, registers, 0).warps_per_sm, waves * 4, "{registers}");
        }
        let o = of(256, 128, 0);
        assert_eq!((o.blocks_per_sm, o.percent, o.limited_by().as_deref()), (4, 50.0, Some("registers")));
    }

    #[test]
    fn lds_and_workgroups_limit_too() {
        let o = of(256, 32, 33_000);
        assert_eq!((o.blocks_per_sm, o.limiters.clone(), o.limited_by().as_deref()), (1, vec![Limiter::SharedMemory], Some("LDS")));
        assert_eq!(of(128, 32, 0).blocks_per_sm, 16);
        let one_wave = of(64, 32, 0);
        assert_eq!((one_wave.blocks_per_sm, one_wave.percent), (32, 100.0));
        assert!((of(256, 32, 0).waves.unwrap() - 608.0 / (304.0 * 8.0)).abs() < 1e-9);
    }
}
