//! Similar names, for suggestions in errors.

/// Maximum number of characters of a name that are compared.
const MAX_NAME_CHARS: usize = 64;
/// Minimum number of letters of a name that another one is found to contain. Shorter ones are in too many.
const MIN_CONTAINED_LETTERS: usize = 3;

/// Returns the known name that is most similar to a name, if one is similar. Case and separators are
/// ignored.
pub fn nearest<K: AsRef<str>>(name: &str, known: impl IntoIterator<Item = K>) -> Option<K> {
    let name = letters(name);
    known
        .into_iter()
        .filter_map(|known| {
            let (edits, longest) = distance(&name, &letters(known.as_ref()));
            (edits * 2 <= longest).then_some((edits, known))
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known)
}

/// Returns the known slug that was probably meant: one that contains every word of the name, or has one
/// other letter, before one that is only similar.
pub fn suggested<K: AsRef<str>>(name: &str, known: impl IntoIterator<Item = K>) -> Option<K> {
    let meant = letters(name);
    let similar = known.into_iter().filter_map(|known| {
        let (edits, longest) = distance(&meant, &letters(known.as_ref()));
        let is_part = is_part(name, known.as_ref());
        let is_only_similar = edits > 1 && !is_part;
        (is_part || edits * 2 <= longest).then_some(((is_only_similar, edits), known))
    });
    similar
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, known)| known)
}

/// Returns true if another name contains every word of a name, in any order, also in the plural.
#[must_use]
pub fn is_part(name: &str, known: &str) -> bool {
    let known = letters(known);
    let mut words = name.split(is_separator).take(MAX_NAME_CHARS).map(letters);
    letters(name).chars().count() >= MIN_CONTAINED_LETTERS
        && words.all(|word| {
            let stem = word.strip_suffix('y').filter(|stem| stem.len() > 3);
            known.contains(stem.unwrap_or(&word))
        })
}

/// Returns the question after an error about an unknown slug; empty if no known one is similar.
#[must_use]
pub fn did_you_mean<K: AsRef<str>>(name: &str, known: impl IntoIterator<Item = K>) -> String {
    suggested(name, known).map_or_else(String::new, |known| {
        format!("; did you mean `{}`?", known.as_ref())
    })
}

/// Returns true if a name is probably another one, misspelled: at most a third of its characters differ.
#[must_use]
pub fn is_near_miss(name: &str, known: &str) -> bool {
    let (edits, longest) = distance(&letters(name), &letters(known));
    edits * 3 <= longest
}

/// Returns true if a name is probably meant as a known one: it is a near miss, or the shorter of the two
/// is the longer one without less than half of its letters.
#[must_use]
pub fn is_meant_as(name: &str, known: &str) -> bool {
    let (one, other) = (letters(name), letters(known));
    let omitted = one.chars().count().abs_diff(other.chars().count());
    let (edits, longest) = distance(&one, &other);
    edits * 3 <= longest || (edits == omitted && edits * 2 < longest)
}

/// Returns the number of edits that make one name of another, and the characters of the longer one.
fn distance(one: &str, other: &str) -> (usize, usize) {
    let longest = one.chars().count().max(other.chars().count());
    (strsim::osa_distance(one, other), longest)
}

/// Returns true if two names differ at most in case and separators.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    letters(one) == letters(other)
}

/// Returns true if a name starts with another one. Case and separators are ignored.
#[must_use]
pub fn is_prefix(prefix: &str, name: &str) -> bool {
    letters(name).starts_with(&letters(prefix))
}

/// Returns the form of a name used for comparisons: in lower case, without the separators of words.
fn letters(name: &str) -> String {
    let letters = name
        .chars()
        .take(MAX_NAME_CHARS)
        .filter(|c| !is_separator(*c));
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns true for a character between the words of a name.
fn is_separator(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_similar_name_is_suggested() {
        let known = ["LIST_ISSUES", "CREATE_ISSUE", "DELETE_ISSUE"];
        assert_eq!(nearest("create_isue", known), Some("CREATE_ISSUE"));
        let question = did_you_mean("list-issue", known);
        assert_eq!(question, "; did you mean `LIST_ISSUES`?");
        assert_eq!(did_you_mean("weather", known), "");
        assert_eq!(did_you_mean("", known), "");
    }

    #[test]
    fn slug_with_all_words_is_suggested_first() {
        let tools = ["SLACK_GET_ME", "SLACK_SEND_MESSAGE", "HTML_TO_MARKDOWN"];
        let toolkits = ["linear", "googlecalendar", "googledocs", "github"];
        for (name, known, meant) in [
            ("SLACK_SEND", &tools[..], "SLACK_SEND_MESSAGE"),
            ("message_send", &tools[..], "SLACK_SEND_MESSAGE"),
            ("calendar", &toolkits[..], "googlecalendar"),
            ("google docs", &toolkits[..], "googledocs"),
            ("linaer", &toolkits[..], "linear"),
            (
                "list_query",
                &["list_queues", "list_all_queries"],
                "list_all_queries",
            ),
        ] {
            assert_eq!(suggested(name, known), Some(&meant), "{name}");
        }
        assert_eq!(suggested("li", toolkits), None);
    }

    #[test]
    fn every_single_mistake_is_recognized() {
        let known = ["sort", "LIST_ISSUES", "net.allow", "connected_account_ids"];
        for meant in known {
            let (start, end) = meant.split_at(2);
            let mut swapped: Vec<char> = meant.chars().collect();
            swapped.swap(1, 2);
            for name in [
                swapped.into_iter().collect::<String>(),
                format!("{start}x{end}"),
                format!("{start}{}", &end[1..]),
                format!("{meant}s"),
                meant.replace(['_', '.'], "-"),
                meant.replace(['_', '.'], " "),
                meant.replace(['_', '.'], ""),
                meant.replace(['_', '.'], "__"),
            ] {
                assert_eq!(nearest(&name, known), Some(meant), "{name}");
                assert!(is_near_miss(&name, meant), "{name}");
            }
            assert!(is_same(&meant.replace(['_', '.'], " "), meant), "{meant}");
        }
    }

    #[test]
    fn misspelled_and_shortened_names_are_recognized() {
        for (name, known) in [
            ("serch", "search"),
            ("toolkitSlugs", "toolkit_slugs"),
            ("toolkit", "toolkit_slugs"),
            ("user", "user_ids"),
            ("isManaged", "is_service_managed"),
            ("toolkits", "toolkit"),
        ] {
            assert!(is_meant_as(name, known), "{name}");
        }
        for (name, known) in [
            ("", "name"),
            ("_", "page"),
            ("ts", "tags"),
            ("source", "search"),
            ("trace_id", "trigger_ids"),
            ("include_pricing", "include_deprecated"),
        ] {
            assert!(!is_meant_as(name, known), "{name}");
        }
    }

    #[test]
    fn other_words_are_no_near_misses() {
        for (name, known) in [
            ("algoritm", "algorithm"),
            ("maxResult", "max_results"),
            ("txt", "text"),
        ] {
            assert!(is_near_miss(name, known), "{name}");
        }
        for (name, known) in [("context", "text"), ("repo_name", "repo"), ("id", "in")] {
            assert!(!is_near_miss(name, known), "{name}");
        }
    }
}
