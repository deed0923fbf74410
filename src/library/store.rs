//! Access to the library's database.

use super::record::{NewRun, Report, Run, State};
use super::{LibraryError, schema};
use crate::launch::private_files;
use crate::launch::runs::host_identity;
use crate::launch::runs::{Exit, ExitProblem, log, process};
use etcetera::BaseStrategy;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use std::fs::TryLockError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum time to wait for another process's transaction.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Library {
    pub(super) db: Connection,
    folder: PathBuf,
}

/// `$XDG_DATA_HOME/warpscope`.
pub fn library_folder() -> Result<PathBuf, LibraryError> {
    etcetera::choose_base_strategy()
        .map(|b| b.data_dir().join("warpscope"))
        .map_err(|_| LibraryError::Refused("no home directory found for the run library; set XDG_DATA_HOME".to_owned()))
}

fn unix_ms(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}

/// Current time, milliseconds since 1970.
pub fn now_ms() -> i64 {
    unix_ms(SystemTime::now())
}

/// Start of a run in milliseconds since 1970, for `find_reports`, on the system clock as it is now. The clock may have
/// been set back during the run, so file timestamps may precede the recorded start.
pub fn adjusted_start(started_ms: i64, began: Instant) -> i64 {
    let elapsed = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    started_ms.min(now_ms().saturating_sub(elapsed))
}

fn make_private(folder: &Path) -> Result<(), LibraryError> {
    private_files::create_folder(folder).map_err(|source| LibraryError::File { path: folder.display().to_string(), source })
}

/// Prevents a foreign database that was put in the library's place from running code: triggers are disabled, and tables
/// must be real tables.
fn harden_connection(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, 64 << 20)?;
    Ok(())
}

fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Parses JSON; invalid JSON becomes the default value.
fn from_json<T: serde::de::DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

impl Library {
    /// Opens the user's library, creating it if needed.
    pub fn open() -> Result<Self, LibraryError> {
        Self::open_at(&library_folder()?)
    }

    /// Opens the library in a folder, creating it if needed; another user's library is opened read-only.
    pub fn open_at(folder: &Path) -> Result<Self, LibraryError> {
        let file = folder.join("runs.db");
        if file.is_file() {
            // The folder contains commands that are run again, and logs.
            match private_files::check_not_shared(folder) {
                // Another user's library: open it read-only.
                Err(_) if !private_files::is_mine(folder) => return Self::open_read_only(folder, &file),
                other => other.map_err(|source| LibraryError::File { path: folder.display().to_string(), source })?,
            }
        } else {
            make_private(folder)?;
            make_private(&folder.join("runs"))?;
        }
        let wrong = |source| LibraryError::Database { path: file.display().to_string(), source };
        // SQLite does not wait for other processes while it changes the journal mode or the schema, so serialize
        // processes that start at the same time.
        let lock = folder.join("runs.lock");
        let unlocked = |source| LibraryError::File { path: lock.display().to_string(), source };
        let turn = match private_files::open_lock_file(&lock) {
            // The library belongs to another user, or is archived: open it read-only.
            Err(e) if matches!(e.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) && file.is_file() => {
                return Self::open_read_only(folder, &file);
            }
            other => other.map_err(unlocked)?,
        };
        // On a network disk without file locks, rely on SQLite's locks, which take longer.
        let until = Instant::now() + PATIENCE;
        while matches!(turn.try_lock(), Err(TryLockError::WouldBlock)) {
            if Instant::now() > until {
                return Err(LibraryError::Refused(format!(
                    "another process has kept {} locked for {} s; try again when it has finished",
                    lock.display(),
                    PATIENCE.as_secs()
                )));
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let mut db = Connection::open(&file).map_err(wrong)?;
        harden_connection(&db).map_err(wrong)?;
        db.busy_timeout(PATIENCE).map_err(wrong)?;
        // With WAL, readers and a writer do not block each other. However, WAL needs shared memory, which machines on a
        // shared disk do not have.
        let journal = if host_identity::is_shared_disk(folder) { "PRAGMA journal_mode = DELETE" } else { "PRAGMA journal_mode = WAL" };
        db.query_row(journal, [], |_| Ok(())).map_err(wrong)?;
        db.execute_batch("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA synchronous = NORMAL").map_err(wrong)?;
        schema::migrate(&mut db).map_err(|e| match e {
            Ok(found) => LibraryError::Newer { path: file.display().to_string(), found, known: schema::newest_version() },
            Err(e) => wrong(e),
        })?;
        Ok(Self { db, folder: folder.to_owned() })
    }

    /// Opens a library that cannot be written to.
    fn open_read_only(folder: &Path, file: &Path) -> Result<Self, LibraryError> {
        let wrong = |source| LibraryError::Database { path: file.display().to_string(), source };
        // SQLite then takes no locks, and does not read a leftover journal.
        let name = format!("file:{}?immutable=1", file.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23"));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(name, flags).map_err(wrong)?;
        harden_connection(&db).map_err(wrong)?;
        let found: i64 = db.query_row("PRAGMA user_version", [], |r| r.get(0)).map_err(wrong)?;
        if usize::try_from(found).ok() != Some(schema::newest_version()) {
            return Err(LibraryError::Refused(format!(
                "{} was written by another version of warpscope (schema {found}, this one supports {}), and cannot be modified",
                file.display(),
                schema::newest_version()
            )));
        }
        Ok(Self { db, folder: folder.to_owned() })
    }

    pub(super) fn database_error(&self, source: rusqlite::Error) -> LibraryError {
        LibraryError::Database { path: self.folder.join("runs.db").display().to_string(), source }
    }

    /// Next run id, above all existing run folders, if a new database replaced a lost one; otherwise `None`, and SQLite
    /// continues its own numbering.
    fn above_folders(&self) -> Option<i64> {
        let last: i64 =
            self.db.query_row("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'runs'", [], |r| r.get(0)).ok()?;
        let folders = std::fs::read_dir(self.folder.join("runs")).ok()?.flatten();
        let highest = folders.filter_map(|e| e.file_name().to_str()?.parse::<i64>().ok()).max()?;
        (highest > last).then_some(highest + 1)
    }

    /// Folder of a run: `runs/ID`.
    pub fn run_folder(&self, id: i64) -> PathBuf {
        self.folder.join("runs").join(id.to_string())
    }

    /// Adds a new run, which this process holds until its supervisor takes over, and creates its folder. `make` gets
    /// the id and the folder, for the paths of the reports.
    pub fn begin_run(&mut self, make: impl FnOnce(i64, &Path) -> Result<NewRun, LibraryError>) -> Result<Run, LibraryError> {
        let (pid, ticks) = this_process();
        let environment: Vec<(String, String)> =
            std::env::vars_os().map(|(k, v)| (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned())).collect();
        let mut names: Vec<String> = environment.iter().map(|(k, _)| k.clone()).collect();
        names.sort();
        let values: Vec<(String, String)> = environment.into_iter().filter(|(k, _)| super::record::is_plain_variable(k)).collect();
        self.db
            .execute(
                "INSERT INTO runs (id, started_ms, state, tool, argv, program, env, directory, patterns, host, env_names, env_values, holder, holder_started, machine)
                 VALUES (?8, ?1, 'starting', '', '[]', '[]', '[]', '', '[]', ?2, ?3, ?4, ?5, ?6, ?7)",
                params![now_ms(), host_identity::hostname(), to_json(&names), to_json(&values), pid, ticks, host_identity::pid_scope(), self.above_folders()],
            )
            .map_err(|e| self.database_error(e))?;
        let id = self.db.last_insert_rowid();
        let folder = self.run_folder(id);
        let fresh = !folder.exists();
        let made = make_private(&folder)
            .and_then(|()| make(id, &folder))
            .and_then(|new| new.tags.iter().try_for_each(|t| check_tag(t)).map(|()| new));
        let new = match made {
            Ok(new) => new,
            Err(e) => {
                // The run did not start, so remove its row and folder.
                let _ = self.db.execute("DELETE FROM runs WHERE id = ?1", [id]);
                let _ = if fresh { std::fs::remove_dir_all(&folder) } else { std::fs::remove_dir(&folder) };
                return Err(e);
            }
        };
        let change = self.db.unchecked_transaction().map_err(|e| self.database_error(e))?;
        change
            .execute(
                "UPDATE runs SET tool = ?2, recipe = ?3, argv = ?4, program = ?5, env = ?6, directory = ?7, patterns = ?8, parent = ?9,
                 selects = ?10, detached = ?11, support = ?12, notes = ?13, steps = ?14 WHERE id = ?1",
                params![
                    id,
                    new.tool,
                    new.recipe,
                    to_json(&new.argv),
                    to_json(&new.program),
                    to_json(&new.env),
                    new.directory.to_string_lossy(),
                    to_json(&new.patterns),
                    new.parent,
                    new.selects,
                    new.detached,
                    to_json(&new.support),
                    new.notes,
                    to_json(&new.steps)
                ],
            )
            .map_err(|e| self.database_error(e))?;
        for tag in &new.tags {
            change.execute("INSERT OR IGNORE INTO tags VALUES (?1, ?2)", params![id, tag]).map_err(|e| self.database_error(e))?;
        }
        change.commit().map_err(|e| self.database_error(e))?;
        self.run(id)
    }

    fn update_run(&self, id: i64, set: &str, values: &[&dyn rusqlite::ToSql]) -> Result<(), LibraryError> {
        let mut all: Vec<&dyn rusqlite::ToSql> = vec![&id];
        all.extend(values);
        // `set` is a constant of this program, and values are bound.
        self.db.execute(&format!("UPDATE runs SET {set} WHERE id = ?1"), &all[..]).map_err(|e| self.database_error(e))?;
        Ok(())
    }

    /// Makes this process the holder of the run.
    pub fn hold_run(&self, id: i64) -> Result<(), LibraryError> {
        let (pid, ticks) = this_process();
        self.update_run(id, "holder = ?2, holder_started = ?3", &[&pid, &ticks])
    }

    /// Records that the profiler has started.
    pub fn set_started(&self, id: i64, profiler: i32) -> Result<(), LibraryError> {
        self.update_run(id, "profiler = ?2, state = 'running'", &[&profiler])
    }

    /// Records the stage of stopping a run.
    pub fn set_stage(&self, id: i64, stage: &str) -> Result<(), LibraryError> {
        self.update_run(id, "stage = ?2", &[&stage])
    }

    /// Records that the run continues without the explorer.
    pub fn set_detached(&self, id: i64) -> Result<(), LibraryError> {
        self.update_run(id, "detached = 1", &[])
    }

    /// Records a fact about the machine or the code.
    pub fn set_fact(&self, id: i64, column: &'static str, value: &str) -> Result<(), LibraryError> {
        debug_assert!(["tool_version", "devices", "driver", "clocks_start", "clocks_end", "git_commit"].contains(&column));
        self.update_run(id, &format!("{column} = ?2"), &[&value])
    }

    /// Records that the working directory had uncommitted changes.
    pub fn set_dirty(&self, id: i64, dirty: bool) -> Result<(), LibraryError> {
        self.update_run(id, "git_dirty = ?2", &[&dirty])
    }

    /// Records the end of the run, with its outcome and reports, in one transaction.
    pub fn end_run(&self, id: i64, state: State, exit: Exit, findings: &[ExitProblem], reports: &[Report]) -> Result<(), LibraryError> {
        let findings: Vec<(&str, &str)> = findings.iter().map(|f| (f.what.as_str(), f.fix.as_str())).collect();
        let change = self.db.unchecked_transaction().map_err(|e| self.database_error(e))?;
        self.update_run(
            id,
            "ended_ms = ?2, state = ?3, exit_code = ?4, exit_signal = ?5, findings = ?6",
            &[&now_ms(), &state.as_str(), &exit.code, &exit.signal, &to_json(&findings)],
        )?;
        self.write_reports(id, reports)?;
        change.commit().map_err(|e| self.database_error(e))
    }

    /// Replaces the stored reports of a run.
    pub fn set_reports(&self, id: i64, reports: &[Report]) -> Result<(), LibraryError> {
        let change = self.db.unchecked_transaction().map_err(|e| self.database_error(e))?;
        self.write_reports(id, reports)?;
        change.commit().map_err(|e| self.database_error(e))
    }

    fn write_reports(&self, id: i64, reports: &[Report]) -> Result<(), LibraryError> {
        let change = || -> rusqlite::Result<()> {
            self.db.execute("DELETE FROM reports WHERE run = ?1", [id])?;
            for r in reports {
                let bytes = i64::try_from(r.bytes).unwrap_or(i64::MAX);
                self.db.execute(
                    "INSERT OR REPLACE INTO reports VALUES (?1, ?2, ?3, ?4)",
                    params![id, r.path.to_string_lossy(), bytes, r.owned],
                )?;
            }
            Ok(())
        };
        change().map_err(|e| self.database_error(e))
    }

    /// Sets the user's note on a run.
    pub fn set_note(&self, id: i64, text: &str) -> Result<(), LibraryError> {
        self.run(id)?;
        self.update_run(id, "notes = ?2", &[&text])
    }

    /// Records the number of finished steps of a guided run; `left_out` marks the last one as skipped.
    pub fn set_steps_done(&self, id: i64, done: usize, left_out: bool) -> Result<(), LibraryError> {
        let mut steps = self.run(id)?.steps;
        if let Some(step) = done.checked_sub(1).and_then(|at| steps.get_mut(at)) {
            step.left_out = left_out;
        }
        self.update_run(id, "step = ?2, steps = ?3", &[&i64::try_from(done).unwrap_or(i64::MAX), &to_json(&steps)])
    }

    /// Adds or removes a tag.
    pub fn set_tag(&self, id: i64, tag: &str, add: bool) -> Result<(), LibraryError> {
        self.run(id)?;
        if add {
            check_tag(tag)?;
        }
        let sql = if add { "INSERT OR IGNORE INTO tags VALUES (?1, ?2)" } else { "DELETE FROM tags WHERE run = ?1 AND tag = ?2" };
        self.db.execute(sql, params![id, tag]).map_err(|e| self.database_error(e))?;
        Ok(())
    }

    /// Deletes the record of a run, but not its files.
    pub fn delete_run(&self, id: i64) -> Result<(), LibraryError> {
        self.db.execute("DELETE FROM runs WHERE id = ?1", [id]).map_err(|e| self.database_error(e))?;
        Ok(())
    }

    /// All runs, newest first.
    pub fn runs(&self) -> Result<Vec<Run>, LibraryError> {
        let read = || -> rusqlite::Result<Vec<Run>> {
            let mut statement = self.db.prepare("SELECT * FROM runs ORDER BY id DESC")?;
            statement.query_map([], parse_row)?.collect()
        };
        let mut runs = read().map_err(|e| self.database_error(e))?;
        for run in &mut runs {
            self.complete_run(run)?;
        }
        Ok(runs)
    }

    pub fn run(&self, id: i64) -> Result<Run, LibraryError> {
        let found =
            self.db.query_row("SELECT * FROM runs WHERE id = ?1", [id], parse_row).optional().map_err(|e| self.database_error(e))?;
        let mut run = found.ok_or(LibraryError::NoRun(id))?;
        self.complete_run(&mut run)?;
        Ok(run)
    }

    /// Adds tags and reports. A live run without a holder is marked as lost.
    fn complete_run(&self, run: &mut Run) -> Result<(), LibraryError> {
        let read = || -> rusqlite::Result<(Vec<String>, Vec<Report>)> {
            let mut tags = self.db.prepare_cached("SELECT tag FROM tags WHERE run = ?1 ORDER BY tag")?;
            let mut reports = self.db.prepare_cached("SELECT path, bytes, owned FROM reports WHERE run = ?1 ORDER BY path")?;
            let report = |r: &Row<'_>| {
                let bytes: i64 = r.get(1)?;
                Ok(Report { path: PathBuf::from(r.get::<_, String>(0)?), bytes: u64::try_from(bytes).unwrap_or(0), owned: r.get(2)? })
            };
            Ok((
                tags.query_map([run.id], |r| r.get(0))?.collect::<Result<_, _>>()?,
                reports.query_map([run.id], report)?.collect::<Result<_, _>>()?,
            ))
        };
        (run.tags, run.reports) = read().map_err(|e| self.database_error(e))?;
        // If several machines share the home directory, only the machine of the run can check the holder. After a
        // reboot, its runs have no holder.
        let here = match &run.machine {
            Some(machine) => {
                *machine == host_identity::pid_scope()
                    || (run.host == host_identity::hostname() && !machine.starts_with(&host_identity::boot_id()))
            }
            None => run.host.is_none() || run.host == host_identity::hostname(),
        };
        if run.state.is_live() && here && !run.holder.is_some_and(|(pid, ticks)| process::is_running(pid, ticks)) {
            run.state = State::Lost;
            if run.reports.is_empty() {
                run.reports = super::export::find_reports(&run.patterns, &self.run_folder(run.id), run.started_ms);
            }
            let files = log::piece_paths(&self.run_folder(run.id)).into_iter().chain(run.reports.iter().map(|r| r.path.clone()));
            run.last_seen_ms = files.filter_map(|f| f.metadata().ok()?.modified().ok()).map(unix_ms).max();
        }
        let files = run.reports.iter().map(|r| &r.path).chain(&run.support);
        run.gone = files.filter(|p| !p.exists()).cloned().collect();
        Ok(())
    }
}

/// Returns an error unless the tag is a single word without commas and control characters.
fn check_tag(tag: &str) -> Result<(), LibraryError> {
    if tag.is_empty() || tag.contains(|c: char| c.is_control() || c.is_whitespace() || c == ',') {
        return Err(LibraryError::Refused(format!("{tag:?} is not a valid tag: write one word without spaces or commas")));
    }
    Ok(())
}

fn this_process() -> (i32, i64) {
    let pid = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    (pid, process::read_process(pid).and_then(|p| i64::try_from(p.started).ok()).unwrap_or(0))
}

fn parse_row(r: &Row<'_>) -> rusqlite::Result<Run> {
    let text = |name: &str| r.get::<_, String>(name);
    let holder: Option<i32> = r.get("holder")?;
    let ticks: Option<i64> = r.get("holder_started")?;
    let findings: Vec<(String, String)> = from_json(&text("findings")?);
    Ok(Run {
        id: r.get("id")?,
        started_ms: r.get("started_ms")?,
        ended_ms: r.get("ended_ms")?,
        last_seen_ms: None,
        state: State::parse(&text("state")?),
        stage: text("stage")?,
        detached: r.get("detached")?,
        tool: text("tool")?,
        tool_version: r.get("tool_version")?,
        recipe: r.get("recipe")?,
        argv: from_json(&text("argv")?),
        program: from_json(&text("program")?),
        env: from_json(&text("env")?),
        directory: PathBuf::from(text("directory")?),
        patterns: from_json(&text("patterns")?),
        support: from_json(&text("support")?),
        host: r.get("host")?,
        machine: r.get("machine")?,
        git_commit: r.get("git_commit")?,
        git_dirty: r.get("git_dirty")?,
        env_names: from_json(&text("env_names")?),
        env_values: from_json(&text("env_values")?),
        devices: r.get("devices")?,
        driver: r.get("driver")?,
        clocks_start: r.get("clocks_start")?,
        clocks_end: r.get("clocks_end")?,
        holder: holder.zip(ticks.and_then(|t| u64::try_from(t).ok())),
        profiler: r.get("profiler")?,
        exit_code: r.get("exit_code")?,
        exit_signal: r.get("exit_signal")?,
        findings: findings.into_iter().map(|(what, fix)| ExitProblem { what, fix }).collect(),
        parent: r.get("parent")?,
        selects: r.get("selects")?,
        notes: text("notes")?,
        steps: from_json(&text("steps")?),
        step: r.get::<_, i64>("step")?.try_into().unwrap_or_default(),
        tags: Vec::new(),
        reports: Vec::new(),
        gone: Vec::new(),
    })
}
