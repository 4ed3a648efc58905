/* SPDX-License-Identifier: Apache-2.0
 *
 * Modes, as users write them.
 */
#include <stdio.h>
#include <string.h>

#include "pass/replicate/replicate_private.h"
#include "resource/policy.h"

#define UPDATE_WORKER "update=worker"

/* What comes after the key. False: it is another one, or there is nothing, or no room for it. */
static bool read_value(const char *text, size_t n, const char *key, char *value, size_t size)
{
    size_t skip = strlen(key);
    if (n <= skip || n - skip >= size || strncmp(text, key, skip) != 0)
        return false;
    memcpy(value, text + skip, n - skip);
    value[n - skip] = '\0';
    return true;
}

static bool read_count(const char *text, size_t n, const char *key, int *value)
{
    char digits[16];
    int64_t number;
    if (!read_value(text, n, key, digits, sizeof digits) || !str_to_int64(digits, &number) ||
        number < 1 || number > INT32_MAX)
        return false;
    *value = (int)number;
    return true;
}

static bool read_number(const char *text, size_t n, const char *key, double *value)
{
    char digits[64];
    return read_value(text, n, key, digits, sizeof digits) && str_to_float64(digits, value) &&
           *value >= 0;
}

/* A size, or "none". */
static bool read_pieces(const char *text, size_t n, int64_t *bytes)
{
    char size[32];
    if (!read_value(text, n, "pieces=", size, sizeof size))
        return false;
    if (!strcmp(size, "none"))
        *bytes = REPLICATE_WHOLE;
    else if (!str_to_bytes(size, bytes) || *bytes < 1)
        return false;
    return true;
}

static bool read_factors(const char *text, size_t n, enum replicate_factors *factors)
{
    bool all = n == strlen("factors=all") && !strncmp(text, "factors=all", n);
    if (!all && (n != strlen("factors=auto") || strncmp(text, "factors=auto", n) != 0))
        return false;
    *factors = all ? FACTORS_ALL : FACTORS_AUTO;
    return true;
}

static bool read_dense(const char *text, size_t n, struct replicate_options *options)
{
    const char *key = "dense=";
    bool is_it = n == strlen(key) + 1 && !strncmp(text, key, n - 1) && strchr("abc", text[n - 1]);
    if (is_it)
        options->dense = text[n - 1];
    return is_it;
}

static bool read_update(const char *text, size_t n, struct replicate_options *options)
{
    const char *key = "update=pass";
    bool is_it = n == strlen(key) && !strncmp(text, key, n);
    options->update_each |= is_it;
    return is_it;
}

/* Which code the numbers are of. False: there is none. */
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

static const struct replicate_code no_code = {.threshold = -1, .share = -1};

static bool read_code(const char *text, size_t n, struct replicate_code *code)
{
    return read_count(text, n, "bits=", &code->bits) ||
           read_number(text, n, "threshold=", &code->threshold) ||
           read_number(text, n, "top=", &code->share);
}

const char *replicate_mode_name(const struct replicate_options *options)
{
    return options->by_servers                    ? "sync," UPDATE_WORKER
           : options->mode == REPLICATE_ALLREDUCE ? "allreduce"
           : options->mode == REPLICATE_DOWNPOUR  ? "downpour"
                                                  : options->policy;
}

/* Takes it, if there is any. */
static int take_code(struct replicate_options *options, struct replicate_code *code,
                     struct error *err)
{
    if (!code->bits && code->threshold < 0 && code->share < 0)
        return options->after ? error_set(err, ERR_USAGE,
                                          "--mode %s: after=N is for a code: bits=N, top=SHARE",
                                          replicate_mode_name(options))
                              : 0;
    if (!name_code(code))
        return error_set(err, ERR_USAGE,
                         "--mode %s has codes bits=1 to 8, bits=1 or 2 with threshold=X, and "
                         "top=SHARE, a part of 1",
                         replicate_mode_name(options));
    options->code = *code;
    return 0;
}

/* False: it says nothing of intervals. ERR_USAGE: there are too many. */
static bool read_interval(const char *text, size_t n, struct replicate_options *options,
                          struct error *err)
{
    static const char key[] = "push.";
    const char *pattern = text + strlen(key), *end = text + n;
    struct replicate_interval interval = {.pattern = pattern};
    if (n <= strlen(key) || strncmp(text, key, strlen(key)) != 0)
        return false;
    while (end > pattern && end[-1] != '=')
        end--;
    if (end - pattern < 2 || !read_count(end, (size_t)(text + n - end), "", &interval.steps))
        return false;
    interval.n = (int)(end - pattern) - 1;
    if (options->n_intervals == REPLICATE_INTERVALS_MAX)
        error_set(err, ERR_USAGE, "--mode downpour takes push.NAME=N for %d names at most",
                  REPLICATE_INTERVALS_MAX);
    else
        options->intervals[options->n_intervals++] = interval;
    return true;
}

/* False: it says nothing of a schedule. ERR_USAGE: there is none of that name. */
static bool read_schedule(const char *text, size_t n, struct replicate_options *options,
                          struct error *err)
{
    static const char key[] = "schedule=";
    char name[16] = "";
    size_t skip = strlen(key);
    if (n < skip || strncmp(text, key, skip) != 0)
        return false;
    if (n - skip < sizeof name)
        memcpy(name, text + skip, n - skip);
    options->schedules = !strcmp(name, "auto");
    options->by_device = by_device_of(name);
    bool is_kind = schedule_kind_of(name, &options->schedule);
    if (!options->schedules && !options->by_device && !is_kind)
        error_set(err, ERR_USAGE,
                  "--mode allreduce: schedule is auto, " SCHEDULE_NAMES
                  ", or of GPUs " BY_DEVICE_NAMES ", not '%.*s'",
                  (int)(n - skip), text + skip);
    if (!is_kind)
        options->schedule = SCHEDULE_DIRECT;
    return true;
}

static int parse_allreduce(struct replicate_options *options, const char *text, struct error *err)
{
    struct replicate_code code = no_code;
    int delay = 0;
    options->mode = REPLICATE_ALLREDUCE;
    while (*text) {
        size_t n = strcspn(text, ",");
        if ((options->by_servers &&
             (str_starts(text, "schedule=") || str_starts(text, "dense="))) ||
            (!read_factors(text, n, &options->factors) && !read_schedule(text, n, options, err) &&
             !read_code(text, n, &code) && !read_count(text, n, "after=", &options->after) &&
             !read_count(text, n, "delay=", &delay) && !read_dense(text, n, options) &&
             !read_update(text, n, options) && !read_pieces(text, n, &options->piece_bytes)))
            return error_set(
                err, ERR_USAGE,
                "--mode %s takes factors=auto, factors=all, bits=N, "
                "threshold=X, top=SHARE, after=N, delay=1, pieces=SIZE%s, not '%.*s'",
                replicate_mode_name(options),
                options->by_servers ? "" : ", schedule=NAME, dense=a, b or c and update=pass",
                (int)n, text);
        if (err->code)
            return err->code;
        text += n + (text[n] == ',');
    }
    if (options->update_each && options->dense != 'b' && options->dense != 'c')
        return error_set(err, ERR_USAGE,
                         "--mode %s: update=pass is of the passes of dense=b and dense=c",
                         replicate_mode_name(options));
    const char *schedule = options->schedules   ? "auto"
                           : options->by_device ? by_device_name(options->by_device)
                                                : schedule_name(options->schedule);
    if (take_code(options, &code, err))
        return err->code;
    bool any = options->code.name;
    if (any && strcmp(schedule, schedule_name(SCHEDULE_DIRECT)) != 0)
        return error_set(
            err, ERR_USAGE,
            "--mode allreduce: schedule=%s is for whole gradients: codes are not added "
            "on the way",
            schedule);
    if (delay > 1)
        return error_set(err, ERR_USAGE, "--mode %s has no delay but of one step",
                         replicate_mode_name(options));
    if (delay && options->factors != FACTORS_NONE)
        return error_set(
            err, ERR_USAGE, "--mode %s: delay=1 keeps gradients, and factors=%s has none to keep",
            replicate_mode_name(options), options->factors == FACTORS_ALL ? "all" : "auto");
    options->delays = delay;
    return 0;
}

/* Copies a mode's words but for update=worker. False: that is none of them. */
static bool take_served(const char *mode, struct str *others)
{
    bool is_served = false;
    while (*mode) {
        size_t n = strcspn(mode, ",");
        bool is_it = n == strlen(UPDATE_WORKER) && !strncmp(mode, UPDATE_WORKER, n);
        is_served |= is_it;
        if (!is_it)
            str_printf(others, "%s%.*s", others->n ? "," : "", (int)n, mode);
        mode += n + (mode[n] == ',');
    }
    return is_served;
}

/* All-reduce, by way of the shards. */
static int parse_served(struct replicate_options *options, const char *mode, const char *others,
                        struct error *err)
{
    const char *first = "sync";
    size_t n = strlen(first);
    if (strncmp(others, first, n) != 0 || (others[n] && others[n] != ','))
        return error_set(err, ERR_USAGE,
                         "--mode %s: " UPDATE_WORKER " is of sync, where each update is by the "
                         "gradients of all workers",
                         mode);
    if (str_starts(others + n, ",backup="))
        return error_set(err, ERR_USAGE,
                         "--mode %s: with " UPDATE_WORKER " every worker counts in every step",
                         mode);
    options->by_servers = true;
    return parse_allreduce(options, others + n + (others[n] == ','), err);
}

/* A policy's words, and those that are about what is pushed. */
static int parse_policy(struct replicate_options *options, const char *text, bool *is_known,
                        struct error *err)
{
    struct error why = ERROR_INIT;
    struct replicate_code code = no_code;
    struct policy policy;
    size_t length = 0;
    *options->policy = '\0';
    while (*text) {
        size_t n = strcspn(text, ",");
        if (!read_factors(text, n, &options->factors) && !read_code(text, n, &code) &&
            !read_count(text, n, "after=", &options->after))
            length += (size_t)snprintf(options->policy + length, sizeof options->policy - length,
                                       "%s%.*s", length ? "," : "", (int)n, text);
        if (length >= sizeof options->policy)
            return 0;
        text += n + (text[n] == ',');
    }
    *is_known = !policy_parse(&policy, options->policy, &why);
    return *is_known ? take_code(options, &code, err) : 0;
}

int replicate_parse(struct replicate_options *options, const char *mode, struct error *err)
{
    options->rate = -1;
    options->mode = REPLICATE_POLICY;
    struct str others = STR_INIT;
    bool is_served = take_served(mode, &others);
    if (is_served)
        parse_served(options, mode, str_text(&others), err);
    str_release(&others);
    if (is_served)
        return err->code;
    if (!strcmp(mode, "allreduce") || str_starts(mode, "allreduce,"))
        return parse_allreduce(options, mode + strlen("allreduce") + (mode[9] == ','), err);
    if (!strcmp(mode, "downpour") || str_starts(mode, "downpour,")) {
        const char *text = mode + strlen("downpour") + (mode[8] == ',');
        struct replicate_code code = no_code;
        options->mode = REPLICATE_DOWNPOUR;
        snprintf(options->policy, sizeof options->policy, "async");
        while (*text && !err->code) {
            size_t n = strcspn(text, ",");
            if (!read_count(text, n, "fetch=", &options->fetch) &&
                !read_count(text, n, "push=", &options->push) &&
                !read_interval(text, n, options, err) &&
                !read_number(text, n, "rate=", &options->rate) &&
                !read_factors(text, n, &options->factors) && !read_code(text, n, &code) &&
                !read_count(text, n, "after=", &options->after))
                return error_set(err, ERR_USAGE,
                                 "--mode downpour takes fetch=N, push=N, push.NAME=N, rate=X, "
                                 "factors=auto, factors=all, bits=N, threshold=X, top=SHARE and "
                                 "after=N, not '%.*s'",
                                 (int)n, text);
            text += n + (text[n] == ',');
        }
        return err->code ? err->code : take_code(options, &code, err);
    }
    if (!strcmp(mode, "auto") || str_starts(mode, "auto,")) {
        /* It takes those options of all-reduce that change results by rounding only, and codes if
         * asked for. */
        const char *text = mode + strlen("auto") + (mode[4] == ',');
        struct replicate_options code = {.mode = REPLICATE_ALLREDUCE};
        if (strlen(text) >= sizeof options->policy || parse_allreduce(&code, text, err) ||
            code.delays || code.piece_bytes || code.factors != FACTORS_NONE)
            return error_set(err, ERR_USAGE,
                             "--mode auto takes a code that may be used, as all-reduce has them "
                             "(bits=N, threshold=X, top=SHARE, after=N), not '%s'",
                             text);
        options->mode = REPLICATE_AUTO;
        memcpy(options->policy, text, strlen(text) + 1);
        return 0;
    }
    bool is_known = false;
    if (parse_policy(options, mode, &is_known, err) || is_known)
        return err->code;
    if (strstr(mode, ",push"))
        return error_set(err, ERR_USAGE,
                         "--mode '%s': intervals of pushes are of downpour, whose rounds have one "
                         "worker's push",
                         mode);
    struct str usages = STR_INIT;
    policy_print_usages(&usages);
    error_set(err, ERR_USAGE,
              "--mode '%s' is none of %s; downpour,fetch=N,push=M; "
              "sync,update=worker; allreduce,factors=auto,bits=1; auto",
              mode, str_text(&usages));
    str_release(&usages);
    return err->code;
}
