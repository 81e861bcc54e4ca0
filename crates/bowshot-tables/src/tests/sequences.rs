//! The ends of sequences, also after a restart.

use super::durable::{fresh, reopened};
use crate::{Error, Numbering};
use uuid::Uuid;

#[test]
fn sequences_end_with_their_last_number_and_stay_there() {
    for (step, last) in [(1, i64::MAX), (3, i64::MAX), (-1, i64::MIN), (-3, i64::MIN), (i64::MAX, i64::MAX)] {
        let (folder, mut store) = fresh();
        for durable in [true, false] {
            let numbering = Numbering { id: Uuid::new_v4(), start: last - step, step, durable };
            assert_eq!(store.next_numbers(&numbering, 1).unwrap(), last - step);
            assert!(matches!(store.next_numbers(&numbering, 2), Err(Error::Exhausted { .. })), "{step}");
            assert_eq!(store.next_numbers(&numbering, 1).unwrap(), last);
            for _ in 0..2 {
                let error = store.next_numbers(&numbering, 1).unwrap_err();
                assert!(matches!(error, Error::Exhausted { limit, .. } if limit == last), "{error}");
                if durable {
                    store = reopened(store, &folder);
                }
            }
        }
    }
}

#[test]
fn numbers_that_a_restart_lost_near_the_end_are_not_given_again() {
    for (step, start) in [(1, i64::MAX - 40), (-1, i64::MIN + 40)] {
        let (folder, mut store) = fresh();
        let numbering = Numbering { id: Uuid::new_v4(), start, step, durable: true };
        let mut given = vec![store.next_numbers(&numbering, 1).unwrap()];
        store = reopened(store, &folder);
        while let Ok(number) = store.next_numbers(&numbering, 1) {
            given.push(number);
        }
        let expected: Vec<i64> = [0].into_iter().chain(32..=40).map(|count| start + step * count).collect();
        assert_eq!(given, expected);
    }
}
