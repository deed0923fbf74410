//! List of reports in a folder, from which the user opens one

use super::found_files::FileList;
use super::msg::Effect;
use super::navigation::{broadcast_to_all, open_file};
use super::overlay::{Item, Overlay, OverlayKind, PickAction, PickList};
use super::screen::ScreenEvent;
use super::state::App;
use crate::model::Bytes;
use crate::model::text::escape_unsafe;
use std::path::{Path, PathBuf};

/// Asks for the reports in the current folder and in that of the active report.
pub fn request_files(app: &App) -> Vec<Effect> {
    let own = app.session.report().filter(|r| !r.built_in).and_then(|r| r.file.parent()).map(Path::to_owned);
    let folders = std::iter::once(PathBuf::from(".")).chain(own.filter(|f| !f.as_os_str().is_empty()));
    vec![Effect::Files { folders: folders.collect(), shown: true }]
}

/// Shows the list over the current screen if the user asked for it.
pub fn show_files(app: &mut App, found: &FileList) -> Vec<Effect> {
    if !found.shown {
        return broadcast_to_all(app, ScreenEvent::Files(found));
    }
    if let Some(file) = &found.named {
        return open_file(app, file);
    }
    if app.over.as_ref().is_some_and(Overlay::takes_text) {
        return Vec::new();
    }
    let open = |path: &Path| app.session.find_report(path).is_some();
    let mut items: Vec<Item> = found
        .reports
        .iter()
        .map(|report| {
            let age = found.age_of(report);
            let size = format!("{:>9}", Bytes(report.bytes).to_string());
            let facts = [size.as_str(), age.as_str(), if open(&report.path) { "open" } else { "" }];
            let hint = facts.into_iter().filter(|f| !f.is_empty()).collect::<Vec<_>>().join(", ");
            let label = report.path.display().to_string();
            Item::new(escape_unsafe(&label), hint, None, PickAction::OpenFile(report.path.clone()))
        })
        .collect();
    if let Some(above) = found.folders.first().and_then(|f| f.parent()) {
        let what = if items.is_empty() { "no report in this folder; those of the folder above" } else { "reports of the folder above" };
        let cut = if found.cut { "; the list is not complete: this folder has too many files" } else { "" };
        items.push(Item::new("../", format!("{what}{cut}"), None, PickAction::ListFiles(above.to_owned())));
    }
    let mut list = PickList::by_typing("open a report, or type a path", items);
    list.other = Some(|typed| PickAction::ListFiles(PathBuf::from(typed)));
    let screen = app.top_entry().map_or(0, |e| e.id);
    app.over = Some(Overlay { screen, report: app.session.active, what: OverlayKind::Pick(list) });
    Vec::new()
}
