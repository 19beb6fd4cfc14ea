"""Programs in the kit: stripped and compressed."""
import gzip
import pathlib
import shutil
import subprocess
import tempfile


def pack(program, path):
    with tempfile.TemporaryDirectory() as room:
        stripped = pathlib.Path(room) / "program"
        subprocess.run(["strip", "-o", str(stripped), str(program)], check=True)
        with stripped.open("rb") as source, gzip.GzipFile(path, "wb", 6, mtime=0) as packed:
            shutil.copyfileobj(source, packed)


def unpack(path, program):
    """Returns the program's path as text."""
    with gzip.open(path) as source, open(program, "wb") as out:
        shutil.copyfileobj(source, out)
    pathlib.Path(program).chmod(0o755)
    return str(program)
