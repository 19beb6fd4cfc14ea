#include "words.h"

#include <stdint.h>
#include <string.h>

const char c_keywords[] =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t "
    "class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend "
    "goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
    "protected public register reinterpret_cast requires restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef typeid "
    "typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq "
    "_Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local";

const char c_headers[] =
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg "
    "stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype";

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *name, const char *suffix)
{
    const size_t length = strlen(name), own = strlen(suffix);
    return length >= own && strcmp(name + length - own, suffix) == 0;
}

/* int8_t, uint_fast16_t; INT8_MAX, UINT64_C, SIZE_MAX. */
static bool is_of_stdint(const char *name)
{
    static const char *const limited[] = {"INT",         "UINT",   "SIZE_", "PTRDIFF_",
                                          "SIG_ATOMIC_", "WCHAR_", "WINT_"};
    if (ends_with(name, "_t"))
        return begins_with(name, "int") || begins_with(name, "uint");
    if (!ends_with(name, "_MAX") && !ends_with(name, "_MIN") && !ends_with(name, "_C") &&
        !ends_with(name, "_WIDTH"))
        return false;
    for (size_t i = 0; i < sizeof limited / sizeof limited[0]; i++)
        if (begins_with(name, limited[i]))
            return true;
    return false;
}

bool c_headers_take(const char *name)
{
    static const char words[] = "linux unix i386 NULL errno offsetof size_t ptrdiff_t max_align_t nullptr_t "
                                "EOF BUFSIZ I complex imaginary INFINITY NAN HUGE_VAL "
                                "CUcontext CUdeviceptr CUevent CUfunction CUmodule CUstream";
    return words_contain(words, name) || is_of_stdint(name) || begins_with(name, "kiln_") ||
           begins_with(name, "KILN_") || begins_with(name, "CU_") || begins_with(name, "CUDA_");
}

const char *words_next(const char **cursor, size_t *length)
{
    const char *word = *cursor + strspn(*cursor, " ");
    *length = strcspn(word, " ");
    *cursor = word + *length;
    return *length > 0 ? word : NULL;
}

int words_find(const char *words, const char *word)
{
    size_t wanted = strlen(word), length;
    int index = 0;
    for (const char *w; (w = words_next(&words, &length)); index++)
        if (length == wanted && memcmp(w, word, length) == 0)
            return index;
    return -1;
}

bool words_contain(const char *words, const char *word)
{
    return words_find(words, word) >= 0;
}

bool words_are_single_spaced(const char *words)
{
    return words[0] != ' ' && !strstr(words, "  ") && !ends_with(words, " ");
}

static bool is_number(const char *word, size_t length)
{
    if (length == 0 || (word[0] == '0' && length > 1))
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (word[i] < '0' || word[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(word[i] - '0');
        if (value > UINT32_MAX)
            return false;
    }
    return true;
}

bool word_is_number(const char *word)
{
    return is_number(word, strlen(word));
}

bool words_have_number(const char *words)
{
    size_t length;
    for (const char *w; (w = words_next(&words, &length));)
        if (is_number(w, length))
            return true;
    return false;
}
