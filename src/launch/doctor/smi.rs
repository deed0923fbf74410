//! What `nvidia-smi` says about GPUs and about who uses them.

/// The question about GPUs; the answer is CSV without heads and units.
pub const GPUS: [&str; 2] = [
    "--query-gpu=index,name,driver_version,compute_cap,mig.mode.current,persistence_mode,clocks.current.sm,clocks.max.sm,memory.used,memory.total",
    "--format=csv,noheader,nounits",
];

/// The question about processes.
pub const PROCESSES: [&str; 2] = ["--query-compute-apps=pid,process_name", "--format=csv,noheader,nounits"];

/// A GPU. What is not supported on it is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Index.
    pub index: u32,
    pub name: String,
    /// Version of the driver.
    pub driver: String,
    pub capability: Option<(u32, u32)>,
    /// Whether it is split into instances (MIG).
    pub mig: Option<bool>,
    /// Whether the driver keeps it ready (persistence mode).
    pub persistence: Option<bool>,
    /// Clock of the SMs now, in MHz.
    pub clock: Option<u32>,
    /// Highest clock of the SMs, in MHz.
    pub most_clock: Option<u32>,
    /// Memory in use, in MiB.
    pub used: Option<u64>,
    /// Memory in all, in MiB.
    pub memory: Option<u64>,
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    }
}

/// GPUs of an answer; lines that are no answer (warnings, errors) are left out.
#[must_use]
pub fn gpus(answer: &[String]) -> Vec<Gpu> {
    let of = |line: &String| {
        let f: Vec<&str> = line.split(',').map(str::trim).collect();
        let [index, name, driver, capability, mig, persistence, clock, most, used, memory] = f[..] else { return None };
        let capability = capability.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        Some(Gpu {
            index: index.parse().ok()?,
            name: name.to_owned(),
            driver: driver.to_owned(),
            capability,
            mig: switch(mig),
            persistence: switch(persistence),
            clock: clock.parse().ok(),
            most_clock: most.parse().ok(),
            used: used.parse().ok(),
            memory: memory.parse().ok(),
        })
    };
    answer.iter().filter_map(of).collect()
}

/// Processes of an answer: id and name.
#[must_use]
pub fn processes(answer: &[String]) -> Vec<(u32, String)> {
    answer
        .iter()
        .filter_map(|l| l.split_once(','))
        .filter_map(|(pid, name)| Some((pid.trim().parse().ok()?, name.trim().to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of driver 580 on an H200, one of a Tesla T4 without MIG, and what is printed without a driver.
    #[test]
    fn answers_are_read_and_errors_are_not() {
        let lines = [
            "0, NVIDIA H200, 580.95.05, 9.0, Disabled, Enabled, 345, 1980, 4, 143771",
            "1, Tesla T4, 550.54.15, 7.5, [N/A], Disabled, 300, 1590, 0, 15360",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ]
        .map(str::to_owned);
        let found = gpus(&lines);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].capability, found[0].mig, found[0].most_clock), (Some((9, 0)), Some(false), Some(1980)));
        assert_eq!((found[1].mig, found[1].persistence, found[1].memory), (None, Some(false), Some(15_360)));
        assert_eq!(processes(&["4711, python3".to_owned(), "no running processes".to_owned()]), [(4711, "python3".to_owned())]);
    }
}
