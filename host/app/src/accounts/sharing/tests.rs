//! Tests of `sharing`.

use super::*;

fn list(listed: bool) -> Vec<String> {
    listed.then(|| "amy".to_owned()).into_iter().collect()
}

/// Every combination of type, lists and user.
#[test]
fn only_owner_and_admitted_users_have_access() {
    for number in 0..16 {
        let bits = [1, 2, 4, 8].map(|bit| number & bit != 0);
        let [shared, all, allowed, denied] = bits;
        let account_type = if shared {
            AccountType::Shared
        } else {
            AccountType::Private
        };
        let acl = Acl {
            allow_all_users: all,
            allowed_user_ids: list(allowed),
            not_allowed_user_ids: list(denied),
        };
        let sharing = Sharing { account_type, acl };
        assert!(sharing.admits("amy", "amy"), "{sharing:?}");
        let expected = match bits {
            [false, ..] | [.., true] | [_, false, false, _] => false,
            [true, true, _, false] | [true, _, true, false] => true,
        };
        assert_eq!(sharing.admits("bob", "amy"), expected, "{sharing:?}");
        assert_eq!(sharing.admits("bob", "eve"), shared && all, "{sharing:?}");
        assert_eq!(
            sharing.admits("bob", "AMY"),
            shared && all,
            "names are compared to the letter: {sharing:?}"
        );
    }
}

#[test]
fn absent_fields_stay_and_private_clears_lists() {
    let lists = |all: Option<bool>, allowed: Option<&[&str]>, denied: Option<&[&str]>| {
        let owned = |list: &[&str]| list.iter().map(|user| (*user).to_owned()).collect();
        Some(AclChange {
            allow_all_users: all,
            allowed_user_ids: allowed.map(owned),
            not_allowed_user_ids: denied.map(owned),
        })
    };
    let shared = |acl| SharingChange {
        account_type: Some(AccountType::Shared),
        acl,
    };
    let same = |acl| SharingChange {
        account_type: None,
        acl,
    };
    let first = Sharing::default()
        .with(&shared(lists(None, Some(&[" amy "]), Some(&["eve"]))))
        .unwrap();
    let second = first
        .with(&same(lists(Some(true), Some(&[]), None)))
        .unwrap();
    assert_eq!(
        (first.acl.allowed_user_ids, first.acl.allow_all_users),
        (vec!["amy".to_owned()], false)
    );
    assert!(second.acl.allowed_user_ids.is_empty() && second.acl.allow_all_users);
    assert_eq!(second.acl.not_allowed_user_ids, ["eve"]);
    assert_eq!(second.with(&SharingChange::default()).unwrap(), second);
    let private = SharingChange {
        account_type: Some(AccountType::Private),
        acl: None,
    };
    assert_eq!(second.with(&private).unwrap(), Sharing::default());
    let refused = Sharing::default()
        .with(&same(lists(None, None, None)))
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("acl_config_for_shared is only valid on SHARED"),
        "{refused}"
    );
    for list in [&[""][..], &[&*"a".repeat(257)], &["a"; 1_001]] {
        assert!(
            second.with(&same(lists(None, None, Some(list)))).is_err(),
            "{}",
            list.len()
        );
    }
    second
        .with(&same(lists(None, Some(&["a"; 1_000]), None)))
        .unwrap();
}
