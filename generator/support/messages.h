/* Every diagnostic about a configuration: its name and its text. tests/config/errors.txt has an example of each.
 *
 * Found text is quoted by quote_text() of quote.h. A last %s from suggest_text() is empty, suggests a word, or gives
 * the current name of a renamed one. */
#ifndef SUPPORT_MESSAGES_H
#define SUPPORT_MESSAGES_H

/* clang-format off */
#define MESSAGES(M)                                                                                                    \
    /* the file */                                                                                                     \
    M(file_unreadable, "cannot read: %s")                                                                              \
    M(file_empty, "expected a configuration (bundle, targets, kernels), found an empty file")                          \
    M(not_utf8, "expected UTF-8 text, found the byte 0x%02x")                                                          \
    /* YAML, and the parts of YAML that are not supported */                                                                          \
    M(yaml_syntax, "not valid YAML: %s")                                                                               \
    M(yaml_tag, "expected a plain value, found the tag '%s'; a configuration has no tags")                             \
    M(yaml_anchor, "expected a plain value, found the anchor '&%s'; a configuration has no anchors")                   \
    M(yaml_alias, "expected a value, found the alias '*%s'; write the value out")                                      \
    M(yaml_merge_key, "expected a key, found the merge key '<<'; write its keys out")                                  \
    M(yaml_second_document, "expected one document, found a second one")                                               \
    M(yaml_too_deep, "expected at most %d levels of lists and mappings, found more")                                   \
    M(duplicate_key, "expected each key once, found '%s' again; the first is on line %d")                              \
    M(key_kind, "expected a word as key, found %s")                                                                    \
    /* any value */                                                                                                    \
    M(wrong_kind, "expected %s for '%s', found %s")                                                                    \
    M(null_value, "expected %s for '%s', found nothing")                                                               \
    M(empty_list, "expected %s for '%s', found an empty list")                                                         \
    M(unknown_key, "expected a key of %s, found %s%s")                                                                 \
    M(missing_key, "expected '%s: %s', found no such key")                                                             \
    /* bundle */                                                                                                       \
    M(bundle_not_identifier, "expected a C identifier (letters, digits, _) as bundle, found %s")                       \
    M(bundle_keyword, "expected a C identifier as bundle, found %s, a word of C or C++")                               \
    M(bundle_old_boolean, "expected a C identifier as bundle, found %s, YAML 1.1's %s; put it in quotes") \
    M(bundle_reserved, "expected an unused bundle name, found %s, %s")                                            \
    M(bundle_too_long, "expected at most %d characters as bundle, found %zu")                                          \
    /* targets and images */                                                                                           \
    M(target_unknown, "expected a target, found %s%s")                                                                 \
    M(target_twice, "expected each target once, found '%s' again%s")                                                     \
    M(image_unknown, "expected an image format, found %s%s")                                                           \
    M(image_twice, "expected each image format once, found '%s' again%s")                                            \
    M(no_ptxas, "expected the CUDA toolkit's ptxas on the PATH for %s: %s")                                         \
    M(no_folder, "cannot make a folder in %s for ptxas: %s")                                 \
    M(ptxas_not_run, "expected a cubin of %s for %s, but ptxas wrote none: %s")                            \
    M(ptxas_refused, "expected a cubin of %s for %s, but ptxas reports: %s")                                       \
    M(compress_unknown, "expected zstd for 'compress', found %s%s")                                                    \
    M(compress_missing, "expected a kiln built with libzstd for 'compress', found one without; install libzstd-dev and rebuild kiln") \
    /* budgets */                                                                                                      \
    M(bytes_not_integer, "expected a decimal number of bytes for max_bytes, found %s")                                 \
    M(budget_unknown, "expected 'bundle' or a family in kernels, found %s%s")                                    \
    M(over_budget, "expected at most %llu bytes of images of %s, found %llu; the largest are of %s, %llu bytes")       \
    M(driver_not_version, "expected a CUDA version such as 12.2, at least 11.0, for max_driver, found %s")                   \
    M(over_driver, "expected images that the driver of CUDA %s loads, found some that need a newer one: %s")           \
    M(over_driver_cubins, "expected images that the driver of CUDA %s loads, found cubins of ptxas %s, which need the driver of CUDA %s; add ptx to images, or use an older ptxas") \
    M(cubins_unused, "the driver of CUDA %s ignores the cubins of ptxas %s, which need the driver of CUDA %s, and compiles the PTX; an older ptxas makes cubins for it") \
    /* items with shapes */                                                                                            \
    M(shapes_needed, "expected 'shapes' beside '%s', found none")                 \
    M(shapes_combinations, "expected no 'combinations' beside 'shapes', which chooses among the legal ones")     \
    M(shapes_external, "%s has no time estimate, so shapes cannot choose its variants; name values of its parameters")       \
    M(shape_size_unknown, "expected an integer argument of %s, found '%s'%s")                                          \
    M(shape_number, "expected a number from %llu to %llu for '%s', found %s")                                          \
    M(shape_expression, "expected a number or an expression over sizes and parameters for '%s', found %s: %s")         \
    M(shape_order, "expected an expression over sizes that the shape names for '%s', found '%s', which uses other sizes or itself") \
    M(shape_range, "expected 'from' to be at most 'to' for '%s', found %llu and %llu")                                 \
    M(shapes_too_many, "expected at most %d shapes, found more")                                                       \
    M(shape_missing, "expected '%s: NUMBER' in a shape of %s, found no such key")                                      \
    M(shape_unread, "expected no '%s' in a shape of %s, found one: no variant of the item reads it")                   \
    M(shape_refused, "no variant of %s serves the shape %s on %s: %s")                                                 \
    M(device_unknown, "expected a device, found '%s'; there are %s")                                                   \
    M(device_ambiguous, "expected one device, found '%s', which may be %s")                                            \
    M(device_twice, "expected each device once, found '%s' again; the first is on line %d")                            \
    M(device_unserved, "expected a device that a listed target serves, found '%s', which is sm_%u")                    \
    M(workspace_unknown, "expected 'allowed' or 'none' as workspace, found %s%s")                                      \
    M(within_not_ratio, "expected a ratio from 1.00 to 99.99 as within, such as 1.10, found %s")                            \
    M(count_not_number, "expected a number from 1 to %d as max_variants, found %s")                                    \
    M(only_not_boolean, "expected true or false as only_these_shapes, found %s")                                       \
    M(choice_workspace, "%s: every variant takes a workspace, and the item has 'workspace: none'") \
    M(choice_device, "%s: no variant runs on %s, which is sm_%u") \
    M(choice_nearest, "%s: takes %s times the best time at %s, as no choice is within %s with %u variant%s; max_variants allows more") \
    M(choice_over, "%s: cannot be within %s times the best time at every shape with %u variant%s; with %u: %s at %s") \
    M(choice_coverage, "%s: cannot serve every call on every target with %u variant%s; that takes max_variants: %u%s") \
    M(choice_bytes, "expected at most %llu bytes of images of %s, found %llu in the smallest choice for its shapes") \
    M(choice_undecided, "%s: too many sets of variants to compare; name fewer shapes, fewer values of tuning parameters or a larger within") \
    M(choice_slow, "%s: %s: %s")                                                                                    \
    M(lock_none, "no %s: the variants are chosen by this kiln's estimates, which change; `kiln choose %s` writes it")  \
    M(lock_stale, "this lock was made for other items, limits, targets or tuned files; it is used, and `kiln choose %s` renews it")\
    M(lock_edited, "this lock was edited after `kiln choose` wrote it; it is used, and `kiln choose %s` renews it") \
    M(lock_lacks, "this lock has no variant of %s that runs on a target, as the item on line %d of %s asks; `kiln choose %s` renews it") \
    M(lock_unreadable, "cannot read the lock file %s: %s")                                                             \
    M(lock_empty, "expected a lock file (asked, chosen, kernels), found an empty file")                                        \
    M(lock_hash, "expected 32 hexadecimal digits as %s, found %s")                                                  \
    M(lock_shapes, "expected plain variants in a lock file, found '%s'")                                               \
    M(lock_unused, "the configuration has no items with shapes, so --lock has no use")                                 \
    /* tuned files */                                                                                                  \
    M(tuned_unreadable, "cannot read the tuned file %s: %s")                                                           \
    M(tuned_twice, "expected each tuned file once, found '%s' again; the first is on line %d")                         \
    M(tuned_empty, "expected a tuned file (compute_capability, multiprocessors, times), found an empty file")          \
    M(tuned_number, "expected a number from %llu to %llu for '%s', found %s")                                          \
    M(tuned_capability, "expected a compute capability, such as 9.0, found %s")                                             \
    M(tuned_size, "expected an integer argument of %s, found '%s'%s")                                                  \
    M(tuned_variant, "expected the id of a variant of %s, found '%s': %s")                                             \
    M(tuned_time_twice, "expected one time of %s at a shape of a device, found another; the first is in %s, line %d")  \
    M(tuned_emulated, "these times come from the emulated driver and do not predict a GPU; they count as times of sm_%u")        \
    M(tuned_no_device, "no item with shapes has a device of sm_%u with %u multiprocessors, so these times have no effect")        \
    M(tuned_lacking, "%zu time%s ignored, of variants that the bundle lacks; the first is of %s")           \
    /* kernels */                                                                                                      \
    M(ptx_unreadable, "cannot read the PTX %s: %s%s")                                                                  \
    M(ptx_syntax, "expected %s, found %s")                                                                             \
    M(ptx_header, "expected PTX with '%s', found none")                                                                \
    M(ptx_not_ascii, "expected PTX, which is ASCII text, found the byte 0x%02x")                                       \
    M(entry_too_large, "expected at most %u for '%s', found %s")                                                       \
    M(entry_empty, "expected at least one thread block for '%s', found 0")                                             \
    M(ptx_no_entry, "expected PTX with an .entry, found none")                                                         \
    M(ptx_extern, "expected complete PTX, found '%s', declared .extern: no driver defines it, so link it first")  \
    M(ptx_differs, "expected %s as in %s, found %s")                                                                   \
    M(ptx_same_target, "expected PTX files for different targets, found %s in %s and in %s; give another source its own item or --ptx") \
    M(ptx_without_target, "expected a PTX file that runs on %s, found %s; remove the target or list a file for it") \
    M(license, "expected an SPDX license expression, such as MIT or Apache-2.0 OR MIT, for 'license', found '%s'")           \
    M(ptx_entry_twice, "expected each .entry once, found %s again; the first is on line %d")                             \
    M(ptx_absolute_path, "the PTX names a file on this machine, '%s'; 'line_info: false' removes such lines")           \
    M(ptx_debug, "the PTX is for a debugger, so drivers do not optimise it; compile it without -G")                        \
    M(line_info, "expected true or false for 'line_info', found %s%s")                                                   \
    M(ptx_unused, "expected a ptx: item that embeds '%s', found none")                                                \
    M(entry_unknown, "expected an .entry of %s, found '%s'%s")                                                         \
    M(entry_name, "expected an unused C name (no leading or double _), found '%s'; 'name' and 'args' in 'entries' set others") \
    M(entry_family, "expected a name that no family has, found '%s'; give it another 'name' in 'entries'")             \
    M(entry_twice, "expected different names, found '%s' for %s and for %s; list the kernels in 'entries', one with another 'name'") \
    M(entry_args, "expected as many arguments as %s has parameters, %u, found %u")                                     \
    M(entry_arg, "for '%s' (%u bytes, %s) expected %s, found '%s'")                                                    \
    M(entry_alignment, "for '%s' expected a power of two from 1 to 1024 after 'aligned', found '%s'")                    \
    M(entry_pointers, "expected at most %d pointers with a shape in %s, found %zu; give the others as u64")             \
    M(entry_arg_twice, "expected each argument once, found '%s' twice in %s%s")                                        \
    M(entry_dimensions, "expected at most three dimensions for '%s', found more")                                      \
    M(entry_count, "expected a number from 1 to %d for '%s', found '%s'%s")                                            \
    M(entry_block, "expected %s in a thread block of %s%s, found %s")                                                  \
    M(entry_shared, "expected no shared memory for %s, whose PTX declares none as .extern, found some")                \
    M(entry_expression, "expected an expression, found '%s': %s%s")                                                    \
    M(variant_param, "expected a parameter name that C and expressions do not use, found '%s'")                   \
    M(variant_value, "expected letters, digits and single _ between them, at most %d, for '%s', found '%s'")           \
    M(variant_launch, "expected a '%s' for each of several variants, found none here: callers do not know which one runs")\
    M(variant_unreached, "no call is dispatched to %s: %s, which comes before and has no 'when', takes all calls on its targets")  \
    M(variants_many, "expected at most %d variants of a kernel, found more")                                           \
    M(variant_params, "expected at most %d values of a variant, found more")                                           \
    M(name_taken, "expected different names, found %s_%s for %s and for %s")                                       \
    M(family_unknown, "expected a family, found %s%s")                                                                 \
    M(param_unknown, "expected a parameter of %s, found %s%s")                                                         \
    M(value_unknown, "expected a value of %s, found %s%s")                                                             \
    M(value_not_boolean, "expected true or false for %s, found %s%s")                                                  \
    M(value_not_integer, "expected a decimal integer for %s, found %s")                                                \
    M(value_out_of_range, "expected %s for %s, found %s")                                                              \
    M(value_quoted, "expected %s without quotes for %s, found %s")                                                     \
    M(value_twice, "expected each value of %s once, found '%s' again; the first is on line %d")                        \
    /* variants */                                                                                                     \
    M(too_many_variants, "expected at most %d variants, found more")                                                   \
    M(too_many_combinations, "expected at most %d combinations of values, found more")                                 \
    M(combinations_unknown, "expected all or legal for 'combinations', found %s%s")                                     \
    M(constraint, "expected a combination that %s has, found %s: %s%s")                                                   \
    M(variant_twice, "expected each variant once, found %s again; the first is on line %d")                            \
    M(key_collision, "expected different keys, found %016llx for both %s and %s")                                    \
    M(entry_collision, "expected different names, found %s for both %s and %s")                                      \
    M(variant_without_target, "no target in 'targets' can run %s%s; it %s")                                             \
    M(target_without_variant, "expected a variant of %s that runs on %s, found none: %s %s; remove the target%s")
/* clang-format on */

#define M(name, text) static const char message_##name[] = text;
MESSAGES(M)
#undef M

#endif
