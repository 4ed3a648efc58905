/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the command line, as cli/options.h states them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "lib/unit.h"

static struct {
    bool shuffle, key;
    int verbose;
    int64_t steps, memory;
    double rate, lease;
    const char *save, *data;
    struct option_list fetch, define;
} set;

static const struct option_row rows[] = {
    {0, "shuffle", OPTION_FLAG, &set.shuffle, NULL, "draw rows in random order"},
    {0, "key", OPTION_FLAG, &set.key, NULL, "ask for a key"},
    {'v', "verbose", OPTION_COUNT, &set.verbose, NULL, "say more"},
    {'n', "steps", OPTION_INT, &set.steps, "N", "how long"},
    {0, "memory", OPTION_BYTES, &set.memory, "SIZE", "how much\nin one device"},
    {0, "rate", OPTION_FLOAT, &set.rate, "X", "how fast"},
    {0, "lease", OPTION_SECONDS, &set.lease, "TIME", "how patient"},
    {'s', "save", OPTION_TEXT, &set.save, "FILE", "where to"},
    {0, "save-every", OPTION_INT, &set.steps, "N", "how often"},
    {0, "data", OPTION_OPTIONAL, &set.data, "PART", "read data, too"},
    {'f', "fetch", OPTION_LIST, &set.fetch, "A,B", "what comes out"},
    {'D', "define", OPTION_REPEAT, &set.define, "NAME=VALUE", "a parameter"},
    {0},
};

static const struct option_table table = {
    .tool = "tf-test",
    .summary = "try the options",
    .operands = "[FILE]...",
    .description = "First.\n\n.Second 'quoted' \\ end.",
    .examples = "tf-test a | tf-show\ntf-test b",
    .rows = rows,
    .operands_max = 3,
};

static struct error err;
static char *argv_buffer[16];
static char arguments[512];
static int n_operands;
static bool shown;

static void forget_list(struct option_list *list, bool owned)
{
    for (size_t i = 0; owned && i < list->n; i++)
        mem_free((void *)(uintptr_t)list->items[i]);
    mem_free(list->items);
}

static int forget(void **unused)
{
    (void)unused;
    forget_list(&set.fetch, true);
    forget_list(&set.define, false);
    memset(&set, 0, sizeof set);
    error_clear(&err);
    return 0;
}

/* Parses a line whose words are separated by single blanks. */
static int parse(const char *line)
{
    forget(NULL);
    snprintf(arguments, sizeof arguments, "tf-test %s", line);
    int argc = 0;
    char *rest = arguments, *word;
    while ((word = strsep(&rest, " ")))
        if (*word)
            argv_buffer[argc++] = word;
    argv_buffer[argc] = NULL;
    return options_parse(&table, argc, argv_buffer, &n_operands, &shown, &err);
}

static void types(void **unused)
{
    (void)unused;
    assert_int_equal(parse("--shuffle --steps=-5 --memory 1.5k --rate 1e-3 --lease 250ms --save x"),
                     0);
    assert_true(set.shuffle);
    assert_int_equal(set.steps, -5);
    assert_int_equal(set.memory, 1536);
    assert_true(set.rate == 1e-3 && set.lease == 0.25);
    assert_string_equal(set.save, "x");
    assert_int_equal(parse("--save ="), 0);
    assert_string_equal(set.save, "=");
    assert_int_equal(parse("--save="), 0);
    assert_string_equal(set.save, "");
    assert_int_equal(parse("--save --shuffle"), 0);
    assert_string_equal(set.save, "--shuffle");
    assert_false(set.shuffle);
}

static void lists(void **unused)
{
    (void)unused;
    assert_int_equal(parse("--fetch a,b -fc --fetch=d -D x=1,2 -Dy=3"), 0);
    assert_int_equal(set.fetch.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(set.fetch.items[i][0], 'a' + i);
    assert_int_equal(set.define.n, 2);
    assert_string_equal(set.define.items[0], "x=1,2");
    assert_string_equal(set.define.items[1], "y=3");
    unit_assert_error(parse("--fetch a,,b"), err, ERR_USAGE, "--fetch: empty item in 'a,,b'");
    unit_assert_error(parse("--fetch a,"), err, ERR_USAGE, "--fetch: empty item in 'a,'");
}

static void letters_join(void **unused)
{
    (void)unused;
    assert_int_equal(parse("-vvs out -n3 -v"), 0);
    assert_int_equal(set.verbose, 3);
    assert_string_equal(set.save, "out");
    assert_int_equal(set.steps, 3);
    assert_int_equal(parse("-vsout"), 0);
    assert_string_equal(set.save, "out");
    unit_assert_error(parse("-vx"), err, ERR_USAGE, "unknown option '-x'; see tf-test --help");
    unit_assert_error(parse("-vs"), err, ERR_USAGE, "-s needs FILE");
}

static void optional_values_need_the_equals_sign(void **unused)
{
    (void)unused;
    assert_int_equal(parse("--data x"), 0);
    assert_string_equal(set.data, "");
    assert_int_equal(n_operands, 1);
    assert_int_equal(parse("--data=5% x"), 0);
    assert_string_equal(set.data, "5%");
    assert_int_equal(parse("x"), 0);
    assert_null(set.data);
}

static void operands_mix_with_options(void **unused)
{
    (void)unused;
    assert_int_equal(parse("a --steps 3 - -v -- --shuffle"), 0);
    assert_int_equal(n_operands, 3);
    assert_string_equal(argv_buffer[0], "a");
    assert_string_equal(argv_buffer[1], "-");
    assert_string_equal(argv_buffer[2], "--shuffle");
    assert_false(set.shuffle);
    assert_int_equal(parse("-1 -.5 -2e3"), 0);
    assert_int_equal(n_operands, 3);
    unit_assert_error(parse("a b c d"), err, ERR_USAGE,
                      "extra operand 'd'; usage: tf-test [OPTION]... [FILE]...");
}

static void what_follows_two_hyphens_may_be_a_command(void **unused)
{
    (void)unused;
    int command = -1, most = 9;
    struct option_table takes = table;
    takes.command = &command;
    takes.operands_max = 1;
    char *words[] = {"tf-test", "-v", "a", "--save", "--", "--", "b", "--steps", "--", "x"};
    forget(NULL);
    assert_int_equal(options_parse(&takes, 10, words, &n_operands, &shown, &err), 0);
    assert_int_equal(n_operands, 1);
    assert_string_equal(words[0], "a");
    assert_string_equal(set.save, "--"); /* an option's value does not end the options */
    assert_int_equal(command, 6);
    assert_string_equal(words[command], "b");
    assert_string_equal(words[most], "x");
    assert_int_equal(set.steps, 0);
    char *none[] = {"tf-test", "a"};
    assert_int_equal(options_parse(&takes, 2, none, &n_operands, &shown, &err), 0);
    assert_int_equal(command, 2);
    char *empty[] = {"tf-test", "--"};
    assert_int_equal(options_parse(&takes, 2, empty, &n_operands, &shown, &err), 0);
    assert_int_equal(command, 2);
}

static void names_may_be_cut(void **unused)
{
    (void)unused;
    assert_int_equal(parse("--mem 1 --le=2s --verb"), 0);
    assert_int_equal(set.memory, 1);
    assert_int_equal(set.verbose, 1);
    assert_int_equal(parse("--save x"), 0); /* a whole name, though --save-every begins with it */
    unit_assert_error(parse("--sa x"), err, ERR_USAGE,
                      "option '--sa' is ambiguous: --save or --save-every");
    unit_assert_error(parse("--s x"), err, ERR_USAGE,
                      "option '--s' is ambiguous: --shuffle or --save-every");
}

static void flags_are_switched_off(void **unused)
{
    (void)unused;
    assert_int_equal(parse("--shuffle --no-shuffle"), 0);
    assert_false(set.shuffle);
    assert_int_equal(parse("--no-shuffle --shuffle"), 0);
    assert_true(set.shuffle);
    unit_assert_error(parse("--no-save"), err, ERR_USAGE,
                      "unknown option '--no-save'; did you mean --save?");
    unit_assert_error(parse("--shuffle=1"), err, ERR_USAGE, "--shuffle takes no value");
}

static void mistakes_are_told(void **unused)
{
    (void)unused;
    unit_assert_error(parse("--shufle"), err, ERR_USAGE,
                      "unknown option '--shufle'; did you mean --shuffle?");
    unit_assert_error(parse("--zzzzzzzz=3"), err, ERR_USAGE,
                      "unknown option '--zzzzzzzz'; see tf-test --help");
    unit_assert_error(parse("--steps"), err, ERR_USAGE, "--steps needs N");
    unit_assert_error(parse("--steps 3x"), err, ERR_USAGE, "--steps: '3x' is not a whole number");
    unit_assert_error(parse("--rate fast"), err, ERR_USAGE, "--rate: 'fast' is not a number");
    unit_assert_error(parse("--memory -1"), err, ERR_USAGE,
                      "--memory: '-1' is not a size in bytes, as 4096, 64k or 1.5G");
    unit_assert_error(parse("--memory 98765432109876543210"), err, ERR_USAGE,
                      "--memory: 98765432109876543210 is too large");
    unit_assert_error(parse("--memory 9876543210T"), err, ERR_USAGE,
                      "--memory: 9876543210T is too large");
    unit_assert_error(parse("--memory 64kb"), err, ERR_USAGE,
                      "--memory: '64kb' is not a size in bytes, as 4096, 64k or 1.5G");
    unit_assert_error(parse("--lease soon"), err, ERR_USAGE,
                      "--lease: 'soon' is not a time, as 250ms, 30s or 2m");
    unit_assert_error(parse("--lease 99999999999999999999"), err, ERR_USAGE,
                      "--lease: '99999999999999999999' is not a time, as 250ms, 30s or 2m");
}

static void environment_gives_way_to_the_command_line(void **unused)
{
    (void)unused;
    setenv("TF_SAVE_EVERY", "7", 1);
    setenv("TF_FETCH", "a,b,c", 1);
    setenv("TF_SHUFFLE", "yes", 1);
    setenv("TF_VERBOSE", "2", 1);
    setenv("TF_SAVE", "", 1);
    assert_int_equal(parse(""), 0);
    assert_int_equal(set.steps, 7);
    assert_int_equal(set.fetch.n, 3);
    assert_true(set.shuffle);
    assert_int_equal(set.verbose, 2);
    assert_null(set.save);
    assert_int_equal(parse("--fetch d --no-shuffle --save-every 9"), 0);
    assert_int_equal(set.fetch.n, 1);
    assert_false(set.shuffle);
    assert_int_equal(set.steps, 9);
    setenv("TF_SHUFFLE", "perhaps", 1);
    unit_assert_error(parse(""), err, ERR_USAGE, "TF_SHUFFLE: 'perhaps' is not 0 or 1");
    setenv("TF_SHUFFLE", "0", 1);
    setenv("TF_SAVE_EVERY", "x", 1);
    unit_assert_error(parse(""), err, ERR_USAGE, "TF_SAVE_EVERY: 'x' is not a whole number");
    unsetenv("TF_SAVE_EVERY");
    unsetenv("TF_FETCH");
    unsetenv("TF_SHUFFLE");
    unsetenv("TF_VERBOSE");
    unsetenv("TF_SAVE");
}

/* The output of `print`, in a static buffer. */
static const char *printed(void (*print)(const struct option_table *, FILE *))
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    print(&table, out);
    fclose(out);
    return text;
}

static void help_of_tool(const struct option_table *of, FILE *out)
{
    options_help(of, "", out);
}

static void help_has_examples_first_and_every_option(void **unused)
{
    (void)unused;
    const char *help = printed(help_of_tool);
    assert_non_null(strstr(help, "tf-test: try the options\n\n  tf-test a | tf-show\n"));
    assert_true(strstr(help, "tf-test b") < strstr(help, "usage: tf-test [OPTION]... [FILE]..."));
    assert_non_null(strstr(help, "\n  -s, --save FILE          where to\n"));
    assert_non_null(strstr(help,
                           "\n      --memory SIZE        how much\n                           "
                           "in one device\n"));
    assert_non_null(strstr(help, "      --data[=PART]        read data, too\n"));
    for (const struct option_row *row = rows; row->name; row++)
        assert_non_null(strstr(help, row->name));
}

static void manual_escapes_roff(void **unused)
{
    (void)unused;
    const char *man = printed(options_man);
    assert_non_null(strstr(man, ".TH TF-TEST 1"));
    assert_non_null(strstr(man, "\n\\&.Second 'quoted' \\e end.\n"));
    assert_non_null(strstr(man, ".B \\-s, \\-\\-save FILE\nwhere to\n"));
    assert_non_null(strstr(man, ".B \\-\\-save\\-every N\n"));
    assert_non_null(strstr(man, "tf\\-test a | tf\\-show"));
}

static void progress_says_rate_and_time_left(void **unused)
{
    (void)unused;
    static const struct {
        int64_t first, total, done;
        double seconds;
        const char *detail, *line;
    } cases[] = {
        {0, 460, 230, 2, "loss 0.31", "step 230/460  loss 0.31  115 steps/s  0:02 left"},
        {0, 460, 460, 2, "", "step 460/460  230 steps/s  0:00 left"},
        {100, 460, 110, 10, "", "step 110/460  1.00 steps/s  5:50 left"},
        {0, -1, 5, 2, "", "step 5  2.50 steps/s"},
        {0, 100000, 10, 10, "", "step 10/100000  1.00 steps/s  27:46:30 left"},
        {0, 460, 0, 2, "", "step 0/460"},
        {0, 460, 1, 0, "", "step 1/460"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct progress progress;
        progress_start(&progress, false, stderr, "step", cases[i].first, cases[i].total);
        struct str line = STR_INIT;
        progress_format(&progress, cases[i].done, cases[i].seconds, cases[i].detail, &line);
        assert_string_equal(str_text(&line), cases[i].line);
        str_release(&line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),
        cmocka_unit_test(lists),
        cmocka_unit_test(letters_join),
        cmocka_unit_test(optional_values_need_the_equals_sign),
        cmocka_unit_test(operands_mix_with_options),
        cmocka_unit_test(what_follows_two_hyphens_may_be_a_command),
        cmocka_unit_test(names_may_be_cut),
        cmocka_unit_test(flags_are_switched_off),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(environment_gives_way_to_the_command_line),
        cmocka_unit_test(help_has_examples_first_and_every_option),
        cmocka_unit_test(manual_escapes_roff),
        cmocka_unit_test(progress_says_rate_and_time_left),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, forget);
}
