//! RSA-SHA1 (RFC 5849, section 3.4.3), for OAuth 1.0 providers that identify a client by its public
//! key.
//!
//! SHA-1 is obsolete for new signatures, so the safe interface of the crypto library verifies such
//! signatures but does not create them. The underlying C library does, and all calls to it are in
//! this file.
//!
//! The soundness of these calls rests on the following facts. The library parses each [`Key`] and
//! checks that it is a complete RSA key before it computes with it. A key is never null, is freed
//! once, is used by one thread and is never given away. Output buffers have the length that the
//! library reports.

#![expect(unsafe_code, reason = "the interface of a library that is C")]

use std::{mem::MaybeUninit, ptr::NonNull};

use aws_lc_sys::{
    CBS_init, EVP_PKEY_free, EVP_PKEY_get1_RSA, EVP_parse_private_key, NID_sha1, RSA, RSA_free,
    RSA_private_key_from_bytes, RSA_sign, RSA_size,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha1::{Digest as _, Sha1};
use zeroize::Zeroizing;

use super::SigningError;

/// Allowed size of a signature and of the modulus, in bytes. Shorter keys are insecure; longer ones
/// keep a processor busy.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 128..=1_024;

/// Private key. It is wiped when it is dropped.
pub(super) struct Key(NonNull<RSA>);

impl Key {
    /// Reads a key in PEM: PKCS#8 (RFC 5208) or PKCS#1 (RFC 8017). Line ends may be missing or
    /// written as `\n`.
    pub(super) fn from_pem(pem: &str) -> Result<Self, SigningError> {
        let key = pem_block(pem, "RSA PRIVATE KEY").and_then(|der| Self::from_pkcs1(&der));
        let key = key.or_else(|| Self::from_pkcs8(&pem_block(pem, "PRIVATE KEY")?));
        let key = key.ok_or_else(|| {
            SigningError(
                "the private key is none of RSA; give it as PEM, whole and without a password"
                    .to_owned(),
            )
        })?;
        if MODULUS_BYTES.contains(&key.size()) {
            return Ok(key);
        }
        let least = MODULUS_BYTES.start() * 8;
        let most = MODULUS_BYTES.end() * 8;
        Err(SigningError(format!(
            "the private key has {} bits; {least} to {most} can be used",
            key.size() * 8
        )))
    }

    fn from_pkcs1(der: &[u8]) -> Option<Self> {
        // SAFETY: pointer and length belong to one slice, which is read before the call ends. The
        // returned pointer is null or owned by the caller.
        NonNull::new(unsafe { RSA_private_key_from_bytes(der.as_ptr(), der.len()) }).map(Self)
    }

    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let mut reader = MaybeUninit::uninit();
        // SAFETY: the first call fills the reader with pointer and length of one slice, which lives
        // until the second call has read it. The returned pointer is null or owned by the caller.
        let key = NonNull::new(unsafe {
            CBS_init(reader.as_mut_ptr(), der.as_ptr(), der.len());
            EVP_parse_private_key(reader.as_mut_ptr())
        })?;
        // SAFETY: the key is not null and is freed once. The pointer taken from it is null if the
        // key is not RSA. Otherwise it has its own reference count and is owned by the caller.
        NonNull::new(unsafe {
            let own = EVP_PKEY_get1_RSA(key.as_ptr());
            EVP_PKEY_free(key.as_ptr());
            own
        })
        .map(Self)
    }

    fn size(&self) -> usize {
        // SAFETY: the key comes from the library and is not freed yet.
        unsafe { RSA_size(self.0.as_ptr()) as usize }
    }

    /// Signs the SHA-1 digest of a text with PKCS#1 v1.5.
    pub(super) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, SigningError> {
        let digest = Sha1::digest(text);
        let mut signature = vec![0; self.size()];
        let mut written = 0;
        // SAFETY: the digest has the stated length and the signature buffer has the length that
        // `RSA_size` returns. The key comes from the library, is not freed yet and is used by this
        // thread only.
        let done = unsafe {
            let (digest, length) = (digest.as_ptr(), digest.len());
            RSA_sign(
                NID_sha1,
                digest,
                length,
                signature.as_mut_ptr(),
                &mut written,
                self.0.as_ptr(),
            )
        };
        let whole = done == 1 && written as usize == signature.len();
        whole
            .then_some(signature)
            .ok_or_else(|| SigningError("the private key does not sign".to_owned()))
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the key comes from the library and nothing else frees it.
        unsafe { RSA_free(self.0.as_ptr()) }
    }
}

/// Returns the bytes of a section of a PEM text (RFC 7468).
fn pem_block(pem: &str, label: &str) -> Option<Zeroizing<Vec<u8>>> {
    let pem = Zeroizing::new(pem.replace("\\n", "\n"));
    let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body = Zeroizing::new(body.split_whitespace().collect::<String>());
    STANDARD.decode(body.as_bytes()).ok().map(Zeroizing::new)
}

#[cfg(test)]
pub(super) mod tests {
    use aws_lc_rs::signature::{RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};

    use super::*;

    /// Key made with `openssl genpkey`, for these tests only.
    pub(in crate::sign) const PKCS8: &str = "\
-----BEGIN PRIVATE KEY-----
MIICdgIBADANBgkqhkiG9w0BAQEFAASCAmAwggJcAgEAAoGBAMbGL6j7t9O5dOxZ
s+WoqzYRZURfYU03QOQoywKHhrbfLdhYdgrh4HH7UgdfdossWlYBW6IKHPrw1fBS
v8Z0ejYPnkvjLamRSRhlmEXQ0nMQtpflm95jfDwmYezEOVrRMeqiI4ZQ2ltHJFPD
NAiUcYFYS+6v+KHXpzfxEQXplAxJAgMBAAECgYBbGXG2bMcvTgv8VpBQbSEqwoY6
88vQa8ZdyyRfoGVpYpfMU56mFiebladeoa3e0xED4dNxTFlD2STz47jo53Eqjj82
gGqAULm3xU5zhOeRdzjHVP8jqd5hxBli/jGpQ6B1hNln04KdzvkjiA48R9QgyBwa
jgFVzKN2sx9kzZgukQJBAPTMUxnmhCC7uL3i+LDYzV/bJ/sU22gNwM8bnxFAHK6h
c0XLc1FJTBmKhIh0hgYDen9miAnHQffbXhavPNqNqUcCQQDP3rdMQKDcXobEdpko
EBgMEcI78//fA+C+pmr0OI6VCDBnOote77kDVc7PaPsFeh/VwIY8Id03GKH81OHN
JmXvAkBc6izkmM0vy3C8iijQnwmcx4cuUuVQYl/7fEVs+8OnONqS9Dzp7oM28o+J
Z4jzQWC+eIFMDNhqJlZZD9xuK/TDAkEAj1YtIOiDw9FurrR1IdoPKutn+z1iV97t
r6lDoQoKz5to/RWymxFEi5c013K1fW5b22I5beeQCfjzYktNNNBggwJAEP+i6lUv
KIvDvM3rafoPZ4nNJubxewhTA49Q/6GBytI2RxHP0p+ql8/agBFJVttcvcXkxUQC
Dd2YjFxRMpIVWw==
-----END PRIVATE KEY-----";
    /// The same key, written by `openssl rsa -traditional`.
    const PKCS1: &str = "\
-----BEGIN RSA PRIVATE KEY-----
MIICXAIBAAKBgQDGxi+o+7fTuXTsWbPlqKs2EWVEX2FNN0DkKMsCh4a23y3YWHYK
4eBx+1IHX3aLLFpWAVuiChz68NXwUr/GdHo2D55L4y2pkUkYZZhF0NJzELaX5Zve
Y3w8JmHsxDla0THqoiOGUNpbRyRTwzQIlHGBWEvur/ih16c38REF6ZQMSQIDAQAB
AoGAWxlxtmzHL04L/FaQUG0hKsKGOvPL0GvGXcskX6BlaWKXzFOephYnm5WnXqGt
3tMRA+HTcUxZQ9kk8+O46OdxKo4/NoBqgFC5t8VOc4TnkXc4x1T/I6neYcQZYv4x
qUOgdYTZZ9OCnc75I4gOPEfUIMgcGo4BVcyjdrMfZM2YLpECQQD0zFMZ5oQgu7i9
4viw2M1f2yf7FNtoDcDPG58RQByuoXNFy3NRSUwZioSIdIYGA3p/ZogJx0H3214W
rzzajalHAkEAz963TECg3F6GxHaZKBAYDBHCO/P/3wPgvqZq9DiOlQgwZzqLXu+5
A1XOz2j7BXof1cCGPCHdNxih/NThzSZl7wJAXOos5JjNL8twvIoo0J8JnMeHLlLl
UGJf+3xFbPvDpzjakvQ86e6DNvKPiWeI80FgvniBTAzYaiZWWQ/cbiv0wwJBAI9W
LSDog8PRbq60dSHaDyrrZ/s9Ylfe7a+pQ6EKCs+baP0VspsRRIuXNNdytX1uW9ti
OW3nkAn482JLTTTQYIMCQBD/oupVLyiLw7zN62n6D2eJzSbm8XsIUwOPUP+hgcrS
NkcRz9KfqpfP2oARSVbbXL3F5MVEAg3dmIxcUTKSFVs=
-----END RSA PRIVATE KEY-----";
    /// Key of 512 bits.
    const SHORT: &str = "\
-----BEGIN PRIVATE KEY-----
MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEAAkEAs4/GFBrPay2C5fWQ
SMrLF4Yr1SJVQWKKqSFmqGqB6HgsTMioJEV6yQHADdy6WESxR0FqgTkunLpVqCIU
GOYxbQIDAQABAkAarkBWeG1dlZOfq89WoZtv0WXt834LiyLjYq0oVTscWY8YaLwA
kSxLPI8T9x0C8JrGabcoYcSoVtixGD5MYUNZAiEA41JkuhS3czNMSVw7yfQIxK1Z
y5j2qdBaOxotdT8+1XcCIQDKNulcYwRb6Ixx5UE45QGtAhm9CBj0hdRTVvzJNhi5
OwIgDV41CjRZrW6g19eStIejVF2VYEG4j7fu9nbNoY18lnUCIQDFK3GzcaDodQGs
dJt5/GH77dZm6SRcGLoFYQYus567zQIhAJBs6IZ/Yw9GRDazCQ2JYutMX/L3ecH8
TyoA50W5lwDD
-----END PRIVATE KEY-----";
    /// Key of an elliptic curve.
    const OTHER: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgm28+BKcBMmh+lXQq
ThHRcgslv/otG9onOTm5LeB/MHWhRANCAAThxZfEOZC4F0SjGAZMAg0P9amSsbLB
klKE5l5aFj+AEBWP5qLPQVTPGoJ7vGcdFVsaLs6r/pC9Dm6yLrPI56pW
-----END PRIVATE KEY-----";
    /// Public key of the first key, as `openssl rsa -RSAPublicKey_out -outform DER` writes it, in
    /// hex.
    const PUBLIC: &str = "\
        30818902818100c6c62fa8fbb7d3b974ec59b3e5a8ab361165445f614d3740e428cb028786b6df2dd858760ae1e071fb5207\
        5f768b2c5a56015ba20a1cfaf0d5f052bfc6747a360f9e4be32da9914918659845d0d27310b697e59bde637c3c2661ecc439\
        5ad131eaa2238650da5b472453c33408947181584beeaff8a1d7a737f11105e9940c490203010001";
    /// Signature of `text` by `openssl dgst -sha1 -sign` with the first key.
    const SIGNATURE: &str = "\
        sOKyP28r0e2zFB0CvgL6dVjN3NCybQrFSJ4TTQc0ECZRkoXF1sA7a3feg+GRELOeSpmq+iXlRG/jCFmtTuEaRIONLxvQly5ddWBD\
        Huqtaz19WaK+GxEGlxNnypuMmf6YVU9qWpnNQZoUmgbnrOSladCFyAUHhOL13H/f+Er+mBE=";

    fn key(pem: &str) -> Result<Key, String> {
        Key::from_pem(pem).map_err(|SigningError(why)| why)
    }

    #[test]
    fn pkcs1_and_pkcs8_keys_sign_alike() {
        let public = hex::decode(PUBLIC).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, public);
        for pem in [
            PKCS8.to_owned(),
            PKCS1.to_owned(),
            PKCS8.replace('\n', "\\n"),
            PKCS1.replace('\n', " "),
        ] {
            let signature = key(&pem).unwrap().sign(b"text").unwrap();
            assert_eq!(STANDARD.encode(&signature), SIGNATURE, "{pem}");
            public.verify(b"text", &signature).unwrap();
            assert!(public.verify(b"another", &signature).is_err());
        }
    }

    #[test]
    fn invalid_keys_are_refused_without_their_text() {
        let label = |pem: &str, from: &str, to: &str| pem.replace(from, to);
        let cut = format!("{}{}", &PKCS8[..200], &PKCS8[260..]);
        for wrong in [
            "",
            "secret-0123456789",
            OTHER,
            &cut,
            PKCS8.trim_end_matches('-'),
            &label(PKCS8, "PRIVATE", "PUBLIC"),
            &label(PKCS8, "PRIVATE", "ENCRYPTED PRIVATE"),
            &label(PKCS8, "PRIVATE", "RSA PRIVATE"),
            &label(PKCS1, "RSA PRIVATE", "PRIVATE"),
            "-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----",
        ] {
            let refused = key(wrong).err().unwrap();
            assert!(
                refused.contains("none of RSA") && !refused.contains("0123456789"),
                "{wrong}: {refused}"
            );
        }
        let refused = key(SHORT).err().unwrap();
        assert!(
            refused.contains("512 bits; 1024 to 8192 can be used"),
            "{refused}"
        );
    }

    /// Flips every bit of a key, one after the other. No change makes a key that signs something
    /// else, and none crashes the library.
    #[test]
    fn tampered_key_is_refused_or_signs_alike() {
        let der = pem_block(PKCS1, "RSA PRIVATE KEY").unwrap();
        for bit in 0..der.len() * 8 {
            let mut der = der.clone();
            der[bit / 8] ^= 1 << (bit % 8);
            let signature = Key::from_pkcs1(&der).and_then(|key| key.sign(b"text").ok());
            assert!(
                signature.is_none_or(|signature| STANDARD.encode(signature) == SIGNATURE),
                "bit {bit}"
            );
        }
    }
}
