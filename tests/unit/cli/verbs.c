/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs of a command line: their options, operands and help.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "lib/unit.h"

static struct {
    bool shuffle, key;
    int64_t steps, memory;
    double rate, lease;
    const char *save;
} set;

static const struct option_row rows[] = {
    {0, "shuffle", OPTION_FLAG, &set.shuffle, NULL, "draw rows in random order"},
    {0, "key", OPTION_FLAG, &set.key, NULL, "ask for a key"},
    {'n', "steps", OPTION_INT, &set.steps, "N", "how long"},
    {0, "memory", OPTION_BYTES, &set.memory, "SIZE", "how much\nin one device"},
    {0, "rate", OPTION_FLOAT, &set.rate, "X", "how fast"},
    {0, "lease", OPTION_SECONDS, &set.lease, "TIME", "how patient"},
    {'s', "save", OPTION_TEXT, &set.save, "FILE", "where to"},
    {0, "save-every", OPTION_INT, &set.steps, "N", "how often"},
    {0},
};

static struct error err;
static char *argv_buffer[16];
static char arguments[512];
static int n_operands;
static bool shown;

static const struct option_verb verbs[] = {{"", "[FILE]", "do it", "steps save save-every"},
                                           {"list", "STORE", "what is there", "key"},
                                           {"copy", "FROM [TO]", "bring it there", "key memory"},
                                           {"take", "[NAME]...", "some", NULL},
                                           {NULL, NULL, NULL, NULL}};
static const struct option_need needs[] = {{"save-every rate", "save memory"}, {NULL, NULL}};
static const struct option_table busy = {.tool = "tf-busy",
                                         .summary = "do several things",
                                         .rows = rows,
                                         .verbs = verbs,
                                         .needs = needs,
                                         .operands_max = -1};

/* Parses a line whose words are separated by single blanks. */
static int parse(const char *line)
{
    error_clear(&err);
    snprintf(arguments, sizeof arguments, "tf-busy %s", line);
    int argc = 0;
    char *rest = arguments, *word;
    while ((word = strsep(&rest, " ")))
        argv_buffer[argc++] = word;
    return options_parse(&busy, argc, argv_buffer, &n_operands, &shown, &err);
}

static void options_are_of_the_verbs_that_read_them(void **unused)
{
    (void)unused;
    static const struct {
        const char *line, *error; /* NULL: the line is right */
    } cases[] = {
        {"list s --key", NULL},
        {"--key copy s --memory 1k", NULL},
        {"--steps 3", NULL},
        {"file --save x --save-every 3", NULL},
        {"take --shuffle --lease 3s", NULL},
        {"list s --steps 3", "--steps is not for list"},
        {"--steps=3 copy a", "--steps is not for copy"},
        {"list s --memory 1k", "--memory is for copy, not for list"},
        {"file --key", "--key is for list and copy"},
        {"take --no-key", "--key is for list and copy, not for take"},
        {"--save-every 3", "--save-every is for --save or --memory, which is not given"},
        {"take --rate 3", "--rate is for --save or --memory, which is not given"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].line), cases[i].error ? ERR_USAGE : 0);
        assert_string_equal(err.text, cases[i].error ? cases[i].error : "");
    }
    setenv("TF_STEPS", "3", 1);
    setenv("TF_RATE", "2", 1);
    assert_int_equal(parse("list s"), 0); /* shared by all tools, so it is ignored */
    setenv("TF_SAVE", "x", 1);
    assert_int_equal(parse("--save-every 3"), 0);
    unsetenv("TF_STEPS");
    unsetenv("TF_RATE");
    unsetenv("TF_SAVE");
}

static void verbs_have_their_operands(void **unused)
{
    (void)unused;
    static const struct {
        const char *line;
        int verb;
        const char *error;
    } cases[] = {
        {"list s", 1, ""},
        {"copy a", 2, ""},
        {"copy a b", 2, ""},
        {"take", 3, ""},
        {"take a b c d e", 3, ""},
        {"list", -1, "usage: tf-busy list STORE"},
        {"list s t", -1, "usage: tf-busy list STORE"},
        {"copy", -1, "usage: tf-busy copy FROM [TO]"},
        {"copy a b c", -1, "usage: tf-busy copy FROM [TO]"},
        {"lsit s", -1, "there is no verb 'lsit'; did you mean list?"},
        {"whatever", -1, "there is no verb 'whatever'; tf-busy --help lists them"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].line), 0);
        assert_int_equal(options_verb(&busy, n_operands, argv_buffer, &err), cases[i].verb);
        assert_string_equal(err.text, cases[i].error);
    }
    assert_int_equal(options_verb(&busy, 0, argv_buffer, &err), -1);
    assert_string_equal(err.text, "which verb? tf-busy --help lists them");
    error_clear(&err);
}

static void help_is_of_a_verb(void **unused)
{
    (void)unused;
    char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    options_help(&busy, "copy", out);
    fclose(out);
    assert_ptr_equal(strstr(text, "tf-busy copy: bring it there\n\n"
                                  "usage: tf-busy copy FROM [TO] [OPTION]...\n"),
                     text);
    assert_non_null(strstr(text, "--memory"));
    assert_non_null(strstr(text, "--lease"));
    assert_null(strstr(text, "--steps"));
    out = fmemopen(text, sizeof text, "w");
    options_help(&busy, "", out);
    fclose(out);
    assert_non_null(strstr(text, "\n  copy FROM [TO]  bring it there\n"));
    assert_non_null(strstr(text, "list, copy: ask for a key\n"));
    assert_non_null(strstr(text, "copy: how much\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_of_the_verbs_that_read_them),
        cmocka_unit_test(verbs_have_their_operands),
        cmocka_unit_test(help_is_of_a_verb),
    };
    return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}
