//! Generated jobs of many ranks with known causes of waiting: tensor parallelism
//! within hosts, data parallelism across hosts.

use warpscope::model::digest::{Collective, CollectiveKind, Digest, Kernel, RankStep, duration_bucket};

/// Problem planted in a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    Nothing,
    /// Kernels of one rank take longer by this factor.
    Compute(usize, f64),
    /// The host of one rank launches late in each step, by this many ns.
    Host(usize, i64),
    /// A different rank is late in each step, by this many ns.
    Uneven(i64),
    /// Collectives of one tensor-parallel group take this many times as long.
    Link(usize, f64),
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub ranks: usize,
    /// Size of a tensor-parallel group; 1 for data parallelism alone.
    pub tensor: usize,
    /// Collectives carry the framework's groups and sequence numbers; otherwise only NCCL's kernels are known.
    pub numbered: bool,
    pub steps: usize,
    pub layers: usize,
    pub wrong: Wrong,
    pub seed: u64,
}

/// Xorshift: the same jobs on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as i64
    }
}

/// Ranks per host.
const HOST: usize = 8;
/// Duration of a layer's kernels and of its collectives, ns.
const LAYER: i64 = 400_000;
const TENSOR: i64 = 60_000;
const DATA: i64 = 900_000;

/// Digests of all ranks: each on its host's clock, which is off by seconds and
/// drifts, with a different start of capture.
pub fn job(plan: &Plan) -> Vec<Digest> {
    let mut random = Random::new(plan.seed);
    let n = plan.ranks;
    let clocks: Vec<(i64, f64)> =
        (0..n.div_ceil(HOST)).map(|_| (random.below(4_000_000_000) - 2_000_000_000, (random.below(100) - 50) as f64 * 1e-6)).collect();
    let tensor_group = |rank: usize| rank / plan.tensor;
    let data_group = |rank: usize| rank % plan.tensor;
    let kind = |group: String, ranks: Vec<u32>| CollectiveKind {
        name: "all_reduce".to_owned(),
        size: plan.numbered.then_some(ranks.len() as u32),
        ranks: if plan.numbered { ranks } else { Vec::new() },
        group,
        numbered: plan.numbered,
        algorithm: "RING_LL".to_owned(),
        ..CollectiveKind::default()
    };
    let mut at = vec![0i64; n];
    let mut lists: Vec<Vec<Collective>> = vec![Vec::new(); n];
    let mut kernels = vec![0i64; n];
    let mut steps: Vec<Vec<RankStep>> = vec![Vec::new(); n];
    let mut numbers = [0i64; 2];
    for number in 0..plan.steps {
        let begun = at.clone();
        let (computed, waited) = (kernels.clone(), lists.iter().map(Vec::len).collect::<Vec<_>>());
        let unlucky = random.below(n as i64) as usize;
        for (rank, at) in at.iter_mut().enumerate() {
            *at += random.below(20_000);
            match plan.wrong {
                Wrong::Host(late, ns) if late == rank => *at += ns,
                Wrong::Uneven(ns) if unlucky == rank => *at += ns,
                _ => {}
            }
        }
        for _ in 0..plan.layers {
            for rank in 0..n {
                let slower = if let Wrong::Compute(slow, by) = plan.wrong
                    && slow == rank
                {
                    1.0 + by
                } else {
                    1.0
                };
                let layer = ((LAYER + random.below(8_000)) as f64 * slower) as i64;
                at[rank] += layer;
                kernels[rank] += layer;
            }
            if plan.tensor > 1 {
                for group in 0..n / plan.tensor {
                    let slower = if let Wrong::Link(slow, by) = plan.wrong
                        && slow == group
                    {
                        by
                    } else {
                        1.0
                    };
                    let duration = ((TENSOR + random.below(4_000)) as f64 * slower) as i64;
                    meet(
                        &mut at,
                        &mut lists,
                        (group * plan.tensor..(group + 1) * plan.tensor).collect(),
                        (0, numbers[0], 4 << 20),
                        duration,
                        &mut random,
                    );
                }
                numbers[0] += 1;
            }
        }
        for group in 0..plan.tensor {
            let duration = DATA + random.below(20_000);
            meet(&mut at, &mut lists, (group..n).step_by(plan.tensor).collect(), (1, numbers[1], 64 << 20), duration, &mut random);
        }
        numbers[1] += 1;
        for rank in 0..n {
            let length = at[rank] - begun[rank];
            let compute = kernels[rank] - computed[rank];
            let exposed: i64 = lists[rank][waited[rank]..].iter().map(|c| c.duration).sum();
            steps[rank].push(RankStep {
                number: number as u32,
                start: begun[rank],
                length,
                compute,
                exposed,
                idle: length - compute - exposed,
            });
        }
    }
    (0..n)
        .map(|rank| {
            let (offset, drift) = clocks[rank / HOST];
            let own = |t: i64| t + offset + (t as f64 * drift) as i64;
            let groups = [
                kind(if plan.numbered { format!("tp{}", tensor_group(rank)) } else { "stream 0".to_owned() }, {
                    let first = tensor_group(rank) * plan.tensor;
                    (first..first + plan.tensor).map(|r| r as u32).collect()
                }),
                kind(if plan.numbered { format!("dp{}", data_group(rank)) } else { "stream 1".to_owned() }, {
                    (data_group(rank)..n).step_by(plan.tensor).map(|r| r as u32).collect()
                }),
            ];
            // A later capture without sequence numbers lacks the first collectives, and counts from its own first one.
            let lost = if plan.numbered { 0 } else { random.below(5) };
            let list: Vec<Collective> = lists[rank]
                .iter()
                .filter(|c| plan.numbered || c.sequence >= lost)
                .map(|c| Collective { start: own(c.start), sequence: if plan.numbered { c.sequence } else { c.sequence - lost }, ..*c })
                .collect();
            let mut digest = Digest {
                file: format!("rank{rank}"),
                host: Some(format!("node{}", rank / HOST)),
                rank: Some(rank as u32),
                world: Some(n as u32),
                device: Some((rank % HOST) as u32),
                device_name: Some("NVIDIA H100 80GB HBM3".to_owned()),
                end: own(at[rank]),
                start: own(0),
                kinds: groups.into(),
                kernel_time: kernels[rank],
                judged: at[rank],
                window_end: own(at[rank]),
                parts: vec![kernels[rank], at[rank] - kernels[rank]],
                kernels: vec![Kernel {
                    name: "layer".to_owned(),
                    count: 1,
                    total: kernels[rank],
                    bucket: vec![duration_bucket(LAYER)],
                    filled: vec![1],
                    ..Kernel::default()
                }],
                ..Digest::default()
            };
            digest.set_collectives(&list, 1);
            let own_steps: Vec<RankStep> = steps[rank].iter().map(|s| RankStep { start: own(s.start), ..*s }).collect();
            digest.set_steps(&own_steps);
            digest
        })
        .collect()
}

/// A collective: each rank enters it as soon as it is ready. Once the last one has arrived, the transfer takes
/// `duration`, and all ranks finish within a few microseconds.
fn meet(
    at: &mut [i64],
    lists: &mut [Vec<Collective>],
    ranks: Vec<usize>,
    (kind, sequence, bytes): (usize, i64, u64),
    duration: i64,
    random: &mut Random,
) {
    if ranks.len() < 2 {
        return;
    }
    let end = ranks.iter().map(|&r| at[r]).max().unwrap() + duration;
    for rank in ranks {
        let left = end + random.below(3_000);
        lists[rank].push(Collective { kind, sequence, start: at[rank], duration: left - at[rank], bytes });
        at[rank] = left;
    }
}
