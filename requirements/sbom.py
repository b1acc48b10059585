"""The pinned requirements -> a bill of materials (CycloneDX 1.6, JSON) on standard output: `sbom.py [FILE]`.

Without a FILE, of what is needed at run time, and of the packages whose files the distributions themselves hold.
The same pins give the same bytes: no clock, no random serial number.
"""

import json
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENDOR = HERE.parent / "gateway" / "inspector" / "page" / "vendor" / "manifest.json"
PIN = re.compile(r"([A-Za-z0-9_.-]+)==([^\s;\\]+)(?: *; *(.*?))? *\\$")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
VIA = re.compile(r"# +(?:via )?([A-Za-z0-9_.-]+)(?: \(pyproject\.toml\))?$")


@dataclass
class Pin:
    """One package: `hashes` of every file that may be installed for it, `via` the packages that need it."""

    version: str
    marker: str | None
    hashes: list[str] = field(default_factory=list)
    via: list[str] = field(default_factory=list)


def read_pins(text: str) -> dict[str, Pin]:
    """The pins of a requirements file by package. Raises ValueError for a line that is not one, and for no hash."""
    pins: dict[str, Pin] = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", text):
        first, *rest = block.splitlines()
        if first.startswith("#"):
            continue
        found = PIN.match(first)
        if found is None or not HASH.search(block):
            raise ValueError(f"this is no pin with a hash: {first}")
        via = [need[1] for line in rest if (need := VIA.fullmatch(line.strip()))]
        pins[found[1]] = Pin(found[2], found[3], HASH.findall(block), [name for name in via if name != "via"])
    return pins


def held() -> list[dict[str, object]]:
    """The packages of npm whose files the inspector's page is made of, as the document lists them."""
    return [
        {
            "type": "library",
            "bom-ref": (url := f"pkg:npm/{package['name']}@{package['version']}"),
            "name": package["name"],
            "version": package["version"],
            "purl": url,
            "licenses": [{"license": {"id": package["licence"]}}],
            "components": [
                {"type": "file", "name": file["name"], "hashes": [{"alg": "SHA-256", "content": file["sha256"]}]}
                for file in package["files"]
            ],
        }
        for package in json.loads(VENDOR.read_text(encoding="utf-8"))["packages"]
    ]


def bill(name: str, version: str, pins: dict[str, Pin], own_files: list[dict[str, object]]) -> dict[str, object]:
    """The document."""
    own = f"pkg:pypi/{name}@{version}"
    urls = {pinned: f"pkg:pypi/{pinned.lower().replace('_', '-')}@{pin.version}" for pinned, pin in pins.items()}
    files = [str(part["bom-ref"]) for part in own_files]
    needs: dict[str, list[str]] = {own: list(files), **{url: [] for url in (*urls.values(), *files)}}
    for pinned, pin in pins.items():
        for via in pin.via:
            needs[own if via == name else urls[via]].append(urls[pinned])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": own, "name": name, "version": version, "purl": own},
        },
        "components": [*(component(pinned, pin, urls[pinned]) for pinned, pin in pins.items()), *own_files],
        "dependencies": [{"ref": ref, "dependsOn": sorted(refs)} for ref, refs in needs.items()],
    }


def component(name: str, pin: Pin, url: str) -> dict[str, object]:
    """One package, as the document lists it."""
    hashes = [{"alg": "SHA-256", "content": digest} for digest in pin.hashes]
    entry: dict[str, object] = {"type": "library", "bom-ref": url, "name": name, "version": pin.version, "purl": url}
    marker = [{"name": "dragoman:marker", "value": pin.marker}] if pin.marker else []
    return {**entry, "hashes": hashes, "properties": marker}


def main(arguments: list[str]) -> None:
    """Write the bill of one requirements file; of what is needed at run time, when none is named."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    file = Path(arguments[0]) if arguments else HERE / "runtime.txt"
    own_files = [] if arguments else held()
    document = bill(project["name"], project["version"], read_pins(file.read_text()), own_files)
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
