//! Tests of `consent`.

use super::*;
use crate::agents::mcp_servers::Selection;

const CONSENTED_AT: Time = Time(1_767_225_600_000);

fn consent() -> Consent {
    Consent {
        client: digest("client"),
        key: String::new(),
        resource: Resource::server("one".into(), Selection::default()),
        redirect_uri: "https://app.example/cb".into(),
        challenge: "challenge".into(),
        refresh_number: 0,
        until: time_after(CONSENTED_AT, CODE_TTL),
    }
}

fn proof() -> Proof {
    Proof {
        refresh_number: 0,
        client: digest("client"),
        resource: Some(consent().resource),
        code: Some(CodeProof {
            redirect_uri: consent().redirect_uri,
            challenge: consent().challenge,
        }),
    }
}

#[test]
fn codes_end_after_their_validity() {
    let last = Time(consent().until.0 - 1);
    consent().check(&proof(), last).unwrap();
    let late = consent().check(&proof(), consent().until).unwrap_err();
    assert!(late.is(&errors::MCP_GRANT_INVALID), "{late}");
}

#[test]
fn access_tokens_end_after_their_validity() {
    let [access, _] = consent().next_tokens("id", CONSENTED_AT);
    let end = time_after(CONSENTED_AT, ACCESS_TOKEN_TTL);
    assert!(access.ends_after(Time(end.0 - 1)) && !access.ends_after(end));
}

#[test]
fn refresh_tokens_end_after_their_validity() {
    let mut consent = consent();
    let [_, refresh] = consent.next_tokens("id", CONSENTED_AT);
    let proof = Proof {
        refresh_number: refresh.number,
        code: None,
        ..proof()
    };
    let end = time_after(CONSENTED_AT, REFRESH_TOKEN_TTL);
    consent.check(&proof, Time(end.0 - 1)).unwrap();
    let late = consent.check(&proof, end).unwrap_err();
    assert!(late.is(&errors::MCP_GRANT_INVALID), "{late}");
}

#[test]
fn codes_need_every_value_of_their_request() {
    let mut other_uri = proof();
    other_uri.code.as_mut().unwrap().redirect_uri = "https://other.example/cb".into();
    let mut other_verifier = proof();
    other_verifier.code.as_mut().unwrap().challenge = "other".into();
    for wrong in [other_uri, other_verifier] {
        let refused = consent().check(&wrong, CONSENTED_AT).unwrap_err();
        assert!(refused.is(&errors::MCP_GRANT_INVALID), "{refused}");
    }
    let selection = Selection {
        user_id: Some("amy".into()),
        ..Selection::default()
    };
    for resource in [
        Resource::server("two".into(), Selection::default()),
        Resource::server("one".into(), selection),
    ] {
        let other_target = Proof {
            resource: Some(resource),
            ..proof()
        };
        let refused = consent().check(&other_target, CONSENTED_AT).unwrap_err();
        assert!(refused.is(&errors::MCP_TARGET_INVALID), "{refused}");
    }
    let unnamed_target = Proof {
        resource: None,
        ..proof()
    };
    consent().check(&unnamed_target, CONSENTED_AT).unwrap();
}

#[test]
fn last_refresh_token_gives_same_tokens_for_a_minute() {
    let mut consent = consent();
    consent.next_tokens("id", CONSENTED_AT);
    let refreshed_at = Time(CONSENTED_AT.0 + 5_000);
    let tokens = consent.next_tokens("id", refreshed_at);
    let proof = |number| Proof {
        refresh_number: number,
        code: None,
        ..proof()
    };
    let end = time_after(refreshed_at, REUSE_GRACE);
    let within = Time(end.0 - 1);
    assert_eq!(consent.use_of(&proof(1), within), ProofUse::Repeated);
    assert_eq!(consent.tokens("id"), tokens);
    assert_eq!(consent.use_of(&proof(1), end), ProofUse::Reused);
    assert_eq!(consent.use_of(&proof(2), end), ProofUse::Unused);
    consent.next_tokens("id", within);
    assert_eq!(consent.use_of(&proof(1), within), ProofUse::Reused);
}

#[test]
fn codes_have_no_time_of_grace() {
    let mut consent = consent();
    consent.next_tokens("id", CONSENTED_AT);
    assert_eq!(consent.use_of(&proof(), CONSENTED_AT), ProofUse::Reused);
}
