use std::{sync::mpsc, time::Instant};

use lambda_http::lambda_runtime::Config;

use super::*;

const SOON: Duration = Duration::from_secs(5);

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        watchdog: Arc::new(Watchdog::new()),
        endpoint: Endpoint::new("127.0.0.1:1", Config::default()).unwrap(),
        function: OnceLock::new(),
        invocation: Mutex::default(),
        current: watch::Sender::new(0),
        end: Mutex::default(),
        main: thread::current(),
    })
}

#[test]
fn a_thread_that_continues_after_the_check_keeps_its_next_invocation() {
    let shared = shared();
    let limit = Tasks::watched_by(&shared.watchdog).limit(Duration::ZERO);
    while let Some(pause) = shared.watchdog.check() {
        thread::sleep(pause);
    }
    drop(limit);
    let invocation = Arc::new(Movable::new(pending()));
    *lock(&shared.invocation) = Some((InvocationId::default(), invocation));
    shared.take_over().unwrap();
    assert!(lock(&shared.invocation).is_some());
}

#[test]
fn a_replaced_thread_ends_with_its_last_task() {
    let shared = shared();
    shared.current.send_replace(1);
    let (start, started) = mpsc::channel();
    let (finish, finished) = mpsc::channel();
    let work = async move {
        tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            finish.send(()).unwrap();
        });
        start.send(()).unwrap();
        pending().await
    };
    shared.start_thread(1, work).unwrap();
    started.recv_timeout(SOON).unwrap();
    shared.current.send_replace(2);
    finished.recv_timeout(SOON).expect("the task continues");
    let since = Instant::now();
    while Arc::strong_count(&shared) > 1 {
        assert!(since.elapsed() < SOON, "the thread ends");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(lock(&shared.end).is_none());
}
