//! Consents: what project members let assistants use, and the tokens that follow.
//!
//! A consent starts with an authorization code, which is exchanged once. Each refresh token has a
//! number, and only the one with the number of the consent is valid. A code or a refresh token that
//! comes a second time was stolen by one of the two senders, so that it erases the consent and with it
//! all its tokens (RFC 9700, section 4.14.2). Two windows of a client refresh concurrently, though,
//! and a client that lost the answer repeats its request. The refresh token that was exchanged last
//! therefore has a time of grace ([`REUSE_GRACE`]), in which its client gets the tokens that it was
//! exchanged for. Those before it have none: their client has used a later one.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{Batch, Collection, Document, Erasure, Field, Kind as FieldKind, Query, Record, Time};

use super::{
    Resource,
    signed::{Kind, Token},
};
use crate::{
    App, Error, Result,
    agents::errors,
    core::{
        clock::time_after,
        ids::{ProjectId, random_text},
    },
    projects::{self, Holder, Owner, SharedProject, members},
    work::{JobClaim, erase_all},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "mcp_consents",
    erasure: Erasure::Project,
    fields: &[Field::new("until", FieldKind::Time)],
};

/// Validity of an authorization code.
pub const CODE_TTL: Duration = Duration::from_secs(60);
/// Validity of an access token.
pub const ACCESS_TOKEN_TTL: Duration = Duration::from_secs(15 * 60);
/// Validity of a refresh token.
pub const REFRESH_TOKEN_TTL: Duration = Duration::from_secs(30 * 86_400);
/// Time after its exchange in which the refresh token that was exchanged last gives the same tokens again.
pub const REUSE_GRACE: Duration = Duration::from_secs(60);
/// Interval at which ended consents are erased.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(3_600);
/// Characters of the id of a consent, enough for 128 random bits.
const CONSENT_ID_CHARS: usize = 22;
/// Maximum number of consents that are erased in one batch.
const ERASE_BATCH: u64 = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// Digest of the client id.
    client: String,
    /// Id of the record of the key, which is a keyed hash of the key.
    key: String,
    resource: Resource,
    /// Redirect URI of the authorization request.
    redirect_uri: String,
    /// PKCE code challenge, made by `S256` (RFC 7636).
    challenge: String,
    /// Number of the valid refresh token; 0 until the code is exchanged.
    refresh_number: i64,
    /// Time at which the code, or the refresh token, ends.
    until: Time,
}

impl Document for Consent {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Consent of a project member.
#[derive(Debug, Clone)]
pub struct NewConsent {
    /// Client id of the assistant.
    pub client_id: String,
    /// Redirect URI, which belongs to the client.
    pub redirect_uri: String,
    /// PKCE code challenge, made by `S256`.
    pub challenge: String,
    /// The endpoint.
    pub resource: Resource,
}

/// Request to exchange an authorization code (RFC 6749, section 4.1.3).
#[derive(Debug)]
pub struct CodeExchange {
    /// The code.
    pub code: String,
    /// Client id of the assistant.
    pub client_id: String,
    /// Redirect URI of the authorization request.
    pub redirect_uri: String,
    /// PKCE code verifier.
    pub verifier: String,
    /// The endpoint, if the request names it (RFC 8707).
    pub resource: Option<Resource>,
}

/// Request for new tokens (RFC 6749, section 6).
#[derive(Debug)]
pub struct Refresh {
    /// The refresh token.
    pub token: String,
    /// Client id of the assistant.
    pub client_id: String,
    /// The endpoint, if the request names it (RFC 8707).
    pub resource: Option<Resource>,
}

/// Issued tokens.
pub struct Tokens {
    /// Access token, valid for [`ACCESS_TOKEN_TTL`].
    pub access: String,
    /// Refresh token, valid for one exchange and [`REFRESH_TOKEN_TTL`].
    pub refresh: String,
}

/// Returns the project of an endpoint, if a key gives access to it. Fails with
/// [`errors::MCP_KEY_WITHOUT_ACCESS`] if it does not, or if the endpoint does not exist.
pub async fn member_project(
    app: &App,
    holder: &Holder,
    resource: &Resource,
) -> Result<SharedProject> {
    let id = resource.project(app).await?;
    let project = project_of(app, holder, &id).await?;
    project.ok_or_else(errors::mcp_key_without_access)
}

/// Returns a project if a key belongs to it, or to a member of its organization.
async fn project_of(app: &App, holder: &Holder, id: &ProjectId) -> Result<Option<SharedProject>> {
    match &holder.owner {
        Owner::Project(project) => Ok((project.id == *id).then(|| project.clone())),
        Owner::Member(member) => match members::project(app, member, Some(id)).await {
            Ok(project) => Ok(Some(Arc::new(project))),
            Err(cause) if cause.is(&errors::PROJECT_NOT_FOUND) => Ok(None),
            Err(cause) => Err(cause),
        },
        Owner::Organization(_) => Ok(None),
    }
}

/// Records the consent of the holder of a key, and returns an authorization code. Fails if the
/// project was deleted.
pub async fn record_consent(
    app: &App,
    project: &SharedProject,
    holder: &Holder,
    request: NewConsent,
) -> Result<String> {
    let id = random_text(CONSENT_ID_CHARS);
    let until = time_after(app.clock.now(), CODE_TTL);
    let consent = Consent {
        client: digest(&request.client_id),
        key: holder.record_id.clone(),
        resource: request.resource,
        redirect_uri: request.redirect_uri,
        challenge: request.challenge,
        refresh_number: 0,
        until,
    };
    projects::insert(app, project, &id, consent).await?;
    let code = Token {
        consent: id,
        number: until.0,
    };
    Ok(code.issue(app, Kind::Code))
}

/// Exchanges an authorization code for tokens. Fails if the code is not valid for the request, or
/// its key gives no access any more. A code that was exchanged before ends the tokens that it was
/// exchanged for.
pub async fn exchange(app: &App, request: CodeExchange) -> Result<Tokens> {
    let code = Token::read(app, Kind::Code, &request.code)
        .ok_or_else(|| errors::mcp_grant_invalid("the code is unknown"))?;
    let proof = Proof {
        refresh_number: 0,
        client: digest(&request.client_id),
        resource: request.resource,
        code: Some(CodeProof {
            redirect_uri: request.redirect_uri,
            challenge: BASE64.encode(Sha256::digest(request.verifier.as_bytes())),
        }),
    };
    advance(app, &code.consent, &proof).await
}

/// Exchanges a refresh token for new tokens. Fails if the refresh token is not valid for the
/// request, or its key gives no access any more. A refresh token that was used before [`REUSE_GRACE`], or
/// before another one, ends all tokens of its consent.
pub async fn refresh(app: &App, request: Refresh) -> Result<Tokens> {
    let token = Token::read(app, Kind::Refresh, &request.token)
        .ok_or_else(|| errors::mcp_grant_invalid("the refresh token is unknown"))?;
    let proof = Proof {
        refresh_number: token.number,
        client: digest(&request.client_id),
        resource: request.resource,
        code: None,
    };
    advance(app, &token.consent, &proof).await
}

/// Proof that a client presents to get the next tokens of a consent.
struct Proof {
    /// Number of the refresh token; 0 for a code.
    refresh_number: i64,
    /// Digest of the client id.
    client: String,
    /// The endpoint, if the request names it.
    resource: Option<Resource>,
    /// For a code, the values that belong to its authorization request.
    code: Option<CodeProof>,
}

struct CodeProof {
    redirect_uri: String,
    /// Code challenge of the code verifier.
    challenge: String,
}

/// Earlier use of a proof.
#[derive(Debug, PartialEq, Eq)]
enum ProofUse {
    /// It has not been used, and entitles to the next tokens.
    Unused,
    /// It was used last, within [`REUSE_GRACE`], and entitles to the same tokens.
    Repeated,
    /// It was used before that, or before another one, and revokes all tokens.
    Reused,
}

impl Consent {
    /// Checks that a proof entitles its client to the next tokens.
    fn check(&self, proof: &Proof, now: Time) -> Result<()> {
        if self.until <= now {
            return Err(ended());
        }
        if let Some(code) = &proof.code {
            if self.redirect_uri != code.redirect_uri {
                let problem = "redirect_uri is not that of the authorization request";
                return Err(errors::mcp_grant_invalid(problem));
            }
            if self.challenge != code.challenge {
                let problem = "code_verifier does not fit the code_challenge";
                return Err(errors::mcp_grant_invalid(problem));
            }
        }
        match &proof.resource {
            Some(resource) if *resource != self.resource => Err(errors::mcp_target_invalid(
                "the consent was for another one",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the earlier use of a proof, which follows from its number.
    fn use_of(&self, proof: &Proof, now: Time) -> ProofUse {
        let is_last = proof.code.is_none() && proof.refresh_number + 1 == self.refresh_number;
        if proof.refresh_number == self.refresh_number {
            ProofUse::Unused
        } else if is_last && now < time_after(self.exchanged_at(), REUSE_GRACE) {
            ProofUse::Repeated
        } else {
            ProofUse::Reused
        }
    }

    /// Returns the time of the last exchange for tokens.
    fn exchanged_at(&self) -> Time {
        let ttl = i64::try_from(REFRESH_TOKEN_TTL.as_millis()).unwrap_or(i64::MAX);
        Time(self.until.0.saturating_sub(ttl))
    }

    /// Advances to the next refresh token, and returns the access token and the refresh token.
    fn next_tokens(&mut self, id: &str, now: Time) -> [Token; 2] {
        self.refresh_number += 1;
        self.until = time_after(now, REFRESH_TOKEN_TTL);
        self.tokens(id)
    }

    /// Returns the access token and the refresh token of the last exchange.
    fn tokens(&self, id: &str) -> [Token; 2] {
        let access_end = time_after(self.exchanged_at(), ACCESS_TOKEN_TTL);
        [access_end.0, self.refresh_number].map(|number| Token {
            consent: id.to_owned(),
            number,
        })
    }
}

fn ended() -> Error {
    errors::mcp_grant_invalid("it has ended or was revoked")
}

/// Issues the next tokens of a consent, or those of its last exchange again. Erases it if the proof was
/// used before.
async fn advance(app: &App, id: &str, proof: &Proof) -> Result<Tokens> {
    let advanced = app.store.change(&COLLECTION, id, || async {
        let now = app.clock.now();
        let mut consent = app.store.lookup::<Consent>(id).await?.ok_or_else(ended)?;
        if consent.body.client != proof.client {
            return Err(errors::mcp_grant_invalid("it belongs to another client"));
        }
        let earlier = consent.body.use_of(proof, now);
        if earlier == ProofUse::Reused {
            let reason = "it was used before, so that all tokens that followed from it are revoked";
            let reused = errors::mcp_grant_invalid(reason);
            return Ok((Batch::at(now).purge(&consent), Err(reused)));
        }
        consent.body.check(proof, now)?;
        let (_, project) = holder(app, &consent).await?.ok_or_else(ended)?;
        let without_access = &errors::MCP_KEY_WITHOUT_ACCESS;
        let target = consent
            .body
            .resource
            .project(app)
            .await
            .map_err(|cause| cause.replace_if(without_access, ended))?;
        if target != project.id {
            return Err(ended());
        }
        let unchanged = Batch::at(now);
        let (batch, [access, refresh]) = if earlier == ProofUse::Unused {
            let tokens = consent.body.next_tokens(id, now);
            (unchanged.update(&consent), tokens)
        } else {
            (unchanged, consent.body.tokens(id))
        };
        let tokens = Tokens {
            access: access.issue(app, Kind::Access),
            refresh: refresh.issue(app, Kind::Refresh),
        };
        Ok((batch, Ok(tokens)))
    });
    advanced.await?
}

/// Ends all tokens of the consent of an access token or a refresh token (RFC 7009). Does nothing if
/// this installation did not issue the token to the client, or if it has ended.
pub async fn revoke(app: &App, token: &str, client_id: &str) -> Result<()> {
    let refresh = Token::read(app, Kind::Refresh, token);
    let Some(token) = refresh.or_else(|| Token::read(app, Kind::Access, token)) else {
        return Ok(());
    };
    let client = digest(client_id);
    let revoked = app.store.change(&COLLECTION, &token.consent, || async {
        let consent = app
            .store
            .lookup::<Consent>(&token.consent)
            .await?
            .filter(|consent| consent.body.client == client);
        let batch = consent
            .iter()
            .fold(Batch::at(app.clock.now()), Batch::purge);
        Ok::<_, Error>((batch, ()))
    });
    Ok(revoked.await?)
}

/// Access that an access token gives.
#[derive(Debug)]
pub struct TokenAccess {
    /// Holder of the key with which the member has signed in.
    pub holder: Arc<Holder>,
    /// Project of the endpoint.
    pub project: SharedProject,
    /// Id of the consent, which its refreshed tokens share.
    pub consent_id: String,
}

/// Returns the access that a token for an endpoint gives. Fails with
/// [`errors::MCP_TOKEN_INVALID`] if the token is not valid for the endpoint.
pub async fn authenticate(app: &App, token: &str, resource: &Resource) -> Result<TokenAccess> {
    let token = Token::read(app, Kind::Access, token)
        .filter(|token| token.ends_after(app.clock.now()))
        .ok_or_else(errors::mcp_token_invalid)?;
    let consent = app
        .store
        .lookup::<Consent>(&token.consent)
        .await?
        .filter(|consent| consent.body.resource == *resource)
        .ok_or_else(errors::mcp_token_invalid)?;
    let (holder, project) = holder(app, &consent)
        .await?
        .ok_or_else(errors::mcp_token_invalid)?;
    Ok(TokenAccess {
        holder,
        project,
        consent_id: consent.id,
    })
}

/// Returns the holder of a consent's key and the project, or `None` if the key has ended.
async fn holder(
    app: &App,
    consent: &Record<Consent>,
) -> Result<Option<(Arc<Holder>, SharedProject)>> {
    let Some(holder) = projects::holder_by_record(app, &consent.body.key).await? else {
        return Ok(None);
    };
    let project = project_of(app, &holder, &ProjectId::parse(&consent.project)?).await?;
    Ok(project.map(|project| (holder, project)))
}

/// Returns true if a consent exists.
pub(crate) async fn has_consent(app: &App, id: &str) -> Result<bool> {
    Ok(app.store.lookup::<Consent>(id).await?.is_some())
}

/// Erases consents that have ended.
pub(crate) async fn delete_expired(app: &App, claim: &JobClaim) -> Result<()> {
    let ended = Query::all_projects().below("until", app.clock.now().0);
    erase_all(claim, &COLLECTION, ended, ERASE_BATCH).await
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests;
