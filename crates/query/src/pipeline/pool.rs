//! Worker threads of one execution, and the work that a pipeline gives them.
//!
//! `Runner` and `Execution` own a `Job` each while a pipeline runs with workers. The main thread asks sources
//! for units and puts them on the pool's queue. A worker takes a unit and a *lane* of its job, which is the
//! transforms and the sink's local part. It runs the unit and puts the lane back. So a worker belongs to no
//! job while it has nothing to do, and pipelines may nest (a source that is a pipeline itself). A job's own
//! thread never waits for a unit that no worker runs: it takes the unit back and runs it.
//!
//! A panic in a worker is an error of its job.
//!
//! Invariants:
//! - a worker never calls the host;
//! - a job that is dropped, for whatever reason, waits until no worker runs any of it;
//! - a pool that is dropped joins its threads.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::push::push;
use super::{SinkLocal, Transform};
use crate::{Batch, Error, Host, Result, Step, Unit, interrupt};

/// Units that wait for each worker.
const WAITING: usize = 2;

/// Batches that may wait for the host before workers pause.
const READY: usize = 64;

/// How long the main thread sleeps at most before it looks for interrupts again.
const NAP: Duration = Duration::from_millis(10);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded data is changed in single steps, so a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The threads of an execution.
pub struct Pool {
    shared: Arc<Shared>,
    wanted: usize,
    handles: Mutex<Option<Vec<JoinHandle<()>>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    ended: bool,
}

struct Task {
    core: Arc<Core>,
    lanes: Arc<Mutex<Vec<Lane>>>,
    work: Work,
}

enum Work {
    Unit(Box<dyn Unit>),
    /// The rows of a lane go to the shared part of its sink.
    Finish(Lane),
}

/// What a thread needs to run units of one pipeline.
pub struct Lane {
    /// Transforms in order.
    pub transforms: Vec<Box<dyn Transform>>,
    /// Where rows go.
    pub local: Box<dyn SinkLocal>,
    /// Whether that wants more rows.
    pub wanted: bool,
}

impl Lane {
    /// Runs a unit to its end, or until `check` has an error. False: the sink wants no more rows.
    pub fn run(&mut self, mut unit: Box<dyn Unit>, check: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
        let Self { transforms, local, wanted } = self;
        while *wanted {
            check()?;
            let pushed = match unit.next()? {
                Step::Done => break,
                Step::Summary(summary) => local.push_summary(summary),
                Step::Batch(batch) => push(transforms, batch, &mut |batch| {
                    check()?;
                    if batch.rows > 0 && !local.push(batch)? {
                        // Any error ends the transforms at once; this one is not told.
                        *wanted = false;
                        return Err(Error::Cancelled);
                    }
                    Ok(())
                }),
            };
            if *wanted {
                pushed?;
            }
        }
        Ok(*wanted)
    }
}

/// Bytes of a worker's stack, of which no more is memory than was used: nested expressions take some
/// kilobytes a level.
const STACK: usize = 16 << 20;

impl Pool {
    /// A pool of `threads - 1` workers, none of which is started.
    pub fn new(threads: usize) -> Arc<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), arrived: Condvar::new() });
        Arc::new(Self { shared, wanted: threads.saturating_sub(1), handles: Mutex::new(None) })
    }

    /// True where there may be workers.
    pub const fn may_start(&self) -> bool {
        self.wanted > 0
    }

    /// Starts the workers unless they run; how many there are. Fewer, even none, where the system gives no
    /// more.
    pub fn start(&self, host: &mut dyn Host) -> usize {
        let mut handles = locked(&self.handles);
        if let Some(handles) = &*handles {
            return handles.len();
        }
        host.before_threads();
        let mut started = Vec::new();
        for number in 0..self.wanted {
            let (shared, interrupted) = (Arc::clone(&self.shared), host.interrupted());
            let named =
                std::thread::Builder::new().name(format!("colonnade {}", number + 1)).stack_size(STACK);
            match named.spawn(move || work(&shared, interrupted)) {
                Ok(handle) => started.push(handle),
                Err(_) => break,
            }
        }
        host.after_threads();
        handles.insert(started).len()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        locked(&self.shared.queue).ended = true;
        self.shared.arrived.notify_all();
        for handle in locked(&self.handles).take().unwrap_or_default() {
            // Panics were caught inside.
            let _ = handle.join();
        }
    }
}

/// A worker's life.
fn work(shared: &Shared, interrupted: fn() -> bool) {
    loop {
        let task = {
            let mut queue = locked(&shared.queue);
            loop {
                if let Some(task) = queue.tasks.pop_front() {
                    // Counted before the queue is let go, so that a job's thread that finds nothing to take
                    // back waits for this.
                    task.core.taken();
                    break task;
                }
                if queue.ended {
                    return;
                }
                queue = shared.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let Task { core, lanes, work } = task;
        let asked = Arc::clone(&core);
        let asking = interrupt::ask(move || interrupted() || asked.check().is_err());
        let done = catch_unwind(AssertUnwindSafe(|| core.run(&lanes, work)));
        drop(asking);
        // The lanes are dropped before the job's own thread goes on.
        drop(lanes);
        core.done(done.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))));
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::Data(vector::Error::Host(format!("a worker thread panicked: {text}")))
}

/// What the threads that run a job share. It is also where the topmost pipeline's rows wait for the host.
pub struct Core {
    state: Mutex<State>,
    /// Tells the job's own thread that a worker did something.
    changed: Condvar,
    /// Tells workers that the host took rows.
    space: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    queued: usize,
    running: usize,
    error: Option<Error>,
    unwanted: bool,
    ready: VecDeque<Batch>,
}

impl Core {
    /// An error when work has to end.
    fn check(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    fn stop(&self, _state: &mut State) {
        // The state is locked, so that no thread misses the notice between its check and its wait.
        self.stop.store(true, Ordering::Relaxed);
        self.space.notify_all();
    }

    fn taken(&self) {
        let mut state = locked(&self.state);
        state.queued -= 1;
        state.running += 1;
    }

    fn run(&self, lanes: &Mutex<Vec<Lane>>, work: Work) -> Result<()> {
        let unit = match work {
            Work::Finish(lane) => return lane.local.finish(),
            Work::Unit(unit) => unit,
        };
        let lane = locked(lanes).pop();
        let Some(mut lane) = lane else { return Err(Error::Decline("more threads than lanes")) };
        let wanted = lane.run(unit, &mut || self.check());
        locked(lanes).push(lane);
        if !wanted? {
            let mut state = locked(&self.state);
            state.unwanted = true;
            self.stop(&mut state);
        }
        Ok(())
    }

    fn done(&self, outcome: Result<()>) {
        let mut state = locked(&self.state);
        state.running -= 1;
        if let Err(error) = outcome
            && !(state.unwanted && error == Error::Cancelled)
        {
            // The first one is told; others follow from the word to stop.
            state.error.get_or_insert(error);
            self.stop(&mut state);
        }
        self.changed.notify_all();
    }
}

/// Takes rows for the host, and pauses the worker while many wait.
impl SinkLocal for Arc<Core> {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        let mut state = locked(&self.state);
        while state.ready.len() >= READY {
            self.check()?;
            state = self.space.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.ready.push_back(batch);
        self.changed.notify_all();
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A pipeline's work for the pool. Used on the main thread.
pub struct Job {
    pool: Arc<Pool>,
    core: Arc<Core>,
    lanes: Arc<Mutex<Vec<Lane>>>,
    workers: usize,
}

impl Job {
    /// A job whose lanes are made by `lane`, one for each of `workers`; it is given where to send rows that
    /// the host wants.
    pub fn new(
        pool: &Arc<Pool>,
        workers: usize,
        lane: &mut dyn FnMut(&Arc<Core>) -> Result<Lane>,
    ) -> Result<Self> {
        let core = Arc::new(Core {
            state: Mutex::default(),
            changed: Condvar::new(),
            space: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let lanes = (0..workers).map(|_| lane(&core)).collect::<Result<Vec<_>>>()?;
        Ok(Self { pool: Arc::clone(pool), core, lanes: Arc::new(Mutex::new(lanes)), workers })
    }

    /// True while workers could soon be without a unit.
    pub fn has_room(&self) -> bool {
        locked(&self.core.state).queued < WAITING * self.workers
    }

    /// Gives a unit to the workers.
    pub fn submit(&self, unit: Box<dyn Unit>) {
        self.queue(Work::Unit(unit));
    }

    fn queue(&self, work: Work) {
        locked(&self.core.state).queued += 1;
        let task = Task { core: Arc::clone(&self.core), lanes: Arc::clone(&self.lanes), work };
        locked(&self.pool.shared.queue).tasks.push_back(task);
        self.pool.shared.arrived.notify_one();
    }

    /// Takes work back that no worker has begun.
    fn take_back(&self) -> Option<Work> {
        let mut queue = locked(&self.pool.shared.queue);
        let at = queue.tasks.iter().position(|task| Arc::ptr_eq(&task.core, &self.core))?;
        let task = queue.tasks.remove(at)?;
        locked(&self.core.state).queued -= 1;
        Some(task.work)
    }

    /// Takes a unit back that no worker has begun.
    pub fn take_unit(&self) -> Option<Box<dyn Unit>> {
        match self.take_back()? {
            Work::Unit(unit) => Some(unit),
            Work::Finish(_) => None,
        }
    }

    /// The error of a worker, if there was one. False: the sink wants no more rows.
    pub fn check(&self) -> Result<bool> {
        let state = locked(&self.core.state);
        match &state.error {
            Some(error) => Err(error.clone()),
            None => Ok(!state.unwanted),
        }
    }

    /// An error when work has to end; `check` knows why.
    pub fn stopped(&self) -> Result<()> {
        self.core.check()
    }

    /// Ends all work: no more rows are wanted.
    pub fn end(&self) {
        let mut state = locked(&self.core.state);
        state.unwanted = true;
        self.core.stop(&mut state);
        drop(state);
        while self.take_back().is_some() {}
    }

    /// True when nothing waits or runs.
    pub fn is_idle(&self) -> bool {
        let state = locked(&self.core.state);
        state.queued == 0 && state.running == 0
    }

    /// Waits until a worker has done something, but not for long.
    pub fn wait(&self) {
        let state = locked(&self.core.state);
        if state.running > 0 && state.ready.is_empty() {
            let _ = self.core.changed.wait_timeout(state, NAP);
        }
    }

    /// Rows that a worker has for the host.
    pub fn ready(&self) -> Option<Batch> {
        let batch = locked(&self.core.state).ready.pop_front();
        if batch.is_some() {
            self.core.space.notify_one();
        }
        batch
    }

    /// Brings what the lanes have to the shared part of their sink, on all threads; `own` is the main
    /// thread's lane. No unit may wait or run.
    pub fn finish(self, own: Lane, host: &mut dyn Host) -> Result<()> {
        let lanes = std::mem::take(&mut *locked(&self.lanes));
        lanes.into_iter().for_each(|lane| self.queue(Work::Finish(lane)));
        own.local.finish()?;
        while !self.is_idle() {
            host.check_interrupts()?;
            match self.take_back() {
                Some(work) => self.core.run(&self.lanes, work)?,
                None => self.wait(),
            }
        }
        self.check().map(|_| ())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end();
        let mut state = locked(&self.core.state);
        while state.running > 0 {
            state = self.core.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
