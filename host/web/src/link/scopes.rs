//! OAuth scopes in words, because users cannot read identifiers.

/// Scopes that providers have in common, in words.
const KNOWN_SCOPES: [(&str, &str); 4] = [
    ("openid", "Know who you are"),
    ("profile", "Read your profile"),
    ("email", "Read your email address"),
    ("offline_access", "Stay connected while you are away"),
];
/// Words of a scope that say what is done, and the verb for each.
const SCOPE_VERBS: [(&str, &str); 11] = [
    ("read", "Read"),
    ("readonly", "Read"),
    ("write", "Write"),
    ("readwrite", "Read and write"),
    ("send", "Send"),
    ("create", "Create"),
    ("delete", "Delete"),
    ("modify", "Change"),
    ("manage", "Manage"),
    ("admin", "Administer"),
    ("metadata", "See facts about"),
];

/// A scope as the page shows it.
pub(super) struct Scope {
    pub words: String,
    /// The scope as the provider writes it.
    pub name: String,
}

/// Returns scopes in words.
pub(super) fn in_words(scopes: &[String]) -> Vec<Scope> {
    scopes
        .iter()
        .map(|name| Scope {
            words: words(name),
            name: name.clone(),
        })
        .collect()
}

/// Turns `https://api.example.com/auth/mail.readonly` and `mail:read` into "Read mail".
fn words(scope: &str) -> String {
    if let Some((_, words)) = KNOWN_SCOPES.iter().find(|(name, _)| *name == scope) {
        return (*words).to_owned();
    }
    let path = scope.split_once("://").map_or(scope, |(_, path)| path);
    let is_address = path.len() < scope.len();
    let last = path.trim_end_matches('/').rsplit('/').next();
    let name = last.filter(|_| is_address).unwrap_or(scope);
    let mut verb = None;
    let mut objects = Vec::new();
    for part in name.split(|letter: char| !letter.is_alphanumeric()) {
        let part = part.to_lowercase();
        match SCOPE_VERBS.iter().find(|(word, _)| *word == part) {
            Some((_, found)) if verb.is_none() => verb = Some(*found),
            _ if part.is_empty() => {}
            _ => objects.push(part),
        }
    }
    let text = verb.map(str::to_owned).into_iter().chain(objects);
    let text = text.collect::<Vec<_>>().join(" ");
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => scope.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_shown_in_words() {
        for (scope, shown) in [
            ("openid", "Know who you are"),
            ("read:user", "Read user"),
            ("chat:write", "Write chat"),
            ("repo", "Repo"),
            ("Mail.ReadWrite", "Read and write mail"),
            ("https://www.example.com/auth/gmail.readonly", "Read gmail"),
            ("https://mail.example.com/", "Mail example com"),
            ("im:history", "Im history"),
            ("write", "Write"),
            (":", ":"),
        ] {
            assert_eq!(words(scope), shown);
        }
    }
}
