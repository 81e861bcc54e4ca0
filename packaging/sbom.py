"""What the program is made of, as CycloneDX: the packages of the lock file that the program reaches, with their checksums."""

from __future__ import annotations

import json
import tomllib

from common import ROOT


def bill(version: str) -> bytes:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    by_name: dict[str, list[dict]] = {}
    for package in lock:
        by_name.setdefault(package["name"], []).append(package)
    reached = _reach(by_name)
    components = [_component(package) for package in lock if id(package) in reached and "source" in package]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "bowshot", "version": version, "bom-ref": f"bowshot@{version}"}},
        "components": components,
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _reach(by_name: dict[str, list[dict]]) -> set[int]:
    """Packages that the program depends on, those of its tests among them: the lock file does not tell them apart."""
    seen: set[int] = set()
    todo = list(by_name["bowshot"])
    while todo:
        package = todo.pop()
        if id(package) in seen:
            continue
        seen.add(id(package))
        for dependency in package.get("dependencies", []):
            name, _, version = dependency.partition(" ")
            version = version.partition(" ")[0]
            todo += [found for found in by_name[name] if version in ("", found["version"])]
    return seen


def _component(package: dict) -> dict:
    name, version = package["name"], package["version"]
    component = {
        "type": "library",
        "name": name,
        "version": version,
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if "checksum" in package:
        component["hashes"] = [{"alg": "SHA-256", "content": package["checksum"]}]
    return component
