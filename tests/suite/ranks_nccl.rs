//! NCCL's annotations of its calls, in traces and in nsys exports; and point-to-point messages between two ranks.

use super::support::{read, root, unpacked};
use std::collections::BTreeMap;
use warpscope::analysis::ranks::build_job;
use warpscope::analysis::triage::Verdict;
use warpscope::model::digest::{Collective, CollectiveKind, Digest};
use warpscope::model::{NcclCall, Payload, Profile};

/// Kind, bytes, peer, own rank, and group size.
type Said = (String, Option<u64>, Option<u32>, Option<u32>, Option<u32>);

fn said(profile: &Profile) -> Vec<Said> {
    profile.collectives.iter().map(|c| (c.kind.to_string(), c.bytes, c.peer, c.member, c.group_size)).collect()
}

/// One rank that sends 16 MiB to itself, five times; collectives of a single rank are copies and launch no NCCL kernel.
#[test]
fn calls_of_nccl_in_a_trace_and_in_an_export() {
    let (trace, export) = (read(&root().join("fixtures/trace/nccl.wstrace.zst")).unwrap(), read(&unpacked("nccl")).unwrap());
    for profile in [&trace, &export] {
        let one = |kind: &str| (kind.to_owned(), Some(16 << 20), Some(0), Some(0), Some(1));
        let wanted: Vec<_> = (0..5).flat_map(|_| [one("Send"), one("Recv")]).collect();
        assert_eq!(said(profile), wanted, "{}", profile.source.tool);
        for c in &profile.collectives {
            let kernel = &profile.kernels[profile.launches.kernel(c.launch.unwrap() as usize).0 as usize];
            assert!(kernel.function().contains("SendRecv"));
        }
        let calls =
            profile.ranges.payloads.values().filter(|p| matches!(p, Payload::Nccl(NcclCall::Message { bytes: 0x0100_0000, .. }))).count();
        assert_eq!(calls, 20, "four calls in each of five rounds");
        // NCCL ends the range of its first call through an NVTX extension.
        let init = profile.ranges.iter().find(|r| profile.ranges.label(r.name).contains("ncclCommInitRank")).unwrap();
        let next = profile.ranges.iter().find(|r| profile.ranges.label(r.name).contains("ncclAllReduce")).unwrap();
        assert!(init.end < next.start, "{} to {}, then {}", init.start, init.end, next.start);
    }
}

/// Two replicas of two pipeline stages: ranks 0 and 1, 2 and 3. Stages send
/// forward, and the replicas all-reduce gradients.
fn pipelines(slow: i64) -> Vec<Digest> {
    let kind = |name: &str, group: &str, peer: Option<u32>, member: u32| CollectiveKind {
        name: name.to_owned(),
        group: group.to_owned(),
        size: Some(2),
        peer,
        member: Some(member),
        ..CollectiveKind::default()
    };
    let mut lists: BTreeMap<u32, Vec<Collective>> = BTreeMap::new();
    for step in 0..40 {
        for (replica, more) in [(0, slow), (1, 0)] {
            let (first, second) = (2 * replica, 2 * replica + 1);
            let begin = step * 10_000_000;
            // The first stage sends its result; the second has waited for it since the start of the step.
            let sent = begin + 2_000_000 + more;
            let one =
                |kind: usize, start: i64, end: i64, bytes: u64| Collective { kind, sequence: step, start, duration: end - start, bytes };
            lists.entry(first).or_default().push(one(0, sent - 50_000, sent, 1 << 20));
            lists.entry(second).or_default().push(one(0, begin + 10_000, sent, 1 << 20));
            // Then each stage all-reduces with the same stage of the other replica, which may come later.
            let end = begin + 6_000_000 + slow;
            lists.entry(first).or_default().push(one(1, begin + 5_000_000 + more, end, 1 << 22));
            lists.entry(second).or_default().push(one(1, begin + 5_000_000 + more, end, 1 << 22));
        }
    }
    lists
        .into_iter()
        .map(|(rank, mut list)| {
            let (replica, stage) = (rank / 2, rank % 2);
            let way = if stage == 0 {
                kind("send", &format!("p{replica}"), Some(1), 0)
            } else {
                kind("recv", &format!("p{replica}"), Some(0), 1)
            };
            let mut digest = Digest {
                rank: Some(rank),
                world: Some(4),
                host: Some("node".to_owned()),
                epoch: Some(0),
                end: 400_000_000,
                window_end: 400_000_000,
                judged: 400_000_000,
                kinds: vec![way, kind("all_reduce", &format!("d{stage}"), None, replica)],
                ..Digest::default()
            };
            list.sort_by_key(|c| c.start);
            digest.set_collectives(&list, 1);
            digest
        })
        .collect()
}

/// The second stage comes late to its all-reduce only because it waited for the
/// first stage's message: the first is to blame.
#[test]
fn a_stage_that_waited_for_a_message_hands_the_blame_on() {
    let found = build_job(&pipelines(1_500_000));
    let messages: Vec<_> = found.matches.groups.iter().filter(|g| g.name.contains('→')).collect();
    assert_eq!(messages.iter().map(|g| g.ranks.clone()).collect::<Vec<_>>(), [vec![0, 1], vec![2, 3]]);
    assert_eq!(found.stragglers.iter().map(|s| s.rank).collect::<Vec<_>>(), [0], "{:?}", found.waits.late);
    assert!(found.waits.late[1] < found.waits.late[0] / 4, "{:?}", found.waits.late);
    let link = found.links.iter().find(|l| l.kind == "send_recv").unwrap();
    assert_eq!((link.count, link.size, link.bytes), (80, 2, Some(1 << 20)));
    // Healthy stages: waiting for a message is not waiting for a straggler.
    let found = build_job(&pipelines(0));
    assert!(found.stragglers.is_empty() && found.findings.iter().all(|f| f.id != Verdict::RankImbalance), "{:?}", found.findings);
}

/// Messages recorded on one side only are not matched, nor are messages of a rank to itself.
#[test]
fn messages_without_the_other_side() {
    let mut all = pipelines(0);
    for digest in &mut all {
        digest.kinds[0].peer = Some(7);
    }
    assert!(build_job(&all).matches.groups.iter().all(|g| !g.name.contains('→')));
    for digest in &mut all {
        digest.kinds[0].peer = digest.kinds[0].member;
    }
    assert!(build_job(&all).matches.groups.iter().all(|g| !g.name.contains('→')));
}
