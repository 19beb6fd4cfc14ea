"""Makes one program of Python files and what they read: an archive that Python runs. It is stored uncompressed, with one time for
all members, so that it has the same bytes everywhere.

usage: pack.py PROGRAM FILE...
"""
import os
import sys
import zipfile

program, *files = sys.argv[1:]
with open(program, "wb") as out:
    out.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(out, "w") as archive:
        for path in files:
            with open(path, "rb") as file:
                archive.writestr(zipfile.ZipInfo(os.path.basename(path), (1980, 1, 1, 0, 0, 0)), file.read())
os.chmod(program, 0o755)
