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
