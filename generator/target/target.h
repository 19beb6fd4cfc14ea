/* The supported PTX targets. */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include "support/arena.h"

/* sm_90 is {90, BASE}, sm_90a {90, ARCH}, sm_100f {100, FAMILY}. */
typedef enum target_kind { TARGET_BASE, TARGET_ARCH, TARGET_FAMILY } target_kind;
typedef struct target {
    uint16_t sm;
    target_kind kind;
} target;

enum { TARGET_NAME_BYTES = 12 };

/* All of them in order, separated by single spaces. */
enum { TARGETS_MOST = 24 };
extern const char target_names[];

/* Limits of a thread block, in all and along z, on every device: CUDA programming guide, technical specifications. */
enum { MOST_THREADS = 1024, MOST_THREADS_Z = 64 };

/* "sm_90a" -> {90, ARCH}; false if it is not a target. */
bool target_parse(const char *name, target *out);

/* "; the oldest is sm_75" for a target older than all; otherwise suggest_text()'s. */
const char *target_suggest_text(arena *a, const char *word);

/* Writes "sm_90a" and returns it. */
const char *target_print(target t, char name[TARGET_NAME_BYTES]);
const char *target_text(arena *a, target t);

/* The PTX version that introduced a target, 80 for 8.0; 0 if it is not a target. */
uint16_t target_version(target t);

/* Targets that gave the same answers to target_has: from `from` up to, not including, `below`. */
typedef struct target_range {
    uint32_t from, below;
} target_range;

/* Bytes of shared memory that a thread block can have on every device of the target and of newer ones. Source: CUDA programming
 * guide, technical specifications per compute capability. */
uint32_t target_shared_bytes(target t);

/* Whether the target's number is at least `sm`; narrows a range, which may be null and begins as {0, UINT32_MAX}. */
bool target_has(target t, uint32_t sm, target_range *alike);

/* By number, then base, architecture-specific, family-specific: negative, 0 or positive. */
int target_compare(target a, target b);

/* Whether code for `has` runs on every device that `wanted` covers. */
bool target_serves(target has, target wanted);

/* Whether x is preferred on a device that runs both, as in kiln_select: first the more specific, then the newer. */
bool target_is_preferred(target x, target y);

#endif
