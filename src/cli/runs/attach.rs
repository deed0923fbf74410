//! `warpscope attach`: a run that goes on by itself, live.

use super::super::args::{Args, Attach};
use super::super::{FAILED, Failure, explore, print};
use super::list;
use super::plain::{self, Holder};
use crate::config::Config;
use crate::launch::runs::process;
use crate::library::Library;
use std::io::IsTerminal;

/// Follows a run; of one that has ended it opens what it left.
pub fn attach(all: &Args, args: &Attach, config: &Config) -> Result<(), Failure> {
    let library = Library::open()?;
    let run = list::the(&library, args.run, args.run.is_none())?;
    if args.stop {
        let Some((pid, started)) = run.holder.filter(|_| run.state.live()) else {
            return Err(Failure::wrong(format!("run {} is not in progress: it is {}", run.id, run.state.word())));
        };
        process::ask_to_stop(pid, started).map_err(|e| Failure { text: format!("cannot stop run {}: {e}", run.id), code: FAILED })?;
        print::error(&format!("run {} was asked to stop; `warpscope attach {}` shows its progress", run.id, run.id));
        return Ok(());
    }
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.plain || !terminal {
        let ended = plain::follow(library, &run, Holder::Other, &*plain::listen()?)?;
        return if ended.state.live() { Ok(()) } else { plain::tell(&ended) };
    }
    explore::attach(all, config, run)
}
