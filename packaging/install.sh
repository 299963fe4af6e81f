#!/bin/sh
# Installs both commands of toolhost. Nothing is unpacked before the signature of the list of
# checksums and the checksum of the archive are verified.
#
#   sh install.sh [--prefix DIR] [--from URL|DIR] [--version VERSION] [--target TARGET] [--key KEY]
#
# --prefix   folder that receives bin/ and share/ [default: ~/.local, for root /usr/local]
# --from     address or folder of the release
# --key      minisign public key of the publisher
set -eu

# `make dist` fills these in.
version='@VERSION@'
from='@RELEASES@'
key='@PUBLIC_KEY@'
target=
prefix=

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || fail "$1 needs a value"
    case $1 in
    --prefix) prefix=$2 ;;
    --from) from=$2 ;;
    --version) version=$2 ;;
    --target) target=$2 ;;
    --key) key=$2 ;;
    *) fail "unknown option $1: use --prefix, --from, --version, --target or --key" ;;
    esac
    shift 2
done
case $version in @* | '') fail "this copy is of no release: name the version with --version" ;; esac
case $from in @* | '') fail "this copy is of no release: name the address of the release with --from" ;; esac
case $key in @* | '') fail "this copy has no key of a publisher: give the minisign public key with --key" ;; esac

if [ -z "$target" ]; then
    case $(uname -s)-$(uname -m) in
    Linux-x86_64) target=x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-musl ;;
    Darwin-arm64) target=aarch64-apple-darwin ;;
    Darwin-x86_64) target=x86_64-apple-darwin ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m): build from source with \`make install\`" ;;
    esac
fi
if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
fi

name=toolhost-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch() {
    case $from in
    http://* | https://*)
        if command -v curl >/dev/null; then
            curl -fsSL -o "$work/$1" "$from/$1" || fail "cannot download $from/$1"
        else
            wget -qO "$work/$1" "$from/$1" || fail "cannot download $from/$1"
        fi
        ;;
    *) cp "$from/$1" "$work/$1" || fail "cannot read $from/$1" ;;
    esac
}

# Verifies an Ed25519 signature: content, signature.
ed25519() {
    openssl pkeyutl -verify -pubin -keyform DER -inkey "$work/key.der" -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}

# Verifies the signature of the list as minisign does. The first signature is of the hash of the
# list, the second one of the first and the trusted comment.
verify_with_openssl() {
    list=$work/SHA256SUMS
    printf '%s' "$key" | openssl base64 -d -A >"$work/key.bin" || return 1
    sed -n 2p "$list.minisig" | openssl base64 -d -A >"$work/signature.bin" || return 1
    sed -n 4p "$list.minisig" | openssl base64 -d -A >"$work/global.signature" || return 1
    # Both name an algorithm in 2 bytes and a key in 8.
    [ "$(wc -c <"$work/key.bin")" -eq 42 ] && [ "$(wc -c <"$work/signature.bin")" -eq 74 ] || return 1
    [ "$(head -c 2 "$work/signature.bin")" = ED ] || return 1
    head -c 10 "$work/key.bin" | tail -c 8 >"$work/key.id"
    head -c 10 "$work/signature.bin" | tail -c 8 | cmp -s - "$work/key.id" || return 1
    # The fixed beginning of an Ed25519 public key in DER.
    printf '\060\052\060\005\006\003\053\145\160\003\041\000' >"$work/key.der"
    tail -c 32 "$work/key.bin" >>"$work/key.der"
    tail -c 64 "$work/signature.bin" >"$work/signature"
    openssl dgst -blake2b512 -binary "$list" >"$work/hash" || return 1
    ed25519 "$work/hash" "$work/signature" || return 1
    sed -n '3s/^trusted comment: //p' "$list.minisig" | tr -d '\n\r' | cat "$work/signature" - >"$work/global"
    ed25519 "$work/global" "$work/global.signature"
}

fetch SHA256SUMS
fetch SHA256SUMS.minisig
if command -v minisign >/dev/null; then
    minisign -V -q -P "$key" -m "$work/SHA256SUMS" -x "$work/SHA256SUMS.minisig" >/dev/null 2>&1 && verified=yes || verified=
elif openssl pkeyutl -help 2>&1 | grep -q rawin; then
    verify_with_openssl && verified=yes || verified=
else
    fail "minisign, or OpenSSL 3, is needed to verify the signature: install one of them"
fi
[ -n "$verified" ] || fail "the signature of SHA256SUMS is not valid for the key $key: nothing was installed"

fetch "$name.tar.gz"
(
    cd "$work"
    grep "^[0-9a-f]\{64\}  $name\.tar\.gz\$" SHA256SUMS >checksum || fail "SHA256SUMS does not list $name.tar.gz"
    if command -v sha256sum >/dev/null; then sha256sum -c checksum; else shasum -a 256 -c checksum; fi >/dev/null 2>&1 ||
        fail "$name.tar.gz does not have the checksum in SHA256SUMS: nothing was installed"
)
tar -xzf "$work/$name.tar.gz" -C "$work"

mkdir -p "$prefix/bin"
for program in toolhost toolkit; do
    # A program that runs cannot be overwritten, but it can be replaced.
    cp "$work/$name/bin/$program" "$prefix/bin/.$program.new"
    mv -f "$prefix/bin/.$program.new" "$prefix/bin/$program"
done
# Toolkits of another version would be published as those of this one.
rm -rf "$prefix/share/toolhost/toolkits"
cp -R "$work/$name/share" "$prefix/"
echo "toolhost $version is installed in $prefix/bin"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "add $prefix/bin to PATH to run it by name" ;;
esac
