#!/bin/sh
# Copies the small profiles of testdata into the corpus of the target `xplane`.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/xplane
find ../testdata -name '*.xplane.pb' -size -160k | while read -r profile; do
    cp "$profile" "corpus/xplane/$(echo "$profile" | cut -d/ -f3-4 | tr / -)-$(basename "$profile")"
done
