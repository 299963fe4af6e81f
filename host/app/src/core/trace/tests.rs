//! Tests of `trace`.

use store::Time;

use super::*;

fn tracer(sample_ratio: f64) -> (Tracer, EndedSpans) {
    let settings = Settings {
        sample_ratio,
        propagates: false,
    };
    Tracer::new(settings, Clock::standing_at(Time(1_000_000)))
}

fn work() -> Work {
    Work {
        name: "work".to_owned(),
        kind: SpanKind::Internal,
        attributes: Vec::new(),
        failed: false,
    }
}

#[test]
fn nothing_is_traced_by_default() {
    let parent = || panic!("the parent is not needed");
    assert_eq!(Tracer::default().begin(parent), None);
}

#[test]
fn sample_ratio_decides_for_new_traces() {
    for (ratio, sampled) in [(0.0, 0..1), (1.0, 1_000..1_001), (0.5, 400..601)] {
        let (tracer, _spans) = tracer(ratio);
        let begun = (0..1_000).filter_map(|_| tracer.begin(|| None));
        let count = begun.filter(|span| span.context.is_sampled).count();
        assert!(sampled.contains(&count), "{ratio}: {count}");
    }
}

#[test]
fn caller_decides_for_its_own_trace() {
    let (tracer, mut spans) = tracer(0.0);
    let (others, _others_spans) = self::tracer(1.0);
    let callers = others.begin(|| None).unwrap().context;
    let span = tracer.begin(|| Some(callers)).unwrap();
    assert_eq!(span.context.trace, callers.trace);
    assert_eq!(span.parent, Some(callers.span));
    tracer.end(span, Instant::now(), Duration::from_millis(5), work);
    let ended = spans.buffer.try_recv().unwrap();
    assert_eq!(ended.place, span);
    assert_eq!(ended.end - ended.start, Duration::from_millis(5));
}

#[test]
fn spans_beyond_the_buffer_are_counted() {
    let (tracer, mut spans) = tracer(1.0);
    let span = tracer.begin(|| None).unwrap();
    for _ in 0..MAX_WAITING_SPANS + 3 {
        tracer.end(span, Instant::now(), Duration::ZERO, work);
    }
    assert_eq!(tracer.counts().dropped.load(Ordering::Relaxed), 3);
    assert!(spans.buffer.try_recv().is_ok());
}
