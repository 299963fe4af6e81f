//! Changes of the field values of a connected account.

use manifest::AuthScheme;
use store::Record;

use super::{
    Account, Event, Values,
    account::status_after,
    auth_configs,
    authorize::user_values,
    create::{SCHEME_PROPERTY, check_size},
    credential::{Credential, open_credential},
    scheme,
    tokens::obtains_from_fields,
};
use crate::{
    App, Result, accounts::errors, catalog::LATEST, core::ids::AccountId, projects::Project,
};

/// Fills in field values of an account, and returns its new credential.
pub(super) async fn fill(
    app: &App,
    project: &Project,
    id: &AccountId,
    account: &mut Record<Account>,
    scheme: &str,
    given: &Values,
) -> Result<Record<Credential>> {
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let mode = auth_configs::offered_scheme(&release, SCHEME_PROPERTY, scheme)?;
    if mode != account.body.scheme || mode.redirects() {
        let actual = account.body.scheme.as_str();
        return Err(errors::account_refused(format!(
            "account {id} is connected with {actual}: only fields of this scheme can be changed, and tokens cannot be set"
        )));
    }
    let (values, credential) = open_credential(app, account).await?;
    let scheme = release.scheme(mode);
    let mut values = merged_values(scheme, user_values(mode, &values), given)?;
    check_size(&values)?;
    let mut lifetime = None;
    let tokens = &app.accounts;
    if let Some(scheme) = scheme.filter(|_| obtains_from_fields(mode)) {
        let config = auth_configs::get(app, project, &account.body.auth_config).await?;
        (values, lifetime) = tokens.obtain(&config, scheme, values).await?;
    }
    let now = app.clock.now();
    let body = tokens
        .build_credential(&project.id, id, scheme, &values, lifetime, now)
        .await?;
    let filled = status_after(id, account.body.status, Event::Filled)?;
    account.body.set_status(filled, None, now);
    Ok(Record { body, ..credential })
}

/// Merges given values over existing ones; null removes a value.
fn merged_values(
    scheme: Option<&AuthScheme>,
    mut values: Values,
    given: &Values,
) -> Result<Values> {
    // A key may also be sent, and be stored, under a general name.
    values.extend(normalized(scheme, given.clone()));
    values = normalized(scheme, values);
    values.retain(|_, value| !value.is_null());
    match scheme {
        Some(scheme) => scheme::complete(scheme, values).map_err(errors::account_fields),
        None => Ok(values),
    }
}

fn normalized(scheme: Option<&AuthScheme>, values: Values) -> Values {
    match scheme {
        Some(scheme) => scheme::normalize_names(scheme, values),
        None => values,
    }
}
