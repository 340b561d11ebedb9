"""The manifests of the page on Kubernetes: each field is one of Kubernetes' own models, and they fit each other.

No API server is asked: the models are those of Kubernetes' Python client.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kubernetes.client.models as models
import pytest
import yaml

PAGE = Path(__file__).parents[2] / "provider" / "docs" / "how-to" / "run-on-kubernetes.md"
BLOCKS = re.findall(r"^```(yaml|json)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
MANIFESTS = [one for kind, text in BLOCKS if kind == "yaml" for one in yaml.safe_load_all(text)]
SETTINGS: dict[str, str] = next(json.loads(text) for kind, text in BLOCKS if kind == "json")
VERSIONS = {
    "ServiceAccount": "v1",
    "Service": "v1",
    "Pod": "v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
}
FORMER_NAMES = {"V1Subject": "RbacV1Subject"}  # of models that the client has renamed


def unknown(value: Any, model: str, at: str) -> list[str]:
    """The fields of a value that its model does not have, and values of other types."""
    listed = re.fullmatch(r"list\[(.+)\]", model)
    if listed:
        if not isinstance(value, list):
            return [f"{at} is no list"]
        return [found for place, one in enumerate(value) for found in unknown(one, listed[1], f"{at}[{place}]")]
    if model.startswith(("dict(", "dict[")):
        return [] if isinstance(value, dict) else [f"{at} is no object"]
    plain = {"str": str, "int": int, "bool": bool}.get(model)
    if plain is not None:
        return [] if type(value) is plain else [f"{at} is no {model}"]
    if model == "object":
        return []
    kind = getattr(models, model, None) or getattr(models, FORMER_NAMES[model])
    fields = {kind.attribute_map[name]: of for name, of in kind.openapi_types.items()}
    found = [f"{at}.{name} is unknown" for name in value if name not in fields]
    return found + [
        problem for name in value if name in fields for problem in unknown(value[name], fields[name], f"{at}.{name}")
    ]


def of(kind: str) -> dict[str, Any]:
    (found,) = [one for one in MANIFESTS if one["kind"] == kind]
    return dict(found)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: one["kind"])
def test_a_manifest_has_the_fields_of_its_model(manifest: dict[str, Any]) -> None:
    assert manifest["apiVersion"] == VERSIONS[manifest["kind"]]
    assert unknown(manifest, f"V1{manifest['kind']}", manifest["kind"]) == []


def test_a_field_that_no_model_has_is_found() -> None:
    wrong = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "a", "volumeMount": []}], "volumes": 1},
    }
    assert unknown(wrong, "V1Pod", "Pod") == [
        "Pod.spec.containers[0].volumeMount is unknown",
        "Pod.spec.volumes is no list",
    ]


def test_the_binding_gives_the_role_to_the_account_of_the_settings_and_no_rights_elsewhere() -> None:
    account, role, binding = of("ServiceAccount")["metadata"], of("Role"), of("RoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": role["metadata"]["name"],
    }
    assert {one["metadata"].get("namespace", account["namespace"]) for one in MANIFESTS} == {account["namespace"]}
    assert SETTINGS["spark.kubernetes.authenticate.driver.serviceAccountName"] == account["name"]
    assert not [rule for rule in role["rules"] if "*" in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])]
    rights = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    needed = {
        "pods": "create get list watch delete deletecollection",
        "configmaps": "create delete",
        "services": "create",
    }
    assert {(resource, verb) for resource, verbs in needed.items() for verb in verbs.split()} <= rights


def test_executors_reach_the_driver_at_the_ports_of_its_service() -> None:
    service = of("Service")
    ports = {port["name"]: str(port["port"]) for port in service["spec"]["ports"]}
    assert ports == {"driver": SETTINGS["spark.driver.port"], "blockmanager": SETTINGS["spark.blockManager.port"]}
    place = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert SETTINGS["spark.driver.host"] == place


def test_the_template_has_the_container_that_spark_completes_and_mounts_what_it_names() -> None:
    spec = of("Pod")["spec"]
    (container,) = spec["containers"]
    assert container["name"] == "spark-kubernetes-executor"
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in spec["volumes"]}
