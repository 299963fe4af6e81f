//! Tests of the templates.

use app::{accounts::FormField, catalog::Field};

use super::*;

const HOSTILE_TEXT: &str = "\"><script>alert('x')</script>&amp;{{ 7 * 7 }}";
const ESCAPED_TEXT: &str =
    "&#34;&#62;&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#38;amp;{{ 7 * 7 }}";

fn form(field: Field) -> Form {
    Form {
        brand: Brand {
            project: "Acme".into(),
            toolkit: "Mail".into(),
            logos: Vec::new(),
            return_url: None,
        },
        fields: vec![FormField {
            field,
            value: String::new(),
            problem: None,
        }],
        scopes: Vec::new(),
        problem: None,
        redirects: false,
    }
}

fn rendered(form: &Form, form_token: &str) -> String {
    let page = FormPage {
        nonce: "nonce",
        brand: Some(&form.brand),
        project: &form.brand.project,
        toolkit: &form.brand.toolkit,
        form,
        scopes: &scopes::in_words(&form.scopes),
        form_token_field: FORM_TOKEN_FIELD,
        form_token,
    };
    page.render().unwrap()
}

fn assert_escaped(html: &str, times: usize) {
    assert!(
        !html.contains("<script") && !html.contains("alert('"),
        "{html}"
    );
    assert_eq!(html.matches(ESCAPED_TEXT).count(), times, "{html}");
}

#[test]
fn untrusted_text_is_escaped_in_forms() {
    let mut form = form(Field {
        name: HOSTILE_TEXT.into(),
        title: HOSTILE_TEXT.into(),
        description: HOSTILE_TEXT.into(),
        prefix: HOSTILE_TEXT.into(),
        suffix: HOSTILE_TEXT.into(),
        ..Field::default()
    });
    form.fields[0].value = HOSTILE_TEXT.into();
    form.fields[0].problem = Some(HOSTILE_TEXT.into());
    assert_escaped(&rendered(&form, ""), 7);
    form.brand.project = HOSTILE_TEXT.into();
    form.brand.toolkit = HOSTILE_TEXT.into();
    form.brand.logos = vec![HOSTILE_TEXT.into()];
    form.brand.return_url = Some(HOSTILE_TEXT.into());
    form.problem = Some(HOSTILE_TEXT.into());
    form.redirects = true;
    // The title, the logo, the heading, the introduction, the problem, the form token, the button,
    // the link.
    assert_escaped(
        &rendered(&form, HOSTILE_TEXT),
        7 + 2 + 1 + 1 + 2 + 2 + 1 + 1 + 2,
    );
}

#[test]
fn untrusted_choices_are_escaped() {
    let html = rendered(
        &form(Field {
            name: "region".into(),
            one_of: vec![HOSTILE_TEXT.into()],
            ..Field::default()
        }),
        "",
    );
    assert_escaped(&html, 1);
}

#[test]
fn untrusted_text_is_escaped_in_messages() {
    let brand = Brand {
        project: HOSTILE_TEXT.into(),
        toolkit: HOSTILE_TEXT.into(),
        logos: vec![HOSTILE_TEXT.into()],
        return_url: Some(HOSTILE_TEXT.into()),
    };
    let page = MessagePage {
        nonce: "nonce",
        brand: Some(&brand),
        title: HOSTILE_TEXT,
        text: HOSTILE_TEXT,
    };
    // The title twice, the logo, the text, and the link with the project.
    assert_escaped(&page.render().unwrap(), 6);
}

#[test]
fn secret_field_is_a_password_input() {
    let html = |secret| {
        let field = Field {
            name: "key".into(),
            title: "Key".into(),
            secret,
            ..Field::default()
        };
        rendered(&form(field), "")
    };
    assert!(html(true).contains("type=\"password\"") && html(false).contains("type=\"text\""));
    assert!(html(true).contains("for=\"f0\"") && html(true).contains("id=\"f0\""));
}

#[test]
fn style_carries_the_nonce() {
    let html = rendered(&form(Field::default()), "");
    assert_eq!(html.matches("<style").count(), 1);
    assert!(html.contains("<style nonce=\"nonce\">") && !html.contains("style="));
}

#[test]
fn policy_allows_origins_of_logos_alone() {
    let mut brand = form(Field::default()).brand;
    brand.logos = vec!["https://acme.example/logo.png".into(), "no URL".into()];
    let policy = with_logos(policy("nonce", "'self'"), Some(&brand));
    assert!(
        policy.contains("; img-src data: https://acme.example; "),
        "{policy}"
    );
}
