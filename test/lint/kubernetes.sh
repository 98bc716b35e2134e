#!/usr/bin/env bash
# kubernetes.sh: check the manifests of deploy/kubernetes with kubeconform against the published schemas, which the Python package kubernetes-validate
# and KEDA's Go module carry. If they cannot be fetched, it says so and checks nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=1.33.0
schemas=bin/schemas/kubernetes-validate-1.37.0
left_out() {
  echo "lint: $1: the manifests of deploy/kubernetes are not checked" >&2
  exit 0
}

if [ ! -f "$schemas/complete" ]; then
  command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || left_out "python3 or its pip is missing (on Debian: apt-get install python3-pip)"
  rm -rf "$schemas" && mkdir -p "$schemas"
  python3 -m pip install --quiet --retries 1 --timeout 20 --disable-pip-version-check --root-user-action=ignore --target "$schemas/package" kubernetes-validate==1.37.0 || left_out "kubernetes-validate cannot be fetched"
  keda=$("${GO:-go}" mod download -json github.com/kedacore/keda/v2@v2.17.0 | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])') || left_out "KEDA's module cannot be fetched"
  PYTHONPATH="$schemas/package" python3 - "$version" "$keda" "$schemas" <<'EOF'
import json, pathlib, sys, yaml

version, keda, schemas = sys.argv[1:]
out = pathlib.Path(schemas, "kubernetes")
out.mkdir()
folder = pathlib.Path(schemas, "package/kubernetes_validate/kubernetes-json-schema", f"v{version}-local-strict")
for file in folder.glob("*.json"):
    schema = json.loads(file.read_text().replace('"/api/_definitions.json', '"_definitions.json'))
    schema.pop("$id", None)  # references are to files beside it
    (out / file.name).write_text(json.dumps(schema))
crd = yaml.safe_load(pathlib.Path(keda, "config/crd/bases/keda.sh_scaledobjects.yaml").read_text())
pathlib.Path(schemas, "scaledobject.json").write_text(json.dumps(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))
EOF
  rm -rf "$schemas/package" && touch "$schemas/complete"
fi
kubeconform=github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0
"${GO:-go}" run $kubeconform -v >/dev/null 2>&1 || left_out "kubeconform cannot be fetched"
mapfile -t manifests < <(git ls-files 'deploy/kubernetes/*.yaml' | grep -v kustomization)
"${GO:-go}" run $kubeconform -strict -summary -kubernetes-version "$version" \
  -schema-location "$schemas/kubernetes/{{.ResourceKind}}{{.KindSuffix}}.json" -schema-location "$schemas/{{.ResourceKind}}.json" "${manifests[@]}"
