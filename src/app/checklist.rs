//! Checklist of the session, covering all its reports

use super::jobs::{ChecklistReport, JobRequest, Work};
use super::msg::Effect;
use super::navigation::apply_response;
use super::overlay::Page;
use super::screen::Response;
use super::state::App;
use std::sync::Arc;

/// Requests the checklist of the session; if no report is loaded, opens an empty page.
pub fn request_checklist(app: &mut App, asked: u64) -> Vec<Effect> {
    let session = &app.session;
    let parts: Vec<ChecklistReport> = session
        .reports
        .iter()
        .filter_map(|r| {
            let joined = r.joins.iter().filter_map(|(other, join)| Some((session.metrics(*other)?.clone(), Arc::clone(join)))).collect();
            Some(ChecklistReport { profile: r.profile.clone()?, triage: r.whole_triage().cloned(), joined })
        })
        .collect();
    // The request has to name one report but covers all of them: use any loaded report.
    let about = session.reports.iter().enumerate().find_map(|(i, r)| Some((i, r.generation, r.profile.clone()?)));
    let Some((report, generation, profile)) = about else {
        return apply_response(app, asked, Response::open_overlay(Page::Checklist(Arc::default())));
    };
    vec![Effect::Work(Box::new(Work::on_whole(report, generation, profile, JobRequest::Checklist { screen: asked, parts })))]
}
