use std::{sync::mpsc, thread};

use super::*;

/// Checks as the watchdog's thread does, until the tool blocks its thread or `limit` passes.
fn is_blocked_within(watchdog: &Watchdog, limit: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        match watchdog.check() {
            Some(pause) => thread::sleep(pause.min(Duration::from_millis(5))),
            None => return true,
        }
    }
    false
}

#[test]
fn a_tool_that_returns_is_not_blocked() {
    let watchdog = Arc::new(Watchdog::new());
    let watch = watchdog.watch(Duration::from_millis(20)).unwrap();
    assert!(watchdog.watch(Duration::ZERO).is_none(), "one at a time");
    drop(watch);
    assert!(!is_blocked_within(&watchdog, Duration::from_millis(200)));
    assert!(watchdog.watch(Duration::ZERO).is_some());
}

#[test]
fn a_blocked_thread_is_noticed_once_and_not_before_its_limit() {
    let watchdog = Arc::new(Watchdog::new());
    let begun = Instant::now();
    let limit = Duration::from_millis(50);
    let _watch = watchdog.watch(limit).unwrap();
    assert!(is_blocked_within(&watchdog, Duration::from_secs(5)));
    assert!(begun.elapsed() + Duration::from_millis(1) >= limit + GRACE);
    assert!(!is_blocked_within(&watchdog, Duration::from_millis(100)));
}

/// As when the platform stops the process for a time.
#[test]
fn a_late_check_gives_the_thread_its_grace() {
    let watchdog = Arc::new(Watchdog::new());
    let _watch = watchdog.watch(Duration::from_millis(1)).unwrap();
    thread::sleep(2 * GRACE);
    assert_eq!(watchdog.check(), Some(GRACE));
    assert!(is_blocked_within(&watchdog, Duration::from_secs(5)));
}

#[tokio::test]
async fn the_limit_ends_the_wait_for_a_tool_that_never_returns() {
    let watchdog = Arc::new(Watchdog::new());
    let tasks = Tasks::watched_by(&watchdog);
    let limit = tasks.limit(Duration::from_millis(20));
    let checking = Arc::clone(&watchdog);
    let checks = thread::spawn(move || is_blocked_within(&checking, Duration::from_secs(5)));
    assert_eq!(limit.wait_for(std::future::pending::<()>()).await, None);
    let aborted = limit.wait_for_aborted(std::future::pending::<()>(), Duration::from_mins(1));
    assert_eq!(aborted.await, None, "the tool counts as blocked");
    assert!(checks.join().unwrap());
}

#[test]
fn another_thread_finishes_a_task_whose_thread_is_blocked() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let watchdog = Arc::new(Watchdog::new());
    let tasks = Tasks::watched_by(&watchdog);
    let (result, results) = mpsc::channel();
    let (unblock, blocked) = mpsc::channel::<()>();
    let waiting = tasks.clone();
    let first = thread::spawn(move || {
        runtime().block_on(async move {
            let task = async move {
                let tool = tokio::spawn(async move { blocked.recv().is_ok() });
                let limit = waiting.limit(Duration::from_millis(20));
                let in_time = limit.wait_for(tool).await;
                result
                    .send((in_time.is_some(), thread::current().id()))
                    .unwrap();
            };
            tasks.run(task).await
        })
    });
    assert!(is_blocked_within(&watchdog, Duration::from_secs(5)));
    let moved = watchdog.replace_thread();
    assert_eq!(moved.len(), 1);
    for task in moved {
        assert_eq!(runtime().block_on(task.wait()), Ok(()));
    }
    assert_eq!(results.recv().unwrap(), (false, thread::current().id()));
    unblock.send(()).unwrap();
    assert_eq!(first.join().unwrap(), Some(()));
}

#[tokio::test]
async fn a_task_that_panics_has_no_output() {
    let tasks = Tasks::watched_by(&Arc::new(Watchdog::new()));
    assert_eq!(tasks.run(async { 1 }).await, Some(1));
    let panicking = tasks.run(async { assert!(std::hint::black_box(false)) });
    assert_eq!(panicking.await, None);
}
