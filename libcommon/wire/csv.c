/* SPDX-License-Identifier: Apache-2.0
 *
 * One buffer holds the current row and the bytes read after it. The reader first searches for the
 * end of the row, remembering how far it got, so that a row that arrives in many pieces is scanned
 * once; then it splits the row into fields in place.
 */
#include "wire/csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"

#define READ_BYTES ((size_t)64 << 10)

enum csv_state { FIELD_START, BARE, QUOTED, QUOTE_IN_QUOTED };

/* The characters that end a row or hide its end. */
enum mark { MARK_LF, MARK_CR, MARK_QUOTE, N_MARKS };
static const char mark_characters[N_MARKS] = {'\n', '\r', '"'};

struct csv_reader {
    struct gzfile *file;
    char separator, comment;
    char *buffer;
    size_t capacity, n;   /* bytes in the buffer */
    size_t row;           /* where the current row starts */
    size_t seen;          /* how far it was searched for its end */
    enum csv_state state; /* the parser's state at `seen` */
    bool ended;           /* the file has */
    bool started;
    bool behind_cr;        /* the row before ended with a CR: an LF at `row` belongs to it */
    size_t marks[N_MARKS]; /* the first of each from `row` on, or how far none was found */
    uint64_t line;         /* of `row` */
    VEC(struct csv_field) fields;
};

struct csv_reader *csv_reader_new(struct gzfile *file, char separator, char comment)
{
    struct csv_reader *reader = mem_alloc(sizeof *reader);
    reader->file = file;
    reader->separator = separator;
    reader->comment = comment;
    reader->line = 1;
    return reader;
}

void csv_reader_free(struct csv_reader *reader)
{
    if (!reader)
        return;
    vec_release(&reader->fields);
    mem_free(reader->buffer);
    mem_free(reader);
}

/* Makes room for READ_BYTES more after the present bytes; the current row moves to the front. */
static int make_room(struct csv_reader *reader, struct error *err)
{
    size_t kept = reader->n - reader->row;
    if (kept > CSV_ROW_BYTES_MAX)
        return error_set(err, ERR_DATA, "%s:%" PRIu64 ": row of more than %zu MiB%s",
                         gzfile_name(reader->file), reader->line, CSV_ROW_BYTES_MAX >> 20,
                         reader->state == QUOTED ? "; is a quote left open?" : "");
    if (reader->row) {
        memmove(reader->buffer, reader->buffer + reader->row, kept);
        for (int i = 0; i < N_MARKS; i++)
            reader->marks[i] -= reader->marks[i] < reader->row ? reader->marks[i] : reader->row;
        reader->seen -= reader->row;
        reader->n = kept;
        reader->row = 0;
    }
    if (reader->capacity - reader->n >= READ_BYTES)
        return 0;
    size_t capacity = reader->capacity * 2 + 2 * READ_BYTES;
    char *grown = mem_try_grow(reader->buffer, kept, capacity);
    if (!grown)
        return error_set(err, ERR_OS, "%s: no memory for a row of %zu bytes",
                         gzfile_name(reader->file), kept);
    reader->buffer = grown;
    reader->capacity = capacity;
    return 0;
}

static int fill(struct csv_reader *reader, struct error *err)
{
    int code = make_room(reader, err);
    size_t got = 0;
    if (!code)
        code = gzfile_read(reader->file, reader->buffer + reader->n, READ_BYTES, &got, err);
    reader->n += got;
    reader->ended = !code && got == 0;
    return code;
}

static bool is_separator(const struct csv_reader *reader, char c)
{
    return c == reader->separator || (reader->separator == CSV_BLANKS && c == '\t');
}

static enum csv_state next_state(const struct csv_reader *reader, enum csv_state state, char c)
{
    if (state == QUOTED)
        return c == '"' ? QUOTE_IN_QUOTED : QUOTED;
    if (c == '"' && state != BARE)
        return QUOTED;
    return is_separator(reader, c) ? FIELD_START : BARE;
}

static bool at_comment(const struct csv_reader *reader)
{
    return reader->comment && reader->row < reader->n &&
           reader->buffer[reader->row] == reader->comment;
}

/* Returns the first of the mark's characters from `row` on, reader->n if there is none yet. The
 * result is kept until the row passes it: a file without quotes is searched for them once. */
static size_t next_mark(struct csv_reader *reader, enum mark mark)
{
    size_t *at = &reader->marks[mark];
    if (*at < reader->row)
        *at = reader->row;
    if (*at < reader->n && reader->buffer[*at] != mark_characters[mark]) {
        const char *from = reader->buffer + *at;
        const char *found = memchr(from, mark_characters[mark], reader->n - *at);
        *at = found ? (size_t)(found - reader->buffer) : reader->n;
    }
    return *at;
}

static size_t next_line_end(struct csv_reader *reader)
{
    size_t lf = next_mark(reader, MARK_LF), cr = next_mark(reader, MARK_CR);
    return lf < cr ? lf : cr;
}

/* Advances `seen` to the line end that ends the row; false if it was not read yet. */
static bool find_end(struct csv_reader *reader)
{
    bool comment = at_comment(reader);
    if (reader->seen == reader->row) { /* most rows have no quotes */
        size_t line_end = next_line_end(reader);
        if (line_end < reader->n && (comment || next_mark(reader, MARK_QUOTE) > line_end)) {
            reader->seen = line_end;
            return true;
        }
    }
    const char *at = reader->buffer + reader->seen, *end = reader->buffer + reader->n;
    enum csv_state state = reader->state;
    for (; at < end && ((*at != '\n' && *at != '\r') || state == QUOTED); at++)
        state = comment ? BARE : next_state(reader, state, *at);
    reader->state = state;
    reader->seen = (size_t)(at - reader->buffer);
    return at < end;
}

/* Guesses the separator from the first line, preferring characters that do not occur in numbers. */
static char detect_separator(const char *line, size_t n)
{
    static const char candidates[] = {'\t', ';', ',', ' '};
    size_t counts[sizeof candidates] = {0};
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        quoted ^= line[i] == '"';
        const char *found = quoted ? NULL : memchr(candidates, line[i], sizeof candidates);
        if (found)
            counts[found - candidates]++;
    }
    if (counts[2])
        return counts[1] ? ';' : ',';
    if (counts[1])
        return ';';
    return counts[0] && !counts[3] ? '\t' : counts[0] || counts[3] ? CSV_BLANKS : ',';
}

/* Skips the byte order mark. */
static int start(struct csv_reader *reader, struct error *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    int code = 0;
    /* wait only while it can be a mark: a first line of one digit is not held back */
    while (!code && !reader->ended && reader->n < 3 &&
           (!reader->n || !memcmp(reader->buffer, mark, reader->n)))
        code = fill(reader, err);
    if (!code && reader->n >= 2 &&
        (!memcmp(reader->buffer, "\xff\xfe", 2) || !memcmp(reader->buffer, "\xfe\xff", 2)))
        return error_set(err, ERR_DATA, "%s: is UTF-16: iconv -f UTF-16 -t UTF-8 converts it",
                         gzfile_name(reader->file));
    if (!code && reader->n >= 3 && !memcmp(reader->buffer, mark, 3))
        reader->row = reader->seen = 3;
    reader->started = true;
    return code;
}

/* Returns whether [at, end) is blank. */
static bool is_blank(const struct csv_reader *reader, const char *at, const char *end)
{
    while (at < end && (*at == ' ' || (*at == '\t' && reader->separator != '\t')))
        at++;
    return at == end;
}

/* Detects the separator from the line at `row`, unless it is blank or a comment. */
static int find_separator(struct csv_reader *reader, struct error *err)
{
    size_t line_end;
    while ((line_end = next_line_end(reader)) == reader->n && !reader->ended) {
        int code = fill(reader, err);
        if (code)
            return code;
    }
    size_t length = line_end - reader->row;
    const char *line = reader->buffer + reader->row;
    if (!at_comment(reader) && length && !is_blank(reader, line, line + length))
        reader->separator = detect_separator(line, length);
    return 0;
}

/* Waits for the whole row at `row`, with its end at `seen`. */
static int await_row(struct csv_reader *reader, struct error *err)
{
    int code = 0;
    while (reader->behind_cr && !code && reader->row == reader->n && !reader->ended)
        code = fill(reader, err);
    /* The previous row ended with a CR, which may be the first half of a CRLF. */
    if (reader->behind_cr && !code) {
        if (reader->row < reader->n && reader->buffer[reader->row] == '\n')
            reader->seen = ++reader->row;
        reader->behind_cr = false;
    }
    if (!code && reader->separator == CSV_DETECT)
        code = find_separator(reader, err);
    reader->state = FIELD_START;
    while (!code && !find_end(reader)) {
        if (reader->ended)
            return reader->state != QUOTED
                       ? 0
                       : error_set(err, ERR_DATA, "%s:%" PRIu64 ": a quote is never closed",
                                   gzfile_name(reader->file), reader->line);
        code = fill(reader, err);
    }
    return code;
}

/* Parses a quoted field from its opening quote on: unquotes in place and returns what follows it,
 * or NULL if that is neither a separator nor the end. */
static char *cut_quoted(const struct csv_reader *reader, char *at, const char *end,
                        struct csv_field *field)
{
    char *to = ++at;
    *field = (struct csv_field){.text = at};
    for (; at < end; at++) {
        if (*at == '"' && (++at == end || *at != '"'))
            break;
        *to++ = *at;
    }
    while (at < end && (*at == ' ' || *at == '\t') && !is_separator(reader, *at))
        *to++ = *at++;
    field->n = (size_t)(to - field->text);
    return at < end && !is_separator(reader, *at) ? NULL : at;
}

static char *cut_bare(const struct csv_reader *reader, char *at, const char *end,
                      struct csv_field *field)
{
    char *begin = at;
    if (reader->separator == CSV_BLANKS) {
        while (at < end && *at != ' ' && *at != '\t')
            at++;
    } else {
        char *found = memchr(at, reader->separator, (size_t)(end - at));
        at = found ? found : at + (end - at);
    }
    *field = (struct csv_field){.text = begin, .n = (size_t)(at - begin)};
    return at;
}

/* Returns a word with the highest bit set in each byte that is the character. */
static uint64_t find_bytes(const char *at, char c)
{
    const uint64_t ones = 0x0101010101010101, low = 0x7f * ones;
    uint64_t word;
    memcpy(&word, at, sizeof word);
    word ^= ones * (unsigned char)c;
    return ~(((word & low) + low) | word | low);
}

/* Splits a row without quotes at a one-character separator, eight bytes at a time. */
static void cut_plain(struct csv_reader *reader, const char *at, const char *end)
{
    const char *last = reader->buffer + reader->n, *next = at;
    for (; at < end && last - at >= (ptrdiff_t)sizeof(uint64_t); at += sizeof(uint64_t))
        for (uint64_t found = find_bytes(at, reader->separator); found; found &= found - 1) {
            const char *separator = at + __builtin_ctzll(found) / 8;
            if (separator >= end)
                break;
            struct csv_field field = {.text = next, .n = (size_t)(separator - next)};
            vec_push(&reader->fields, field);
            next = separator + 1;
        }
    for (; at < end; at++)
        if (*at == reader->separator) {
            struct csv_field field = {.text = next, .n = (size_t)(at - next)};
            vec_push(&reader->fields, field);
            next = at + 1;
        }
    struct csv_field field = {.text = next, .n = (size_t)(end - next)};
    vec_push(&reader->fields, field);
}

static int cut(struct csv_reader *reader, char *at, const char *end, struct error *err)
{
    bool blanks = reader->separator == CSV_BLANKS;
    reader->fields.n = 0;
    if (!blanks && end - at < (ptrdiff_t)CSV_FIELDS_MAX &&
        next_mark(reader, MARK_QUOTE) >= (size_t)(end - reader->buffer)) {
        cut_plain(reader, at, end);
        return 0;
    }
    for (;;) {
        struct csv_field field;
        while (blanks && at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (blanks && at == end)
            return 0;
        at = at < end && *at == '"' ? cut_quoted(reader, at, end, &field)
                                    : cut_bare(reader, at, end, &field);
        if (!at)
            return error_set(err, ERR_DATA,
                             "%s:%" PRIu64 ": column %zu: text after a closing quote",
                             gzfile_name(reader->file), reader->line, reader->fields.n + 1);
        if (reader->fields.n == CSV_FIELDS_MAX)
            return error_set(err, ERR_DATA, "%s:%" PRIu64 ": row of more than %zu fields",
                             gzfile_name(reader->file), reader->line, CSV_FIELDS_MAX);
        vec_push(&reader->fields, field);
        if (at == end)
            return 0;
        at++;
    }
}

int csv_read(struct csv_reader *reader, struct csv_row *row, bool *more, struct error *err)
{
    int code = reader->started ? 0 : start(reader, err);
    uint64_t comment = 0;
    *more = false;
    while (!code && !(code = await_row(reader, err))) {
        if (reader->ended && reader->row == reader->n)
            return 0;
        char *at = reader->buffer + reader->row, *end = reader->buffer + reader->seen;
        size_t next = reader->seen + (reader->seen < reader->n);
        reader->behind_cr = reader->seen < reader->n && *end == '\r';
        /* Counted before unquoting, which moves the line ends inside a field. */
        bool has_lines = next_line_end(reader) < reader->seen;
        uint64_t n_lines = 1;
        for (const char *c = at; has_lines && c < end; c++)
            n_lines += *c == '\n' || (*c == '\r' && (c + 1 == end || c[1] != '\n'));
        bool is_comment = at_comment(reader), passed = is_comment || is_blank(reader, at, end);
        if (is_comment && !comment && end - at > 1 && !strchr(" \t#", at[1]))
            comment = reader->line;
        code = passed ? 0 : cut(reader, at, end, err);
        *row = (struct csv_row){reader->fields.items, reader->fields.n, reader->line, comment};
        reader->line += n_lines;
        reader->row = reader->seen = next;
        *more = !passed && !code;
        if (*more)
            break;
    }
    return code;
}

void csv_write_field(FILE *out, char separator, const char *text, size_t n)
{
    bool blank_ends = n && (strchr(" \t", text[0]) || strchr(" \t", text[n - 1]));
    bool quoted = blank_ends || memchr(text, '"', n) || memchr(text, separator, n) ||
                  memchr(text, '\n', n) || memchr(text, '\r', n);
    if (!quoted) {
        fwrite(text, 1, n, out);
        return;
    }
    fputc('"', out);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            fputc('"', out);
        fputc(text[i], out);
    }
    fputc('"', out);
}
