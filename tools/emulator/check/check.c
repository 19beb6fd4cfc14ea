/* Reads KILN_EMU_CHECK and subscribes the checks: see check.h. */
#include "check.h"

#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned checks;
} names[] = {
    {"memory", EMU_CHECK_MEMORY}, {"init", EMU_CHECK_INIT},
    {"race", EMU_CHECK_RACE},     {"sync", EMU_CHECK_SYNC},
    {"same", EMU_CHECK_SAME},     {"proxy", EMU_CHECK_PROXY},
    {"all", EMU_CHECK_ALL},       {"warpgroup", EMU_CHECK_WARPGROUP},
    {"lanes", EMU_CHECK_LANES},   {"none", 0},
};

static bool add_checks(emu_text word, unsigned *checks)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (emu_text_is(word, names[i].name)) {
            *checks |= names[i].checks;
            return true;
        }
    return false;
}

bool emu_read_checks(unsigned *checks)
{
    const char *text = getenv("KILN_EMU_CHECK");
    *checks = EMU_CHECK_MEMORY | EMU_CHECK_SYNC;
    if (!text || !*text)
        return true;
    *checks = 0;
    for (const char *at = text; *at;) {
        emu_text word = {at, strcspn(at, ",")};
        const char *wrong = NULL;
        if (!add_checks(word, checks))
            wrong = "is not one of memory, init, race, sync, same, proxy, warpgroup, lanes, all, none";
        else if (emu_text_is(word, "none") && word.size != strlen(text))
            wrong = "must be the only word";
        if (wrong) {
            fprintf(stderr, "kiln emulator: KILN_EMU_CHECK=%s: '%.*s' %s\n", text, EMU_TEXT(word), wrong);
            return false;
        }
        at += word.size + (at[word.size] == ',');
    }
    return true;
}

void emu_check_memory(unsigned checks)
{
    if (checks & EMU_CHECK_INIT)
        emu_memory_observe(&emu_init_memory);
    if (checks & EMU_CHECK_RACE) {
        emu_memory_observe(&emu_race_memory);
        emu_memory_observe(&emu_dependent_memory);
    }
}

void emu_check_launch(emu_launch *l, unsigned checks)
{
    l->is_exact = checks & EMU_CHECK_MEMORY;
    bool has_groups = (checks & EMU_CHECK_SYNC) && (l->program->has_products || l->program->sets_registers);
    if ((checks & (EMU_CHECK_INIT | EMU_CHECK_RACE)) || has_groups)
        emu_plan_program(l->program);
    if (checks & EMU_CHECK_INIT)
        emu_observe(l, &emu_init_check);
    if (checks & EMU_CHECK_RACE) {
        l->races_of_same = (checks & EMU_CHECK_SAME) == EMU_CHECK_SAME;
        l->fences_reads = (checks & EMU_CHECK_PROXY) == EMU_CHECK_PROXY;
        l->parts_warpgroups = (checks & EMU_CHECK_WARPGROUP) == EMU_CHECK_WARPGROUP;
        l->parts_lanes = (checks & EMU_CHECK_LANES) == EMU_CHECK_LANES;
        if (l->program->plans->has_read_only)
            emu_observe(l, &emu_read_only_check);
        emu_observe(l, &emu_race_check);
        if (l->parts_lanes)
            emu_observe(l, &emu_lanes_check);
        emu_observe(l, &emu_dependent_check);
    }
    if (checks & EMU_CHECK_SYNC)
        emu_observe(l, &emu_sync_check);
    if ((checks & EMU_CHECK_SYNC) && l->program->has_bulk)
        emu_observe(l, &emu_bulk_check);
    if (has_groups)
        emu_observe(l, &emu_wgmma_check);
}
