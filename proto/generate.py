"""Turn the `.proto` sources into the committed Python modules beside their users: `generate.py [--check]`."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent
ROOT = PROTO.parent
GOOGLE = Path(grpc_tools.__file__).resolve().parent / "_proto"

# folder of sources under proto/ -> package that holds what is generated from them
PACKAGES = {
    "demo": "adapters/proto/demo",
    "reflection": "gateway/protobuf",
    "status": "adapters/proto",
    "warp": "adapters/warp",
}
# preset -> its source under proto/, of which the preset has the descriptors with their imports
PRESETS = {
    "demo": "demo/generation.proto",
    "dynamo": "presets/triton.proto",
    "gemini_grpc": "presets/gemini_grpc.proto",
    "gigachat": "presets/gigachat.proto",
    "localai": "presets/localai.proto",
    "mlserver": "presets/mlserver.proto",
    "sglang": "presets/sglang.proto",
    "tgis": "presets/tgis.proto",
    "triton_trtllm": "presets/triton.proto",
    "triton_vllm": "presets/triton.proto",
    "vertex_grpc": "presets/vertex_grpc.proto",
    "vertex_grpc_level": "presets/vertex_grpc.proto",
    "warp": "warp/multi_agent.proto",
    "xai": "presets/xai.proto",
    "yandex": "presets/yandex.proto",
}


def generate() -> dict[Path, bytes]:
    """Every generated file by its path in the repository. Raises RuntimeError when a source does not compile."""
    made: dict[Path, bytes] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for folder, package in PACKAGES.items():
            compile_folder(PROTO / folder, package, Path(scratch))
        for path in sorted(Path(scratch).rglob("*_pb2.py*")):
            made[path.relative_to(scratch)] = path.read_bytes()
        for preset, source in PRESETS.items():
            made[Path("adapters/proto/presets", f"{preset}.pb")] = descriptors(
                PROTO / source, Path(scratch, "descriptors")
            )
    return made


def compile_folder(folder: Path, package: str, output: Path) -> None:
    """Compiles the sources of one folder as if they lay in the package, so that what is generated lands there."""
    sources = [f"{package}/{path.name}" for path in sorted(folder.glob("*.proto"))]
    arguments = [f"--proto_path={package}={folder}", f"--proto_path={GOOGLE}"]
    arguments += [f"--python_out={output}", f"--pyi_out={output}"]
    if protoc.main(["protoc", *arguments, *sources]) != 0:
        raise RuntimeError(f"{folder} does not compile")


def descriptors(source: Path, output: Path) -> bytes:
    """Compiles one source and its imports to a FileDescriptorSet."""
    arguments = [f"--proto_path={source.parent}", f"--proto_path={GOOGLE}", "--include_imports"]
    if protoc.main(["protoc", *arguments, f"--descriptor_set_out={output}", source.name]) != 0:
        raise RuntimeError(f"{source} does not compile")
    return output.read_bytes()


def drifted(made: Mapping[Path, bytes]) -> list[Path]:
    """The generated files whose committed text is another or missing."""
    return [path for path, text in made.items() if not same(ROOT / path, text)]


def same(path: Path, text: bytes) -> bool:
    return path.is_file() and path.read_bytes() == text


def write(made: Mapping[Path, bytes]) -> None:
    for path, text in made.items():
        (ROOT / path).write_bytes(text)


def main(arguments: list[str]) -> int:
    made = generate()
    stale = drifted(made)
    if "--check" not in arguments:
        write(made)
        return 0
    for path in stale:
        sys.stderr.write(f"{path} differs from its source; run `make proto`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
