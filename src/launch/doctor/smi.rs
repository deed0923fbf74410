//! Queries for `nvidia-smi` and `rocm-smi`, and parsers for their output.

/// Arguments of the GPU query; the output is CSV without a header and without units.
pub const GPUS: [&str; 2] = [
    "--query-gpu=index,name,driver_version,compute_cap,mig.mode.current,persistence_mode,clocks.current.sm,clocks.max.sm,memory.used,memory.total",
    "--format=csv,noheader,nounits",
];

/// Arguments of the process query.
pub const PROCESSES: [&str; 2] = ["--query-compute-apps=pid,process_name", "--format=csv,noheader,nounits"];

/// Arguments of the utilization query.
pub const BUSY: [&str; 2] =
    ["--query-gpu=index,utilization.gpu,memory.used,memory.total,power.draw,clocks.current.sm", "--format=csv,noheader,nounits"];

/// Arguments with which `rocm-smi` reports the utilization of AMD GPUs.
pub const ROCM_BUSY: [&str; 3] = ["--showuse", "--showmemuse", "--json"];

/// Utilization of a GPU at one point in time. Unreported values are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    pub index: u32,
    /// Share of the last sample period in which a kernel ran, in percent. `nvidia-smi`'s periods are between 1/6 s and
    /// 1 s long.
    pub percent: Option<f32>,
    /// Memory in use, in percent.
    pub memory: Option<f32>,
    /// Memory in use, in MiB.
    pub used: Option<u64>,
    /// Power, in W.
    pub power: Option<f32>,
    /// SM clock, in MHz.
    pub clock: Option<u32>,
}

/// Parses a line of the utilization query; `None` for other lines (warnings, errors).
pub fn parse_utilization(line: &str) -> Option<Busy> {
    let f: Vec<&str> = line.split(',').map(str::trim).collect();
    let [index, percent, used, total, power, clock] = f[..] else { return None };
    let (used, total): (Option<u64>, Option<u64>) = (used.parse().ok(), total.parse().ok());
    Some(Busy {
        index: index.parse().ok()?,
        percent: percent.parse().ok(),
        memory: used.zip(total).filter(|m| m.1 > 0).map(|(u, t)| (u as f64 / t as f64 * 100.0) as f32),
        used,
        power: power.parse().ok(),
        clock: clock.parse().ok(),
    })
}

/// Parses the output of `rocm-smi`, sorted by card; empty if it is not JSON.
pub fn parse_rocm_utilization(answer: &str) -> Vec<Busy> {
    // Warnings may precede the JSON.
    let Some(from) = answer.find('{') else { return Vec::new() };
    let Ok(serde_json::Value::Object(cards)) = serde_json::from_str(&answer[from..]) else { return Vec::new() };
    let of = |(name, card): (&String, &serde_json::Value)| {
        let figure = |key: &str| card.get(key)?.as_str()?.trim().parse().ok();
        let index = name.strip_prefix("card")?.parse().ok()?;
        Some(Busy { index, percent: figure("GPU use (%)"), memory: figure("GPU Memory Allocated (VRAM%)"), ..Busy::default() })
    };
    let mut all: Vec<Busy> = cards.iter().filter_map(of).collect();
    all.sort_by_key(|b| b.index);
    all
}

/// A GPU. Unsupported values are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    pub index: u32,
    pub name: String,
    pub driver: String,
    pub capability: Option<(u32, u32)>,
    /// MIG is enabled: the GPU is split into instances.
    pub mig: Option<bool>,
    /// Persistence mode is enabled: the driver keeps the GPU initialized.
    pub persistence: Option<bool>,
    /// Current SM clock, in MHz.
    pub clock: Option<u32>,
    /// Maximum SM clock, in MHz.
    pub most_clock: Option<u32>,
    /// Memory in use, in MiB.
    pub used: Option<u64>,
    /// Total memory, in MiB.
    pub memory: Option<u64>,
}

fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    }
}

/// Parses the GPU query; skips lines that are not rows (warnings, errors).
pub fn parse_gpus(answer: &[String]) -> Vec<Gpu> {
    let of = |line: &String| {
        let f: Vec<&str> = line.split(',').map(str::trim).collect();
        let [index, name, driver, capability, mig, persistence, clock, most, used, memory] = f[..] else { return None };
        let capability = capability.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        Some(Gpu {
            index: index.parse().ok()?,
            name: name.to_owned(),
            driver: driver.to_owned(),
            capability,
            mig: parse_switch(mig),
            persistence: parse_switch(persistence),
            clock: clock.parse().ok(),
            most_clock: most.parse().ok(),
            used: used.parse().ok(),
            memory: memory.parse().ok(),
        })
    };
    answer.iter().filter_map(of).collect()
}

/// Parses the process query into pairs of id and name.
pub fn parse_processes(answer: &[String]) -> Vec<(u32, String)> {
    answer
        .iter()
        .filter_map(|l| l.split_once(','))
        .filter_map(|(pid, name)| Some((pid.trim().parse().ok()?, name.trim().to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output for an H200 with driver 580, for a Tesla T4 without MIG, and for a machine without a driver.
    #[test]
    fn answers_are_read_and_errors_are_not() {
        let lines = [
            "0, NVIDIA H200, 580.95.05, 9.0, Disabled, Enabled, 345, 1980, 4, 143771",
            "1, Tesla T4, 550.54.15, 7.5, [N/A], Disabled, 300, 1590, 0, 15360",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ]
        .map(str::to_owned);
        let found = parse_gpus(&lines);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].capability, found[0].mig, found[0].most_clock), (Some((9, 0)), Some(false), Some(1980)));
        assert_eq!((found[1].mig, found[1].persistence, found[1].memory), (None, Some(false), Some(15_360)));
        assert_eq!(parse_processes(&["4711, python3".to_owned(), "no running processes".to_owned()]), [(4711, "python3".to_owned())]);
    }

    /// Output for an H100 with driver 580, for one with MIG, which reports no utilization, and for a machine without a
    /// driver.
    #[test]
    fn how_busy_it_is() {
        let read = parse_utilization("0, 87, 12000, 81559, 412.31, 1980").unwrap();
        assert_eq!((read.index, read.percent, read.used, read.clock), (0, Some(87.0), Some(12_000), Some(1980)));
        assert!((read.memory.unwrap() - 14.713).abs() < 0.001 && (read.power.unwrap() - 412.31).abs() < 0.01);
        let read = parse_utilization("1, [N/A], 40, 81559, [N/A], 345").unwrap();
        assert_eq!((read.percent, read.power), (None, None));
        assert_eq!(parse_utilization("No devices were found"), None);
        let json = r#"WARNING: low power
{"card1": {"GPU use (%)": "7", "GPU Memory Allocated (VRAM%)": "13"}, "card0": {"GPU use (%)": "N/A"}, "system": {"Driver version": "6.8.5"}}"#;
        let read = parse_rocm_utilization(json);
        assert_eq!(read.iter().map(|b| (b.index, b.percent, b.memory)).collect::<Vec<_>>(), [(0, None, None), (1, Some(7.0), Some(13.0))]);
        assert!(parse_rocm_utilization("ERROR: driver not initialized").is_empty());
    }
}
