//! Ranks among the session's reports, analyzed together

use crate::analysis::ranks::{Job, StepCell, build_digests, build_job, without_doubles};
use crate::analysis::triage::Triage;
use crate::model::Profile;
use crate::model::digest::Digest;
use std::sync::Arc;

/// Report of the session that may be a rank of a job.
#[derive(Clone, Debug)]
pub struct Member {
    /// Index of the report in the session.
    pub report: usize,
    pub name: String,
    pub profile: Arc<Profile>,
    /// Triage of the run; not needed for a digest, which already contains it.
    pub triage: Option<Arc<Triage>>,
}

/// Analysis of the ranks in a session.
#[derive(Clone, Debug)]
pub struct Ranks {
    pub digests: Vec<Digest>,
    /// Report of each digest, as an index into the session.
    pub reports: Vec<usize>,
    pub job: Job,
    /// Steps by number, with the activity of each rank of the job, by row.
    pub steps: Vec<(u32, Vec<Option<StepCell>>)>,
}

impl Ranks {
    pub fn from_members(members: &[Member]) -> Self {
        let (mut all, mut reports) = (Vec::new(), Vec::new());
        for member in members {
            let found = match (&member.profile.digest, &member.triage) {
                (Some(digest), _) => vec![Digest::clone(digest)],
                (None, Some(triage)) => build_digests(&member.profile, triage, &member.name),
                (None, None) => continue,
            };
            reports.extend(found.iter().map(|_| member.report));
            all.extend(found);
        }
        let doubles = without_doubles(&mut all, &mut reports);
        let mut job = build_job(&all);
        job.remarks.extend(doubles);
        let steps = job.steps_by_number(&all).into_iter().collect();
        Self { digests: all, reports, job, steps }
    }
}
