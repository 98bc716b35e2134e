#!/usr/bin/env bash
# release.sh: builds dist/: an archive of the command for this platform, its
# software bill of materials (CycloneDX 1.6) and SHA256SUMS. The same commit gives
# the same bytes with the same Go and C toolchain. VERSION names the release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

GO=${GO:-go}
VERSION=${VERSION:-$(git describe --tags --always --dirty)}
platform=$($GO env GOOS)-$($GO env GOARCH)
name=otograph-$VERSION-$platform
stage=dist/$name
rm -rf dist
mkdir -p "$stage/docs"

$GO build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o "$stage/otograph" ./cmd/otograph
cp README.md LICENSE CHANGELOG.md SECURITY.md "$stage/"
cp docs/*.md "$stage/docs/"
cp deploy/otograph.service "$stage/"

$GO run -C tools ./sbom -version "$VERSION" -lock web/package-lock.json "$stage/otograph" >"dist/$name.cdx.json"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C dist -cf - "$name" |
  gzip -n -9 >"dist/$name.tar.gz"
rm -rf "$stage"
(cd dist && sha256sum "$name.tar.gz" "$name.cdx.json" >SHA256SUMS)
ls -l dist
