//! Tests of `large_work`.

use futures::future::join_all;
use tokio::{sync::Semaphore, time::timeout};

use super::*;

fn large_work() -> LargeWork {
    LargeWork::start(|| {}).unwrap()
}

#[tokio::test]
async fn large_bodies_wait_for_their_project() {
    let large = large_work();
    let (one, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    let mut held = Vec::new();
    for _ in 0..LARGE_BODY_SHARES.cap {
        held.push(large.permit(&one).await.unwrap());
    }
    let mut waits = Box::pin(large.run(&one, MAX_INLINE_BYTES + 1, || 1));
    assert!(futures::poll!(&mut waits).is_pending());
    assert_eq!(large.run(&one, 1, || 2).await.unwrap(), 2);
    assert_eq!(large.run(&other, usize::MAX, || 3).await.unwrap(), 3);
    drop(held);
    assert_eq!(waits.await.unwrap(), 1);
}

#[tokio::test]
async fn large_bodies_leave_their_thread_to_others() {
    let large = large_work();
    let projects = ["a", "b", "c", "d"].map(Arc::<str>::from);
    let (enter, entered) = mpsc::channel();
    let (leaves, lefts): (Vec<_>, Vec<_>) = projects.iter().map(|_| mpsc::channel()).unzip();
    let works = projects.iter().zip(lefts).map(|(project, left)| {
        let enter = enter.clone();
        large.run(project, usize::MAX, move || {
            enter.send(()).unwrap();
            left.recv().is_err()
        })
    });
    let mut works = Box::pin(join_all(works));
    assert!(futures::poll!(&mut works).is_pending());
    projects.iter().for_each(|_| entered.recv().unwrap());
    let other: Arc<str> = "late".into();
    let mut late = Box::pin(large.run(&other, usize::MAX, || 1));
    assert!(futures::poll!(&mut late).is_pending());
    drop::<Vec<mpsc::Sender<()>>>(leaves);
    assert!(works.await.into_iter().all(|ended| ended.unwrap()));
    assert_eq!(late.await.unwrap(), 1);
}

#[tokio::test]
async fn large_copies_leave_their_thread_to_others() {
    let large = large_work();
    let project: Arc<str> = "a".into();
    let thread_at = async |size| {
        let work = || thread::current().id();
        large.scan(&project, size, work).await.unwrap()
    };
    let own = thread::current().id();
    assert_eq!(thread_at(MAX_INLINE_SCAN_BYTES).await, own);
    assert_ne!(thread_at(MAX_INLINE_SCAN_BYTES + 1).await, own);
}

#[tokio::test]
async fn idle_threads_are_tidied() {
    static TIDIED_THREADS: Semaphore = Semaphore::const_new(0);
    let large = LargeWork::start(|| TIDIED_THREADS.add_permits(1)).unwrap();
    let ran = large.run(&"a".into(), usize::MAX, || 1).await;
    assert_eq!(ran.unwrap(), 1);
    let all = TIDIED_THREADS.acquire_many(LARGE_BODY_SHARES.total as u32);
    let tidied = timeout(Duration::from_secs(60), all).await;
    assert!(tidied.is_ok_and(|permits| permits.is_ok()));
}

#[tokio::test]
async fn panic_ends_neither_thread_nor_turn() {
    let large = large_work();
    let project: Arc<str> = "a".into();
    for _ in 0..2 * LARGE_BODY_SHARES.total {
        let broken = large.run(&project, usize::MAX, || -> () { panic!("on purpose") });
        assert!(broken.await.is_err_and(|error| error.is(&errors::INTERNAL)));
    }
    assert_eq!(large.run(&project, usize::MAX, || 1).await.unwrap(), 1);
}
