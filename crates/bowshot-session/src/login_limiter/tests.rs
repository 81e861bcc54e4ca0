//! LoginLimiter that wait, are dropped, or fail: every permit comes back.

use super::*;
use futures::FutureExt;
use std::future::Future;
use std::pin::Pin;

type Entering<'a> = Pin<Box<dyn Future<Output = Result<Permit>> + 'a>>;

fn source(address: [u8; 4], user: &str) -> Source {
    Source::new(Some(IpAddr::from(address)), user)
}

fn wrong<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unauthenticated, "wrong"))
}

fn waits<'a>(logins: &'a LoginLimiter, source: &'a Source) -> Entering<'a> {
    let mut entering: Entering<'a> = Box::pin(logins.enter(source));
    assert!((&mut entering).now_or_never().is_none(), "{source:?} has entered");
    entering
}

fn now(entering: impl Future<Output = Result<Permit>>) -> Permit {
    entering.now_or_never().expect("its turn").expect("a permit")
}

/// What is free: checks, and places of those who wait.
fn free(logins: &LoginLimiter) -> (usize, usize) {
    (logins.checks.available_permits(), logins.waiting.available_permits())
}

#[tokio::test]
async fn whoever_leaves_gives_the_permit_back() {
    let logins = LoginLimiter::new(1);
    let ann = source([10, 0, 0, 2], "ann");
    // While it waits.
    let held = logins.enter(&ann).await.expect("free");
    drop(waits(&logins, &ann));
    // Between its turn and the next poll.
    let told = waits(&logins, &ann);
    drop(held);
    drop(told);
    assert_eq!(free(&logins), (1, MAX_WAITING));
    // The next one behind it has its turn then, however many leave so.
    for _ in 0..16 {
        let held = now(Box::pin(logins.enter(&ann)));
        let (told, mut next) = (waits(&logins, &ann), waits(&logins, &ann));
        drop(held);
        drop(told);
        drop(now(&mut next));
    }
    // While it is checked: the check has the permit, and ends.
    let permit = now(Box::pin(logins.enter(&ann)));
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let check = std::thread::spawn(move || {
        let _permit = permit;
        ended.recv().expect("the end");
    });
    assert_eq!(free(&logins), (0, MAX_WAITING));
    end.send(()).expect("send");
    check.join().expect("the check");
    // While a wrong answer is delayed.
    let mut delayed = Box::pin(logins.answer(&ann, wrong::<()>()));
    assert!((&mut delayed).now_or_never().is_none());
    drop(delayed);
    assert_eq!(free(&logins), (1, MAX_WAITING));
    let other = source([10, 0, 0, 3], "bob");
    drop(now(Box::pin(logins.enter(&other))));
    assert_eq!(logins.queues.lock().len(), 1, "queues go with those who wait in them");
}

#[tokio::test]
async fn attempts_of_those_who_leave_count() {
    let logins = LoginLimiter::new(1);
    let eve = source([10, 0, 0, 1], "ann");
    let held = logins.enter(&source([10, 0, 0, 9], "bob")).await.expect("free");
    for _ in 0..FREE_ATTEMPTS {
        drop(waits(&logins, &eve));
    }
    drop(held);
    assert!(logins.count(&eve), "too many");
    assert!(logins.answer(&eve, wrong::<()>()).now_or_never().is_none(), "the answer is late");
    assert!(!logins.take_at_once(&eve, true));
    logins.answer(&eve, Ok(())).await.expect("right");
    assert!(!logins.count(&eve), "who was right begins anew");
}

#[tokio::test]
async fn who_guesses_comes_last() {
    let logins = LoginLimiter::new(1);
    let (eve, ann) = (source([10, 0, 0, 1], "ann"), source([10, 0, 0, 1], "eve"));
    for _ in 0..FREE_ATTEMPTS {
        logins.count(&eve);
    }
    let held = logins.enter(&ann).await.expect("free");
    let mut guesses: Vec<Entering<'_>> = (0..8).map(|_| waits(&logins, &eve)).collect();
    let mut right = waits(&logins, &ann);
    drop(held);
    let first = now(&mut guesses[0]);
    drop(first);
    drop(now(&mut right));
    // Another network waits for none of them.
    let held = now(&mut guesses[1]);
    let bob = source([10, 0, 0, 2], "bob");
    let mut other = waits(&logins, &bob);
    drop(held);
    drop(now(&mut other));
}

#[tokio::test]
async fn a_network_that_tries_many_names_is_doubtful() {
    let logins = LoginLimiter::new(2);
    for number in 0..FREE_ATTEMPTS_OF_NETWORK {
        assert!(!logins.count(&source([10, 0, 0, 1], &number.to_string())));
    }
    assert!(logins.count(&source([10, 0, 0, 1], "ann")));
    assert!(!logins.count(&source([10, 0, 0, 2], "ann")));
    let address = |text: &str| Source::new(Some(text.parse().expect("an address")), "ann");
    for number in 0..FREE_ATTEMPTS {
        assert!(!logins.count(&address(&format!("2001:db8::{number}"))));
    }
    assert!(logins.count(&address("2001:db8::ffff")), "the same network");
    assert!(!logins.count(&address("2001:db8:0:1::1")));
}

#[tokio::test]
async fn queues_are_bounded() {
    let logins = LoginLimiter::new(1);
    let ann = source([10, 0, 0, 2], "ann");
    let held = logins.enter(&ann).await.expect("free");
    let waiting: Vec<Entering<'_>> = (0..MAX_WAITING_OF_NETWORK).map(|_| waits(&logins, &ann)).collect();
    let refused = logins.enter(&ann).await.expect_err("too many of this network");
    assert_eq!(refused.kind(), ErrorKind::LimitReached);
    let bob = source([10, 0, 0, 3], "bob");
    drop(waits(&logins, &bob));
    drop((held, waiting));
    drop(now(Box::pin(logins.enter(&bob))));
}

#[tokio::test]
async fn who_guesses_leaves_places_to_others() {
    let logins = LoginLimiter::new(1);
    let held = logins.enter(&source([10, 0, 1, 1], "bob")).await.expect("free");
    let guesses: Vec<Source> = (0..4).map(|number| source([10, 0, 0, number], "ann")).collect();
    let mut waiting: Vec<Entering<'_>> = Vec::new();
    for eve in &guesses {
        for _ in 0..FREE_ATTEMPTS {
            logins.count(eve);
        }
        for _ in 0..MAX_WAITING_OF_NETWORK {
            let mut entering: Entering<'_> = Box::pin(logins.enter(eve));
            if (&mut entering).now_or_never().is_none() {
                waiting.push(entering);
            }
        }
    }
    assert_eq!(waiting.len(), MAX_WAITING_DOUBTFUL);
    drop(waits(&logins, &source([10, 0, 1, 2], "ann")));
    drop((held, waiting));
    assert_eq!(free(&logins), (1, MAX_WAITING));
    let (name, other) = ("x".repeat(MAX_NAME), "x".repeat(1 << 20));
    assert_eq!(source([10, 0, 0, 1], &name), source([10, 0, 0, 1], &other));
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let logins = LoginLimiter { patience: Duration::from_millis(10), ..LoginLimiter::new(1) };
    let ann = source([10, 0, 0, 2], "ann");
    let held = logins.enter(&ann).await.expect("free");
    let refused = logins.enter(&ann).await.expect_err("no turn");
    assert_eq!(refused.kind(), ErrorKind::LimitReached);
    drop(held);
    assert_eq!(free(&logins), (1, MAX_WAITING));
}

#[test]
fn answers_come_the_later_the_more_were_wrong() {
    let logins = LoginLimiter::new(1);
    let eve = source([10, 0, 0, 1], "ann");
    let delays: Vec<Duration> = (0..12)
        .map(|_| {
            logins.count(&eve);
            logins.attempts.lock().delay(&eve)
        })
        .collect();
    assert_eq!(delays[2], Duration::ZERO);
    assert_eq!((delays[3], delays[4], delays[11]), (FIRST_DELAY, FIRST_DELAY * 2, LONGEST_DELAY));
}

#[tokio::test]
async fn guesses_without_the_password_are_few() {
    let logins = LoginLimiter::new(1);
    let (eve, ann) = (source([10, 0, 0, 1], "ann"), source([10, 0, 0, 2], "ann"));
    assert!(logins.take_at_once(&ann, true) && !logins.take_at_once(&eve, false));
    assert!(logins.take_at_once(&eve, true), "one that was wrong costs nothing");
    for _ in 0..FREE_ATTEMPTS {
        assert!(!logins.take_at_once(&eve, false));
    }
    assert!(!logins.take_at_once(&eve, true), "too many were wrong");
    assert!(logins.take_at_once(&ann, true), "another address");
    for _ in 0..FREE_ATTEMPTS {
        assert!(!logins.count(&eve), "they tell nobody who is known here");
    }
    assert!(logins.count(&eve));
    logins.answer(&eve, Ok(())).await.expect("right");
    assert!(logins.take_at_once(&eve, true));
}
