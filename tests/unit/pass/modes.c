/* SPDX-License-Identifier: Apache-2.0
 *
 * How texts of modes are parsed, and the errors of those that are refused: 5,000 random texts, a
 * sixth of them spoiled, have one digest, which changes if any of them is parsed differently.
 * MODES=FILE writes the results there, a line each, to show which.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "lib/unit.h"
#include "pass/replicate/replicate.h"

#define TEXTS 5000
#define DIGEST 0xb7cf8d3cc7436032

static const char *const heads[] = {
    "sync",     "sync",      "sync,backup=1", "async", "ssp,bound=3", "sync,update=worker",
    "downpour", "allreduce", "allreduce",     "auto",  "ssp",         "none"};
static const char *const words[] = {"factors=auto",
                                    "factors=auto",
                                    "factors=all",
                                    "bits=1",
                                    "bits=1",
                                    "bits=2",
                                    "bits=9",
                                    "bits=0",
                                    "threshold=0.5",
                                    "threshold=0",
                                    "threshold=-1",
                                    "top=0.01",
                                    "top=0.01",
                                    "top=1.5",
                                    "after=3",
                                    "after=x",
                                    "delay=1",
                                    "delay=1",
                                    "delay=2",
                                    "pieces=64k",
                                    "pieces=none",
                                    "pieces=0",
                                    "pieces=1M",
                                    "schedule=ring",
                                    "schedule=auto",
                                    "schedule=nccl",
                                    "schedule=two-level",
                                    "schedule=a-name-that-is-long",
                                    "dense=a",
                                    "dense=b",
                                    "dense=d",
                                    "update=pass",
                                    "update=worker",
                                    "update=worker",
                                    "fetch=5",
                                    "push=4",
                                    "push.conv*=8",
                                    "push.=8",
                                    "push.a=b=2",
                                    "rate=0.01",
                                    "rate=",
                                    "backup=1",
                                    "sync",
                                    "",
                                    "bits=1,after=2",
                                    "dense=c,update=pass"};

#define PICK(list, seed) (list)[unit_random(seed) % (sizeof(list) / sizeof *(list))]

static void make_text(struct str *text, uint64_t *seed)
{
    str_append(text, PICK(heads, seed));
    for (int n = (int)(unit_random(seed) % 4); n > 0; n--)
        str_printf(text, ",%s", PICK(words, seed));
    if (unit_random(seed) % 6 == 0)
        text->data[unit_random(seed) % text->n] = ",=.x1"[unit_random(seed) % 5];
}

static void print_mode(struct str *out, const char *text)
{
    struct replicate_options o = {.mode = REPLICATE_POLICY};
    struct error err = ERROR_INIT;
    str_printf(out, "%s: ", text);
    if (replicate_parse(&o, text, &err)) {
        str_printf(out, "%d %s\n", (int)err.code, err.text);
        return;
    }
    str_printf(out, "%d '%s' '%s' %d %d %g %d %d ", (int)o.mode, o.policy, replicate_mode_name(&o),
               o.fetch, o.push, o.rate, (int)o.factors, o.after);
    if (o.code.name)
        str_printf(out, "%s %d %g %g ", o.code.name, o.code.bits, o.code.threshold, o.code.share);
    str_printf(out, "%d %d %d %d ", (int)o.schedule, o.schedules, (int)o.by_device, o.by_servers);
    str_printf(out, "%d %d %lld %d", o.dense, o.update_each, (long long)o.piece_bytes, o.delay);
    for (int i = 0; i < o.n_intervals; i++)
        str_printf(out, " %.*s:%d", o.intervals[i].n, o.intervals[i].pattern, o.intervals[i].steps);
    str_append_char(out, '\n');
}

static void texts_are_read_as_ever(void **state)
{
    struct str all = STR_INIT;
    uint64_t seed = 1, digest = 0xcbf29ce484222325; /* FNV-1a */
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        struct str text = STR_INIT;
        make_text(&text, &seed);
        print_mode(&all, str_text(&text));
        str_release(&text);
    }
    for (size_t i = 0; i < all.n; i++)
        digest = (digest ^ (unsigned char)all.data[i]) * 0x100000001b3;
    FILE *file = getenv("MODES") ? fopen(getenv("MODES"), "w") : NULL;
    if (file) {
        fputs(str_text(&all), file);
        assert_int_equal(fclose(file), 0);
    }
    str_release(&all);
    if (digest != DIGEST)
        fail_msg("the digest is 0x%llx", (unsigned long long)digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_read_as_ever)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
