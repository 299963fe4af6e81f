//! The ranking of the permitted tools for a query.

use std::cmp::Ordering;

use crate::{
    document::Field,
    index::{Index, Scope},
    query::{Query, Unit},
};

/// Factor for tools of a toolkit that the query names.
const NAMED_TOOLKIT: f32 = 3.0;
/// Factor for tools that do something else than the query asks for.
const OTHER_ACTION: f32 = 0.6;
/// Factor for tools whose action is not known.
const UNKNOWN_ACTION: f32 = 0.85;
/// Factor for tools that change something, for a query that names no action.
const UNASKED_CHANGE: f32 = 0.8;
/// Factor for tools that read one thing where the query asks for several, and the reverse.
const OTHER_NUMBER: f32 = 0.85;
/// Score of a tool whose name has nothing of the query, where a tool whose name the query has
/// completely gets 1 more.
const NAME_BASE: f32 = 0.4;
/// Strength of the name of a toolkit in its tools.
const TOOLKIT_WORD: f32 = 0.3;
/// Weight of a word that describes the thing asked for, after a preposition.
const CONTEXT_WORD: f32 = 0.75;
/// Weight of a word that names an action, among words for things. The action of the whole tool
/// counts on its own.
const ACTION_WORD: f32 = 0.7;

/// A tool that a query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The position of the tool in the documents of the index.
    pub tool: usize,
    /// The score. Scores of different queries cannot be compared.
    pub score: f32,
    /// The share of the query that the tool matches, between 0 and 1.
    pub coverage: f32,
    /// The words that matched, in the order of the query.
    pub matches: Vec<Match>,
}

/// A word of the query that a tool matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The word as the query has it.
    pub word: String,
    /// The fields that contain it, or a word for the same.
    pub fields: Vec<Field>,
}

impl Index {
    /// Returns the tools that fit a query best, the best first. Only permitted tools are counted
    /// and ranked.
    #[must_use]
    pub fn search(&self, query: &str, limit: usize, permitted: impl Fn(usize) -> bool) -> Vec<Hit> {
        let permitted: Vec<bool> = (0..self.len()).map(permitted).collect();
        let scope = Scope {
            index: self,
            permitted: &permitted,
        };
        let query = Query::new(&scope, query);
        if query.units.is_empty() || limit == 0 {
            return Vec::new();
        }
        let scores = self.scores(&query, &scope);
        let mut found: Vec<_> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, (score, _))| *score > 0.0)
            .map(|(tool, (score, coverage))| (tool, score, coverage))
            .collect();
        let better = |left: &(usize, f32, f32), right: &(usize, f32, f32)| -> Ordering {
            right
                .1
                .total_cmp(&left.1)
                .then_with(|| self.order[left.0].cmp(&self.order[right.0]))
        };
        if found.len() > limit {
            found.select_nth_unstable_by(limit - 1, better);
            found.truncate(limit);
        }
        found.sort_unstable_by(better);
        let hits = found.into_iter().map(|(tool, score, coverage)| Hit {
            tool,
            score,
            coverage,
            matches: self.matches(&query, tool),
        });
        hits.collect()
    }

    /// Returns score and coverage of every tool; 0 for those that do not match or are not
    /// permitted.
    fn scores(&self, query: &Query, scope: &Scope<'_>) -> Vec<(f32, f32)> {
        let count = scope
            .permitted
            .iter()
            .filter(|permitted| **permitted)
            .count();
        let mut scores = vec![(0.0_f32, 0.0_f32); self.len()];
        let mut things = vec![[0_u8; 2]; self.len()];
        let mut best = vec![(0.0_f32, 0_u8); self.len()];
        let mut whole = 0.0;
        for unit in &query.units {
            let rarity = rarity(unit, scope, count) * unit.importance();
            whole += rarity;
            for (term, weight) in &unit.alternatives {
                for posting in scope.postings(*term) {
                    let (strength, fields) = &mut best[posting.tool];
                    *strength = strength.max(posting.strength * weight);
                    *fields |= posting.fields;
                }
            }
            for (tool, (score, matched)) in scores.iter_mut().enumerate() {
                if !scope.permitted[tool] {
                    continue;
                }
                let (strength, fields) = std::mem::take(&mut best[tool]);
                let own = Field::Slug.bit() | Field::Name.bit();
                if fields & own == 0 && unit.toolkits.contains(&self.toolkit_of[tool]) {
                    // All tools of the toolkit are asked for alike, those too that repeat its name.
                    *score += rarity * TOOLKIT_WORD;
                    *matched += rarity;
                } else if strength > 0.0 {
                    *score += strength * rarity;
                    *matched += rarity * strength.min(1.0);
                    if !unit.is_action {
                        things[tool][0] += u8::from(fields & Field::Slug.bit() != 0);
                        things[tool][1] += u8::from(fields & Field::Name.bit() != 0);
                    }
                }
            }
        }
        for (tool, (score, matched)) in scores.iter_mut().enumerate() {
            if *score > 0.0 {
                *matched = (*matched / whole).min(1.0);
                let named = self.share_of_names(tool, things[tool]);
                *score *= (0.2 + *matched) * (NAME_BASE + named) * self.factor(query, tool);
            }
        }
        scores
    }

    /// Returns the share of the things in the slug or the name that the query has.
    fn share_of_names(&self, tool: usize, matched: [u8; 2]) -> f32 {
        let [slug, name] = [0, 1].map(|field: usize| {
            let all = f32::from(self.things[tool][field]);
            (f32::from(matched[field]) + 0.5) / (all + 0.5)
        });
        slug.max(name).min(1.0)
    }

    /// Returns the factor of a tool for its action and its toolkit.
    fn factor(&self, query: &Query, tool: usize) -> f32 {
        let named = query.toolkits.get(&self.toolkit_of[tool]);
        let toolkit = 1.0 + named.map_or(0.0, |share| share * (NAMED_TOOLKIT - 1.0));
        let actions = self.actions[tool];
        let (getting, listing) = (self.lexicon.getting, self.lexicon.listing);
        let asks_any =
            query.actions == 0 || query.actions & getting != 0 && query.actions & listing != 0;
        let action = if query.actions == 0 && actions & self.lexicon.reading == 0 {
            UNASKED_CHANGE
        } else if actions == 0 {
            UNKNOWN_ACTION
        } else if query.actions != 0 && actions & query.actions == 0 {
            OTHER_ACTION
        } else if asks_any && actions & if query.is_plural { listing } else { getting } == 0 {
            OTHER_NUMBER
        } else {
            1.0
        };
        toolkit * action
    }

    /// Returns the words of a query that a tool matches.
    fn matches(&self, query: &Query, tool: usize) -> Vec<Match> {
        let matched = query.units.iter().filter_map(|unit| {
            let bits = unit
                .alternatives
                .iter()
                .filter_map(|(term, _)| self.posting_of(*term, tool))
                .fold(0, |all, posting| all | posting.fields);
            let fields: Vec<_> = Field::ALL
                .into_iter()
                .filter(|field| bits & field.bit() != 0)
                .collect();
            (!fields.is_empty()).then(|| Match {
                word: unit.word.clone(),
                fields,
            })
        });
        matched.collect()
    }
}

/// Returns how much a word says: the fewer permitted tools contain it, the more.
fn rarity(unit: &Unit, scope: &Scope<'_>, count: usize) -> f32 {
    let terms = unit.alternatives.iter();
    let contained = terms.map(|(term, _)| scope.postings(*term).count());
    let most = contained.max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a logarithm follows")]
    let odds = (count as f32 - most as f32 + 0.5) / (most as f32 + 0.5);
    odds.ln_1p()
}

impl Unit {
    fn importance(&self) -> f32 {
        let action = if self.is_action { ACTION_WORD } else { 1.0 };
        let context = if self.is_context { CONTEXT_WORD } else { 1.0 };
        action * context
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Document, Field, Index};

    const TEST_TOOLS: [(&str, &str, &str); 8] = [
        ("mail", "MAIL_SEND_EMAIL", "Sends an email now."),
        ("mail", "MAIL_TRASH_EMAIL", "Moves an email to the bin."),
        (
            "mail",
            "MAIL_LIST_LABELS",
            "Lists the labels of the mailbox.",
        ),
        ("chat", "CHAT_SEND_MESSAGE", "Sends a message to a channel."),
        (
            "chat",
            "CHAT_LIST_CHANNELS",
            "Lists the channels of the workspace.",
        ),
        (
            "tracker",
            "TRACKER_CREATE_ISSUE",
            "Creates an issue in a project.",
        ),
        ("tracker", "TRACKER_GET_ISSUE", "Gets one issue."),
        (
            "tracker",
            "TRACKER_LIST_ISSUES",
            "Lists issues by label and state.",
        ),
    ];

    fn index(tools: &[(&str, &str, &str)]) -> Index {
        Index::build(tools.iter().map(|(toolkit, slug, description)| Document {
            slug,
            description,
            toolkit,
            toolkit_name: toolkit,
            ..Document::default()
        }))
    }

    fn first(query: &str) -> &'static str {
        let hits = index(&TEST_TOOLS).search(query, 1, |_| true);
        hits.first().map_or("", |hit| TEST_TOOLS[hit.tool].1)
    }

    #[test]
    fn words_for_the_same_find_a_tool() {
        assert_eq!(first("write a mail"), "MAIL_SEND_EMAIL");
        assert_eq!(first("delete an email"), "MAIL_TRASH_EMAIL");
        assert_eq!(first("file a bug"), "TRACKER_CREATE_ISSUE");
        assert_eq!(first("TRACKER_CREATE_ISSUE"), "TRACKER_CREATE_ISSUE");
    }

    #[test]
    fn typos_and_other_languages_find_a_tool() {
        assert_eq!(first("creat an isue"), "TRACKER_CREATE_ISSUE");
        assert_eq!(first("listt chanels"), "CHAT_LIST_CHANNELS");
        assert_eq!(first("eine Nachricht senden"), "CHAT_SEND_MESSAGE");
        assert_eq!(first("créer un ticket"), "TRACKER_CREATE_ISSUE");
    }

    #[test]
    fn synonyms_of_the_author_find_a_tool() {
        let tool = |slug, synonyms| Document {
            slug,
            description: "Moves a parcel.",
            toolkit: "post",
            synonyms,
            ..Document::default()
        };
        let tools = [
            tool("POST_MOVE", vec![]),
            tool("POST_SHIP", vec!["dispatch by courier"]),
        ];
        let hits = Index::build(tools).search("dispatch parcel with a courier", 2, |_| true);
        let fields: Vec<_> = hits[0].matches.iter().map(|one| &*one.fields).collect();
        assert_eq!(hits[0].tool, 1);
        assert_eq!(
            fields,
            [
                &[Field::Synonyms][..],
                &[Field::Summary],
                &[Field::Synonyms]
            ]
        );
    }

    #[test]
    fn plural_asks_for_a_list() {
        assert_eq!(first("show issues"), "TRACKER_LIST_ISSUES");
        assert_eq!(first("show the issue"), "TRACKER_GET_ISSUE");
    }

    #[test]
    fn named_toolkit_comes_first() {
        assert_eq!(first("send with mail"), "MAIL_SEND_EMAIL");
        assert_eq!(first("send in chat"), "CHAT_SEND_MESSAGE");
    }

    #[test]
    fn hits_say_why_they_matched() {
        let hits = index(&TEST_TOOLS).search("send a Mail", 1, |_| true);
        let words: Vec<_> = hits[0].matches.iter().map(|one| &*one.word).collect();
        assert_eq!(words, ["send", "Mail"]);
        assert_eq!(hits[0].matches[1].fields, [Field::Slug, Field::Summary]);
    }

    #[test]
    fn queries_without_weight_find_nothing() {
        for query in ["", "  ", "the of", "%&/", "xyzzyplugh"] {
            assert_eq!(
                index(&TEST_TOOLS).search(query, 5, |_| true),
                [],
                "{query:?}"
            );
        }
        assert_eq!(index(&[]).search("mail", 5, |_| true), []);
    }

    /// Returns queries of known words, and of any text.
    fn queries() -> impl Strategy<Value = String> {
        let words = "(send|creat|isue|Mail|chat|label|list|show|del|ein|le|pr|of|%| |\\PC){0,12}";
        let spaced = proptest::string::string_regex("([a-zA-Z]{1,9} ){0,50}").unwrap();
        let known = proptest::string::string_regex(words).unwrap();
        prop_oneof![known, spaced, any::<String>()]
    }

    proptest! {
        #[test]
        fn tools_out_of_scope_have_no_influence(query in queries(), scope: u8, limit in 0_usize..10) {
            let permitted = |tool: usize| scope & 1 << tool != 0;
            let whole = index(&TEST_TOOLS);
            let hits = whole.search(&query, limit, permitted);
            prop_assert!(hits.len() <= limit);
            prop_assert!(hits.iter().all(|hit| permitted(hit.tool)));
            prop_assert_eq!(&hits, &whole.search(&query, limit, permitted));
            let tools: Vec<_> = (0..TEST_TOOLS.len()).filter(|tool| permitted(*tool)).collect();
            let alone: Vec<_> = tools.iter().map(|tool| TEST_TOOLS[*tool]).collect();
            let mut expected = index(&alone).search(&query, limit, |_| true);
            expected.iter_mut().for_each(|hit| hit.tool = tools[hit.tool]);
            prop_assert_eq!(hits, expected);
        }

        #[test]
        fn any_text_can_be_indexed(slug: String, text: String, query: String) {
            let tool = (slug.as_str(), slug.as_str(), text.as_str());
            let found = index(&[tool]);
            prop_assert!(found.search(&query, 3, |_| true).len() <= 1);
            prop_assert!(found.search(&text, 3, |_| true).len() <= 1);
        }
    }
}
