//! Database schema, and the migration from each version to the next. A released migration must never change.

use rusqlite::{Connection, TransactionBehavior};

/// Step N migrates from schema N to N + 1. SQLite's `user_version` is the schema version.
static STEPS: &[&str] = &[
    "
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    state TEXT NOT NULL,
    stage TEXT NOT NULL DEFAULT 'running',
    detached INTEGER NOT NULL DEFAULT 0,
    tool TEXT NOT NULL,
    tool_version TEXT,
    recipe TEXT,
    argv TEXT NOT NULL,
    program TEXT NOT NULL,
    env TEXT NOT NULL,
    directory TEXT NOT NULL,
    patterns TEXT NOT NULL,
    support TEXT NOT NULL DEFAULT '[]',
    host TEXT,
    git_commit TEXT,
    git_dirty INTEGER,
    env_names TEXT NOT NULL,
    env_values TEXT NOT NULL,
    devices TEXT,
    driver TEXT,
    clocks_start TEXT,
    clocks_end TEXT,
    holder INTEGER,
    holder_started INTEGER,
    profiler INTEGER,
    exit_code INTEGER,
    exit_signal INTEGER,
    findings TEXT NOT NULL DEFAULT '[]',
    parent INTEGER REFERENCES runs(id) ON DELETE SET NULL,
    selects TEXT,
    notes TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE reports (
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    owned INTEGER NOT NULL,
    PRIMARY KEY (run, path)
) STRICT;
CREATE TABLE tags (
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (run, tag)
) STRICT;
",
    "
ALTER TABLE runs ADD COLUMN steps TEXT NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN machine TEXT;
",
    "
CREATE TABLE kernels (
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    kernel TEXT NOT NULL,
    way TEXT NOT NULL,
    ns REAL NOT NULL,
    launches INTEGER NOT NULL,
    hint TEXT,
    at_most REAL,
    least REAL,
    most REAL,
    PRIMARY KEY (run, kernel, way)
) STRICT;
",
];

/// Migrates a database to the newest schema. Returns `Err(Ok(n))` for an unknown schema n of a newer version.
pub fn migrate(db: &mut Connection) -> Result<(), Result<i64, rusqlite::Error>> {
    let version = |db: &Connection| db.query_row("PRAGMA user_version", [], |r| r.get::<_, i64>(0)).map_err(Err);
    let newest = STEPS.len();
    let known = |found: i64| usize::try_from(found).ok().filter(|n| *n <= newest).ok_or(Ok(found));
    if known(version(db)?)? == newest {
        return Ok(());
    }
    // Several processes may try to migrate at once: the immediate transaction lets one of them do it, and the others
    // find the schema up to date.
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Err)?;
    let at = known(version(&change)?)?;
    for step in &STEPS[at..] {
        change.execute_batch(step).map_err(Err)?;
    }
    change.pragma_update(None, "user_version", i64::try_from(newest).unwrap_or(i64::MAX)).map_err(Err)?;
    change.commit().map_err(Err)
}

pub fn newest_version() -> usize {
    STEPS.len()
}
