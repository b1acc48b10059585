"""A commit -> its source distribution, its wheel and their checksums in dist/: `distributions.py [COMMIT]`.

Both are built twice, in two folders, the second wheel from the source distribution. The same commit gives the same
bytes: the time in each file is that of the commit. It fails where two builds differ. Needs git, and the pinned
setuptools of the environment that runs it; no network.
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def export(commit: str, folder: Path) -> Path:
    """Writes the files of a commit into a new folder, and returns it."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    return unpack(io.BytesIO(archive), folder)


def unpack(archive: io.BufferedIOBase, folder: Path) -> Path:
    """Unpacks a tar archive into a new folder, and returns it. Modes are 644 and 755, whatever the umask was."""
    with tarfile.open(fileobj=archive) as files:
        files.extractall(folder, filter="data")
    return folder


def build(kind: str, source: Path, target: Path, epoch: int) -> Path:
    """Builds a `wheel` or an `sdist` of the sources in the folder `target`, and returns the file."""
    target.mkdir()
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(target)]
    subprocess.run(command, cwd=source, env=environ, check=True, stdout=subprocess.DEVNULL, umask=0o022)
    (built,) = target.iterdir()
    if kind == "sdist":
        repack(built, epoch)
    return built


def repack(archive: Path, epoch: int) -> None:
    """Writes a .tar.gz anew, in the order of names, without the users and times of this machine."""
    packed = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = epoch
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    archive.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def digest(file: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def same(first: Path, second: Path) -> Path:
    """Returns the first of two builds. Exits with a message where they differ."""
    if digest(first) != digest(second):
        sys.exit(f"two builds of {first.name} differ")
    return first


def distributions(commit: str, folder: Path) -> list[Path]:
    """Builds the source distribution and the wheel of a commit in a folder. Exits where two builds of one differ."""
    epoch = int(subprocess.check_output(["git", "log", "-1", "--format=%ct", commit], cwd=ROOT))
    first, second = (export(commit, folder / name) for name in ("first", "second"))
    sdist = same(build("sdist", first, folder / "sdist", epoch), build("sdist", second, folder / "sdist-2", epoch))
    with sdist.open("rb") as archive:
        (third,) = unpack(archive, folder / "third").iterdir()
    wheel = same(build("wheel", first, folder / "wheel", epoch), build("wheel", third, folder / "wheel-2", epoch))
    return [sdist, wheel]


def main(commit: str = "HEAD") -> None:
    """Builds a commit into dist/, in place of the distributions there, and prints the checksums."""
    with tempfile.TemporaryDirectory() as folder:
        built = distributions(commit, Path(folder))
        DIST.mkdir(exist_ok=True)
        for old in (*DIST.glob("*.tar.gz"), *DIST.glob("*.whl")):
            old.unlink()
        for file in built:
            shutil.copy(file, DIST)
    sums = "".join(f"{digest(DIST / file.name)}  {file.name}\n" for file in built)
    (DIST / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)


if __name__ == "__main__":
    main(*sys.argv[1:])
