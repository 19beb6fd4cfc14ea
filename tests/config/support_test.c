/* Tests the arena, text, JSON, words, the spool and files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "death.h"
#include "support/files.h"
#include "support/json.h"
#include "support/quote.h"
#include "support/words.h"

/* ---- arena and text --------------------------------------------------------------------------------------------- */

static void test_arena(void **state)
{
    (void)state;
    arena *a = arena_new();
    for (size_t bytes = 0; bytes < 200000; bytes = bytes * 2 + 1) {
        unsigned char *memory = arena_alloc(a, bytes);
        assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, bytes);
    }
    int *numbers = NULL;
    size_t count = 0, capacity = 0;
    for (int i = 0; i < 1000; i++) {
        int *slot = arena_push(a, (void **)&numbers, &count, &capacity, sizeof *numbers);
        *slot = i;
    }
    assert_int_equal(count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], i);
    assert_string_equal(arena_string(a, "abcdef", 3), "abc");
    assert_string_equal(arena_format(a, "%s-%d-%u-%x-%c", "s", -1, 2u, 255u, 'z'), "s--1-2-ff-z");
    arena_clear(a);
    for (size_t bytes = 200000; bytes > 0;
         bytes /= 2) { /* zeroed again; large and small allocations reuse chunks */
        unsigned char *memory = arena_alloc(a, bytes);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(memory[i], 0);
    }
    for (int round = 0; round < 3; round++) { /* two texts at once that outgrow their chunks */
        arena_clear(a);
        text all = text_new(a), odd = text_new(a);
        for (int i = 0; i < 50000; i++) {
            text_printf(&all, "%d,", i);
            if (i % 2)
                text_printf(&odd, "%d,", i);
        }
        assert_int_equal(all.length, strlen(all.data));
        assert_memory_equal(all.data, "0,1,2,3,", 8);
        assert_memory_equal(odd.data, "1,3,5,7,", 8);
        assert_string_equal(strstr(all.data, ",49997,"), ",49997,49998,49999,");
        assert_string_equal(strstr(odd.data, ",49997,"), ",49997,49999,");
    }
    arena_free(a);
    arena_free(NULL);
}

static void test_text(void **state)
{
    (void)state;
    arena *a = arena_new();
    text t = text_new(a);
    assert_string_equal(t.data, "");
    for (int i = 0; i < 1000; i++) {
        text_printf(&t, "%d,", i);
        assert_int_equal(t.data[t.length], '\0');
    }
    assert_int_equal(t.length, 3890);
    assert_string_equal(t.data + t.length - 8, "998,999,");
    text_add_bytes(&t, "a\0b", 3);
    assert_int_equal(t.length, 3893);
    arena_free(a);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void test_json(void **state)
{
    (void)state;
    arena *a = arena_new();
    text out = text_new(a);
    json j = json_new(&out);
    json_begin_object(&j);
    json_string_member(&j, "a\"\\b", "line\n\ttab\x01\x7f/\xc3\xa9");
    json_string_member(&j, "cut",
                       "\xff"
                       "a\xc3");
    json_string_member(&j, "none", NULL);
    json_number_member(&j, "most", UINT64_MAX);
    json_boolean_member(&j, "yes", true);
    json_key(&j, "empty");
    json_begin_array(&j);
    json_end(&j);
    json_key(&j, "nothing");
    json_begin_object(&j);
    json_end(&j);
    json_key(&j, "list");
    json_begin_array(&j);
    json_begin_inline_array(&j);
    json_number(&j, 1);
    json_begin_object(&j);
    json_boolean_member(&j, "k", false);
    json_string_member(&j, "l", "");
    json_end(&j);
    json_end(&j);
    json_null(&j);
    json_end(&j);
    json_end(&j);
    json_finish(&j);
    assert_string_equal(out.data, "{\n"
                                  "  \"a\\\"\\\\b\": \"line\\n\\u0009tab\\u0001\x7f/\xc3\xa9\",\n"
                                  "  \"cut\": \"\xef\xbf\xbd"
                                  "a\xef\xbf\xbd\",\n"
                                  "  \"none\": null,\n"
                                  "  \"most\": 18446744073709551615,\n"
                                  "  \"yes\": true,\n"
                                  "  \"empty\": [],\n"
                                  "  \"nothing\": {},\n"
                                  "  \"list\": [\n"
                                  "    [1, {\"k\": false, \"l\": \"\"}],\n"
                                  "    null\n"
                                  "  ]\n"
                                  "}\n");
    arena_free(a);
}

static void misuse_json(const void *argument)
{
    text out = text_new(arena_new());
    json j = json_new(&out);
    json_begin_object(&j);
    for (const char *c = argument; *c; c++) {
        if (*c == 'k')
            json_key(&j, "k");
        else if (*c == 'v')
            json_null(&j);
        else if (*c == 'e')
            json_end(&j);
        else if (*c == 'f')
            json_finish(&j);
        else
            json_begin_array(&j);
    }
}

static void test_json_misuse(void **state)
{
    (void)state;
    assert_internal_error(misuse_json, "v", "a JSON member without a key");
    assert_internal_error(misuse_json, "kk", "the JSON key \"k\" outside an object");
    assert_internal_error(misuse_json, "k[k", "the JSON key \"k\" outside an object");
    assert_internal_error(misuse_json, "ke", "json_end without an open value");
    assert_internal_error(misuse_json, "ee", "json_end without an open value");
    assert_internal_error(misuse_json, "f", "JSON ends inside a value");
    assert_internal_error(misuse_json, "k[[[[[[[[[[[[[[[[[[[[[[[[", "JSON nested deeper than 24");
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static void test_names_of_headers(void **state)
{
    (void)state;
    static const char *const taken[] = {"linux",    "unix",        "NULL",        "size_t",
                                        "uint32_t", "int_fast8_t", "intptr_t",    "INT64_MAX",
                                        "UINT8_C",  "SIZE_MAX",    "PTRDIFF_MIN", "CUdeviceptr",
                                        "CUstream", "kiln_loader", "KILN_OK",     "CU_STREAM_LEGACY"};
    static const char *const free_[] = {"n",     "int4", "interval", "limit", "format",
                                        "X_MAX", "CUBE", "kilns",    "UINT"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        assert_true(c_headers_take(taken[i]));
    for (size_t i = 0; i < sizeof free_ / sizeof free_[0]; i++)
        assert_false(c_headers_take(free_[i]));
}

static void test_words(void **state)
{
    (void)state;
    assert_true(words_contain("a bc d", "bc"));
    assert_int_equal(words_find("a bc d", "d"), 2);
    assert_false(words_contain("a bc d", "b"));
    assert_false(words_contain("a bc d", "a bc"));
    assert_false(words_contain("a bc d", ""));
    assert_false(words_contain("", "a"));
    assert_true(word_is_number("0") && word_is_number("4294967295"));
    assert_false(word_is_number("") || word_is_number("01") || word_is_number("4294967296") ||
                 word_is_number("1a") || word_is_number("-1") ||
                 word_is_number("99999999999999999999999999999999"));
    assert_true(words_are_single_spaced("a bc d"));
    assert_false(words_are_single_spaced("a  bc"));
    assert_false(words_are_single_spaced(" a"));
    assert_false(words_are_single_spaced("a "));
    assert_true(words_have_number("any 32"));
    assert_false(words_have_number("any 32b"));
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"tragets", "bundle targets", "targets"},
        {"F16", "f32 f16", "f16"},
        {"f17", "f32 f16", "f16"},
        {"f61", "f16", "f16"},
        {"a", "b c", NULL},
        {"", "b", NULL},
        {"xyz", "abc", NULL},
        {"aa", "ab ac", "ab"},
        {"strtegy", "type strategy", "strategy"},
        {"x", "", NULL},
    };
    char buffer[32];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *near = nearest_word(rows[i][0], rows[i][1], buffer, sizeof buffer);
        if (rows[i][2])
            assert_string_equal(near, rows[i][2]);
        else
            assert_null(near);
    }
    assert_null(nearest_word("abcdefgh", "abcdefgi", buffer, 8)); /* no room */
}

static void test_suggest(void **state)
{
    (void)state;
    arena *a = arena_new();
    text many = text_new(a);
    text_add(&many, "nf4_gemm nf4_gemm_transposed linear");
    assert_string_equal(suggest_listed_text(a, "gemm", many.data, "kiln families"),
                        "; there are nf4_gemm, nf4_gemm_transposed, linear");
    for (int i = 0; i < 60; i++)
        text_printf(&many, " family_%d", i);
    assert_string_equal(suggest_listed_text(a, "gemm", many.data, "kiln families"),
                        "; there are nf4_gemm, nf4_gemm_transposed, and others that `kiln families` lists");
    assert_string_equal(suggest_listed_text(a, "linaer", many.data, "kiln families"),
                        "; did you mean 'linear'?");
    assert_string_equal(suggest_listed_text(a, "softmax", many.data, "kiln families"),
                        "; `kiln families` lists them");
    arena_free(a);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

typedef struct sandbox {
    arena *arena, *piece;
    char folder[32];
    FILE *said;
    char *said_text;
    size_t said_bytes;
    diagnostics d;
    spool *spool;
} sandbox;

static void open_sandbox(sandbox *s)
{
    *s = (sandbox){.arena = arena_new(), .piece = arena_new(), .folder = "files_test.XXXXXX"};
    assert_non_null(mkdtemp(s->folder));
    s->said = open_memstream(&s->said_text, &s->said_bytes);
    s->d.out = s->said;
    s->spool = spool_open(s->arena, s->folder, &s->d);
    assert_non_null(s->spool);
}

static void close_sandbox(sandbox *s)
{
    spool_close(s->spool);
    fclose(s->said);
    free(s->said_text);
    assert_int_equal(rmdir(s->folder), 0); /* no temporary file remains */
    arena_free(s->piece);
    arena_free(s->arena);
}

static file_output output(const sandbox *s, const char *name, const char *data)
{
    const char *path = arena_format(s->arena, "%s/%s", s->folder, name);
    file_output f = file_begin(s->arena, s->piece, path, s->spool);
    text_add(&f.text, data);
    file_flush(&f);
    return f;
}

static void assert_file(const sandbox *s, const file_output *f, const char *expected)
{
    text found;
    const char *why;
    assert_true(file_read(s->arena, f->path, 1000000, &found, &why));
    assert_string_equal(found.data, expected);
}

static void test_files(void **state)
{
    (void)state;
    sandbox s;
    open_sandbox(&s);
    file_output files[] = {output(&s, "a", "one"), output(&s, "b", "two")};
    assert_true(files_write(s.arena, files, 2, false, &s.d));
    assert_file(&s, &files[0], "one");
    assert_file(&s, &files[1], "two");

    struct stat before[2], after[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(stat(files[i].path, &before[i]), 0);
    files[1] = output(&s, "b", "TWO");
    assert_true(files_write(s.arena, files, 2, false, &s.d));
    for (int i = 0; i < 2; i++)
        assert_int_equal(stat(files[i].path, &after[i]), 0);
    assert_int_equal(before[0].st_ino, after[0].st_ino); /* the same inode: the file was not replaced */
    assert_int_equal(before[0].st_mtim.tv_nsec, after[0].st_mtim.tv_nsec);
    assert_int_not_equal(before[1].st_ino, after[1].st_ino);
    assert_file(&s, &files[1], "TWO");
    assert_int_equal(s.d.count, 0);

    const spool_range there = spool_add(s.spool, "<there>", 7);
    files[1] = file_begin(s.arena, s.piece, files[1].path, s.spool);
    text_add(&files[1].text, "one");
    file_add(&files[1], there);
    text_add(&files[1].text, "two");
    file_flush(&files[1]);
    text_add(&files[1].text, "front ");
    file_flush_to_front(&files[1]);
    text_add(&files[1].text, " three");
    file_add(&files[1], (spool_range){0, 0});
    assert_true(files_write(s.arena, files, 2, false, &s.d));
    assert_file(&s, &files[1], "front one<there>two three");
    assert_int_equal(stat(files[1].path, &before[1]), 0);
    assert_true(files_write(s.arena, files, 2, false, &s.d));
    assert_int_equal(stat(files[1].path, &after[1]), 0);
    assert_int_equal(before[1].st_ino, after[1].st_ino);

    text found;
    const char *why;
    assert_false(file_read(s.arena, files[0].path, 2, &found, &why));
    assert_string_equal(why, "more than 2 bytes");
    assert_int_equal(unlink(files[0].path) | unlink(files[1].path), 0);
    close_sandbox(&s);
}

/* The bytes read from a spool, and the number after which to stop. */
typedef struct reading {
    size_t bytes, enough;
    uint32_t sum;
} reading;

static bool take_sum(void *context, const char *data, size_t bytes)
{
    reading *r = context;
    for (size_t i = 0; i < bytes; i++)
        r->sum = r->sum * 31 + (unsigned char)data[i];
    r->bytes += bytes;
    return r->bytes < r->enough;
}

static void test_spool(void **state)
{
    (void)state;
    enum { BYTES = 200000 };
    sandbox s;
    open_sandbox(&s);
    char *data = arena_alloc(s.arena, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (char)(i * i >> 3);
    reading written = {.enough = SIZE_MAX}, read = written, stopped = {.enough = 1};
    take_sum(&written, data, BYTES);
    spool_add(s.spool, "before", 6);
    spool_range range = spool_add(s.spool, data, BYTES);
    spool_add(s.spool, "behind", 6);
    assert_true(spool_read(s.spool, range, take_sum, &read));
    assert_int_equal(read.bytes, BYTES);
    assert_int_equal(read.sum, written.sum);
    assert_false(spool_read(s.spool, range, take_sum, &stopped));
    assert_in_range(stopped.bytes, 1, BYTES - 1);
    range.at += BYTES; /* the reading ends before */
    assert_false(spool_read(s.spool, range, take_sum, &read));
    assert_int_equal(errno, EIO);
    assert_true(spool_is_whole(s.spool, &s.d));

    spool *elsewhere = spool_open(s.arena, "missing", &s.d);
    assert_non_null(elsewhere);
    spool_close(elsewhere);
    assert_int_equal(setenv("TMPDIR", "missing too", true), 0);
    assert_null(spool_open(s.arena, "missing", &s.d));
    unsetenv("TMPDIR");
    fflush(s.said);
    assert_string_equal(s.said_text, "missing too: error: cannot write: No such file or directory\n");
    close_sandbox(&s);
}

/* If one file cannot be written, the others stay unchanged. */
static void test_files_fail(void **state)
{
    (void)state;
    sandbox s;
    open_sandbox(&s);
    file_output files[] = {output(&s, "a", "one"), output(&s, "missing/b", "two"),
                           output(&s, "folder", "three")};
    assert_true(files_write(s.arena, files, 1, false, &s.d));
    files[0] = output(&s, "a", "ONE");
    assert_false(files_write(s.arena, files, 2, false, &s.d));
    assert_file(&s, &files[0], "one");

    assert_int_equal(mkdir(files[2].path, 0777), 0);
    files[1] = output(&s, "b", "two");
    assert_false(files_write(s.arena, files, 3, false, &s.d));
    assert_file(&s, &files[0], "one");
    assert_int_equal(access(files[1].path, F_OK), -1);
    fflush(s.said);
    assert_string_equal(s.said_text,
                        arena_format(s.arena,
                                     "%s/missing/b: error: cannot write: No such file or directory\n"
                                     "%s/folder: error: cannot write: a folder is in its place\n",
                                     s.folder, s.folder));
    assert_int_equal(unlink(files[0].path) | rmdir(files[2].path), 0);
    close_sandbox(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_misuse),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_suggest),
        cmocka_unit_test(test_spool),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_files_fail),
        cmocka_unit_test(test_names_of_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
