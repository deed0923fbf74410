//! Theoretical occupancy of a launch, and its limiters.
//!
//! Source: NVIDIA's occupancy rules as in the CUDA toolkit's `cuda_occupancy.h`
//! (`cudaOccMaxActiveBlocksPerMultiprocessor`): registers are allocated per warp in units of 256 within each of an SM's
//! sub-partitions; shared memory is allocated per block in units of 128 bytes from compute capability 8.0 on (256
//! before), plus 1 KiB reserved by the system per block from 8.0 on. Device limits come from the report. Clusters are
//! not modeled: they can only lower the result.

use super::occupancy_amd;
use crate::model::{Device, LaunchConfig, Vendor};

/// Resource that limits the number of resident blocks per SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limiter {
    /// Maximum number of warps per SM.
    Warps,
    Registers,
    SharedMemory,
    /// Maximum number of blocks per SM.
    Blocks,
}

impl Limiter {
    /// Name of the resource in the GPU vendor's terms.
    pub fn vendor_term(self, maker: Vendor) -> &'static str {
        match self {
            Self::Warps => maker.vendor_terms().warps,
            Self::Registers => "registers",
            Self::SharedMemory => maker.vendor_terms().shared,
            Self::Blocks => maker.vendor_terms().blocks,
        }
    }
}

/// Blocks per SM that each resource allows; `None` for a resource that the launch does not use.
pub type Limits = Vec<(Limiter, Option<u32>)>;

/// Theoretical occupancy of one configuration on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    /// Number of blocks that can be resident at once on an SM, or on a CU or WGP of an AMD GPU.
    pub blocks_per_sm: u32,
    /// Number of resident warps with that many blocks.
    pub warps_per_sm: u32,
    /// Resident warps as a percentage of the SM's maximum.
    pub percent: f64,
    /// Every resource that allows no more than `blocks_per_sm`.
    pub limiters: Vec<Limiter>,
    /// Blocks per SM that each resource allows; `None` for a resource that the launch does not use.
    pub limits: Limits,
    /// Grid size divided by the number of blocks that fit on all SMs at once.
    pub waves: Option<f64>,
    /// Unit that holds the blocks: SM, CU, or WGP (two CUs of an RDNA GPU).
    pub unit: &'static str,
    /// Vendor of the GPU.
    pub maker: Vendor,
}

const REGISTER_UNIT: u64 = 256;
/// Maximum plausible number of registers per thread: the limit has been 255 since compute capability 3.5, and larger
/// values are corrupt.
const MOST_REGISTERS: u32 = 1024;

fn sub_partitions((major, minor): (u32, u32)) -> u64 {
    if (major, minor) == (6, 0) { 2 } else { 4 }
}

impl Occupancy {
    /// Computes the occupancy; `None` if the report has no configuration or device limits, or if the block cannot run
    /// at all.
    pub fn from_config(config: &LaunchConfig, device: &Device) -> Option<Self> {
        let mut cus = 1;
        let (warps_per_block, max_warps, limits) = match device.maker {
            Vendor::Amd => {
                let held = occupancy_amd::compute_occupancy(config, device)?;
                let resources = [Limiter::Warps, Limiter::Registers, Limiter::SharedMemory, Limiter::Blocks];
                cus = held.cus;
                (held.waves, held.most, resources.into_iter().zip(held.by).collect())
            }
            Vendor::Other => return None,
            Vendor::Nvidia | Vendor::Unknown => Self::compute_limits(config, device)?,
        };
        let blocks_per_sm = limits.iter().filter_map(|l| l.1).min()?;
        if blocks_per_sm == 0 {
            return None;
        }
        let warps_per_sm = blocks_per_sm.saturating_mul(warps_per_block);
        let resident = device.sm_count.map(|sms| f64::from(sms) / f64::from(cus) * f64::from(blocks_per_sm));
        Some(Self {
            blocks_per_sm,
            warps_per_sm,
            percent: f64::from(warps_per_sm) / f64::from(max_warps) * 100.0,
            limiters: limits.iter().filter(|l| l.1 == Some(blocks_per_sm)).map(|l| l.0).collect(),
            limits,
            waves: config.block_count().zip(resident).map(|(blocks, resident)| blocks as f64 / resident),
            unit: if cus > 1 { "WGP" } else { device.maker.vendor_terms().unit },
            maker: device.maker,
        })
    }

    /// Warps per block, maximum warps per SM, and number of blocks per SM that each resource allows.
    fn compute_limits(config: &LaunchConfig, device: &Device) -> Option<(u32, u32, Limits)> {
        let warp = device.warp_size.unwrap_or(32);
        let threads = u32::try_from(config.threads_per_block()?).ok().filter(|&t| t > 0)?;
        let cc = device.compute_capability?;
        let warps_per_block = threads.div_ceil(warp);
        let max_warps = device.max_warps_per_sm?;
        let mut limits = vec![(Limiter::Warps, Some(max_warps / warps_per_block))];
        limits.push((Limiter::Registers, by_registers(config, device, cc, warps_per_block)?));
        limits.push((Limiter::SharedMemory, by_shared(config, device, cc)?));
        limits.push((Limiter::Blocks, Some(device.max_blocks_per_sm?)));
        Some((warps_per_block, max_warps, limits))
    }

    /// Lists the limiters (`registers`, or `warps, blocks`); `None` at full occupancy.
    pub fn limited_by(&self) -> Option<String> {
        (self.percent < 99.95).then(|| self.limiters.iter().map(|l| l.vendor_term(self.maker)).collect::<Vec<_>>().join(", "))
    }
}

/// Blocks per SM that the registers allow. The outer `None` means unknown, the inner one unlimited.
#[allow(clippy::option_option, reason = "two kinds of absence: unknown, and unlimited")]
fn by_registers(config: &LaunchConfig, device: &Device, cc: (u32, u32), warps_per_block: u32) -> Option<Option<u32>> {
    let registers = config.registers.filter(|&r| r <= MOST_REGISTERS)?;
    if registers == 0 {
        return Some(None);
    }
    let per_sm = device.registers_per_sm?;
    let parts = sub_partitions(cc);
    let warps_per_block = u64::from(warps_per_block);
    let per_warp = (u64::from(registers) * u64::from(device.warp_size.unwrap_or(32))).next_multiple_of(REGISTER_UNIT);
    // To check that a block fits, the hardware rounds its warps up to a multiple of the number of sub-partitions.
    if per_warp * warps_per_block.next_multiple_of(parts) > u64::from(device.registers_per_block.unwrap_or(per_sm)) {
        return Some(Some(0));
    }
    let warps = u64::from(per_sm) / parts / per_warp * parts;
    Some(u32::try_from(warps / warps_per_block).ok())
}

#[allow(clippy::option_option, reason = "two kinds of absence: unknown, and unlimited")]
fn by_shared(config: &LaunchConfig, device: &Device, cc: (u32, u32)) -> Option<Option<u32>> {
    let (unit, reserved) = if cc.0 >= 8 { (128, 1024) } else { (256, 0) };
    let per_block = config.shared_memory()?.0.checked_add(reserved)?.checked_next_multiple_of(unit)?;
    if per_block == 0 {
        return Some(None);
    }
    // Carveout chosen by the driver for this launch, or else the SM's maximum.
    let per_sm = config.shared_carveout.or(device.shared_per_sm)?.0;
    Some(Some(u32::try_from(per_sm / per_block).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;

    fn h200() -> Device {
        Device {
            compute_capability: Some((9, 0)),
            sm_count: Some(132),
            warp_size: Some(32),
            max_warps_per_sm: Some(64),
            max_blocks_per_sm: Some(32),
            registers_per_sm: Some(65_536),
            registers_per_block: Some(65_536),
            shared_per_sm: Some(Bytes(233_472)),
            ..Device::default()
        }
    }

    fn config(grid: u32, threads: u32, registers: u32, shared: u64) -> LaunchConfig {
        LaunchConfig {
            grid: Some([grid, 1, 1]),
            block: Some([threads, 1, 1]),
            registers: Some(registers),
            static_shared: Some(Bytes(shared)),
            dynamic_shared: Some(Bytes(0)),
            ..LaunchConfig::default()
        }
    }

    /// Values printed by ncu for the H200 captures (`launch__occupancy_limit_*`).
    #[test]
    fn limits_as_ncu_prints_them() {
        for (config, blocks, percent, limiters) in [
            (config(2112, 256, 16, 0), 8, 100.0, vec![Limiter::Warps]),
            (config(264, 64, 16, 163_840), 1, 3.125, vec![Limiter::SharedMemory]),
            (config(1, 32, 16, 0), 32, 50.0, vec![Limiter::Blocks]),
            (config(128, 384, 168, 0), 1, 18.75, vec![Limiter::Registers]),
        ] {
            let o = Occupancy::from_config(&config, &h200()).unwrap();
            assert_eq!((o.blocks_per_sm, o.percent, o.limiters.clone()), (blocks, percent, limiters), "{config:?}");
        }
        let waves = Occupancy::from_config(&config(2112, 256, 16, 0), &h200()).unwrap().waves.unwrap();
        assert!((waves - 2.0).abs() < 1e-9);
    }

    #[test]
    fn unknown_stays_unknown() {
        assert_eq!(Occupancy::from_config(&LaunchConfig::default(), &h200()), None);
        assert_eq!(Occupancy::from_config(&config(1, 32, 16, 0), &Device::default()), None);
        for registers in [1025, 1 << 27, u32::MAX] {
            assert_eq!(Occupancy::from_config(&config(1, 32, registers, u64::MAX), &h200()), None, "damage");
        }
        assert_eq!(Occupancy::from_config(&config(1, 1024, 255, 0), &h200()), None, "a block that cannot run has no occupancy");
    }
}
