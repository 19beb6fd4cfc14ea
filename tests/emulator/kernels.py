"""Unpacks text files of kernels (tests/cases.py) into a folder, as complete files NAME.ptx.

usage: kernels.py FOLDER FILE...

Kernels leave out what most of them have in common. A kernel without ".version" gets MODULE before it, for the target of its
first line if that is ".target". One without ".entry" is put between ENTRY and END, except the declarations before a line
"ENTRY"; if it has no ".reg", it also gets NAMES: registers, memory, and the values that most kernels compute first. These come
after the lines "//" at its beginning. A kernel that is launched after others gets BEFORE after it.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cases  # noqa: E402

MODULE = """.version 8.8
.target {}
.address_size 64
"""
ENTRY = """.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 zeros, .param .u64 freed)
{
"""
NAMES = """.reg .u64 %p<12>; .reg .u32 %r<20>; .reg .pred %q<6>; .reg .f32 %f<6>; .reg .b16 %h<4>;
.shared .align 16 .b32 s[256];
.local .align 16 .b32 l[8];
ld.param.u64 %p0, [out];
ld.param.u64 %p1, [in];
ld.param.u64 %p2, [zeros];
ld.param.u64 %p3, [freed];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
and.b32 %r2, %r0, 31;
mad.wide.u32 %p4, %r0, 4, %p0;
mad.wide.u32 %p5, %r0, 4, %p1;
mov.u32 %r3, s;
mad.lo.u32 %r4, %r0, 4, %r3;
shr.u32 %r5, %r0, 5;
"""
END = """ret;
}
"""
# writer: zeros[i] = i. opener lets the next launch begin before it waits itself, closer after.
BEFORE = ENTRY.replace("k(", "writer(") + """.reg .u64 %p<2>; .reg .u32 %r;
ld.param.u64 %p0, [zeros]; mov.u32 %r, %tid.x; mad.wide.u32 %p1, %r, 4, %p0; st.global.u32 [%p1], %r;
""" + END + "".join(ENTRY.replace("k(", name + "(") + body + END for name, body in (
    ("opener", "griddepcontrol.launch_dependents; griddepcontrol.wait;\n"),
    ("closer", "griddepcontrol.wait; griddepcontrol.launch_dependents;\n")))


def complete(text):
    head, body = re.fullmatch(r"((?://[^\n]*\n)*)(.*)", text, re.S).groups()
    target, body = re.fullmatch(r"(?:\.target (\w+)\n)?(.*)", body, re.S).groups("sm_90")
    if ".entry" not in body:
        declarations, statements = re.fullmatch(r"(?:(.*)^ENTRY\n)?(.*)", body, re.S | re.M).groups("")
        body = declarations + ENTRY + ("" if ".reg" in statements else NAMES) + statements + END
    if " after " in head.split("\n")[0]:
        body += BEFORE
    if ".version" not in body:
        body = MODULE.format(target) + body
    return head + body


def main(folder, *files):
    kernels = {}
    for file in files:
        for name, text in cases.read(file)[1].items():
            if name + ".ptx" in kernels:
                sys.exit(f"{file}: '-- {name} --': expected a new name, found one that another file has")
            kernels[name + ".ptx"] = complete(text.decode()).encode()
    cases.fill(folder, kernels)


if __name__ == "__main__":
    main(*sys.argv[1:])
