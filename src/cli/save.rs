//! Writes files for the explorer: scripts named by the user, and text that cannot be copied to the clipboard.

use super::failure::Failure;
use crate::app::App;
use crate::ui::screen_export::{self, Form};
use crate::ui::{Theme, View};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Saves an executable script without overwriting an existing file.
pub fn save_script(path: &Path, text: &str) -> Result<String, String> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path);
    match file.and_then(|mut f| f.write_all(text.as_bytes())) {
        Ok(()) => Ok(format!("saved {}; run it with sh", path.display())),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(format!("{} already exists; choose another name", path.display())),
        Err(e) => Err(format!("could not save {}: {e}", path.display())),
    }
}

/// Saves a screen in the format given by the extension; appends a number if the name is taken.
pub fn save_view(path: &Path, (app, view, theme): (&App, &mut View, &Theme)) -> Result<String, String> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(form) = Form::from_file_name(&name) else {
        return Err(format!("{}: end the name in .svg, .html or .txt", path.display()));
    };
    let text = screen_export::export_screen(app, view, theme, app.session.settings.theme.contains("light"), form);
    let (stem, end) = name.rsplit_once('.').unwrap_or((&name, ""));
    for n in 1..=MOST_VIEWS {
        let free = if n == 1 { path.to_owned() } else { path.with_file_name(format!("{stem}-{n}.{end}")) };
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&free).and_then(|mut f| f.write_all(text.as_bytes())) {
            Ok(()) => return Ok(format!("saved {}", free.display())),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(format!("could not save {}: {e}", free.display())),
        }
    }
    Err(format!("{} and the next {MOST_VIEWS} names are taken; choose another", path.display()))
}

/// Maximum number of screens with the same base name.
const MOST_VIEWS: u32 = 999;

/// Refuses to overwrite an input file or a folder.
pub fn refuse_overwrite(path: &Path, read: &[PathBuf]) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::wrong(format!("{}: this is a folder; name a file", path.display())));
    }
    let own = path.canonicalize().ok();
    if own.is_some() && read.iter().any(|f| f.canonicalize().ok() == own) {
        return Err(Failure::wrong(format!("{}: this is the report itself; name another file", path.display())));
    }
    Ok(())
}

/// Writes a file atomically through a temporary file, creating its folder if necessary. An existing file is replaced
/// only if `replace` is set.
pub fn write_atomically(
    path: &Path,
    replace: bool,
    fill: impl FnOnce(&mut BufWriter<std::fs::File>) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::unable(format!("{}: {e}", path.display()));
    let there = || Failure::wrong(format!("{} already exists; --force replaces it", path.display()));
    if path.exists() && !replace {
        return Err(there());
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|e| failed(&e.kind()))?;
    let file = tempfile::Builder::new().prefix(".warpscope").tempfile_in(folder).map_err(|e| failed(&e.kind()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file.reopen().map_err(|e| failed(&e.kind()))?);
    fill(&mut out).and_then(|()| out.flush()).map_err(|e| failed(&e))?;
    // Use the mode of ordinary files rather than owner-only: other users may collect the files of a job.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode).map_err(|e| failed(&e))?;
    if replace {
        return file.persist(path).map(drop).map_err(|e| failed(&e.error));
    }
    file.persist_noclobber(path).map(drop).map_err(|e| match e.error.kind() {
        std::io::ErrorKind::AlreadyExists => there(),
        _ => failed(&e.error),
    })
}

/// Saves copied text to a file in a folder, readable only by the user, and returns the path.
pub fn save_text(text: &str, folder: &Path) -> std::io::Result<PathBuf> {
    crate::launch::private_files::write_private_file(folder, "copied.txt", text.as_bytes(), 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_copied_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = save_text("text", folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "text");
    }
}
