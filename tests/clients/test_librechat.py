"""The file that `dragoman connect librechat` writes, before LibreChat's own schema."""

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest
from ruamel.yaml import YAML

from tests.clients.installed import CLIENTS, PROGRAMS
from tests.clients.scratch import Scratch

PACKAGE: Final = PROGRAMS / "node_modules" / "librechat-data-provider"
WRITE: Final = "dragoman connect librechat --write --model demo-agent --url http://127.0.0.1:8000"
READ: Final = """
node --input-type=commonjs - <<'END'
const { configSchema } = require("librechat-data-provider");
const { load } = require("js-yaml");
const text = require("node:fs").readFileSync("librechat.yaml", "utf8");
const read = configSchema.strict().safeParse(load(text));
console.log(JSON.stringify(read.success ? read.data : read.error.issues));
process.exit(read.success ? 0 : 1);
END
"""

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the package and runs this"),
]


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    if not PACKAGE.exists():
        pytest.skip("NOT RUN: LibreChat's schema, because its package could not be installed here")
    scratch = Scratch(tmp_path)
    ran = scratch.run(WRITE, {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    assert ran.status == 0, ran.printed
    return scratch


def test_the_schema_takes_the_file_and_leaves_nothing_out(scratch: Scratch) -> None:
    read = scratch.run(READ, {})
    assert read.status == 0, read.printed
    written = YAML(typ="safe").load(scratch.repository / "librechat.yaml")
    (endpoint,), (known,) = written["endpoints"]["custom"], json.loads(read.printed)["endpoints"]["custom"]
    assert {name: known.get(name) for name in endpoint} == endpoint


def test_the_schema_refuses_a_value_of_another_type(scratch: Scratch) -> None:
    file = scratch.repository / "librechat.yaml"
    file.write_text(file.read_text().replace("titleConvo: true", "titleConvo: [yes]"))
    read = scratch.run(READ, {})
    assert read.status == 1 and "titleConvo" in read.printed
