//! Ranks of a job side by side: the rank that makes the others wait, step by step

mod collectives;

pub use collectives::Collectives;

use crate::analysis::Family;
use crate::analysis::ranks::{Aligned, Late, Member, StepCell, find_longest_idle};
use crate::analysis::timeline::Event;
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::TO_PASTE;
use crate::app::jobs::{JobRequest, JobResult, RankMember, Ranks, Work};
use crate::app::msg::Effect;
use crate::app::overlay::CopyWhat;
use crate::app::screen::{At, Navigate, Response, Screen, ScreenContext, ScreenEvent, move_selection};
use crate::app::session::{Report, Session};
use crate::model::Profile;
use crate::report;
use crate::report::document::Renderer;
use crate::report::ranks::Together;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct RanksScreen {
    /// Analysis; `None` until it is computed.
    pub ranks: Option<Arc<Ranks>>,
    /// Index of the selected rank.
    pub selected: usize,
    /// Index of the selected step; `None` if no step is selected.
    pub step: Option<usize>,
    /// Collectives on the common clock, while they are displayed.
    pub collectives: Option<Collectives>,
    /// Generations of the reports for which the analysis was requested.
    asked: Vec<(usize, u64)>,
}

/// Returns true if a report is a rank's digest, which has no launches.
fn is_digest(report: &Report) -> bool {
    report.profile.as_ref().is_some_and(|p| p.digest.is_some())
}

/// Reports of the session that may be ranks of a job; `None` until all of them have been read and triaged.
fn members(session: &Session) -> Option<Vec<RankMember>> {
    let timelines = || session.reports.iter().enumerate().filter(|(_, r)| r.is_reading() || r.is_timeline() || is_digest(r));
    if timelines().any(|(_, r)| r.is_reading() || (r.triage.is_none() && !is_digest(r))) {
        return None;
    }
    let members = timelines().filter_map(|(report, r)| {
        let triage = if is_digest(r) { None } else { Some(r.whole_triage()?.clone()) };
        Some(RankMember { report, name: r.file.display().to_string(), profile: r.profile.clone()?, triage })
    });
    Some(members.collect())
}

/// Requests the analysis of these reports.
fn request(session: &Session, members: Vec<RankMember>) -> Vec<Effect> {
    let Some(first) = members.first() else { return Vec::new() };
    let (report, profile) = (first.report, Arc::clone(&first.profile));
    let generation = session.reports[report].generation;
    vec![Effect::Work(Box::new(Work::on_whole(report, generation, profile, JobRequest::Ranks(members))))]
}

/// Requests the analysis for the overviews of several reports that are open together, or of one that holds several
/// ranks.
pub fn request_for_overviews(session: &Session) -> Vec<Effect> {
    let talking = |m: &RankMember| m.triage.as_ref().map_or(0, |t| t.talking_devices());
    let several = |all: &Vec<RankMember>| all.len() > 1 || all.iter().map(talking).sum::<usize>() > 1;
    members(session).filter(several).map_or_else(Vec::new, |m| request(session, m))
}

/// Returns the longest kernel between two times, leaving out collectives, which wait for other ranks.
fn longest_kernel(profile: &Profile, (start, end): (i64, i64)) -> Option<u32> {
    let launches = &profile.launches;
    let own = |row: &usize| {
        let kernel = profile.kernels.get(launches.kernel(*row).0 as usize);
        kernel.is_some_and(|k| Family::guess(k.function(), k.demangled()) != Family::Nccl)
    };
    let inside = (0..launches.len()).filter(|&row| launches.start(row) >= start && launches.end(row) <= end);
    let longest = inside.filter(own).max_by_key(|&row| launches.end(row) - launches.start(row))?;
    u32::try_from(longest).ok()
}

/// The kernel that starts at a time, ns.
fn kernel_at(profile: &Profile, start: i64) -> Option<u32> {
    let launches = &profile.launches;
    (0..launches.len()).find(|&row| launches.start(row) == start).and_then(|row| u32::try_from(row).ok())
}

impl RanksScreen {
    /// Requests the analysis once all reports have been read and triaged.
    fn request_analysis(&mut self, session: &Session) -> Vec<Effect> {
        let Some(members) = members(session) else { return Vec::new() };
        let generations: Vec<(usize, u64)> = members.iter().map(|m| (m.report, session.reports[m.report].generation)).collect();
        if self.asked == generations {
            return Vec::new();
        }
        self.asked = generations;
        request(session, members)
    }

    pub fn selected_member(&self) -> Option<&Member> {
        self.ranks.as_ref()?.job.ranks.get(self.selected)
    }

    /// Measurements of the selected rank in the selected step.
    pub fn selected_cell(&self) -> Option<StepCell> {
        *self.ranks.as_ref()?.steps.get(self.step?)?.1.get(self.selected)?
    }

    /// Opens the selected rank's timeline at the selected step or collective.
    fn open_timeline(&self, session: &Session) -> Response {
        let (Some(ranks), Some(member)) = (&self.ranks, self.selected_member()) else { return Response::none() };
        let Some(&report) = ranks.reports.get(member.digest) else { return Response::none() };
        let of = &ranks.digests[member.digest];
        if session.reports.get(report).is_some_and(is_digest) {
            let file = of.file.rsplit('/').next().unwrap_or(&of.file);
            return Response::error_message(format!("a digest has no launches: open {file} for its timeline"));
        }
        let moment = self.collectives.as_ref().and_then(Collectives::selected_moment);
        let arrival = moment.and_then(|m| ranks.job.matches.list.get(m.at)?.arrivals.iter().find(|a| a.rank as usize == member.digest));
        let moment = moment.map(|m| {
            // Time on the rank's own clock, padded on both sides by half the collective's length.
            let around = m.length() / 2;
            (member.clock.own_time(m.first.saturating_sub(around)), member.clock.own_time(m.end.saturating_add(around)))
        });
        let step = || self.selected_cell().or_else(|| self.worst_cell()).map(|c| (c.start, c.start.saturating_add(c.length)));
        let at = moment.or_else(step).unwrap_or((of.window_start, of.window_end));
        let profile = session.reports.get(report).and_then(|r| r.profile.as_ref());
        // A host that launches late does so before its step's work.
        let late = ranks.job.stragglers.iter().any(|s| s.rank == member.rank && s.why == Late::Host);
        let before = (at.0.saturating_sub(at.1.saturating_sub(at.0)), at.1);
        let place = ranks.reports.iter().take(member.digest).filter(|&&r| r == report).count();
        let idle = profile.filter(|_| late && moment.is_none()).and_then(|p| find_longest_idle(p, place, before));
        if let Some((start, end)) = idle {
            return Navigate::TimelineOf { report, at: At { start, end, event: None } }.into();
        }
        let event = profile.and_then(|p| match moment {
            Some(_) => kernel_at(p, arrival?.start),
            None => longest_kernel(p, at),
        });
        let event = event.map(Event::Launch);
        Navigate::TimelineOf { report, at: At { start: at.0, end: at.1, event } }.into()
    }

    /// Returns the step in which the others waited most for the selected rank.
    fn worst_cell(&self) -> Option<StepCell> {
        let cells = self.ranks.as_ref()?.steps.iter().filter_map(|(_, cells)| *cells.get(self.selected)?);
        cells.filter(|c| c.late > 0).max_by_key(|c| c.late)
    }

    /// Toggles the collectives on the common clock.
    fn toggle_collectives(&mut self) -> Response {
        if self.collectives.take().is_some() {
            return Response::none();
        }
        let Some(ranks) = &self.ranks else { return Response::none() };
        // Start at the end of the selected step, if there is one.
        let near = self.selected_cell().zip(self.selected_member()).map(|(c, m)| m.clock.common_time(c.start.saturating_add(c.length)));
        self.collectives = Collectives::from_aligned(Aligned::from_job(&ranks.job), near);
        match self.collectives {
            Some(_) => Response::none(),
            None => Response::error_message("no collective could be matched between the ranks"),
        }
    }

    /// Moves the step selection; moving above the first step deselects it.
    fn move_step(&mut self, by: isize) -> Response {
        if let Some(collectives) = &mut self.collectives {
            collectives.move_selection(by);
            return Response::none();
        }
        let steps = self.ranks.as_ref().map_or(0, |r| r.steps.len());
        self.step = match self.step {
            None if by > 0 && steps > 0 => Some(0),
            None => None,
            Some(at) => at.checked_add_signed(by).map(|at| at.min(steps.saturating_sub(1))),
        };
        Response::none()
    }

    fn copy_text(&self, what: CopyWhat) -> Option<(String, String)> {
        let ranks = self.ranks.as_ref()?;
        let of = Together { job: &ranks.job, digests: &ranks.digests, reports: &ranks.reports };
        let mut out = Vec::new();
        let said = if what == CopyWhat::Table {
            report::ranks::print_csv(&mut out, &of, TO_PASTE).ok()?;
            "ranks as CSV"
        } else {
            report::ranks::document(&of).write(&mut out, Renderer::Text, Some(110)).ok()?;
            "ranks as text"
        };
        Some((String::from_utf8(out).ok()?, said.to_owned()))
    }
}

impl Screen for RanksScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Ranks
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        self.request_analysis(cx.session).into()
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open => self.open_timeline(cx.session),
            ActionId::Back => self.back(cx),
            ActionId::RankCollectives => self.toggle_collectives(),
            ActionId::RanksCloser | ActionId::RanksWider => {
                match &mut self.collectives {
                    Some(c) => c.zoom_window(id == ActionId::RanksCloser),
                    None => return Some(self.toggle_collectives()),
                }
                Response::none()
            }
            ActionId::StepLeft => self.move_step(-1),
            ActionId::StepRight => self.move_step(1),
            ActionId::WorstStep if self.collectives.is_some() => {
                if let Some(c) = &mut self.collectives {
                    c.select_worst();
                }
                Response::none()
            }
            ActionId::WorstStep => {
                let ranks = self.ranks.as_ref()?;
                let late = |at: &usize| ranks.steps[*at].1.iter().flatten().map(|c| c.late).sum::<i64>();
                self.step = (0..ranks.steps.len()).max_by_key(late);
                if let Some(at) = self.step {
                    let cells = &ranks.steps[at].1;
                    self.selected = (0..cells.len()).max_by_key(|&r| cells[r].map_or(0, |c| c.late)).unwrap_or(self.selected);
                }
                Response::none()
            }
            ActionId::Copy => match self.copy_text(CopyWhat::Row) {
                Some((text, said)) => Response::effect(Effect::Copy(text, said)),
                None => Response::error_message("nothing is known yet"),
            },
            _ => return None,
        })
    }

    fn back(&mut self, _: &mut ScreenContext<'_>) -> Response {
        if self.collectives.is_some() { self.toggle_collectives() } else { Navigate::Back.into() }
    }

    fn scroll(&mut self, by: isize, _: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.ranks.as_ref().map_or(0, |r| r.job.ranks.len()));
        Response::none()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.open_timeline(cx.session);
        }
        self.selected = row;
        self.scroll(0, cx)
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Ranks(ranks)) => {
                // Initially select the rank that the others wait for the longest.
                let worst = ranks.job.ranks.iter().enumerate().max_by_key(|(_, m)| m.late).map_or(0, |(row, _)| row);
                if self.ranks.replace(Arc::clone(ranks)).is_none() {
                    self.selected = worst;
                }
                self.selected = move_selection(self.selected, 0, ranks.job.ranks.len());
                self.step = self.step.filter(|&s| s < ranks.steps.len());
                if let Some(collectives) = &mut self.collectives {
                    collectives.replace_aligned(Aligned::from_job(&ranks.job));
                }
                Response::none()
            }
            ScreenEvent::Loaded | ScreenEvent::Done(JobResult::Triage(_)) => self.request_analysis(cx.session).into(),
            _ => Response::none(),
        }
    }

    fn copy(&self, what: CopyWhat, _: &ScreenContext<'_>) -> Option<(String, String)> {
        self.copy_text(what)
    }
}
