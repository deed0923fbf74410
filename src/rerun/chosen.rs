//! A report of ncu itself holds the launches that ncu was told to profile: what it left out is not counted here.

use super::warnings::{Facts, Warning, warning};
use crate::model::{LaunchOrder, Severity};

/// Warns when launches may be missing before the wanted one.
#[must_use]
pub fn check(f: &Facts<'_>) -> Option<Warning> {
    (f.profile.order == LaunchOrder::Chosen).then(|| {
        warning(
            "chosen-launches",
            Severity::Warning,
            "ncu was told to leave launches out of this report, or the report does not say: launches that came before are not counted.",
        )
        .fix("open the timeline (nsys) beside this report and start from the launch there")
        .inexact()
    })
}
