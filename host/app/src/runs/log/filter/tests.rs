//! Tests of `filter`.

use super::*;
use crate::{Time, accounts::Source, core::ids::Sequence, runs::log::page::Status};

fn run(tool: &str, started_at: i64) -> ExecutionRecord {
    ExecutionRecord {
        id: Sequence::new().log(Time(started_at)),
        tool: tool.into(),
        toolkit: "t".into(),
        version: "20260101_00".into(),
        status: Status::Success,
        user: "default".into(),
        account: None,
        auth_config: None,
        source: Source::NoAuth,
        session: None,
        request: "req_1".into(),
        trace: None,
        started_at: Time(started_at),
        ended_at: Time(started_at + 5),
        cpu_us: 1,
        wall_us: 1,
        memory: 1,
        host_calls: 0,
        requests: 0,
        tokens: None,
        failure: None,
    }
}

fn holds(field: Field, operator: Operator, value: &str) -> bool {
    Condition {
        field,
        operator,
        value: value.into(),
        ignore_case: false,
    }
    .holds(&run("T_RUN", 7))
}

#[test]
fn a_folded_condition_does_not_tell_cases_apart() {
    let condition = |operator, value: &str| Condition {
        field: Field::Tool,
        operator,
        value: value.into(),
        ignore_case: true,
    };
    assert!(condition(Operator::Is, "t_run").holds(&run("T_RUN", 7)));
    assert!(!condition(Operator::ContainsNot, "Run").holds(&run("T_RUN", 7)));
}

#[test]
fn what_a_run_does_not_have_equals_nothing() {
    for field in [Field::Account, Field::Absent] {
        assert!(!holds(field, Operator::Is, ""));
        assert!(!holds(field, Operator::Contains, ""));
        assert!(holds(field, Operator::IsNot, "a"));
        assert!(holds(field, Operator::ContainsNot, "a"));
    }
}

#[test]
fn a_time_range_has_both_its_ends() {
    let filter = |from, to| {
        Filter {
            from,
            to,
            ..Filter::default()
        }
        .holds(&run("T", 7))
    };
    assert!(filter(Some(7), Some(7)) && filter(None, None));
    assert!(!filter(Some(8), None) && !filter(None, Some(6)));
}
