/* SPDX-License-Identifier: Apache-2.0 */
#include "data/row_source.h"

#include <glob.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/vec.h"
#include "data/cells.h"
#include "data/csv_header.h"
#include "data/jsonl.h"

struct row_source {
    char *name;
    enum row_format format;
    char separator, comment;
    VEC(char *) paths;
    size_t next;         /* index of the path to open next */
    struct gzfile *file; /* NULL: no file is open */
    struct csv_reader *csv;
    struct jsonl_reader *jsonl;
    struct jsonl_columns columns;
    uint64_t rows; /* of this file, including its header */
    struct csv_row last;
    struct csv_header header; /* without names: there is none */
    int (*wait)(void *context, struct error *err);
    void *wait_context;
    int stop_fd;
    struct row_source *right;     /* each row continues with one of it; NULL: nothing is joined */
    uint64_t n_joined;            /* rows */
    VEC(struct csv_field) fields; /* of both */
};

static void close_file(struct row_source *source)
{
    csv_reader_free(source->csv);
    jsonl_reader_free(source->jsonl);
    gzfile_close(source->file);
    source->csv = NULL;
    source->jsonl = NULL;
    source->file = NULL;
}

/* Sets the format by how the file begins. */
static int find_format(struct row_source *source, struct error *err)
{
    char head[GZFILE_AHEAD] = "";
    size_t n;
    if (gzfile_peek(source->file, head, sizeof head - 1, &n, err))
        return err->code;
    bool is_npz = !memcmp(head, "PK\3\4", 4);
    if (is_npz || !memcmp(head, "\x93NUM", 4))
        return error_set(err, ERR_DATA,
                         "%s: arrays have no columns to describe; tf-data %s feeds them",
                         source->name, is_npz ? "npz" : "npy");
    /* Also a list of objects, which is refused as JSON. */
    source->format = head[strspn(head, " \t\r\n[\xef\xbb\xbf")] == '{' ? ROWS_JSONL : ROWS_CSV;
    return 0;
}

static int open_next(struct row_source *source, struct error *err)
{
    if (gzfile_open(source->paths.items[source->next], &source->file, err))
        return err->code;
    source->next++;
    source->rows = 0;
    gzfile_on_wait(source->file, source->wait, source->wait_context);
    gzfile_stop_on(source->file, source->stop_fd);
    if (source->format == ROWS_GUESSED && find_format(source, err))
        return err->code;
    if (source->format == ROWS_CSV)
        source->csv = csv_reader_new(source->file, source->separator, source->comment);
    else
        source->jsonl = jsonl_reader_new(source->file, &source->columns);
    return 0;
}

int row_source_open(const char *path, enum row_format format, char separator, char comment,
                    struct row_source **result, struct error *err)
{
    struct row_source *source = mem_alloc(sizeof *source);
    source->name = mem_strdup(strcmp(path, "-") ? path : "stdin");
    source->format = format;
    source->separator = separator;
    source->comment = comment;
    source->stop_fd = -1;
    bool is_one = !strcmp(path, "-") || access(path, F_OK) == 0 || !strpbrk(path, ",*?[");
    if (is_one)
        vec_push(&source->paths, mem_strdup(path));
    for (const char *at = path; !is_one && at && !err->code;) {
        size_t n = strcspn(at, ",");
        char *pattern = mem_strndup(at, n);
        glob_t found = {0};
        int status = glob(pattern, 0, NULL, &found);
        for (size_t i = 0; i < found.gl_pathc; i++)
            vec_push(&source->paths, mem_strdup(found.gl_pathv[i]));
        globfree(&found);
        if (status)
            error_set(err, ERR_NOINPUT, "%s: No such file or directory", pattern);
        mem_free(pattern);
        at = at[n] ? at + n + 1 : NULL;
    }
    if (err->code || open_next(source, err)) {
        row_source_free(source);
        return err->code;
    }
    *result = source;
    return 0;
}

void row_source_join(struct row_source *source, struct row_source *right)
{
    source->right = right;
}

void row_source_free(struct row_source *source)
{
    if (!source)
        return;
    row_source_free(source->right);
    close_file(source);
    for (size_t i = 0; i < source->paths.n; i++)
        mem_free(source->paths.items[i]);
    csv_header_release(&source->header);
    vec_release(&source->paths);
    vec_release(&source->fields);
    jsonl_columns_release(&source->columns);
    mem_free(source->name);
    mem_free(source);
}

static int check_names(const struct row_source *source, const struct csv_row *row,
                       struct error *err)
{
    for (size_t i = 0; i < row->n_fields && i < source->header.n; i++) {
        const char *text = row->fields[i].text, *name = source->header.names[i];
        size_t n = row->fields[i].n;
        cell_trim(&text, &n);
        if (n != strlen(name) || memcmp(text, name, n) != 0)
            return error_set(err, ERR_DATA,
                             "%s:%" PRIu64 ": column %zu is '%.*s', but '%s' in the file before",
                             row_source_file(source), row->line, i + 1, (int)n, text, name);
    }
    if (row->n_fields == source->header.n)
        return 0;
    return error_set(err, ERR_DATA, "%s:%" PRIu64 ": %zu columns, but the file before has %zu",
                     row_source_file(source), row->line, row->n_fields, source->header.n);
}

void row_source_expect(struct row_source *source, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        jsonl_columns_add(&source->columns, names[i], i);
    source->columns.n_expected = n;
}

/* Learns of the columns that any object of the files has. What can be read only once has those of
 * its first object. */
static int learn_columns(struct row_source *source, struct error *err)
{
    for (size_t i = 0; i < source->paths.n && !err->code; i++) {
        struct stat status;
        struct gzfile *file;
        const char *path = source->paths.items[i];
        if (!strcmp(path, "-") || stat(path, &status) || !S_ISREG(status.st_mode))
            continue;
        if (gzfile_open(path, &file, err))
            return err->code;
        struct jsonl_reader *reader = jsonl_reader_new(file, &source->columns);
        jsonl_learn(reader, err);
        jsonl_reader_free(reader);
        gzfile_close(file);
    }
    return err->code;
}

static int read_own(struct row_source *source, struct csv_row *row, bool *more, struct error *err)
{
    if (source->format == ROWS_JSONL && !source->columns.are_read && learn_columns(source, err))
        return err->code;
    for (*more = false; !*more && (source->file || source->next < source->paths.n);) {
        if (!source->file && open_next(source, err))
            return err->code;
        if (source->csv ? csv_read(source->csv, row, more, err)
                        : jsonl_read(source->jsonl, row, more, err))
            return err->code;
        bool is_header =
            *more && source->csv && source->next > 1 && !source->rows++ && source->header.n;
        if (is_header && check_names(source, row, err))
            return err->code;
        if (!*more && source->next == source->paths.n)
            return 0; /* the last file's name is still needed */
        if (!*more)
            close_file(source);
        *more = *more && !is_header;
    }
    source->last = *row;
    return 0;
}

/* Appends the fields of the same row of `right`. */
static int append_right(struct row_source *source, struct csv_row *row, bool more,
                        struct error *err)
{
    struct csv_row other;
    bool more_right;
    if (row_source_read(source->right, &other, &more_right, err))
        return err->code;
    source->n_joined += more && more_right;
    if (more != more_right)
        return error_set(err, ERR_DATA, "%s: ends after %" PRIu64 " rows, but %s has more",
                         (more ? source->right : source)->name, source->n_joined,
                         (more ? source : source->right)->name);
    source->fields.n = 0;
    for (size_t i = 0; more && i < row->n_fields; i++)
        vec_push(&source->fields, row->fields[i]);
    for (size_t i = 0; more && i < other.n_fields; i++)
        vec_push(&source->fields, other.fields[i]);
    row->fields = source->fields.items;
    row->n_fields = source->fields.n;
    return 0;
}

int row_source_read(struct row_source *source, struct csv_row *row, bool *more, struct error *err)
{
    int code = read_own(source, row, more, err);
    return code || !source->right ? code : append_right(source, row, *more, err);
}

void row_source_set_header(struct row_source *source)
{
    csv_header_take(&source->header, &source->last);
    if (source->right)
        row_source_set_header(source->right);
}

enum row_format row_source_format(const struct row_source *source)
{
    return source->format;
}

const char *row_source_name(const struct row_source *source)
{
    return source->name;
}

const char *row_source_file(const struct row_source *source)
{
    return source->file ? gzfile_name(source->file) : source->name;
}

void row_source_on_wait(struct row_source *source, int (*wait)(void *context, struct error *err),
                        void *context)
{
    source->wait = wait;
    source->wait_context = context;
    if (source->file)
        gzfile_on_wait(source->file, wait, context);
    if (source->right)
        row_source_on_wait(source->right, wait, context);
}

void row_source_stop_on(struct row_source *source, int fd)
{
    source->stop_fd = fd;
    if (source->file)
        gzfile_stop_on(source->file, fd);
    if (source->right)
        row_source_stop_on(source->right, fd);
}
