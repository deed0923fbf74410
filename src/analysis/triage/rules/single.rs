//! Rule: one or two gaps account for most of the idle time with some cause. That is a start-up cost or a single delay,
//! so no rate can be derived from it.

use crate::analysis::triage::finding::{Finding, Place, PlaceKind, Sure};
use crate::analysis::triage::idle_causes::Piece;
use crate::analysis::triage::places::locate_in_program;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;

/// A delay in the first part of the window, up to this share, belongs to the start.
const START: f64 = 0.05;

/// Factor by which a gap is shorter than the longest for the headline to leave it out.
const MUCH_SHORTER: i64 = 5;

/// Describes the host's activity during a gap.
fn describe_activity(case: &RunContext<'_>, piece: &Piece) -> String {
    if let Some(name) = piece.name {
        return case.call_name(name).to_owned();
    }
    let launched = piece.lane.and_then(|lane| case.host.longest_launch(lane, piece.start, piece.end));
    match (piece.cause, launched) {
        (Cause::Launch, Some(row)) if case.profile.launches.graph_node(row).is_none() => {
            let kernel = case.profile.kernels.get(case.profile.launches.kernel(row).0 as usize);
            format!("the launch of {}", kernel.map_or("a kernel".into(), crate::analysis::readable::readable_name))
        }
        (Cause::Launch, Some(_)) => format!("the launch of a {} graph", case.terms.gpu.api),
        (Cause::Compute, _) => "host code".to_owned(),
        (Cause::Wait, _) => "a wait of the host for something else".to_owned(),
        (Cause::Unknown, _) => "the host, which is outside the driver".to_owned(),
        // The host may compile before it loads code; that is not recorded.
        (Cause::Compile, _) if piece.between * 2 > piece.end - piece.start => {
            let load = format_ns((piece.end - piece.start - piece.between) as f64);
            format!("the host, which loads code in {load} of that; before, it is outside the driver, and may compile the code")
        }
        (Cause::Compile, _) => "code to be compiled or loaded".to_owned(),
        (Cause::Queued, _) => "an operation that was already launched, and waited in its stream".to_owned(),
        (cause, _) => format!("the host {}", cause.as_text()),
    }
}

fn idle_label(cause: Cause) -> String {
    match cause {
        Cause::Queued => "idle with the next operation launched".to_owned(),
        cause => format!("idle with the host {}", cause.as_text()),
    }
}

/// A gap with the single delays in it: their causes, lengths in ns, and longest pieces.
struct Delay<'a> {
    gap: (i64, i64),
    parts: Vec<(i64, &'a Piece)>,
}

impl Delay<'_> {
    fn length(&self) -> i64 {
        self.parts.iter().map(|p| p.0).fold(0, i64::saturating_add)
    }

    /// The gap, or the part of it with these causes if other causes take most of it.
    fn span(&self) -> (i64, i64) {
        if self.length() >= (self.gap.1 - self.gap.0) / 2 {
            return self.gap;
        }
        let start = self.parts.iter().map(|p| p.1.start).min().unwrap_or(self.gap.0);
        (start, self.parts.iter().map(|p| p.1.end).max().unwrap_or(self.gap.1))
    }

    /// Describes what the host does in it, longest first.
    fn describe(&self, case: &RunContext<'_>) -> String {
        match &self.parts[..] {
            [(_, piece)] => describe_activity(case, piece),
            parts => {
                let of = |(ns, piece): &(i64, &Piece)| format!("{} ({})", describe_activity(case, piece), format_ns(*ns as f64));
                parts.iter().map(of).collect::<Vec<_>>().join(" and ")
            }
        }
    }
}

/// Returns the single gaps, longest first. In one gap, the host may do several things.
fn list_delays<'a>(case: &'a RunContext<'_>) -> Vec<Delay<'a>> {
    let mut out: Vec<Delay<'a>> = Vec::new();
    for (ns, piece) in case.single.iter().flat_map(|s| &s.gaps) {
        match out.iter_mut().find(|d| d.gap == piece.gap) {
            Some(delay) => delay.parts.push((*ns, piece)),
            None => out.push(Delay { gap: piece.gap, parts: vec![(*ns, piece)] }),
        }
    }
    for delay in &mut out {
        delay.parts.sort_by_key(|p| std::cmp::Reverse(p.0));
    }
    out.sort_by_key(|d| std::cmp::Reverse(d.length()));
    out
}

/// A single delay. Gaps no longer than a usual interval between launches do not count.
pub fn single_delay(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let delays = list_delays(case);
    let first = delays.first()?;
    let idle: i64 = case.single.iter().map(|s| s.ns).sum();
    let share = case.share(idle);
    let into = (first.span().0 - case.window.0) as f64;
    let early = into <= START * case.length() as f64;
    let when = if early { "at the start".to_owned() } else { format!("{} into {base}", format_ns(into)) };
    // If there are more gaps than devices, some device has two of them. A gap that is much shorter than the first is only
    // in the list.
    let long = delays.iter().filter(|d| d.length() >= first.length() / MUCH_SHORTER).count();
    let twice = long > case.devices.len();
    let of = if twice { ("twice", "up to ") } else { ("once", "") };
    let kind = if early { "a start" } else { "a single delay" };
    // Gaps of several devices at the same time count once for each.
    let headline_share = if long < delays.len() || twice { case.share(first.length()) } else { share };
    let pieces: Vec<Piece> = first.parts.iter().map(|p| *p.1).collect();
    let mut finding = Finding::new(
        Verdict::SingleDelay,
        share,
        format!(
            "the GPU waits {}{} {}, {when}, for {}{}: {kind}, not a recurring pattern ({} of {base})",
            of.1,
            format_ns(first.length() as f64),
            of.0,
            first.describe(case),
            locate_in_program(case, &pieces),
            format_share(headline_share)
        ),
    )
    .with_gain_basis("the idle time in one or two gaps that account for most of their cause's cost; they may not recur in a longer run")
    .with_number("idle in these gaps", idle as f64, "ns");
    for single in &case.single {
        let all = case.idle.get(single.cause);
        finding = finding.with_number(&format!("{}, in these gaps", idle_label(single.cause)), single.ns as f64, "ns").with_number(
            &format!("{}, in all", idle_label(single.cause)),
            (all > single.ns).then_some(all as f64),
            "ns",
        );
    }
    let place = |delay: &Delay<'_>| Place {
        kind: PlaceKind::Window,
        name: delay.describe(case),
        start: delay.span().0,
        end: delay.span().1,
        ns: Some(delay.length()),
        rank: None,
    };
    Some(
        finding
            .with_places(delays.iter().map(place))
            .with_actions(&[
                "Leave it out of what you measure: run a few steps before, and record after them.",
                "If it comes back in a longer run, record what the host does in it: page faults, locks in the driver, memory that grows, first uses of other code.",
            ])
            .with_confidence(Sure::Likely),
    )
}
