//! Checks of a scheme's OAuth 2.0 flow: users and secrets are sent only to the provider, the
//! parameters that the platform writes cannot be overwritten, and the flow only fills declared
//! fields.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::{Report, auth, template, text, tools};
use crate::{
    ACCESS_TOKEN, AuthMode, AuthScheme, Call, ClientAuth, FLOW_VALUES, OAuth2, Pick, Step, path,
};

const MAX_PARAMETER_BYTES: usize = 256;
pub(super) const MAX_PARAMETERS: usize = 20;
const MAX_STEPS: usize = 5;
/// Maximum number of responses that reject a token, and of texts of each.
const MAX_REJECTIONS: usize = 10;
/// Maximum lifetime: a day, in seconds.
const MAX_LIFETIME_SECONDS: u32 = 86_400;
/// Parameters that the platform writes into the authorization URL (RFC 6749, RFC 7636).
const AUTHORIZATION_PARAMETERS: [&str; 7] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
];
/// Parameters that the platform sends in other requests (RFC 6749, RFC 7009, RFC 7523).
const TOKEN_PARAMETERS: [&str; 12] = [
    "grant_type",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "scope",
    "assertion",
    "token",
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
];

/// Checks the flow and returns the fields that it uses. `fields` are the names of the scheme's
/// fields.
pub(super) fn check<'a>(
    scheme: &'a AuthScheme,
    fields: &[&'a str],
    report: &mut Report,
) -> BTreeSet<&'a str> {
    if scheme.mode == AuthMode::Oauth1 && scheme.oauth2.is_none() {
        return BTreeSet::new();
    }
    let mut report = report.at("oauth2");
    match (
        &scheme.oauth2,
        scheme.mode.has_flow() && scheme.mode != AuthMode::Oauth1,
    ) {
        (Some(flow), true) => {
            let known = fields.iter().copied().chain(FLOW_VALUES).collect();
            let mut checked = Checked {
                scheme,
                flow,
                fields,
                known,
                used: BTreeSet::new(),
                filled: BTreeSet::new(),
            };
            checked.check(&mut report);
            return checked.used;
        }
        (None, true) => report.add("has no flow; add `authorize_url` and `token_url`"),
        (Some(_), false) => report.add("only the OAuth modes have a flow"),
        (None, false) => {}
    }
    for field in scheme.fields.iter().filter(|field| field.hidden) {
        report.add(format_args!(
            "the hidden field `{}` gets no value",
            field.name
        ));
    }
    BTreeSet::new()
}

struct Checked<'a, 'f> {
    scheme: &'a AuthScheme,
    flow: &'a OAuth2,
    fields: &'f [&'a str],
    /// Names that templates may use.
    known: Vec<&'a str>,
    /// Names that templates do use.
    used: BTreeSet<&'a str>,
    /// Fields that the flow fills.
    filled: BTreeSet<&'a str>,
}

impl<'a> Checked<'a, '_> {
    fn check(&mut self, report: &mut Report) {
        let flow = self.flow;
        for name in self.fields.iter().filter(|name| FLOW_VALUES.contains(name)) {
            let own = if *name == ACCESS_TOKEN {
                "the flow obtains this value"
            } else {
                "the name is reserved for a value of the flow"
            };
            // A client's own id and secret may be fields that the user fills in.
            if !["client_id", "client_secret"].contains(name) {
                report
                    .at(name)
                    .add(format_args!("{own}; give the field another name"));
            }
        }
        self.check_authorize(report);
        self.check_discovery(report);
        if !(flow.token_url.is_empty() && flow.is_discovered()) {
            self.check_url(&flow.token_url, &mut report.at("token_url"));
        }
        tools::check_scopes(&flow.scopes, &mut report.at("scopes"));
        self.check_call(&flow.token, &mut report.at("token"));
        if let Some(call) = &flow.refresh {
            self.check_call(call, &mut report.at("refresh"));
        }
        if flow
            .refresh_margin
            .is_some_and(|margin| margin > MAX_LIFETIME_SECONDS)
        {
            report.at("refresh_margin").add(format_args!(
                "is longer than {MAX_LIFETIME_SECONDS} seconds"
            ));
        }
        if self.scheme.mode == AuthMode::Saml && !flow.token.params.contains_key("assertion") {
            let why = "is missing; write the value that the provider expects, as in {base64url({saml_assertion})}";
            report.at("token.params.assertion").add(why);
        }
        self.check_rejections(&mut report.at("rejected_if"));
        self.check_response(&mut report.at("response"));
        self.check_callback(&mut report.at("callback"));
        self.check_assertion(&mut report.at("assertion"));
        self.check_client();
        self.check_steps(&flow.steps, false, &mut report.at("steps"));
        self.check_steps(&flow.after_connect, true, &mut report.at("after_connect"));
        if let Some(identity) = &flow.identity {
            let mut report = report.at("identity");
            check_path(&identity.path, &mut report.at("path"));
            if let Some(call) = &identity.request {
                self.check_own(call, &mut report.at("request"));
            }
        }
        if let Some(call) = &flow.revoke {
            self.check_own(call, &mut report.at("revoke"));
        }
        match (&flow.register, self.scheme.mode == AuthMode::DcrOauth) {
            (Some(call), true) if flow.is_discovered() => {
                self.check_call(call, &mut report.at("register"))
            }
            (Some(call), true) => self.check_own(call, &mut report.at("register")),
            (None, true) if flow.is_discovered() => {}
            (None, true) => report
                .at("register")
                .add("is missing; add the URL at which clients are registered"),
            (Some(_), false) => report
                .at("register")
                .add("only a scheme of mode DCR_OAUTH registers clients"),
            (None, false) => {}
        }
        for field in self
            .scheme
            .fields
            .iter()
            .filter(|field| field.hidden && !self.filled.contains(&*field.name))
        {
            report.add(format_args!(
                "the hidden field `{}` gets no value; name it in a `keep`",
                field.name
            ));
        }
    }

    fn check_authorize(&mut self, report: &mut Report) {
        let flow = self.flow;
        let mode = self.scheme.mode;
        if mode.redirects() && flow.authorize_url.is_empty() && flow.is_discovered() {
            // The provider's metadata gives the address.
        } else if mode.redirects() {
            self.check_url(&flow.authorize_url, &mut report.at("authorize_url"));
        } else if !flow.authorize_url.is_empty() {
            report
                .at("authorize_url")
                .add(format_args!("{} has no redirect; remove it", mode.as_str()));
        }
        if let Some(separator) = &flow.scope_separator
            && (separator.len() != 1
                || !separator
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() || byte == b' '))
        {
            report
                .at("scope_separator")
                .add("is one character, for example `,`");
        }
        let mut report_params = report.at("authorize_params");
        for name in flow
            .authorize_params
            .keys()
            .filter(|name| AUTHORIZATION_PARAMETERS.contains(&name.as_str()))
        {
            report_params
                .at(name)
                .add("the platform sets this parameter; remove it");
        }
        self.check_values(&flow.authorize_params, false, &mut report_params);
        drop(report_params);
        let named: Vec<_> = AUTHORIZATION_PARAMETERS
            .into_iter()
            .chain(["user_scope"])
            .collect();
        check_names(
            &flow.authorize_rename,
            &named,
            &mut report.at("authorize_rename"),
        );
    }

    /// Checks the sources of the addresses that are not given here.
    fn check_discovery(&mut self, report: &mut Report) {
        let flow = self.flow;
        for (name, url) in [("issuer", &flow.issuer), ("resource", &flow.resource)] {
            let Some(url) = url else { continue };
            let mut report = report.at(name);
            self.check_url(url, &mut report);
            if url.contains('?') {
                report.add("has a query; an issuer or API identifier has none");
            }
        }
        if flow.issuer.is_some() && flow.resource.is_some() {
            report
                .at("resource")
                .add("names the issuer, and so does `issuer`; remove one of them");
        }
    }

    /// Checks a request that needs an address of its own.
    fn check_own(&mut self, call: &'a Call, report: &mut Report) {
        if call.url.is_none() {
            report.at("url").add("is missing");
        }
        self.check_call(call, report);
    }

    fn check_call(&mut self, call: &'a Call, report: &mut Report) {
        if let Some(url) = &call.url {
            self.check_url(url, &mut report.at("url"));
        }
        for name in call.headers.keys() {
            auth::check_header(name, &mut report.at("headers").at(name));
        }
        self.check_values(&call.headers, true, &mut report.at("headers"));
        self.check_values(&call.params, true, &mut report.at("params"));
        for name in call
            .drop
            .iter()
            .filter(|name| !TOKEN_PARAMETERS.contains(&name.as_str()))
        {
            report.at("drop").add(format_args!(
                "`{name}` is not a value of the flow; known are {}",
                TOKEN_PARAMETERS.join(", ")
            ));
        }
        check_names(&call.rename, &TOKEN_PARAMETERS, &mut report.at("rename"));
    }

    /// Checks templates by name.
    fn check_values(
        &mut self,
        values: &'a BTreeMap<String, String>,
        secrets: bool,
        report: &mut Report,
    ) {
        report.limit(values.len(), MAX_PARAMETERS);
        for (name, value) in values {
            let mut report = report.at(name);
            check_value(name, value, &mut report);
            self.check_template(value, secrets, &mut report);
        }
    }

    fn check_template(&mut self, value: &'a str, secrets: bool, report: &mut Report) {
        let check = if secrets {
            template::check_of_flow
        } else {
            template::check
        };
        let named = check(value, &self.known, report);
        for name in named.iter().filter(|name| !secrets && self.is_secret(name)) {
            report.secret_in_url(name);
        }
        self.used.extend(named);
    }

    fn is_secret(&self, name: &str) -> bool {
        let platform =
            FLOW_VALUES.contains(&name) && !["client_id", "redirect_uri", "scope"].contains(&name);
        platform || self.scheme.secrets().any(|secret| secret == name)
    }

    fn check_url(&mut self, url: &'a str, report: &mut Report) {
        self.check_template(url, false, report);
        if let Err(problem) = auth::address(url) {
            report.add(problem);
        }
    }

    fn check_rejections(&self, report: &mut Report) {
        let rejections = &self.flow.rejected_if;
        if rejections.len() > MAX_REJECTIONS {
            report.add(format_args!("has more than {MAX_REJECTIONS} entries"));
        }
        for rejection in rejections {
            if !(100..600).contains(&rejection.status) {
                report.at("status").add("is no HTTP status");
            }
            check_path(&rejection.path, &mut report.at("path"));
            let texts = &rejection.one_of;
            if texts.is_empty() || texts.len() > MAX_REJECTIONS {
                report
                    .at("one_of")
                    .add(format_args!("has 1 to {MAX_REJECTIONS} texts"));
            }
            for text in texts {
                text::line(text, MAX_PARAMETER_BYTES, &mut report.at("one_of"));
            }
        }
    }

    fn check_response(&mut self, report: &mut Report) {
        let response = &self.flow.response;
        let condition = response
            .ok_if
            .as_ref()
            .map(|condition| condition.path.as_str());
        let expiry = response.expiry.as_ref().map(|expiry| expiry.path.as_str());
        for (place, path) in [
            ("root", Some(response.root.as_str())),
            ("fallback_root", response.fallback_root.as_deref()),
            ("ok_if", condition),
            ("access_token", response.access_token.as_deref()),
            ("refresh_token", response.refresh_token.as_deref()),
            ("expiry", expiry),
        ] {
            check_path(path.unwrap_or_default(), &mut report.at(place));
        }
        self.check_keep(&response.keep, &mut report.at("keep"));
    }

    fn check_callback(&mut self, report: &mut Report) {
        let callback = &self.flow.callback;
        let kept: Vec<_> = callback.keep.keys().map(String::as_str).collect();
        self.check_filled(&kept, &mut report.at("keep"));
        for name in callback.keep.values().chain(&callback.code_param) {
            text::line(name, MAX_PARAMETER_BYTES, report);
        }
    }

    fn check_assertion(&mut self, report: &mut Report) {
        let flow = self.flow;
        let Some(assertion) = &flow.assertion else {
            if flow.client_auth == ClientAuth::PrivateKeyJwt
                || self.scheme.mode == AuthMode::GoogleServiceAccount
            {
                report.add("is missing; add the claims to sign and the key");
            }
            return;
        };
        for template in std::iter::once(&assertion.key).chain(&assertion.key_id) {
            self.check_template(template, true, report);
        }
        self.check_values(&assertion.claims, true, &mut report.at("claims"));
        if !(1..=MAX_LIFETIME_SECONDS).contains(&assertion.lifetime) {
            report.at("lifetime").add(format_args!(
                "is not between 1 and {MAX_LIFETIME_SECONDS} seconds"
            ));
        }
    }

    /// Records the fields of a client that the user fills in. The flow uses them without naming
    /// them in a template.
    fn check_client(&mut self) {
        let shown: &[&str] = match self.flow.client_auth {
            ClientAuth::Body | ClientAuth::Basic | ClientAuth::SecretAsUser => {
                &["client_id", "client_secret"]
            }
            ClientAuth::PrivateKeyJwt => &["client_id"],
            ClientAuth::None => &[],
        };
        self.used
            .extend(self.fields.iter().filter(|name| shown.contains(name)));
    }

    fn check_steps(&mut self, steps: &'a [Step], keeps: bool, report: &mut Report) {
        report.limit(steps.len(), MAX_STEPS);
        for (index, step) in steps.iter().enumerate() {
            let mut report = report.at(index);
            self.check_own(&step.request, &mut report.at("request"));
            if keeps && step.keep.is_empty() {
                report
                    .at("keep")
                    .add("is empty; name the values to keep, or remove the request");
            }
            self.check_keep(&step.keep, &mut report.at("keep"));
        }
    }

    fn check_keep(&mut self, keep: &'a BTreeMap<String, Pick>, report: &mut Report) {
        let kept: Vec<_> = keep.keys().map(String::as_str).collect();
        self.check_filled(&kept, report);
        for (name, pick) in keep {
            check_pick(pick, &mut report.at(name));
        }
    }

    fn check_filled(&mut self, names: &[&'a str], report: &mut Report) {
        for name in names {
            check_kept(name, self.fields, report);
        }
        self.filled.extend(names);
    }
}

fn check_names(names: &BTreeMap<String, String>, sent: &[&str], report: &mut Report) {
    for (name, other) in names {
        if !sent.contains(&name.as_str()) {
            report.add(format_args!(
                "`{name}` is not a value of the flow; known are {}",
                sent.join(", ")
            ));
        }
        text::line(other, MAX_PARAMETER_BYTES, &mut report.at(name));
    }
}

/// Checks that a kept value has a field of the scheme.
pub(super) fn check_kept(name: &str, fields: &[&str], report: &mut Report) {
    if !fields.contains(&name) {
        report.add(format_args!(
            "`{name}` is not a field of this scheme; add it to `fields`, hidden if users do not enter it"
        ));
    }
}

/// Checks the name of a parameter or header, and the text of its template.
pub(super) fn check_value(name: &str, value: &str, report: &mut Report) {
    text::line(name, MAX_PARAMETER_BYTES, report);
    if value
        .chars()
        .any(|letter| letter.is_control() && letter != '\n')
    {
        report.add("holds control characters");
    }
}

pub(super) fn check_pick(pick: &Pick, report: &mut Report) {
    check_path(&pick.path, &mut report.at("path"));
    if let Some(pattern) = &pick.pattern
        && let Err(cause) = Regex::new(pattern)
    {
        report
            .at("pattern")
            .add(format_args!("is not a regular expression: {cause}"));
    }
}

pub(super) fn check_path(path: &str, report: &mut Report) {
    if !path::is_path(path) {
        report.add(format_args!(
            "`{path}` is not a path; write names with dots between them, as in data.token"
        ));
    }
}
