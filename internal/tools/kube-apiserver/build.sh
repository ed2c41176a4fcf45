#!/usr/bin/env bash
# Builds the kube-apiserver of a version of Kubernetes into a folder, from its modules, and
# kube-aggregation (aggregation.go) beside it.
#
# Kubernetes' own go.mod expects its libraries in folders that no module has. The go.mod that
# is made here names the published modules in their place. All other versions are those of
# Kubernetes, and the checksum database checks them.
#
# The first build takes about ten minutes of one core. P=n uses more.
set -euo pipefail

version=$1 # v1.37.2
folder=$(realpath -m "$2")
source=$(realpath "$(dirname "$0")")/aggregation.go
libraries=v0.${version#v1.}
minor=${version#v1.}
minor=${minor%%.*}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
	echo "kube-apiserver: not built; the Go module proxy must be reachable (go env GOPROXY) to fetch k8s.io/kubernetes" >&2
	exit 1
}

of_kubernetes=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p') || fail
{
	printf 'module kube-apiserver\n\n%s\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$(grep '^go ' "$of_kubernetes")" "$version"
	sed -nE "s|^\s*(k8s\.io/\S+) => \./staging/.*|\t\1 => \1 $libraries|p" "$of_kubernetes"
	printf ')\n'
} >go.mod

echo "kube-apiserver: building $version (ten minutes the first time)"
stamp=k8s.io/component-base/version
flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor"
mkdir -p "$folder"
cp "$source" .
go build -mod=mod -p "${P:-1}" -ldflags "$flags" -o kube-aggregation aggregation.go || fail
go build -mod=mod -p "${P:-1}" -ldflags "$flags" -o kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver || fail
mv kube-aggregation kube-apiserver "$folder"
