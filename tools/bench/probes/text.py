"""PTX of the probes: the frame of a timed kernel, and the few instructions that several probes write."""

WAIT_TRIES = 1 << 15  # tries of mbarrier.try_wait, each of which suspends the thread for a while
HEAD = """.version {version}
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry k(.param .u64 out, .param .u64 data, .param .u64 x, .param .u64 y, .param .u32 count{more})
{directives}
{{
.reg .pred p<8>, exhausted; .reg .b16 h<4>; .reg .b32 r<96>, a<32>, tid, lane, warp, cta, ctas, n, base, failed, extra, tries;
.reg .b64 q<16>, out_, data_, x_, y_, begin, end, da, db; .reg .f32 f<16>, d<128>;
ld.param.u64 out_, [out]; ld.param.u64 data_, [data]; ld.param.u64 x_, [x]; ld.param.u64 y_, [y]; ld.param.u32 n, [count];
mov.u32 tid, %tid.x; and.b32 lane, tid, 31; shr.u32 warp, tid, 5; shfl.sync.idx.b32 warp, warp, 0, 31, -1;
mov.u32 cta, %ctaid.x; mov.u32 ctas, %nctaid.x; mov.u32 base, memory; mov.u32 failed, 0; mov.u32 extra, 0;
"""
VERSIONS = {"sm_80": "7.0", "sm_89": "8.4", "sm_90": "8.0", "sm_90a": "8.0", "sm_100a": "8.6"}


def plain(body, target="sm_80", directives="", more=""):
    """A kernel with the parameters and registers of every probe."""
    return HEAD.format(version=VERSIONS[target], target=target, directives=directives, more=more) + body + "\nret;\n}\n"


def timed(body, setup="", drain="", sink=(), enter="", aside="", first_aside_warp=None, **frame):
    """Runs `body` `count` times after a barrier; out[ctaid] gets the clocks until the last warp's end, `failed` and `extra`.

    Each warp reads its own end: with one read after a second barrier, an H100 seemed to issue 4.8 instructions per clock.
    Each register of `sink` stays alive: it is stored under a condition that no run meets. `enter` runs once, before the
    loop. Warps from `first_aside_warp` on run `aside` in place of both; their first thread then stores `failed` and `extra`.
    """
    words = "st.global.u32 [q0+8], failed; st.global.u32 [q0+12], extra;"
    turn = f"setp.ge.u32 p7, warp, {first_aside_warp}; @p7 bra ASIDE;\n" if aside else ""
    beside = f"""ASIDE:
{aside}
ASIDE_JOIN:
bar.warp.sync 0xffffffff;
bar.sync 0;
setp.ne.u32 p0, tid, {32 * first_aside_warp}; @p0 bra END;
mul.wide.u32 q0, cta, 16; add.u64 q0, q0, out_; {words}""" if aside else ""
    alive = "".join(f"xor.b32 r0, r0, {r};\n" if r[0] in "ra" else f"mov.b32 r1, {r}; xor.b32 r0, r0, r1;\n" for r in sink)
    return plain(f""".shared .b64 last;
{setup}
mov.u64 q0, 0; setp.eq.u32 p0, tid, 0; @p0 st.shared.u64 [last], q0;
bar.sync 0;
mov.u64 begin, %clock64;
{turn}{enter}
LOOP:
{body}
sub.u32 n, n, 1; setp.ne.u32 p0, n, 0; @p0 bra LOOP;
{drain}
JOIN:
bar.warp.sync 0xffffffff;
mov.u64 end, %clock64; setp.eq.u32 p0, lane, 0; @p0 red.shared.max.u64 [last], end;
bar.sync 0;
setp.ne.u32 p0, tid, 0; @p0 bra SINK;
ld.shared.u64 end, [last]; mul.wide.u32 q0, cta, 16; add.u64 q0, q0, out_; sub.u64 q1, end, begin;
st.global.u64 [q0], q1; {"" if aside else words}
SINK:
mov.u32 r0, 0;
{alive}setp.ne.u32 p0, r0, 0x7fe12345; @p0 bra END;
st.global.u32 [out_+1000000], r0;
bra END;
{beside}
END:""", **frame)


def each(number, line, first=0):
    return "\n".join(line(i) for i in range(first, first + number))


def listed(name, first, number):
    return "{" + ", ".join(f"{name}{i}" for i in range(first, first + number)) + "}"


def seeds(name, first, number, mask="0x3bff3bff"):
    """Sets registers to bits that differ by lane; with the default mask f16 pairs below 1. Such code may overwrite r0 to r9."""
    move = (lambda i: f"mov.b32 {name}{i}, r2;") if name in "ar" else (lambda i: f"cvt.rn.f32.u32 {name}{i}, r2;")
    return each(number, lambda i: f"mad.lo.u32 r2, tid, {0x9e3779b1 + 2 * i}, {0x85ebca6b * (i + 1) & 0x7fffffff}; "
                                  f"and.b32 r2, r2, {mask}; {move(i)}", first) + "\n"


def zeros(number):
    return each(number, lambda i: f"mov.f32 d{i}, 0f00000000;") + "\n"


def fill_shared(bytes_, threads):
    """Writes f16 pairs below 1 to the first bytes of shared memory, and makes asynchronous reads see them."""
    return f"""shl.b32 r3, tid, 2; add.u32 r3, r3, base; add.u32 r4, base, {bytes_};
FILL:
mad.lo.u32 r2, r3, 0x9e3779b1, tid; and.b32 r2, r2, 0x3bff3bff; st.shared.b32 [r3], r2;
add.u32 r3, r3, {4 * threads}; setp.lt.u32 p0, r3, r4; @p0 bra FILL;
fence.proxy.async;
"""


def wait(barrier, parity, label, leave):
    """Waits for a phase of an mbarrier; after WAIT_TRIES sets `failed` and branches to `leave`."""
    return f"""mov.u32 tries, {WAIT_TRIES};
{label}:
mbarrier.try_wait.parity.shared::cta.b64 p6, [{barrier}], {parity}; @p6 bra {label}_DONE;
sub.u32 tries, tries, 1; setp.ne.u32 exhausted, tries, 0; @exhausted bra {label};
mov.u32 failed, 1; bra {leave};
{label}_DONE:
"""


def bulk_copy(to, source, bytes_, barrier, multicast=""):
    end = f".multicast::cluster [{to}], [{source}], {bytes_}, [{barrier}], {multicast};" if multicast else \
        f" [{to}], [{source}], {bytes_}, [{barrier}];"
    return "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" + end


def expect(barrier, bytes_):
    return f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}], {bytes_};"


LAYOUT = {0: 0, 128: 1, 64: 2, 32: 3}  # bits 62-63 of a matrix descriptor by swizzled bytes


def descriptor(swizzle, lbo, sbo):
    """A matrix descriptor without the address."""
    return (lbo >> 4) << 16 | (sbo >> 4) << 32 | LAYOUT[swizzle] << 62


def address_bits(to, address):
    """Adds a shared address to the descriptor in `to`."""
    return f"and.b32 r2, {address}, 0x3ffff; shr.u32 r2, r2, 4; cvt.u64.u32 q2, r2; or.b64 {to}, {to}, q2;\n"


def wgmma(n, a, b, kind="f16", transposes=(0, 0)):
    """One wgmma of 64 rows onto d0...; `a` is a descriptor or the first of four registers."""
    is_register = isinstance(a, int)
    flags = "" if kind == "e4m3" else f", {transposes[1]}" if is_register else ", {}, {}".format(*transposes)
    return (f"wgmma.mma_async.sync.aligned.m64n{n}k{32 if kind == 'e4m3' else 16}.f32.{kind}.{kind} "
            f"{listed('d', 0, n // 2)}, {listed('a', a, 4) if is_register else a}, {b}, 1, 1, 1{flags};")
