"""Writes schemas for kubeconform from the OpenAPI description of Kubernetes and
from CustomResourceDefinitions. Strict: what is not described is refused.

usage: schemas.py OUTDIR swagger.json CRD.yaml…
"""

import json
import pathlib
import sys

import yaml

# Values that Kubernetes describes as strings and takes as numbers too.
EITHER = {"oneOf": [{"type": "string"}, {"type": "number"}]}
LOOSE = ("JSONSchemaProps", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrArray", ".JSON", "FieldsV1", "RawExtension")


def strict(schema, is_properties=False):
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if not is_properties:
        if "$ref" in schema:
            return {"$ref": "definitions.json#/definitions/" + schema["$ref"].rsplit("/", 1)[1]}
        if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
            return EITHER
    out = {
        key: strict(value, key == "properties" and not is_properties)
        for key, value in schema.items()
        if is_properties or not key.startswith("x-kubernetes")
    }
    if not is_properties and isinstance(out.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    return out


def write(out, group, version, kind, schema):
    schema = json.loads(json.dumps(schema))
    schema["properties"]["apiVersion"] = {"enum": [f"{group}/{version}" if group else version]}
    schema["properties"]["kind"] = {"enum": [kind]}
    schema["required"] = sorted({"apiVersion", "kind", "metadata", *schema.get("required", [])})
    name = "-".join(part for part in (kind.lower(), group.split(".")[0], version) if part)
    (out / f"{name}.json").write_text(json.dumps(schema))


def main(out, swagger, *crds):
    out = pathlib.Path(out)
    definitions = {}
    described = json.loads(pathlib.Path(swagger).read_text())["definitions"]
    for name, schema in described.items():
        if name.endswith("resource.Quantity"):
            definitions[name] = EITHER
        elif name.endswith(LOOSE):
            definitions[name] = {}
        else:
            definitions[name] = strict(schema)
    (out / "definitions.json").write_text(json.dumps({"definitions": definitions}))
    for name, schema in described.items():
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if len(kinds) == 1 and "metadata" in schema.get("properties", {}):
            write(out, kinds[0]["group"], kinds[0]["version"], kinds[0]["kind"], definitions[name])
    meta = {"$ref": "definitions.json#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    for path in crds:
        spec = yaml.safe_load(pathlib.Path(path).read_text())["spec"]
        for version in spec["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = meta
            write(out, spec["group"], version["name"], spec["names"]["kind"], schema)


main(*sys.argv[1:])
