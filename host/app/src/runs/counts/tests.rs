//! Tests of `counts`.

use super::*;

#[test]
fn toolkits_beyond_the_maximum_share_counts() {
    let counts = ExecutionCounts::default();
    for number in 0..MAX_TOOLKITS + 2 {
        for _ in 0..2 {
            let toolkit = format!("toolkit_{number}");
            counts.count(&toolkit, ExecutionEnd::Failed, Duration::ZERO);
        }
    }
    let read = counts.read();
    assert_eq!(read.len(), MAX_TOOLKITS + 1);
    assert_eq!(&*read[0].0, OTHER_TOOLKITS);
    assert_eq!(read[0].1.outcomes().nth(1), Some(("failed", 4)));
    assert_eq!(read[1].1.durations.read().count, 2);
}
