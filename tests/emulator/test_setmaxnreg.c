/* setmaxnreg: a block's registers move between its warpgroups; then each rule, broken and kept. */
#include "rules.h"

static const char header[] = ".version 8.8\n.target sm_90a";

/* 168 registers per thread at entry, so three threads, one of each warpgroup, share 504. */
static const char directives[] = ".maxntid 384 .minnctapersm 1";

#define PROLOGUE                                                                                             \
    ".reg .u64 %p<3>; .reg .u32 %r<8>; .reg .pred %q<4>;\n"                                                  \
    "ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"            \
    "mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %p0, %r3, 4, %p0; shr.u32 %r4, %r0, 7; setp.eq.u32 %q0, %r4, 0;\n"
#define DEC(n)                    "setmaxnreg.dec.sync.aligned.u32 " #n ";\n"
#define INC(n)                    "setmaxnreg.inc.sync.aligned.u32 " #n ";\n"
#define ROLES(producer, consumer) "@!%q0 bra CONSUMER;\n" producer "bra END;\nCONSUMER:\n" consumer "END:\n"
#define STORE                     "st.global.u32 [%p0], %r3;\n"

static const rule rules[] = {
    {"", ROLES(DEC(24), INC(240)) STORE, NULL, 384, 1},
    {"more than the pool has", ROLES(DEC(40), INC(240)) STORE,
     "waits for registers of the block's pool: it has 168 per thread and wants 240, but only 8 per thread of a warp are free",
     384, 1},
    {"no warp gives registers", INC(176) STORE, "waits for registers of the block's pool", 384, 1},
    {"the consumers come first", ROLES("nanosleep.u32 100; nanosleep.u32 100;\n" DEC(24), INC(240)) STORE,
     NULL, 384, 1},
    {"registers come back",
     ROLES(DEC(24) "bar.sync 0; bar.sync 0;\n" INC(168), INC(240) "bar.sync 0;\n" DEC(168) "bar.sync 0;\n")
         STORE,
     NULL, 384, 1},
    {"inc asks for fewer", INC(160) STORE,
     "asks for 160 registers per thread but has 168: setmaxnreg.inc can only raise them", 384, 1},
    {"as many as there are", DEC(168) "bar.sync 0;\n" INC(168) STORE, NULL, 384, 1},
    {"no barrier between two", DEC(160) DEC(152) STORE,
     "executes setmaxnreg a second time with no barrier since the first", 384, 1},
    {"", DEC(160) "bar.sync 0;\n" DEC(152) STORE, NULL, 384, 1},
    {"",
     DEC(160) "bar.sync 1, 384;\n" DEC(
         152) "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" DEC(144) STORE,
     NULL, 384, 1},
    {"three warps of a warpgroup", "setp.lt.u32 %q1, %r0, 96; @!%q1 bra END;\n" DEC(24) "END:\n" STORE,
     "all four warps must execute it", 384, 1},
    {"", "setp.lt.u32 %q1, %r0, 128; @!%q1 bra END;\n" DEC(24) "END:\n" STORE, NULL, 384, 1},
    {"a warpgroup of two warps", DEC(24) STORE, "in a warpgroup that is not complete", 64, 1},
    {"warps of a warpgroup ask for different numbers",
     "setp.lt.u32 %q1, %r0, 64; @%q1 bra TWO;\n" DEC(24) "bra END;\nTWO:\n" DEC(32) "END:\n" STORE,
     "all four must execute the same instruction", 384, 1},
    {"a lane has ended", "setp.eq.u32 %q1, %r0, 5; @%q1 exit;\n" DEC(24) STORE,
     "executes this for its whole warp", 384, 1},
    {"dec asks for more", DEC(176) STORE,
     "asks for 176 registers per thread but has 168: setmaxnreg.dec can only lower them", 384, 1},
};

/* ptxas refuses the last rule (C7406). */
enum { RULES = sizeof rules / sizeof *rules, ACCEPTED = RULES - 1 };

static void test_rules(void **state)
{
    (void)state;
    check_rules(header, directives, PROLOGUE, rules, RULES);
}

/* The registers at entry: those of .maxnreg, or as many as the block's limit allows. */
static void test_entry(void **state)
{
    static const struct {
        const char *directives;
        unsigned threads, registers;
    } rows[] = {
        {".maxntid 384 .minnctapersm 1", 384, 168}, {".reqntid 512 .minnctapersm 1", 512, 128},
        {".maxntid 512 .minnctapersm 2", 512, 64},  {".maxnreg 104", 128, 104},
        {".maxntid 384 .maxnreg 128", 384, 128},    {".maxntid 128 .minnctapersm 1", 128, 256},
    };
    (void)state;
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        char body[512], words[64];
        rule r = {.body = body, .words = words, .threads = rows[n].threads, .blocks = 1};
        if (rows[n].registers < 256) {
            snprintf(body, sizeof body, "setmaxnreg.dec.sync.aligned.u32 %u;\n", rows[n].registers + 8);
            snprintf(words, sizeof words,
                     "asks for %u registers per thread but has %u:", rows[n].registers + 8,
                     rows[n].registers);
            check_rule(header, rows[n].directives, PROLOGUE, &r, rows[n].directives);
        }
        snprintf(body, sizeof body, "setmaxnreg.dec.sync.aligned.u32 %u;\n%s", rows[n].registers, STORE);
        r.words = NULL;
        check_rule(header, rows[n].directives, PROLOGUE, &r, rows[n].directives);
    }
}

/* If the registers at entry are not known, setmaxnreg is ignored, as by ptxas (C7508). */
static void test_ignored(void **state)
{
    static const char *const without[] = {"", ".maxntid 384", ".reqntid 384", ".minnctapersm 1"};
    static const rule r = {.body = INC(240) STORE, .threads = 384, .blocks = 1};
    enum { INFO_LOG_BUFFER = 3, INFO_LOG_BYTES = 4 };
    int options[] = {INFO_LOG_BUFFER, INFO_LOG_BYTES};
    void *values[] = {test_log, (void *)sizeof test_log};
    char text[RULE_BYTES + 256];
    CUmodule module;
    (void)state;
    for (size_t n = 0; n < sizeof without / sizeof *without; n++) {
        check_rule(header, without[n], PROLOGUE, &r, "ignored");
        snprintf(text, sizeof text, "%s\n.address_size 64\n%s", header,
                 rule_entry("k", without[n], PROLOGUE, &r));
        values[1] = (void *)sizeof test_log;
        assert_int_equal(cuModuleLoadDataEx(&module, text, 2, options, values), CUDA_SUCCESS);
        assert_contains(test_log, "note: setmaxnreg has no effect in kernel 'k'");
    }
    snprintf(text, sizeof text, "%s\n.address_size 64\n%s", header,
             rule_entry("k", directives, PROLOGUE, &r));
    values[1] = (void *)sizeof test_log;
    assert_int_equal(cuModuleLoadDataEx(&module, text, 2, options, values), CUDA_SUCCESS);
    assert_string_equal(test_log, "");
}

static void test_ptxas(void **state)
{
    (void)state;
    check_ptxas(header, directives, PROLOGUE, rules, ACCEPTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_ptxas),
    };
    setenv("KILN_EMU_CHECK", "all,same", 1);
    return cmocka_run_group_tests(tests, begin_context, end_context);
}
