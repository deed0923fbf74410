//! Theoretical occupancy of AMD GPUs: workgroups per compute unit (CDNA) or workgroup processor (RDNA).
//!
//! Source: LLVM's AMDGPU occupancy rules (`AMDGPUBaseInfo.cpp`, with `occupancy-levels.ll` as its test), and
//! rocprofiler-compute's machine descriptions (ROCm/rocm-systems @1b1610fc2b). CDNA: a SIMD has 512 vector registers,
//! shared by architectural and accumulation registers and allocated in steps of 8, and holds 8 waves; a compute unit
//! has four SIMDs, 16 workgroups of more than one wave, and LDS in steps of 512 bytes (CDNA4: 160 KiB in steps of
//! 1,280). RDNA, for wave32 kernels in WGP mode, which are the compilers' defaults: two compute units share four SIMDs,
//! 128 KiB of LDS in steps of 512 bytes (1,024 from RDNA 2 on: Mesa's `ac_gpu_info.c`), and 32 workgroups of more than
//! one wave; reports do not identify kernels compiled for wave64 or CU mode. Scalar registers are ignored: they can
//! only lower the result, and LLVM and older documents disagree about them.

use crate::model::{Device, LaunchConfig};

/// Limits of an architecture.
struct Chip {
    /// Maximum number of waves per SIMD.
    waves_per_simd: u32,
    /// Vector registers per SIMD lane, and their allocation granularity.
    registers: u32,
    register_step: u32,
    /// LDS in bytes, and its allocation granularity.
    lds: u64,
    lds_step: u64,
    /// Maximum number of resident workgroups of more than one wave; a single wave needs no barrier, so it has no such
    /// limit.
    workgroups: u32,
    /// Number of compute units that share these resources.
    cus: u32,
}

const SIMDS: u32 = 4;
/// Maximum number of vector registers per work-item on RDNA.
const RDNA_REGISTERS: u32 = 256;

fn find_chip(arch: &str) -> Option<Chip> {
    let cdna = |lds, lds_step| Chip { waves_per_simd: 8, registers: 512, register_step: 8, lds, lds_step, workgroups: 16, cus: 1 };
    let rdna = |waves_per_simd, registers, register_step, lds_step| Chip {
        waves_per_simd,
        registers,
        register_step,
        lds: 128 << 10,
        lds_step,
        workgroups: 32,
        cus: 2,
    };
    Some(match arch {
        "gfx90a" | "gfx942" => cdna(64 << 10, 512),
        "gfx950" => cdna(160 << 10, 1280),
        "gfx1010" | "gfx1011" | "gfx1012" | "gfx1013" => rdna(20, 1024, 8, 512),
        "gfx1030" | "gfx1031" | "gfx1032" | "gfx1033" | "gfx1034" | "gfx1035" | "gfx1036" | "gfx1102" | "gfx1103" | "gfx1150"
        | "gfx1152" | "gfx1153" => rdna(16, 1024, 16, 1024),
        // These chips have 1.5 times as many vector registers.
        "gfx1100" | "gfx1101" | "gfx1151" | "gfx1200" | "gfx1201" => rdna(16, 1536, 24, 1024),
        _ => return None,
    })
}

/// Occupancy of a compute unit or workgroup processor.
pub(super) struct Held {
    /// Waves per workgroup, and maximum number of waves per unit.
    pub waves: u32,
    pub most: u32,
    /// Workgroups that each resource allows: waves, registers, LDS, workgroups. `None` if the resource is not a limit.
    pub by: [Option<u32>; 4],
    /// Number of compute units that share the resources.
    pub cus: u32,
}

/// Computes the occupancy; `None` if its inputs are unknown.
pub(super) fn compute_occupancy(config: &LaunchConfig, device: &Device) -> Option<Held> {
    let chip = find_chip(device.arch.as_deref()?)?;
    let threads = u32::try_from(config.threads_per_block()?).ok().filter(|&t| t > 0)?;
    let lanes = device.warp_size.unwrap_or(if chip.cus == 1 { 64 } else { 32 });
    if chip.cus > 1 && lanes != 32 {
        return None;
    }
    let waves = threads.div_ceil(lanes);
    let most_registers = if chip.cus == 1 { chip.registers } else { RDNA_REGISTERS };
    let registers = config.registers.filter(|&r| r > 0 && r <= most_registers)?;
    let per_simd = (chip.registers / registers.next_multiple_of(chip.register_step)).min(chip.waves_per_simd);
    let lds = config.shared_memory()?.0.checked_next_multiple_of(chip.lds_step)?;
    let most = SIMDS * chip.waves_per_simd;
    let by_lds = (lds > 0).then(|| u32::try_from(chip.lds / lds).unwrap_or(u32::MAX));
    // If the registers allow the maximum number of waves, they are not a limit.
    let by_registers = (per_simd < chip.waves_per_simd).then_some(per_simd * SIMDS / waves);
    let by_groups = if waves > 1 { chip.workgroups } else { most };
    Some(Held { waves, most, by: [Some(most / waves), by_registers, by_lds, Some(by_groups)], cus: chip.cus })
}

#[cfg(test)]
mod tests {
    use crate::analysis::{Limiter, Occupancy};
    use crate::model::{Bytes, Device, LaunchConfig, Vendor};

    fn mi300x() -> Device {
        Device { maker: Vendor::Amd, arch: Some("gfx942".into()), warp_size: Some(64), sm_count: Some(304), ..Device::default() }
    }

    fn launch(blocks: u32, threads: u32, registers: u32, lds: u64) -> LaunchConfig {
        LaunchConfig {
            grid: Some([blocks, 1, 1]),
            block: Some([threads, 1, 1]),
            registers: Some(registers),
            static_shared: Some(Bytes(lds)),
            ..LaunchConfig::default()
        }
    }

    fn of(threads: u32, registers: u32, lds: u64) -> Occupancy {
        Occupancy::from_config(&launch(608, threads, registers, lds), &mi300x()).unwrap()
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

    /// Waves per SIMD according to LLVM's `occupancy-levels.ll`, for wave32.
    #[test]
    fn rdna_holds_the_waves_of_llvm_s_tests() {
        let held = |arch: &str, threads, registers, lds| {
            let device = Device { arch: Some(arch.into()), warp_size: Some(32), sm_count: Some(96), ..mi300x() };
            Occupancy::from_config(&launch(96, threads, registers, lds), &device)
        };
        let rows = [
            (24, 20, 16, 16),
            (56, 18, 16, 16),
            (64, 16, 16, 16),
            (72, 14, 12, 16),
            (84, 11, 10, 16),
            (100, 9, 9, 12),
            (128, 8, 8, 10),
            (168, 6, 5, 9),
            (200, 5, 4, 7),
            (256, 4, 4, 5),
        ];
        for (registers, rdna1, rdna2, rdna3) in rows {
            for (arch, waves) in
                [("gfx1010", rdna1), ("gfx1030", rdna2), ("gfx1102", rdna2), ("gfx1100", rdna3), ("gfx1151", rdna3), ("gfx1201", rdna3)]
            {
                assert_eq!(held(arch, 32, registers, 0).unwrap().warps_per_sm, waves * 4, "{arch}, {registers}");
            }
        }
        // Workgroups of two, three and four waves with 8,252 bytes of LDS: 7.5, 11.25 and 15 waves per SIMD.
        for (threads, waves) in [(64, 30), (96, 45), (128, 60)] {
            assert_eq!(held("gfx1010", threads, 24, 8_252).unwrap().warps_per_sm, waves, "{threads}");
        }
        // 2,100 bytes round up to 2,560 or 3,072.
        assert_eq!(["gfx1010", "gfx1100"].map(|arch| held(arch, 32, 24, 2_100).unwrap().warps_per_sm), [51, 42]);
        let one = held("gfx1100", 256, 24, 0).unwrap();
        // 96 workgroups on 48 units of 8 workgroups each.
        assert_eq!((one.unit, one.blocks_per_sm, one.waves), ("WGP", 8, Some(0.25)));
        assert_eq!(held("gfx1100", 256, 257, 0), None);
        assert_eq!(held("gfx9999", 256, 24, 0), None);
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
