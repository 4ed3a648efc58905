/* SPDX-License-Identifier: Apache-2.0
 *
 * Modes in the syntax of users: a kind, and words, each of which is a row of one table.
 */
#include <stddef.h>
#include <string.h>

#include "pass/replicate/replicate_private.h"
#include "resource/policy.h"

#define UPDATE_WORKER "update=worker"

/* Kinds of modes that take a word. ANY is read first: one of its words makes the kind SERVED. */
enum { ANY = 1, PUSHED = 2, DOWNPOUR = 4, REDUCED = 8, SERVED = 16, AUTO = 32 };
#define ALL_REDUCED (REDUCED | SERVED)
#define ALL_SENT (PUSHED | DOWNPOUR | ALL_REDUCED)

/* ---- values of words: readers return false for invalid ones ---- */

struct word_value {
    const char *text;    /* ends where the word does */
    const char *in_mode; /* the same within the mode's text, for borrowers */
    struct error *err;
};

static bool read_count(void *count, const struct word_value *value)
{
    int64_t number;
    bool is_it = str_to_int64(value->text, &number) && number >= 1 && number <= INT32_MAX;
    if (is_it)
        *(int *)count = (int)number;
    return is_it;
}

static bool read_number(void *number, const struct word_value *value)
{
    return str_to_float64(value->text, number) && *(double *)number >= 0;
}

/* A size, or "none". */
static bool read_pieces(void *bytes, const struct word_value *value)
{
    bool none = !strcmp(value->text, "none");
    if (none)
        *(int64_t *)bytes = REPLICATE_WHOLE;
    return none || (str_to_bytes(value->text, bytes) && *(int64_t *)bytes >= 1);
}

static bool read_factors(void *factors, const struct word_value *value)
{
    bool all = !strcmp(value->text, "all");
    *(enum replicate_factors *)factors = all ? FACTORS_ALL : FACTORS_AUTO;
    return all || !strcmp(value->text, "auto");
}

static bool read_dense(void *scheme, const struct word_value *value)
{
    *(char *)scheme = *value->text;
    return *value->text >= 'a' && *value->text <= 'c' && !value->text[1];
}

/* The word has no value. */
static bool read_flag(void *flag, const struct word_value *value)
{
    *(bool *)flag |= !*value->text;
    return !*value->text;
}

static bool read_interval(void *all, const struct word_value *value)
{
    struct replicate_options *options = all;
    const char *equals = strrchr(value->text, '=');
    struct replicate_interval interval = {.pattern = value->in_mode};
    if (!equals || equals == value->text ||
        !read_count(&interval.steps, &(struct word_value){.text = equals + 1}))
        return false;
    interval.n = (int)(equals - value->text);
    if (options->n_intervals == REPLICATE_INTERVALS_MAX)
        error_set(value->err, ERR_USAGE, "--mode downpour takes push.NAME=N for %d names at most",
                  REPLICATE_INTERVALS_MAX);
    else
        options->intervals[options->n_intervals++] = interval;
    return true;
}

static bool read_schedule(void *all, const struct word_value *value)
{
    struct replicate_options *options = all;
    options->schedules = !strcmp(value->text, "auto");
    options->by_device = by_device_of(value->text);
    bool is_kind = schedule_kind_of(value->text, &options->schedule);
    if (!options->schedules && !options->by_device && !is_kind)
        error_set(value->err, ERR_USAGE,
                  "--mode allreduce: schedule is auto, " SCHEDULE_NAMES
                  ", or of GPUs " BY_DEVICE_NAMES ", not '%s'",
                  value->text);
    if (!is_kind)
        options->schedule = SCHEDULE_DIRECT;
    return true;
}

/* ---- words ---- */

static const struct mode_word {
    const char *key;
    int takers;
    const char *usage;
    bool (*read)(void *field, const struct word_value *value);
    size_t field; /* of struct replicate_options */
} words[] = {
#define FIELD(name) offsetof(struct replicate_options, name)
#define WORD(key, takers, usage, read, field, help) {key, takers, usage, read, field},
#include "pass/replicate/mode_words.def"
#undef WORD
#undef FIELD
};
#define N_WORDS (sizeof words / sizeof *words)

/* By word: where the mode's text has it last; NULL: nowhere. */
typedef const char *given_words[N_WORDS];

/* Reads the words that the kind takes; the others go to `others`, and are errors if it is NULL. */
static int read_words(struct replicate_options *options, int taker, const char *text,
                      given_words given, struct str *others, struct error *err)
{
    struct str word = STR_INIT;
    while (*text && !err->code) {
        size_t n = strcspn(text, ","), i = 0;
        str_clear(&word);
        str_printf(&word, "%.*s", (int)n, text);
        for (; i < N_WORDS; i++) {
            size_t skip = strlen(words[i].key);
            if (words[i].takers & taker && str_starts(str_text(&word), words[i].key) &&
                words[i].read((char *)options + words[i].field,
                              &(struct word_value){word.data + skip, text + skip, err}))
                break;
        }
        if (i < N_WORDS)
            given[i] = strcmp(str_text(&word), "schedule=direct") ? text : NULL; /* the default */
        else if (others)
            str_printf(others, "%s%s", others->n ? "," : "", str_text(&word));
        else {
            struct str usages = STR_INIT;
            for (i = 0; i < N_WORDS; i++) {
                bool ends = taker == DOWNPOUR && !strcmp(words[i].key, "after=");
                const char *between = !usages.n ? "" : ends ? " and " : ", ";
                if (words[i].takers & taker && *words[i].usage)
                    str_printf(&usages, "%s%s", between, words[i].usage);
            }
            error_set(err, ERR_USAGE, "--mode %s takes %s, not '%s'", replicate_mode_name(options),
                      str_text(&usages), str_text(&word));
            str_release(&usages);
        }
        text += n + (text[n] == ',');
    }
    str_release(&word);
    return err->code;
}

const char *replicate_mode_name(const struct replicate_options *options)
{
    return options->by_servers                    ? "sync," UPDATE_WORKER
           : options->mode == REPLICATE_ALLREDUCE ? "allreduce"
           : options->mode == REPLICATE_DOWNPOUR  ? "downpour"
                                                  : options->policy;
}

/* ---- words together ---- */

#define CODES "bits= threshold= top="

/* A word that needs one of the others, or excludes all of them. In the error's text * stands for
 * the word and its value. */
static const struct mode_rule {
    const char *word;
    enum mode_rule_kind { NEEDS, EXCLUDES } kind;
    const char *others, *why;
} rules[] = {
    {"update=pass", NEEDS, "dense=b dense=c", "* is of the passes of dense=b and dense=c"},
    {"after=", NEEDS, CODES, "after=N is for a code: bits=N, top=SHARE"},
    {"schedule=", EXCLUDES, CODES, "* is for whole gradients: codes are not added on the way"},
    {"average=", EXCLUDES, "delay=", "* exchanges variables, where delay=1 is about gradients"},
    {"average=", EXCLUDES, "factors=", "* exchanges variables, where factors is about gradients"},
    {"average=", EXCLUDES, "dense=", "* exchanges variables, where dense is about gradients"},
    {"average=", EXCLUDES, "pieces=", "* exchanges variables, where pieces is about gradients"},
    {"factors=", EXCLUDES, "delay=", "delay=1 keeps gradients, and * has none to keep"},
};

/* Returns the first given word that starts as one of those; NULL: there is none. */
static const char *find_word(const given_words given, const char *starts)
{
    for (size_t n; *starts; starts += n + (starts[n] == ' ')) {
        n = strcspn(starts, " ");
        for (size_t i = 0; i < N_WORDS; i++)
            if (given[i] && !strncmp(given[i], starts, n))
                return given[i];
    }
    return NULL;
}

static int check_rules(const struct replicate_options *options, const given_words given,
                       enum mode_rule_kind kind, struct error *err)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *word = find_word(given, rules[i].word), *why = rules[i].why;
        bool has_other = word && find_word(given, rules[i].others);
        if (!word || rules[i].kind != kind || has_other == (kind == NEEDS))
            continue;
        int before = (int)strcspn(why, "*"), length = why[before] ? (int)strcspn(word, ",") : 0;
        return error_set(err, ERR_USAGE, "--mode %s: %.*s%.*s%s", replicate_mode_name(options),
                         before, why, length, word, why + before + (why[before] == '*'));
    }
    return 0;
}

static const struct replicate_code no_code = {.threshold = -1, .share = -1};

/* Finds the code that the numbers belong to. Returns false if there is none. */
static bool name_code(struct replicate_code *code)
{
    if (code->share >= 0 && !code->bits && code->threshold < 0) {
        code->name = "top";
        code->bits = 1;
        return code->share > 0 && code->share <= 1;
    }
    code->bits = code->bits ? code->bits : 2;
    code->name = code->threshold >= 0 ? "threshold" : code->bits > 1 ? "uniform" : "one_bit";
    return code->share < 0 && code->bits <= (code->threshold >= 0 ? 2 : 8) &&
           (code->threshold != 0 || code->bits == 1);
}

static int check_words(struct replicate_options *options, const given_words given,
                       struct error *err)
{
    if (check_rules(options, given, NEEDS, err))
        return err->code;
    if (!find_word(given, CODES))
        options->code = (struct replicate_code){.name = NULL};
    else if (!name_code(&options->code))
        return error_set(err, ERR_USAGE,
                         "--mode %s has codes bits=1 to 8, bits=1 or 2 with threshold=X, and "
                         "top=SHARE, a part of 1",
                         replicate_mode_name(options));
    if (options->delay > 1)
        return error_set(err, ERR_USAGE, "--mode %s has no delay but of one step",
                         replicate_mode_name(options));
    return check_rules(options, given, EXCLUDES, err);
}

/* Words of a kind that takes no others. */
static int parse_words(struct replicate_options *options, int taker, const char *text,
                       struct error *err)
{
    given_words given = {NULL};
    return read_words(options, taker, text, given, NULL, err) ? err->code
                                                              : check_words(options, given, err);
}

/* Returns the words behind the name of a kind of modes; NULL: the mode is of another kind. */
static const char *words_of(const char *mode, const char *kind)
{
    size_t n = strlen(kind);
    bool is_it = str_starts(mode, kind) && (!mode[n] || mode[n] == ',');
    return is_it ? mode + n + (mode[n] == ',') : NULL;
}

/* All-reduce whose sums are computed by shards. */
static int parse_served(struct replicate_options *options, const char *mode, const char *others,
                        struct error *err)
{
    const char *rest = words_of(others, "sync");
    if (!rest || str_starts(rest, "backup="))
        return error_set(err, ERR_USAGE, "--mode %s: %s", mode,
                         rest ? "with " UPDATE_WORKER " every worker counts in every step"
                              : UPDATE_WORKER " is of sync, where each update is by the "
                                              "gradients of all workers");
    options->mode = REPLICATE_ALLREDUCE;
    return parse_words(options, SERVED, rest, err);
}

/* Takes a code, which may be used where whole gradients or factors take longer. */
static int parse_auto(struct replicate_options *options, const char *text, struct error *err)
{
    struct replicate_options code = {.mode = REPLICATE_AUTO, .code = no_code};
    if (strlen(text) >= sizeof options->policy || parse_words(&code, AUTO, text, err))
        return error_set(err, ERR_USAGE,
                         "--mode auto takes a code that may be used, as all-reduce has them "
                         "(bits=N, threshold=X, top=SHARE, after=N), not '%s'",
                         text);
    options->mode = REPLICATE_AUTO;
    memcpy(options->policy, text, strlen(text) + 1);
    return 0;
}

/* A policy's words, and those about pushes. */
static int parse_policy(struct replicate_options *options, const char *mode, struct error *err)
{
    struct error why = ERROR_INIT;
    struct policy policy;
    struct str text = STR_INIT;
    given_words given = {NULL};
    read_words(options, PUSHED, mode, given, &text, err);
    bool is_known =
        text.n < sizeof options->policy && !policy_parse(&policy, str_text(&text), &why);
    if (is_known)
        memcpy(options->policy, str_text(&text), text.n + 1);
    str_clear(&text);
    policy_print_usages(&text);
    if (is_known)
        check_words(options, given, err);
    else if (strstr(mode, ",push"))
        error_set(err, ERR_USAGE,
                  "--mode '%s': intervals of pushes are of downpour, whose rounds have one "
                  "worker's push",
                  mode);
    else
        error_set(err, ERR_USAGE,
                  "--mode '%s' is none of %s; downpour,fetch=N,push=M; "
                  "sync,update=worker; allreduce,factors=auto,bits=1; auto",
                  mode, str_text(&text));
    str_release(&text);
    return err->code;
}

int replicate_parse(struct replicate_options *options, const char *mode, struct error *err)
{
    struct str others = STR_INIT;
    given_words given = {NULL};
    const char *rest;
    options->rate = -1;
    options->code = no_code;
    options->mode = REPLICATE_POLICY;
    read_words(options, ANY, mode, given, &others, err);
    if (options->by_servers) {
        parse_served(options, mode, str_text(&others), err);
    } else if ((rest = words_of(mode, "allreduce"))) {
        options->mode = REPLICATE_ALLREDUCE;
        parse_words(options, REDUCED, rest, err);
    } else if ((rest = words_of(mode, "downpour"))) {
        options->mode = REPLICATE_DOWNPOUR;
        memcpy(options->policy, "async", sizeof "async");
        parse_words(options, DOWNPOUR, rest, err);
    } else if ((rest = words_of(mode, "auto"))) {
        parse_auto(options, rest, err);
    } else {
        parse_policy(options, mode, err);
    }
    str_release(&others);
    return err->code;
}
