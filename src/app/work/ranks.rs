//! The ranks of the session's reports, judged together.

use crate::analysis::ranks::{Job, StepCell, digests, job, without_doubles};
use crate::analysis::triage::Triage;
use crate::model::Profile;
use crate::model::digest::Digest;
use std::sync::Arc;

/// A report of the session that ranks are looked for in.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its index in the session.
    pub report: usize,
    pub name: String,
    pub profile: Arc<Profile>,
    /// Of a run; a digest has what it needs of that.
    pub triage: Option<Arc<Triage>>,
}

/// What is known of the ranks of a session.
#[derive(Clone, Debug)]
pub struct Ranks {
    pub digests: Vec<Digest>,
    /// Of each digest its report in the session.
    pub reports: Vec<usize>,
    pub job: Job,
    /// Steps by number: what each rank of the job, by its row, did in them.
    pub steps: Vec<(u32, Vec<Option<StepCell>>)>,
}

impl Ranks {
    #[must_use]
    pub fn of(members: &[Member]) -> Self {
        let (mut all, mut reports) = (Vec::new(), Vec::new());
        for member in members {
            let found = match (&member.profile.digest, &member.triage) {
                (Some(digest), _) => vec![Digest::clone(digest)],
                (None, Some(triage)) => digests(&member.profile, triage, &member.name),
                (None, None) => continue,
            };
            reports.extend(found.iter().map(|_| member.report));
            all.extend(found);
        }
        let doubles = without_doubles(&mut all, &mut reports);
        let mut job = job(&all);
        job.remarks.extend(doubles);
        let steps = job.steps(&all).into_iter().collect();
        Self { digests: all, reports, job, steps }
    }
}
