#!/bin/sh
# Installs the newest Bowshot of a release: a folder, or the address of one, that `cargo xtask release` has filled.
#
#   install.sh PLACE [tarball | deb | wheel | python] [--prefix DIR]
#
# PLACE is a folder or an https:// address; what is installed has the checksum that its SHA256SUMS says. Without a kind it is the tarball, which goes to
# DIR: /usr/local for root, else ~/.local. A Debian package needs root, a wheel goes to the environment of the Python on the path; `python` is that wheel and
# the Python client.
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

usage="usage: install.sh PLACE [tarball | deb | wheel | python] [--prefix DIR]"
place='' kind='' prefix=''
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        echo "$usage"
        exit 0
        ;;
    --prefix)
        [ $# -gt 1 ] || fail "--prefix needs a folder"
        prefix=$2
        shift
        ;;
    -*) fail "\`$1\` is no option: $usage" ;;
    *)
        if [ -z "$place" ]; then
            place=${1%/}
        elif [ -z "$kind" ]; then
            kind=$1
        else
            fail "\`$1\` is one argument too many: $usage"
        fi
        ;;
    esac
    shift
done
[ -n "$place" ] || fail "$usage"
kind=${kind:-tarball}

# The name of a package of each kind, with its version in the middle.
version='[0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*'
case $kind in
tarball) before='bowshot-' behind='-x86_64-linux\.tar\.gz' ;;
deb) before='bowshot_' behind='_amd64\.deb' ;;
wheel | python) before='bowshot_server-' behind='-[0-9a-z_.-]*x86_64\.whl' ;;
*) fail "\`$kind\` is no kind of package: tarball, deb, wheel or python" ;;
esac
[ -z "$prefix" ] || [ "$kind" = tarball ] || fail "--prefix is for the tarball alone"
[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] || fail "there are packages for Linux on x86-64 only; this is $(uname -s) on $(uname -m)"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# Brings a file of the release here.
fetch() {
    case $place in
    https://* | http://127.0.0.1:* | http://localhost:*)
        if command -v curl >/dev/null; then
            curl -fsSL --proto '=http,https' --proto-redir '=https' -o "$folder/$1" "$place/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$folder/$1" "$place/$1"
        else
            fail "neither \`curl\` nor \`wget\` is here to fetch with"
        fi
        ;;
    *://*) fail "\`$place\` is no https:// address, so anybody on the way could put another program there" ;;
    *) cp "$place/$1" "$folder/$1" ;;
    esac || fail "\`$1\` cannot be had from $place"
}

# Brings the newest package of a kind here, and sets its `number` and `file`.
newest() {
    before=$1 behind=$2
    line=$(sed -n "s/^\([0-9a-f]\{64\}\)  $before\($version\)\($behind\)\$/\2 &/p" "$folder/SHA256SUMS" |
        sort -t . -k 1,1n -k 2,2n -k 3,3n | tail -n 1)
    [ -n "$line" ] || fail "$place has no $kind"
    number=${line%% *}
    file=${line##* }
    sum=${line#* }
    sum=${sum%% *}
    fetch "$file"
    if command -v sha256sum >/dev/null; then
        found=$(sha256sum "$folder/$file")
    else
        found=$(shasum -a 256 "$folder/$file") || fail "neither \`sha256sum\` nor \`shasum\` is here to check with"
    fi
    [ "${found%% *}" = "$sum" ] || fail "\`$file\` has not the checksum that SHA256SUMS says; nothing was installed"
}

fetch SHA256SUMS
newest "$before" "$behind"

case $kind in
deb)
    [ "$(id -u)" = 0 ] || fail "a Debian package needs root: run this with sudo"
    # apt reads as a user of its own.
    chmod 755 "$folder"
    apt-get install -y "$folder/$file" || fail "apt did not install \`$file\`"
    program=bowshot
    ;;
wheel | python)
    set -- "$folder/$file"
    if [ "$kind" = python ]; then
        newest 'bowshot-' '-py3-none-any\.whl'
        set -- "$@" "$folder/$file"
    fi
    python3 -m pip install "$@" || fail "pip did not install \`$file\`: is this an environment of its own (\`python3 -m venv\`)?"
    program=bowshot
    ;;
tarball)
    if [ -z "$prefix" ]; then
        if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
    fi
    tar -xzf "$folder/$file" -C "$folder"
    new=$folder/${file%.tar.gz}
    "$new/bin/bowshot" --version >/dev/null || fail "the program does not run here: it needs the C library of the machine that built it, or a newer one"
    mkdir -p "$prefix/bin" "$prefix/share"
    cp -R "$new/share/." "$prefix/share/"
    # A program that runs keeps its file: the new one takes its name.
    cp "$new/bin/bowshot" "$prefix/bin/.bowshot.new"
    mv "$prefix/bin/.bowshot.new" "$prefix/bin/bowshot"
    program=$prefix/bin/bowshot
    ;;
esac
echo "Bowshot $number is installed. Try it: $program demo"
