/* The bundle's files, each written piece by piece into the spool. */
#ifndef BUNDLE_WRITE_H
#define BUNDLE_WRITE_H

#include "model.h"
#include "support/files.h"
#include "support/json.h"

/* NAME.c, with the manifest's checksum */
void write_source(file_output *f, const bundle_model *m, uint32_t manifest_crc);
void write_header(file_output *f, const bundle_model *m);   /* NAME.h */
void write_manifest(file_output *f, const bundle_model *m); /* NAME.json */

/* NAME_1.c for shard 0, and on; NAME.c then has only the index. */
void write_shard(file_output *f, const bundle_model *m, uint32_t shard);

/* NAME.d: Makefile syntax, with outputs as written and inputs as the user named them. */
void write_depfile(file_output *f, const char *const *outputs, size_t output_count, const char *const *inputs,
                   size_t input_count);
file_form is_depfile; /* written by this or an earlier kiln */

/* Parts of NAME.h; a shard has them only for its own families. */
void write_layout_check(text *out);
void write_declarations(arena *a, text *out, const bundle_family *f);
/* An argument's description in this bundle, without its summary: "in, bf16[m, k], aligned to 16 bytes". For C, with
 * the types of members, and with "." in groups. */
const char *arg_about(arena *a, const bundle_family *f, const kiln_arg *arg, bool is_c);
void write_args_struct(arena *a, text *out, const bundle_family *f);

/* For comments: statements that make a family's `args`, in C and in C++. */
const char *example_args(arena *a, const bundle_family *f);

/* Parts of NAME.c. */
void write_family_check(arena *a, text *out,
                        const bundle_family *f); /* check_FAMILY, and rules_FAMILY if it has a workspace */
void write_call_function(arena *a, text *out, const bundle_family *f);     /* call_FAMILY */
void write_variant_function(arena *a, text *out, const bundle_variant *v); /* run_, NAME_ and launch_ENTRY */
void write_family_function(arena *a, text *out, const plan *p, const bundle_family *f); /* NAME_FAMILY */
void write_workspace_functions(arena *a, text *out, const bundle_family *f);
void write_calls(arena *a, text *out, const bundle_family *f);               /* NAME_FAMILY_CALL */
void write_contiguous_function(arena *a, text *out, const bundle_family *f); /* NAME_FAMILY_set_contiguous */

/* Calls check_FAMILY, or rules_FAMILY, and returns if it fails or there is nothing to do; `args` is the pointer's name.
 * */
void write_call_of_check(arena *a, text *out, const bundle_family *f, const char *check, const char *args);

/* "a.type == NAME_FAMILY_TYPE_F16 && a.causal": the condition that the contract is the variant's; empty without
 * contract parameters. Only parameters that is_asked selects, by index; null: all. */
const char *choice_condition(arena *a, const bundle_family *f, const variant *v, const bool *is_asked);

/* Fails if an output pointer is null. */
void write_check_of_result(text *out, const bundle_family *f, const char *condition, const char *detail);

/* Sizes and offsets: "structs" in the manifest, and assertions in C; macros select the C that is checked. */
void write_structs(json *j);
void write_assertion_macro(text *out);
void write_struct_assertions(text *out);
void write_args_assertion(text *out, const bundle_family *f);

/* NAME_bundle, NAME_index and NAME_manifest_crc */
void write_index(arena *a, text *out, const bundle_model *m, uint32_t manifest_crc);

/* Replaces 0 by the value that it means, in the argument struct `a`. */
void write_defaults(arena *a, text *out, const bundle_family *f);

#endif
