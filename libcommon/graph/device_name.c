/* SPDX-License-Identifier: Apache-2.0
 *
 * Device names: parsing, printing, comparing, merging.
 */
#include "graph/device_name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

#define NUMBER_MAX 1000000000

struct device_name device_name_open(void)
{
    return (struct device_name){.replica = DEVICE_OPEN, .task = DEVICE_OPEN, .index = DEVICE_OPEN};
}

/* One "/key:value" of the text; the value may be empty. */
struct device_word {
    const char *key, *value;
    size_t n_key, n_value;
};

static bool key_is(const struct device_word *part, const char *key)
{
    return part->n_key == strlen(key) && !strncasecmp(part->key, key, part->n_key);
}

static bool value_is_star(const struct device_word *part)
{
    return part->n_value == 1 && *part->value == '*';
}

static bool parse_word(const char *text, size_t n, char word[DEVICE_WORD_BYTES])
{
    if (n == 0 || n >= DEVICE_WORD_BYTES || !isalpha((unsigned char)*text))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    memcpy(word, text, n);
    word[n] = '\0';
    return true;
}

static bool parse_number(const char *text, size_t n, int *number)
{
    int64_t value;
    if (!n || !isdigit((unsigned char)*text) || number_int64(text, n, &value) || value > NUMBER_MAX)
        return false;
    *number = (int)value;
    return true;
}

/* ---- groups of tasks ---- */

/* The distance between the numbers of consecutive group sizes; member `size` stands for any. */
#define GROUP_STRIDE (2 * DEVICE_GROUP_MAX)

int device_group_task(int size, int member)
{
    int of = size == 1 ? 0 : member == DEVICE_OPEN ? size : member;
    return DEVICE_EVERY - ((size - 1) * GROUP_STRIDE + of);
}

int device_group_size(int task)
{
    return (DEVICE_EVERY - task) / GROUP_STRIDE + 1;
}

int device_group_member(int task)
{
    int member = (DEVICE_EVERY - task) % GROUP_STRIDE, size = device_group_size(task);
    return size > 1 && member == size ? DEVICE_OPEN : member;
}

/* "CPU:0", "CPU", "CPU:*". */
static bool parse_device(struct device_name *name, const char *text, size_t n)
{
    const char *colon = memchr(text, ':', n);
    size_t n_type = colon ? (size_t)(colon - text) : n;
    if (!parse_word(text, n_type, name->type))
        return false;
    for (char *c = name->type; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    if (!strcmp(name->type, "GPU"))
        memcpy(name->type, "CUDA", sizeof "CUDA");
    if (!colon || (n - n_type == 2 && colon[1] == '*'))
        return true;
    return parse_number(colon + 1, n - n_type - 1, &name->index);
}

static bool parse_part(struct device_name *name, const struct device_word *part)
{
    if (key_is(part, "job"))
        return value_is_star(part) || parse_word(part->value, part->n_value, name->job);
    if (key_is(part, "replica"))
        return value_is_star(part) || parse_number(part->value, part->n_value, &name->replica);
    if (key_is(part, "task")) {
        /* "*", "3", "1%2", "*%2". */
        const char *sign = memchr(part->value, '%', part->n_value);
        size_t n = sign ? (size_t)(sign - part->value) : part->n_value;
        int size = 1, member = DEVICE_OPEN;
        bool is_many = n == 1 && *part->value == '*';
        if (!is_many && !parse_number(part->value, n, &member))
            return false;
        if (sign && (!parse_number(sign + 1, part->n_value - n - 1, &size) || size < 2 ||
                     size > DEVICE_GROUP_MAX || member >= size))
            return false;
        name->task = is_many || sign ? device_group_task(size, member) : member;
        return true;
    }
    if (key_is(part, "device"))
        return value_is_star(part) || parse_device(name, part->value, part->n_value);
    if (key_is(part, "cpu") || key_is(part, "gpu"))
        return parse_device(name, part->key, (size_t)(part->value + part->n_value - part->key));
    return false;
}

int device_name_parse(struct device_name *name, const char *text, struct error *err)
{
    static const struct {
        const char *key;
        unsigned field; /* a bit; parts of one field exclude each other */
    } keys[] = {{"job", 1}, {"replica", 2}, {"task", 4}, {"device", 8}, {"cpu", 8}, {"gpu", 8}};
    unsigned seen = 0;
    *name = device_name_open();
    if (!strcmp(text, "/"))
        return 0;
    for (const char *at = text; *at;) {
        if (*at != '/')
            return error_set(err, ERR_DATA, "device '%s': must start with '/', as /job:ps/task:0",
                             text);
        struct device_word part = {.key = at + 1, .n_key = strcspn(at + 1, ":/")};
        unsigned field = 0;
        part.value = part.key + part.n_key + (part.key[part.n_key] == ':');
        at = part.key + strcspn(part.key, "/");
        part.n_value = (size_t)(at - part.value);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (key_is(&part, keys[i].key))
                field = keys[i].field;
        if (!field)
            return error_set(err, ERR_DATA,
                             "device '%s': unknown part '%.*s'; known are job, replica, task, "
                             "device, cpu and gpu",
                             text, (int)part.n_key, part.key);
        if (seen & field)
            return error_set(err, ERR_DATA, "device '%s': '%.*s' is given twice", text,
                             (int)part.n_key, part.key);
        seen |= field;
        if (!parse_part(name, &part))
            return error_set(err, ERR_DATA, "device '%s': '%.*s' is not a %.*s", text,
                             (int)part.n_value, part.value, (int)part.n_key, part.key);
    }
    return 0;
}

static void print_number(struct str *out, const char *key, int number)
{
    if (device_task_is_many(number)) {
        int size = device_group_size(number), member = device_group_member(number);
        str_printf(out, "/%s:", key);
        if (size == 1 || member == DEVICE_OPEN)
            str_append(out, "*");
        else
            str_printf(out, "%d", member);
        if (size > 1)
            str_printf(out, "%%%d", size);
    } else if (number != DEVICE_OPEN)
        str_printf(out, "/%s:%d", key, number);
}

void device_name_print(struct str *out, const struct device_name *name)
{
    if (*name->job)
        str_printf(out, "/job:%s", name->job);
    print_number(out, "replica", name->replica);
    print_number(out, "task", name->task);
    if (*name->type)
        str_printf(out, "/device:%s", name->type);
    if (*name->type && name->index != DEVICE_OPEN)
        str_printf(out, ":%d", name->index);
}

const char *device_name_text(struct arena *arena, const struct device_name *name)
{
    struct str text = STR_INIT;
    device_name_print(&text, name);
    const char *kept = arena_strdup(arena, str_text(&text));
    str_release(&text);
    return kept;
}

const char *device_pattern_text(struct arena *arena, const char *pattern, int number)
{
    const char *star = strchr(pattern, '*');
    if (!star)
        return pattern;
    return strchr(star + 1, '*')
               ? NULL
               : arena_printf(arena, "%.*s%d%s", (int)(star - pattern), pattern, number, star + 1);
}

bool device_name_equal(const struct device_name *a, const struct device_name *b)
{
    return !strcmp(a->job, b->job) && !strcmp(a->type, b->type) && a->replica == b->replica &&
           a->task == b->task && a->index == b->index;
}

bool device_name_is_open(const struct device_name *name)
{
    struct device_name open = device_name_open();
    return device_name_equal(name, &open);
}

bool device_name_is_full(const struct device_name *name)
{
    return *name->job && *name->type && name->task != DEVICE_OPEN && name->index != DEVICE_OPEN;
}

/* Returns whether `task` is a fixed member of groups in which `group` leaves the member open. */
static bool is_one_of_group(int task, int group)
{
    return device_task_is_many(task) && device_task_is_many(group) &&
           device_group_size(task) == device_group_size(group) &&
           device_group_member(group) == DEVICE_OPEN;
}

bool device_name_specialises(const struct device_name *name, const struct device_name *pattern)
{
    bool task = pattern->task == DEVICE_OPEN || pattern->task == name->task ||
                (pattern->task == DEVICE_EVERY && name->task != DEVICE_OPEN) ||
                is_one_of_group(name->task, pattern->task);
    return task && (!*pattern->job || !strcmp(pattern->job, name->job)) &&
           (!*pattern->type || !strcmp(pattern->type, name->type)) &&
           (pattern->replica == DEVICE_OPEN || pattern->replica == name->replica) &&
           (pattern->index == DEVICE_OPEN || pattern->index == name->index);
}

static bool merge_word(char *word, const char *other)
{
    if (!*word)
        memcpy(word, other, strlen(other) + 1);
    return !*other || !strcmp(word, other);
}

static bool merge_number(int *number, int other)
{
    bool more = *number == DEVICE_OPEN || (*number == DEVICE_EVERY && other != DEVICE_OPEN) ||
                is_one_of_group(other, *number);
    if (more)
        *number = other == DEVICE_OPEN ? *number : other;
    return other == DEVICE_OPEN || other == DEVICE_EVERY || *number == other ||
           is_one_of_group(*number, other);
}

int device_name_merge(struct device_name *name, const struct device_name *other, struct error *err)
{
    struct device_name merged = *name;
    bool agree = merge_word(merged.job, other->job);
    agree = merge_word(merged.type, other->type) && agree;
    agree = merge_number(&merged.replica, other->replica) && agree;
    agree = merge_number(&merged.task, other->task) && agree;
    agree = merge_number(&merged.index, other->index) && agree;
    if (agree) {
        *name = merged;
        return 0;
    }
    struct str a = STR_INIT, b = STR_INIT;
    device_name_print(&a, name);
    device_name_print(&b, other);
    error_set(err, ERR_DATA, "%s and %s are different devices", str_text(&a), str_text(&b));
    str_release(&a);
    str_release(&b);
    return err->code;
}

bool device_name_same_task(const struct device_name *a, const struct device_name *b)
{
    return *a->job && !strcmp(a->job, b->job) && a->replica == b->replica && a->task >= 0 &&
           a->task == b->task;
}
