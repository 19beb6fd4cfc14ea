/* JUnit XML of made-up results: every text is escaped, and every outcome is counted. */
#include "test_verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/utf8.h"
#include "junit.h"
#include "verify.h"

/* What each bundle's program has. */
const char kiln_verify_uncompared[] = "";
const unsigned kiln_verify_inputs = 0;

static const manifest_variant first = {.id = "a/x=1", .family = "a"}, second = {.id = "a/x=2", .family = "a"},
                              third = {.id = "<b>&\"\x01\n\t\r\xff\xed\xa0\x80\xef\xbf\xbf\xc3\xa9'",
                                       .family = "b\"&<"},
                              fourth = {.id = "c", .family = "c"};

static char *written(const run_results *all)
{
    char path[] = "/tmp/kiln_junit_XXXXXX";
    static char text[8192];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_true(junit_write(all, path));
    const ssize_t length = read(file, text, sizeof text - 1);
    assert_true(length == 0); /* another file took the name */
    close(file);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    remove(path);
    return text;
}

static void each_outcome_is_a_test_case(void **state)
{
    (void)state;
    const manifest_variant *variants[] = {&first, &second, &third, &fourth};
    static run_result results[4];
    results[0] = (run_result){.verdict = RUN_OK,
                              .cases = 2,
                              .launches = 4,
                              .refusals = 3,
                              .elements = 100,
                              .has_bounds = true,
                              .worst_ratio = 0.25,
                              .largest_elements = 50,
                              .largest = "n=50",
                              .seconds = 1.5};
    results[1] = (run_result){.verdict = RUN_SKIPPED, .detail = "no image: <sm_90>"};
    results[2] =
        (run_result){.verdict = RUN_WRONG, .detail = "y[3] is 1 & not 2\nsecond]]>", .seconds = 0.25};
    results[3] = (run_result){.verdict = RUN_EXECUTED, .cases = 1, .launches = 2};
    run_results all = {.variants = variants, .results = results, .count = 4};
    for (int i = 0; i < RUN_FACTS; i++)
        all.facts[i] = i == FACT_BUNDLE ? "my" : i == FACT_OPTIONS ? "--filter '<&\"'" : "1";

    const char *text = written(&all);
    static const char *const lines[] = {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites name=\"1\" tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\" time=\"1.750\">\n"
        "  <testsuite name=\"a\" tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\" time=\"1.500\">\n"
        "    <properties>\n"
        "      <property name=\"bundle\" value=\"my\"/>\n"
        "      <property name=\"generator\" value=\"1\"/>\n"
        "      <property name=\"manifest_xxh3_128\" value=\"1\"/>\n",
        "      <property name=\"options\" value=\"--filter '&lt;&amp;&quot;'\"/>\n",
        "    <testcase classname=\"my.a\" name=\"a/x=1\" time=\"1.500\">\n"
        "      <system-out>2 cases, 4 launches, 3 refused calls, 100 elements compared, largest error 0.25 of its bound, "
        "largest size n=50</system-out>\n"
        "    </testcase>\n"
        "    <testcase classname=\"my.a\" name=\"a/x=2\" time=\"0.000\">\n"
        "      <skipped message=\"no image: &lt;sm_90&gt;\"/>\n"
        "      <system-out>0 cases, 0 launches, 0 refused calls, 0 elements compared</system-out>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "  <testsuite name=\"b&quot;&amp;&lt;\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"0.250\">\n",
        "    <testcase classname=\"my.b&quot;&amp;&lt;\" name=\"&lt;b&gt;&amp;&quot;\xef\xbf\xbd&#10;&#9;&#13;"
        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9'\" time=\"0.250\">\n"
        "      <failure message=\"y[3] is 1 &amp; not 2&#10;second]]&gt;\" type=\"WRONG\">"
        "y[3] is 1 &amp; not 2&#10;second]]&gt;</failure>\n",
        "      <failure message=\"executed, not compared, and not listed as UNCOMPARED\" type=\"executed, not compared\">"
        "executed, not compared, and not listed as UNCOMPARED</failure>\n"
        "      <system-out>1 cases, 2 launches, 0 refused calls, 0 elements compared</system-out>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *at = strstr(text, lines[i]);
        if (!at)
            print_error("not there:\n%sin\n%s", lines[i], text);
        assert_non_null(at);
        text = at + strlen(lines[i]);
    }
    assert_string_equal(text, "");

    all.lacks_times = true;
    assert_null(strstr(written(&all), " time="));
}

static void characters_are_those_of_unicode(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
    } rows[] = {{"a", 1},
                {"\x7f", 1},
                {"\x80", 0},
                {"\xc1\x80", 0},
                {"\xc2\x80", 2},
                {"\xc2", 0},
                {"\xdf\xbf", 2},
                {"\xe0\x9f\xbf", 0},
                {"\xe0\xa0\x80", 3},
                {"\xe1\x80", 0},
                {"\xed\x9f\xbf", 3},
                {"\xed\xa0\x80", 0},
                {"\xef\xbf\xbd", 3},
                {"\xf0\x8f\xbf\xbf", 0},
                {"\xf0\x90\x80\x80", 4},
                {"\xf1\x80\x80", 0},
                {"\xf4\x8f\xbf\xbf", 4},
                {"\xf4\x90\x80\x80", 0},
                {"\xf5\x80\x80\x80", 0},
                {"\xff", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(utf8_length((const unsigned char *)rows[i].text), rows[i].length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_is_a_test_case),
        cmocka_unit_test(characters_are_those_of_unicode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
