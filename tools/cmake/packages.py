"""Makes the packages of a release in the folder OUTPUT: the source archive, the binary archive, Debian's packages and SHA256SUMS.
The same sources, options and compiler give the same bytes in any folder, at any time, whatever the umask, locale and owner.

usage: packages.py SOURCE_DIR BUILD_DIR CPACK VERSION OUTPUT

SOURCE_DIR is a clone or an unpacked source archive; BUILD_DIR has everything built. Members of archives have the time
SOURCE_DATE_EPOCH; default: the day of this version's heading in CHANGELOG.md, or 0 where it has none.
"""
import calendar
import fnmatch
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time


def fail(message):
    sys.exit(f"packages.py: {message}")


# ---- the source files ------------------------------------------------------------------------------------------------

def source_files(root):
    """Returns sorted paths from the root: tracked files; in an unpacked archive, all files that .gitignore does not name."""
    root = pathlib.Path(root)
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout
        return sorted(path for path in listed.split("\0") if path and (root / path).is_file())
    lines = (root / ".gitignore").read_text(encoding="utf-8").split()
    found = []
    for folder, folders, files in os.walk(root):
        place = pathlib.Path(folder).relative_to(root)
        folders[:] = [name for name in folders if not is_ignored(lines, (place / name).as_posix(), True)]
        found += [path for path in ((place / name).as_posix() for name in files) if not is_ignored(lines, path, False)]
    return sorted(found)


def is_ignored(lines, path, is_folder):
    """A pattern that ends in a slash matches folders only; a pattern with any other slash matches paths from the root."""
    def matches(line):
        pattern = line.rstrip("/")
        name = path if "/" in pattern else path.rpartition("/")[2]
        return (is_folder or line == pattern) and fnmatch.fnmatchcase(name, pattern.lstrip("/"))
    return any(map(matches, lines))


# ---- archives whose bytes depend only on names, modes and contents ---------------------------------------------------

def write_archive(members, epoch):
    """A .tar.gz of (TarInfo, bytes), sorted by name."""
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 6, packed, mtime=0) as file, tarfile.open(None, "w", file, format=tarfile.GNU_FORMAT) as tar:
        for info, data in sorted(members, key=lambda member: member[0].name):
            info.uid, info.gid, info.uname, info.gname, info.mtime, info.pax_headers = 0, 0, "root", "root", epoch, {}
            tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def source_archive(root, prefix, epoch):
    members = []
    for path in source_files(root):
        info, data = tarfile.TarInfo(f"{prefix}/{path}"), (pathlib.Path(root) / path).read_bytes()
        info.size, info.mode = len(data), 0o755 if os.access(pathlib.Path(root) / path, os.X_OK) else 0o644
        members.append((info, data))
    return write_archive(members, epoch)


def rewritten_archive(data, epoch):
    """Removes times, owners and order from the members; and sorts the lines of md5sums."""
    members = []
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            content = tar.extractfile(info).read() if info.isreg() else b""
            if info.name.rpartition("/")[2] == "md5sums":
                content = b"".join(sorted(content.splitlines(True), key=lambda line: line.partition(b"  ")[2]))
            members.append((info, content))
    return write_archive(members, epoch)


def rewritten_deb(data, epoch):
    """An ar archive of debian-binary, control.tar.gz and data.tar.gz, in this order."""
    result, at = b"!<arch>\n", 8
    if not data.startswith(result):
        fail("expected a Debian package, found a file that does not start with !<arch>")
    while at < len(data):
        name, size = data[at:at + 16].decode().strip().rstrip("/"), int(data[at + 48:at + 58])
        content = data[at + 60:at + 60 + size]
        if name.endswith(".tar.gz"):
            content = rewritten_archive(content, epoch)
        header = f"{name:<16}{epoch:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n"
        result += header.encode() + content + b"\n" * (len(content) % 2)
        at += 60 + size + size % 2
    return result


# ---- all of them -----------------------------------------------------------------------------------------------------

def epoch_of(root, version):
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given:
        if not re.fullmatch(r"\d{1,11}", given):
            fail(f"SOURCE_DATE_EPOCH: expected seconds since 1970, found '{given}'")
        return int(given)
    changes = (pathlib.Path(root) / "CHANGELOG.md").read_text(encoding="utf-8")
    day = re.search(rf"^## {re.escape(version)}, (\d{{4}}-\d\d-\d\d)$", changes, re.M)
    return calendar.timegm(time.strptime(day[1], "%Y-%m-%d")) if day else 0


def binary_packages(build, cpack, epoch):
    """Returns (name, bytes) of cpack's packages."""
    kinds = ["TGZ", "DEB"] if shutil.which("dpkg-shlibdeps") else ["TGZ"]
    if len(kinds) == 1:
        print("packages.py: there is no dpkg-shlibdeps (Debian: dpkg-dev), so no Debian packages are made")
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([cpack, "--config", build / "CPackConfig.cmake", "-G", ";".join(kinds), "-B", scratch], cwd=scratch,
                              env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "LC_ALL": "C"}, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            fail(f"cpack failed:\n{done.stdout}")
        for path in pathlib.Path(scratch).iterdir():
            if path.suffix == ".deb":
                yield path.name, rewritten_deb(path.read_bytes(), epoch)
            elif path.name.endswith(".tar.gz"):
                yield path.name, rewritten_archive(path.read_bytes(), epoch)


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    source, build, cpack, version, output = sys.argv[1:]
    os.umask(0o022)  # determines the mode of cpack's folders
    epoch, name = epoch_of(source, version), f"kiln-{version}"
    packages = {f"{name}.tar.gz": source_archive(source, name, epoch), **dict(binary_packages(pathlib.Path(build), cpack, epoch))}
    sums = "".join(f"{hashlib.sha256(packages[name]).hexdigest()}  {name}\n" for name in sorted(packages))
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    for name, data in {**packages, "SHA256SUMS": sums.encode()}.items():
        (pathlib.Path(output) / name).write_bytes(data)
    print(sums, end="")


if __name__ == "__main__":
    main()
