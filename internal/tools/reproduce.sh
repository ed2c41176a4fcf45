#!/usr/bin/env bash
# Builds the programs of a commit twice, in two folders and without a cache between them, and
# compares the bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'git worktree remove --force "$work/b" 2>/dev/null; git worktree remove --force "$work/a/deeper" 2>/dev/null; chmod -R u+w "$work"; rm -rf "$work"' EXIT
for dir in a/deeper b; do
	mkdir -p "$(dirname "$work/$dir")"
	git worktree add -q --detach "$work/$dir" HEAD
	(cd "$work/$dir" && GOCACHE="$work/cache-${dir%%/*}" make -s build >/dev/null)
done
for program in pilot-api istioctl pilot-agent; do
	cmp "$work/a/deeper/bin/$program" "$work/b/bin/$program"
	echo "$program: the same bytes twice, sha256 $(sha256sum "$work/b/bin/$program" | cut -c1-16)…"
done
