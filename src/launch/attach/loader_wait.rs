//! Waits while a thread of the process is inside of the dynamic loader, such as in a library's constructor: the thread
//! that is to load the object would wait for the loader's lock, and the constructor may be waiting for that thread.

use super::graph_instantiation::Code;
use super::refusal::Refusal;
use super::target::Target;
use std::time::{Duration, Instant};

/// Bytes of each thread's stack that are searched: the loader's frames are close to those of a constructor.
const DEPTH: usize = 1 << 12;
/// Time limit: an address that a thread left on its stack long ago must not prevent attaching.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until no blocked thread seems to be inside of the loader, or time is up.
pub fn await_loader(target: &Target) -> Result<(), Refusal> {
    let since = Instant::now();
    loop {
        let code = Code::read(target)?;
        let loader = code.loader_code();
        let is_inside = |tid: i32| code.blocked_thread(tid).is_some_and(|(at, _)| code.is_inside(at, &loader, DEPTH));
        if !code.threads().into_iter().any(is_inside) || since.elapsed() > PATIENCE {
            return Ok(());
        }
        target.check_alive()?;
        std::thread::park_timeout(PAUSE);
    }
}
