//! `toolkit sign`: creates minisign signatures of components, and key pairs.
//!
//! The format is minisign's, so that each tool can verify the signatures of the other. The
//! signature is stored next to the component as `SLUG.wasm.minisig`. `toolkit publish` and `toolkit
//! push` send it along.

use std::{
    fs::{self, OpenOptions},
    io::{Cursor, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use minisign::{KeyPair, PublicKey, SecretKey, SecretKeyBox, SignatureBox};
use sandbox::Digest;
use serde_json::{Value, json};

use crate::{build::BuildTarget, component};

const HELP_EXAMPLES: &str = "Examples:
  toolkit sign --generate --key toolkit.key      # once; share toolkit.pub, keep toolkit.key
  toolkit sign dist/hello.wasm --key toolkit.key
  toolkit publish dist/hello.wasm                # sends the signature along";

/// Beginning of a file with a public key.
const PUBLIC_KEY_COMMENT: &str = "untrusted comment: minisign public key";

/// Sign a component or another file, or make a pair of keys.
///
/// The folder of a toolkit is built first.
#[derive(Debug, Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct Sign {
    #[command(flatten)]
    target: BuildTarget,
    /// Secret key.
    #[arg(
        long,
        env = "TOOLKIT_SIGN_KEY",
        value_name = "FILE",
        default_value = "toolkit.key"
    )]
    key: PathBuf,
    /// Make the secret key, and the public key next to it, ending in `.pub`.
    #[arg(long, conflicts_with_all = ["path", "all"])]
    generate: bool,
    /// Make a key without a password, for machines.
    #[arg(long, requires = "generate", conflicts_with = "password")]
    no_password: bool,
    /// Password of the secret key [default: asked for, if the key has one].
    #[arg(long, env = "TOOLKIT_SIGN_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Sign) -> Result<ExitCode> {
    if options.generate {
        generate(options)?;
        return Ok(ExitCode::SUCCESS);
    }
    let key = secret_key(&options.key, options.password.clone())?;
    let id = id(PublicKey::from_secret_key(&key)?.keynum());
    let mut all = Vec::new();
    for file in options.target.components(None)? {
        let signature = sign(&key, &file)?;
        if !options.json {
            println!(
                "signed {} with key {id}: {}",
                file.display(),
                signature.display()
            );
        }
        all.push(json!({ "file": file, "signature": signature, "key": id }));
    }
    if options.json {
        println!("{:#}", Value::Array(all));
    }
    Ok(ExitCode::SUCCESS)
}

fn generate(options: &Sign) -> Result<()> {
    let secret = &options.key;
    let public = options.key.with_extension("pub");
    for file in [secret, &public] {
        ensure!(
            !file.exists(),
            "{} already exists; name another file with --key",
            file.display()
        );
    }
    let pair = match &options.password {
        _ if options.no_password => KeyPair::generate_unencrypted_keypair(),
        password => KeyPair::generate_encrypted_keypair(password.clone()),
    }
    .context(
        "cannot make a key; without a terminal give TOOLKIT_SIGN_PASSWORD, or --no-password",
    )?;
    write_private(secret, &pair.sk.to_box(None)?.to_bytes())
        .with_context(|| format!("cannot write {}", secret.display()))?;
    fs::write(&public, pair.pk.to_box()?.to_bytes())
        .with_context(|| format!("cannot write {}", public.display()))?;
    let id = id(pair.pk.keynum());
    let line = pair.pk.to_base64();
    if options.json {
        let created = json!({ "key": id, "secret_key_file": secret, "public_key_file": public, "public_key": line });
        println!("{created:#}");
    } else {
        println!(
            "key {id}: secret in {}, public in {}",
            secret.display(),
            public.display()
        );
        println!("a server that accepts its signatures: `publish.trusted_keys = [\"{line}\"]`");
    }
    Ok(())
}

fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?
        .write_all(bytes)
}

fn secret_key(file: &Path, password: Option<String>) -> Result<SecretKey> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| {
        format!("cannot read the secret key {shown}; create one with `toolkit sign --generate`")
    })?;
    ensure!(
        !text.starts_with(PUBLIC_KEY_COMMENT),
        "{shown} is a public key; name the file of the secret key with --key"
    );
    let parse = || {
        SecretKeyBox::from_string(&text)
            .with_context(|| format!("{shown} is not a minisign secret key"))
    };
    if let Ok(key) = parse()?.into_unencrypted_secret_key() {
        return Ok(key);
    }
    let opened = parse()?.into_secret_key(password);
    opened.with_context(|| {
        format!("cannot decrypt the secret key {shown}; set its password in TOOLKIT_SIGN_PASSWORD")
    })
}

/// Writes the signature next to a file. Its trusted comment identifies the signed content.
fn sign(key: &SecretKey, file: &Path) -> Result<PathBuf> {
    let (bytes, comment) = content(file)?;
    let signed = minisign::sign(None, key, Cursor::new(&bytes), Some(&comment), None);
    let to = beside(file);
    let text = signed.context("cannot sign")?.into_string();
    fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
    Ok(to)
}

/// Reads a file, and describes it for the trusted comment of its signature.
fn content(file: &Path) -> Result<(Vec<u8>, String)> {
    let is_component = file
        .extension()
        .is_some_and(|extension| extension == "wasm");
    if is_component {
        let (bytes, manifest) = component::read(file)?;
        let comment = format!(
            "toolkit:{} version:{} {}",
            manifest.slug,
            manifest.version,
            digest(&bytes)
        );
        return Ok((bytes, comment));
    }
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let comment = format!("file:{name} {}", digest(&bytes));
    Ok((bytes, comment))
}

/// Returns the path of a component's signature.
pub(crate) fn beside(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".minisig");
    name.into()
}

/// Returns the signature next to a component, if there is one.
///
/// # Errors
/// Fails if the signature's own comment names other bytes.
pub(crate) fn read_beside(component: &Path, bytes: &[u8]) -> Result<Option<String>> {
    let file = beside(component);
    let shown = file.display();
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {shown}"))?;
    let signature = SignatureBox::from_string(&text)
        .with_context(|| format!("{shown} is not a minisign signature"))?;
    let comment = signature
        .trusted_comment()
        .with_context(|| format!("cannot read {shown}"))?;
    let expected = digest(bytes);
    if comment
        .split_whitespace()
        .any(|word| word.starts_with("sha256:") && word != expected)
    {
        bail!(
            "{shown} does not match the bytes of {component}; sign that file again with `toolkit sign {component}` and publish it as it is, or remove the signature",
            component = component.display()
        );
    }
    Ok(Some(text))
}

/// Verifies a signature with a public key, given as a file or as its base64 text. Returns the key's
/// id.
pub(crate) fn verify(key: &str, bytes: &[u8], signature: &str) -> Result<String> {
    let parsed = match Path::new(key).is_file() {
        true => PublicKey::from_file(key),
        false => PublicKey::from_base64(key),
    };
    let public = parsed
        .with_context(|| format!("{key} is neither a minisign public key nor a file of one"))?;
    let signature = SignatureBox::from_string(signature)
        .context("the signature is not in minisign's format")?;
    minisign::verify(&public, &signature, Cursor::new(bytes), true, false, false)
        .context("the signature is not valid")?;
    Ok(id(public.keynum()))
}

/// Returns the id of the key that made a signature. The signature is not verified.
pub(crate) fn signer(signature: &str) -> Option<String> {
    SignatureBox::from_string(signature)
        .ok()
        .map(|signature| id(signature.keynum()))
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", Digest::compute(bytes))
}

/// Formats a key id as minisign prints it.
fn id(number: &[u8]) -> String {
    number
        .iter()
        .rev()
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_binds_bytes_and_key() {
        let pair = || KeyPair::generate_unencrypted_keypair().unwrap();
        let ours = pair();
        let other = pair();
        let text = minisign::sign(None, &ours.sk, Cursor::new(b"bytes"), Some("c"), None)
            .unwrap()
            .into_string();
        let key = ours.pk.to_base64();
        assert_eq!(Some(verify(&key, b"bytes", &text).unwrap()), signer(&text));
        verify(&key, b"other", &text).unwrap_err();
        verify(&other.pk.to_base64(), b"bytes", &text).unwrap_err();
        verify("nonsense", b"bytes", &text).unwrap_err();
    }

    #[test]
    fn a_signature_of_other_bytes_is_not_sent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wasm");
        assert_eq!(read_beside(&file, b"bytes").unwrap(), None);
        let pair = KeyPair::generate_unencrypted_keypair().unwrap();
        let comment = format!("toolkit:a version:20260101_00 {}", digest(b"bytes"));
        let text = minisign::sign(None, &pair.sk, Cursor::new(b"bytes"), Some(&comment), None)
            .unwrap()
            .into_string();
        fs::write(beside(&file), &text).unwrap();
        assert_eq!(read_beside(&file, b"bytes").unwrap(), Some(text));
        let refused = read_beside(&file, b"other").unwrap_err().to_string();
        assert!(refused.contains("does not match the bytes"), "{refused}");
    }
}
