//! A private folder for the temporary files of nsys. Its raw data (`nsys-report-*.qdstrm`, world-readable) contains the
//! whole environment and is left behind when nsys is killed or the disk is full.
//!
//! Only nsys itself uses the folder: the program keeps its own `TMPDIR`, since a long path breaks sockets in it. Guided
//! runs do not use the folder, because their steps control the collection from outside, and nsys finds the collection
//! through files in the usual folder.

use crate::launch::runs::ExitProblem;
use crate::library::gc::TEMPORARY;
use crate::library::{LibraryError, Report, Run};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The command to run, with its temporary folder.
#[derive(Debug)]
pub struct Temporary {
    pub argv: Vec<String>,
    /// Environment variables to add to the existing ones.
    pub env: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

impl Temporary {
    /// Creates the folder if the run needs one.
    pub fn create_for_run(run: &Run, folder: &Path) -> Result<Self, LibraryError> {
        let mut out = Self { argv: run.argv.clone(), env: run.env.clone(), folder: None };
        let own = run.env.iter().find(|(name, _)| name == "TMPDIR").map(|(_, value)| value.clone());
        let before = own.or_else(|| std::env::var("TMPDIR").ok()).filter(|t| !t.is_empty()).unwrap_or_else(|| "/tmp".to_owned());
        let program = run.argv.len().saturating_sub(run.program.len());
        let named = |word: &String| word.starts_with("-e") || word.starts_with("--env");
        let nsys = run.argv.first().is_some_and(|w| Path::new(w).file_name().is_some_and(|n| n == "nsys"));
        let profile = run.argv.get(1).is_some_and(|w| w == "profile");
        // A comma would start another variable.
        let fits = nsys && profile && run.steps.is_empty() && !before.contains(',') && !run.argv[..program].iter().any(named);
        let private = folder.join(TEMPORARY);
        if let Some(text) = private.to_str().filter(|_| fits) {
            let made = std::fs::DirBuilder::new().mode(0o700).create(&private);
            made.map_err(|source| LibraryError::File { path: private.display().to_string(), source })?;
            out.argv.insert(2, format!("--env-var=TMPDIR={before}"));
            out.env.push(("TMPDIR".to_owned(), text.to_owned()));
            out.folder = Some(private);
        }
        Ok(out)
    }

    /// Returns true if the folder was created.
    pub fn is_created(&self) -> bool {
        self.folder.is_some()
    }

    /// Removes the folder; see [`clear_run_folder`].
    pub fn clear_folder(self, reports: &[Report]) -> Option<PathBuf> {
        clear_run_folder(&self.folder?, reports)
    }
}

/// Removes a run's temporary folder, except for reports that nsys wrote there because it could not write elsewhere. If
/// there is no report at all, keeps the raw data (readable only by this user) and returns its path.
pub fn clear_run_folder(folder: &Path, reports: &[Report]) -> Option<PathBuf> {
    let files = || std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let collected = files().find(|p| p.extension().is_some_and(|e| e == "qdstrm"));
    let keep = collected.filter(|_| reports.is_empty());
    if keep.is_none() && reports.iter().all(|r| !r.path.starts_with(folder)) {
        // Ignore errors: the folder is private and does no harm.
        let _ = std::fs::remove_dir_all(folder);
        return None;
    }
    for path in files().filter(|p| keep.as_ref() != Some(p) && reports.iter().all(|r| r.path != *p)) {
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
    keep
}

/// Returns the finding about raw data that was kept.
pub fn kept_finding(collected: &Path) -> ExitProblem {
    ExitProblem {
        what: format!("what nsys collected is kept: {}", collected.display()),
        fix: "import it with the QdstrmImporter of this nsys, or delete the run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::{GuidedStep, Library, NewRun};

    fn run(argv: &[&str], steps: Vec<GuidedStep>) -> (tempfile::TempDir, Run, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let mut library = Library::open_at(home.path()).unwrap();
        let argv: Vec<String> = argv.iter().map(|&w| w.to_owned()).collect();
        let program = vec![argv.last().unwrap().clone()];
        let run = library.begin_run(|_, _| Ok(NewRun { tool: "nsys".to_owned(), argv, program, steps, ..NewRun::default() })).unwrap();
        let folder = library.run_folder(run.id);
        (home, run, folder)
    }

    #[test]
    fn nsys_alone_gets_a_private_folder_and_the_program_keeps_its_own() {
        let (_home, run, folder) = run(&["/opt/nsys", "profile", "-o", "r", "app"], Vec::new());
        let made = Temporary::create_for_run(&run, &folder).unwrap();
        let before = std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".to_owned());
        assert_eq!(made.argv, ["/opt/nsys", "profile", &format!("--env-var=TMPDIR={before}"), "-o", "r", "app"]);
        assert_eq!(made.env, [("TMPDIR".to_owned(), folder.join("tmp").display().to_string())]);
        std::fs::write(folder.join("tmp/nsys-report-1.qdstrm"), "PATH=/secret").unwrap();
        let report = Report { path: folder.join("nsys/report.nsys-rep"), bytes: 1, owned: true };
        assert_eq!(made.clear_folder(&[report]), None);
        assert!(!folder.join("tmp").exists());
        // Without a report, the raw data is kept.
        let made = Temporary::create_for_run(&run, &folder).unwrap();
        let collected = folder.join("tmp/nsys-report-1.qdstrm");
        std::fs::write(&collected, "events").unwrap();
        std::fs::create_dir(folder.join("tmp/nvidia")).unwrap();
        assert_eq!(made.clear_folder(&[]), Some(collected));
        assert!(!folder.join("tmp/nvidia").exists());
    }

    #[test]
    fn who_needs_the_usual_folder_keeps_it() {
        let step = GuidedStep { role: "begin".to_owned(), what: String::new(), argv: Vec::new(), why: String::new(), left_out: false };
        for (argv, steps) in [
            (vec!["nsys", "profile", "-e", "A=1", "app"], Vec::new()),
            (vec!["nsys", "launch", "app"], Vec::new()),
            (vec!["ncu", "--set", "full", "app"], Vec::new()),
            (vec!["mpirun", "nsys", "profile", "app"], Vec::new()),
            (vec!["nsys", "profile", "app"], vec![step]),
        ] {
            let (_home, run, folder) = run(&argv, steps);
            let made = Temporary::create_for_run(&run, &folder).unwrap();
            assert!(made.argv == argv && made.env.is_empty() && !made.is_created(), "{argv:?}");
        }
    }
}
