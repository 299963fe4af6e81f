//! Import that verifies webhook requests with a secret that the guest does not see.

use wasmtime::Result;

use crate::{
    cassette::SignedMessage,
    contract::v1::webhook::{Algorithm, Error, Host},
    toolkit::State,
};

impl Host for State {
    fn verify(
        &mut self,
        secret: String,
        algorithm: Algorithm,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> Result<std::result::Result<bool, Error>> {
        self.count_host_call()?;
        let secrets = &mut self.webhook_secrets;
        let Some(session) = &self.session else {
            return Ok(secrets.verify(&secret, algorithm, &message, &signature));
        };
        let message = SignedMessage {
            algorithm,
            message: message.into(),
            signature: signature.into(),
        };
        session.verification(self.trace.redactor(), message, |signed| {
            secrets.verify(&secret, algorithm, &signed.message, &signed.signature)
        })
    }
}
