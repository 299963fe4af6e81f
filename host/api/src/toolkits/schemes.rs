//! Views of the auth schemes of a toolkit, and of the forms that they need.

use app::catalog::{AuthMode, AuthScheme, Field, Release};
use serde::Serialize;
use utoipa::ToSchema;

view! {
    /// An auth scheme: one way of connecting accounts.
    #[schema(as = SchemeDetail)]
    pub(super) struct SchemeView from (mode: AuthMode, scheme: Option<&AuthScheme>) where {
        let oauth2 = scheme.and_then(|scheme| scheme.oauth2.as_ref());
        let base_url = scheme.and_then(|scheme| scheme.base_url.clone());
    } {
        mode: &'static str = mode.as_str(),
        name: String = scheme.map_or("No authentication", |scheme| &scheme.name).to_owned(),
        fields: SchemeFields = scheme.map(Into::into).unwrap_or_default(),
        auth_hint_url!: Option<String> = None,
        /// Scopes requested for every connection.
        required_scopes: Vec<String> = oauth2.map_or_else(Vec::new, |flow| flow.scopes.clone()),
        /// Endpoints where users authorize; only with OAuth.
        deprecated_auth_provider_details?: Option<ProviderDetails> =
            scheme.and_then(ProviderDetails::new),
        /// Location of the provider's API, if the scheme declares it.
        proxy?: Option<SchemeProxy> = base_url.map(|base_url| SchemeProxy { base_url }),
    }
}

#[derive(Serialize, ToSchema)]
struct ProviderDetails {
    authorization_url: String,
    token_url: String,
}

#[derive(Serialize, ToSchema)]
struct SchemeProxy {
    base_url: String,
}

view! {
    #[derive(Default)]
    struct SchemeFields from scheme: &AuthScheme {
        auth_config_creation: FieldGroup = FieldGroup::of_auth_config(scheme),
        connected_account_initiation: FieldGroup = FieldGroup::of_account(scheme),
    }
}

#[derive(Default, Serialize, ToSchema)]
struct FieldGroup {
    required: Vec<FieldView>,
    optional: Vec<FieldView>,
}

view! {
    /// A field of a form.
    #[schema(as = Field)]
    struct FieldView from (name: &str, display_name: &str, description: &str) {
        name: String = name.to_owned(),
        #[serde(rename = "displayName")] display_name: String = display_name.to_owned(),
        r#type: &'static str = "string",
        description: String = description.to_owned(),
        required: bool = true,
        default!: Option<String> = None,
        legacy_template_name: String = name.to_owned(),
        is_secret: bool = false,
        user_visible: bool = true,
    }
}

/// Returns the modes in which a toolkit can be connected; one without any runs without an account.
pub(super) fn modes(release: &Release) -> Vec<AuthMode> {
    if release.auth.is_empty() {
        return vec![AuthMode::NoAuth];
    }
    release.auth.iter().map(|scheme| scheme.mode).collect()
}

/// Returns true if the forms of a scheme have a non-secret field of this name.
pub(crate) fn shows_field(scheme: &AuthScheme, name: &str) -> bool {
    let own = FieldGroup::of_auth_config(scheme);
    let of_account = scheme.fields.iter();
    let mut secrecy = own.required.iter().chain(&own.optional);
    let secrecy = secrecy.find_map(|field| (field.name == name).then_some(field.is_secret));
    let mut of_account = of_account.filter(|field| field.name == name);
    secrecy.or_else(|| of_account.next().map(|field| field.secret)) == Some(false)
}

impl SchemeView {
    /// Returns the views of all auth schemes of a version.
    pub(super) fn all(release: &Release) -> Vec<Self> {
        modes(release)
            .into_iter()
            .map(|mode| Self::new(mode, release.scheme(mode)))
            .collect()
    }
}

impl ProviderDetails {
    fn new(scheme: &AuthScheme) -> Option<Self> {
        let oauth1 = scheme.oauth1.as_ref();
        let oauth2 = scheme.oauth2.as_ref();
        let oauth1 = oauth1.map(|flow| (&flow.authorize_url, &flow.token_url));
        let oauth2 = oauth2.map(|flow| (&flow.authorize_url, &flow.token_url));
        let (authorization_url, token_url) = oauth1.or(oauth2)?;
        Some(Self {
            authorization_url: authorization_url.clone(),
            token_url: token_url.clone(),
        })
    }
}

impl FieldGroup {
    /// Returns the fields that a user fills in to connect an account.
    fn of_account(scheme: &AuthScheme) -> Self {
        let shown = scheme.fields.iter().filter(|field| !field.hidden);
        let (required, optional) = shown.map(FieldView::from).partition(|field| field.required);
        Self { required, optional }
    }

    /// Returns the fields of an auth config. Only OAuth needs any.
    fn of_auth_config(scheme: &AuthScheme) -> Self {
        if let Some(flow) = &scheme.oauth2 {
            return Self::of_oauth2_client(scheme.mode, &flow.scopes);
        }
        if scheme.oauth1.is_some() {
            return Self::of_oauth1_client();
        }
        Self::default()
    }

    fn of_oauth2_client(mode: AuthMode, scopes: &[String]) -> Self {
        // The server registers such a client itself.
        let registered = matches!(mode, AuthMode::DcrOauth | AuthMode::CimdOauth);
        let required = if registered {
            Vec::new()
        } else {
            vec![
                FieldView::new("client_id", "Client id", "Issued by the provider."),
                FieldView::new("client_secret", "Client secret", "Issued by the provider.")
                    .secret(),
            ]
        };
        let optional = vec![
            FieldView::new("scopes", "Scopes", "Requested in every connection.")
                .optional(scopes.join(",")),
            FieldView::new(
                "oauth_redirect_uri",
                "Redirect URI",
                "URL to which the provider redirects users after they consent.",
            )
            .optional(String::new()),
        ];
        Self { required, optional }
    }

    fn of_oauth1_client() -> Self {
        let issued = "Issued by the provider.";
        let key = FieldView::new("consumer_key", "Consumer key", issued);
        let secret = FieldView::new("consumer_secret", "Consumer secret", issued);
        Self {
            required: vec![key, secret.secret()],
            optional: Vec::new(),
        }
    }
}

impl FieldView {
    fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// Makes the field optional. An empty default becomes `None`.
    fn optional(mut self, default: String) -> Self {
        self.required = false;
        self.default = Some(default).filter(|text| !text.is_empty());
        self
    }
}

impl From<&Field> for FieldView {
    fn from(field: &Field) -> Self {
        Self {
            required: !field.optional && field.default.is_none(),
            default: field.default.clone(),
            is_secret: field.secret,
            ..Self::new(&field.name, &field.title, &field.description)
        }
    }
}
