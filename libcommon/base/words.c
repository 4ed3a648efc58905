/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/str.h"

int words_parse(const char *text, size_t n, const char *name,
                int (*take)(void *context, struct words *words, struct error *err), void *context,
                struct error *err)
{
    struct words words = {0};
    int code = 0;
    if (memchr(text, 0, n))
        return error_set(err, ERR_DATA, "%s: not a text", name);
    char *copy = mem_strndup(text, n), *rest = copy, *line;
    while (!code && (line = strsep(&rest, "\n"))) {
        char *left = line, *word;
        words.line++;
        words.n = 0;
        line[strcspn(line, "#")] = 0;
        while (!code && (word = strsep(&left, " \t\r"))) {
            if (*word && words.n == WORDS_MAX)
                code = error_set(err, ERR_DATA, "more than %d words", WORDS_MAX);
            else if (*word)
                words.word[words.n++] = word;
        }
        if (!code && words.n)
            code = take(context, &words, err);
        if (code)
            error_prefix(err, "%s:%d: ", name, words.line);
    }
    mem_free(copy);
    return code;
}

int words_read(const char *path, int (*take)(void *context, struct words *words, struct error *err),
               void *context, struct error *err)
{
    struct str text = STR_INIT;
    int code = file_read(path, WORDS_FILE_BYTES, &text, err);
    if (!code)
        code = words_parse(str_text(&text), text.n, path, take, context, err);
    str_release(&text);
    return code;
}

/* ---- settings ---- */

/* Cuts the first setting off a text and joins its lines; returns the text after it. */
static char *cut_setting(char *text, struct setting *setting, int *lines)
{
    char *to = text, *from = text;
    for (*lines = 1; *from && (*from != '\n' || from[1] == ' '); from++) {
        *to++ = *from;
        if (*from != '\n')
            continue;
        ++*lines;
        from++; /* the blank */
    }
    char *rest = *from ? from + 1 : from;
    *to = '\0';
    setting->word = text;
    setting->text = text + strcspn(text, " \n");
    if (*setting->text)
        *setting->text++ = '\0';
    return rest;
}

int settings_read(const char *path,
                  int (*take)(void *context, const struct setting *setting, struct error *err),
                  void *context, struct error *err)
{
    struct str text = STR_INIT;
    struct setting setting = {.line = 1};
    int lines, code = file_read(path, WORDS_FILE_BYTES, &text, err);
    if (!code && text.n && memchr(text.data, 0, text.n))
        code = error_set(err, ERR_DATA, "%s: not a text", path);
    for (char *rest = text.data; !code && rest && *rest; setting.line += lines) {
        rest = cut_setting(rest, &setting, &lines);
        if (*setting.word && *setting.word != '#')
            code = take(context, &setting, err);
        if (code)
            error_prefix(err, "%s:%d: ", path, setting.line);
    }
    str_release(&text);
    return code;
}

int setting_take(const struct setting_row *rows, const char *what, void *object,
                 const struct setting *setting, struct error *err)
{
    while (rows->word && strcmp(rows->word, setting->word) != 0)
        rows++;
    if (!rows->word)
        return error_set(err, ERR_DATA, "'%.64s' is no word of a %s", setting->word, what);
    if (!rows->set((char *)object + rows->at, setting->text))
        return error_set(err, ERR_DATA, "'%.64s' is not what this can be set to", setting->text);
    return 0;
}

bool setting_text(void *target, const char *text)
{
    *(const char **)target = text;
    return true;
}

bool setting_flag(void *target, const char *text)
{
    (void)text;
    *(bool *)target = true;
    return true;
}

bool setting_count(void *target, const char *text)
{
    int64_t n;
    if (!str_to_int64(text, &n) || n < 1 || n > INT32_MAX)
        return false;
    *(int *)target = (int)n;
    return true;
}

bool setting_seconds(void *target, const char *text)
{
    return str_to_seconds(text, target) && *(double *)target > 0;
}

char *words_value(char *word)
{
    char *equals = strchr(word, '=');
    if (!equals || equals == word)
        return NULL;
    *equals = 0;
    return equals + 1;
}
