/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/number.h"
#include "base/str.h"
#include "bin/prep_file.h"
#include "cli/output.h"
#include "cli/tool.h"
#include "data/describe.h"
#include "data/fit.h"
#include "data/open.h"
#include "show/columns.h"

static int64_t epochs = -1, seed, prefetch, shuffle_buffer = -1;
static const char *rows_text, *shard_text, *separator_text, *comment_text = "#";
static const char *header_text = "auto", *unseen_text, *fit_path, *prep_path;
static const char *split_text, *fold_text, *part_text, *stratify, *group;
static const char *weight_column, *balance_column;
static struct option_list kept; /* columns not fed, but kept; last in the request */
static bool as_json;
static struct ranges ranges;
static struct split_rule split_rule;
static struct data_request request = {.feeding = {.batch = 1, .n_shards = 1},
                                      .rows = {.ranges = &ranges}};
static struct prep prep; /* read from --prep, or to be written by --fit */

static const struct option_row rows[] = {
    {'b', "batch", OPTION_NATURAL, &request.feeding.batch, "N", "rows in a record (1)"},
    {0, "drop-remainder", OPTION_FLAG, &request.feeding.drop_remainder, NULL,
     "leave out the last batch of an epoch if it is not full"},
    {0, "epochs", OPTION_NATURAL, &epochs, "N", "how often all rows are fed (1); 0: without end"},
    {0, "steps", OPTION_NATURAL, &request.feeding.steps, "N",
     "stop after N records; without --epochs, files repeat until then"},
    {0, "after", OPTION_NATURAL, &request.feeding.after, "N", "begin behind record N, at N + 1"},
    {0, "shuffle", OPTION_FLAG, &request.feeding.shuffle, NULL, "another order in every epoch"},
    {0, "shuffle-buffer", OPTION_NATURAL, &shuffle_buffer, "N",
     "shuffle among N rows as they arrive, for input larger than memory"},
    {0, "seed", OPTION_INT, &seed, "N", "of the order (0)"},
    {0, "shard", OPTION_TEXT, &shard_text, "I/N", "only every N'th row, from I on: 0/2, 1/2"},
    {0, "rows", OPTION_TEXT, &rows_text, "LIST", "only these rows: 1-1437, 1438-, 1,5-9"},
    {0, "split", OPTION_TEXT, &split_text, "SHARES[:NAME]",
     "deal all rows to train, valid and test as 70/15/15, or to train and test as 80/20; NAME\n"
     "draws another split. A row stays where it is when more come"},
    {0, "fold", OPTION_TEXT, &fold_text, "I/K[:NAME]",
     "deal all rows to K folds: valid is fold I, from 0, train are the others"},
    {0, "part", OPTION_TEXT, &part_text, "train|valid|test|new",
     "feed the rows of this part; new: all, as they come after the split was made"},
    {0, "stratify", OPTION_TEXT, &stratify, "COLUMN",
     "each value of the column has the same shares in all parts"},
    {0, "group", OPTION_TEXT, &group, "COLUMN", "rows of one value of the column are in one part"},
    {0, "join", OPTION_TEXT, &request.csv.join, "FILE",
     "of another file the same row: its columns stand behind those of FILE"},
    {0, "keep", OPTION_LIST, &kept, "COLUMN",
     "columns as they are that go with the rows, as an id: not fed, but in front of the answers"},
    {0, "sample-weight", OPTION_TEXT, &weight_column, "COLUMN", "feed the column as sample_weight"},
    {0, "balance", OPTION_TEXT, &balance_column, "COLUMN",
     "feed a sample_weight by which all values of the column weigh the same"},
    {0, "prefetch", OPTION_NATURAL, &prefetch, "N", "make up to N batches ahead, in a thread (0)"},
    {0, "separator", OPTION_TEXT, &separator_text, "CHAR",
     "or comma, semicolon, tab, blanks; without it the first line tells"},
    {0, "header", OPTION_TEXT, &header_text, "auto|yes|no",
     "whether the first row names the columns; auto: if a column is asked for by name,\n"
     "or if nothing in the row is a number, true or false, which a line on stderr says then"},
    {0, "comment", OPTION_TEXT, &comment_text, "CHAR", "begins lines to pass over (#)"},
    {0, "missing", OPTION_TEXT, &request.csv.missing, "VALUE",
     "put in place of empty fields, NA, N/A, #N/A, null and ?, where no impute says what; they\n"
     "are not in what is fitted. mean: of a column that is standardized, so that they become 0"},
    {0, "fit", OPTION_TEXT, &fit_path, "FILE",
     "write what is found in the rows selected: means, deviations, categories and so on"},
    {0, "prep", OPTION_TEXT, &prep_path, "FILE", "prepare by what --fit wrote"},
    {0, "unseen", OPTION_TEXT, &unseen_text, "own|error",
     "what a category is that was not there when it was fitted: an id of its own, the one behind\n"
     "the last (of a onehot, zeros), or an error (own)"},
    {0, "json", OPTION_FLAG, &as_json, NULL, "one JSON object"},
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

#define FEEDING                                                                                    \
    "batch drop-remainder epochs steps after shuffle shuffle-buffer seed shard rows split fold "   \
    "part prefetch fit prep unseen"

static const struct option_verb verbs[] = {
    {"csv", "FILE NAME=COLUMNS[:PART]...", "rows of text; also other separators",
     FEEDING " separator header comment missing stratify group sample-weight balance join keep"},
    {"jsonl", "FILE NAME=COLUMNS[:PART]...", "JSON lines: an object a line",
     FEEDING " missing stratify group sample-weight balance join keep"},
    {"idx", "NAME=FILE[:PART]...", "arrays as those of MNIST", FEEDING},
    {"npy", "NAME=FILE[:PART]...", "arrays of NumPy's", FEEDING},
    {"npz", "FILE [NAME=ARRAY[:PART]]...", "archives of them",
     FEEDING " stratify group sample-weight balance keep"},
    {"describe", "FILE", "what is in a table of csv or jsonl, and a line that would feed it",
     "separator header comment json"},
    {"cut", "STEPS [FILE]",
     "the records of some steps of a stream, as 7 or 5-7,9: what\n"
     "tf-exec --first-step wants to run them again",
     NULL},
    {NULL, NULL, NULL, NULL}};

static const struct option_need needs[] = {{"split fold", "part"},
                                           {"part stratify group", "split fold"},
                                           {"drop-remainder", "batch"},
                                           {"seed", "shuffle shuffle-buffer"},
                                           {NULL, NULL}};

static const struct option_clash clashes[] = {{"split fold", "split fold"},
                                              {"stratify group", "stratify group"},
                                              {"fit prep", "fit prep"},
                                              {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-data",
    .summary = "turn data into feed records",
    .operands = "VERB [FILE] [NAME=WHERE[:PART]]...",
    .description =
        "Each NAME is fed as a tensor, a batch a record. COLUMNS are positions as in cut(1) or "
        "names from the header: x=1-64, x=1,3-5, y=age, or patterns of names and what is left out "
        "of them: x=*,-id,-target. One column gives a vector, several give a matrix.\n"
        "PART is a type (without one float32 for text, otherwise what the file has), or text for "
        "bytes as they are, or shape=8x8x1 (of one row). It says what a field is, if no number: "
        "category (its id among those found, in ascending order; category=a,b,c: among these), "
        "hash=N (a number in [0, N) made of the text), balance (a weight by which all values weigh "
        "the same), date (seconds since 1970; date=year, month, day, hour, minute, second, "
        "weekday, yearday), amount ($1,234.50).\n"
        "It says what is done, each column by itself, and in this order: impute=mean, median, most "
        "or VALUE (put in place of what is missing), log1p, standardize (mean 0 and deviation 1 "
        "over the rows selected) or scale (to [0, 1]), scale=S and offset=O (value * S + offset), "
        "onehot=N, or onehot of categories, flag (a further column for each: 1 where it was "
        "missing).\n"
        "What is fitted to data is fitted once: --fit keeps what was found in the rows that a "
        "model is trained on, as JSON, with the header's names; --prep prepares all that come "
        "after by it, also a single row, or rows without the header.\n"
        "FILE may be gzip, xz or zstd; - is stdin. Of csv and jsonl it may be several, a list or a "
        "pattern: jan.csv,'2024-*.csv.gz'. What is nested in JSON has the columns a.b and x[0]. "
        "CSV from stdin is fed as it arrives, unless --shuffle, "
        "--epochs or what is fitted without --prep need all of it first.\n"
        "An order follows from seed and epoch alone; the shards of one order never overlap.",
    .examples =
        "tf-data csv digits.csv.gz x=1-64 y=65:int32 --shuffle --batch 64 --epochs 20 > train.rec\n"
        "tf-data csv d.csv x=age,bmi:standardize y=target --rows 1-400 --fit prep.json > "
        "d.rec\n"
        "tail -1 d.csv | tf-data csv - x=age,bmi:standardize --prep prep.json\n"
        "tf-data idx x=images.gz:float32:scale=0.0039215686 y=labels.gz:int32 --batch 128\n"
        "tf-data describe people.csv\n"
        "tail -f new.csv | tf-data csv - x=1-64 --batch 1\n"
        "tf-data cut 7 train.rec | tf-exec -g m.tfg --run train --restore ck@6 --first-step 7",
    .rows = rows,
    .verbs = verbs,
    .needs = needs,
    .clashes = clashes,
    .operands_max = -1,
    .writes_stream = true,
};

static int parse_feeding(struct batch_options *feeding, bool from_stdin, struct error *err)
{
    feeding->seed = (uint64_t)seed;
    feeding->epochs = epochs >= 0 ? epochs : feeding->steps && !from_stdin ? 0 : 1;
    if (feeding->batch < 1 || feeding->batch > INT64_MAX / 4)
        return error_set(err, ERR_USAGE, "--batch %" PRId64 ": from 1 to 2^61", feeding->batch);
    if (!shuffle_buffer || shuffle_buffer > INT64_MAX / 4)
        return error_set(err, ERR_USAGE, "--shuffle-buffer %" PRId64 ": from 1 to 2^61",
                         shuffle_buffer);
    feeding->shuffle_window = shuffle_buffer > 0 ? shuffle_buffer : 0;
    if (prefetch > 65536)
        return error_set(err, ERR_USAGE, "--prefetch is at most 65536");
    request.prefetch = (int)prefetch;
    const char *slash = shard_text ? strchr(shard_text, '/') : NULL;
    if (shard_text &&
        (!slash || number_int64(shard_text, (size_t)(slash - shard_text), &feeding->shard) ||
         !str_to_int64(slash + 1, &feeding->n_shards) || feeding->shard < 0 ||
         feeding->shard >= feeding->n_shards))
        return error_set(err, ERR_USAGE, "--shard '%s': expected I/N with 0 <= I < N", shard_text);
    return 0;
}

static int parse_character(const char *option, const char *text, char *c, struct error *err)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"comma", ','}, {"semicolon", ';'},     {"tab", '\t'},
                 {"\\t", '\t'},  {"blanks", CSV_BLANKS}, {"space", CSV_BLANKS}};
    *c = text ? *text : '\0';
    const size_t n = sizeof names / sizeof *names;
    size_t i = text ? names_find(names, n, text) : n;
    if (i < n) {
        *c = names[i].c;
        return 0;
    }
    if ((text && *text && text[1]) || *c == '"' || *c == '\n' || *c == '\r')
        return error_set(err, ERR_USAGE, "%s '%s': expected one character", option, text);
    return 0;
}

static int parse_csv_format(struct csv_format *csv, struct error *err)
{
    if (strcmp(header_text, "yes") == 0)
        csv->header = CSV_HEADER_YES;
    else if (strcmp(header_text, "no") == 0)
        csv->header = CSV_HEADER_NO;
    else if (strcmp(header_text, "auto") != 0)
        return error_set(err, ERR_USAGE, "--header '%s': expected auto, yes or no", header_text);
    int code = parse_character("--separator", separator_text, &csv->separator, err);
    return code ? code : parse_character("--comment", comment_text, &csv->comment, err);
}

static const struct data_column *find_column(bool (*is_it)(const struct data_column *column))
{
    for (int i = 0; i < request.n_columns; i++)
        if (is_it(&request.columns[i]))
            return &request.columns[i];
    return NULL;
}

static bool has_categories(const struct data_column *column)
{
    return column->reading == READ_CATEGORY;
}

static int open_prep(struct data_column *columns, struct error *err)
{
    const char *option = fit_path ? "fit" : "prep";
    bool is_idle = (fit_path || prep_path) && !find_column(data_column_fits);
    if (is_idle && options_asked(option))
        return error_set(
            err, ERR_USAGE,
            "--%s: no column is fitted: none has standardize, scale, category, onehot, "
            "or impute with what is found",
            option);
    if (is_idle)
        fit_path = prep_path = NULL;
    prep.path = fit_path;
    if (prep_path && prep_read(&prep, prep_path, err))
        return err->code;
    request.csv.prep = prep_path ? &prep : NULL;
    request.csv.fit = fit_path ? &prep : NULL;
    return data_columns_bind(columns, request.n_columns, &prep, prep_path != NULL, err);
}

/* Parses FORMAT [FILE] NAME=WHERE... */
static int parse_operands(int n, char **operands, struct arena *arena, struct error *err)
{
    if (n == 0 || !data_format_parse(operands[0], &request.format)) {
        options_verb(&table, n, operands, err);
        return err->code;
    }
    bool has_path = data_format_has_rows(request.format) || request.format == DATA_NPZ;
    int first = has_path ? 2 : 1;
    if (n < first)
        return error_set(err, ERR_USAGE, "%s: expected a file", operands[0]);
    bool is_npz = request.format == DATA_NPZ, is_weighed = weight_column || balance_column;
    bool has_none = n == first && (is_npz ? is_weighed || kept.n : !is_weighed);
    if (has_none && strchr(operands[n - 1], '='))
        return error_set(err, ERR_USAGE, "%s: expected a file before '%s'", operands[0],
                         operands[n - 1]);
    if (has_none)
        return error_set(err, ERR_USAGE, "%s: say what to feed, as in %s", operands[0],
                         is_npz     ? "x=ARRAY"
                         : has_path ? "x=1-64"
                                    : "x=FILE");
    request.path = has_path ? operands[1] : NULL;
    VEC(const char *) texts = VEC_INIT;
    for (int i = first; i < n; i++)
        vec_push(&texts, operands[i]);
    if (weight_column)
        vec_push(&texts, arena_printf(arena, "sample_weight=%s", weight_column));
    if (balance_column)
        vec_push(&texts, arena_printf(arena, "sample_weight=%s:balance", balance_column));
    for (size_t i = 0; i < kept.n; i++)
        vec_push(&texts, arena_printf(arena, "%c%s=%s%s", KEPT_MARK, kept.items[i], kept.items[i],
                                      request.format == DATA_NPZ ? "" : ":text"));
    request.n_columns = (int)texts.n;
    struct data_column *columns = arena_array(arena, texts.n + 1, sizeof *columns);
    request.columns = columns;
    int code = data_columns_parse(columns, texts.items, request.n_columns, !has_path, arena, err);
    vec_release(&texts);
    bool refuses = unseen_text && strcmp(unseen_text, "error") == 0;
    if (!code && unseen_text && !refuses && strcmp(unseen_text, "own") != 0)
        return error_set(err, ERR_USAGE, "--unseen '%s': expected own or error", unseen_text);
    if (!code && options_asked("unseen") && !find_column(has_categories))
        return error_set(err, ERR_USAGE, "--unseen: no column has categories");
    for (int i = 0; i < request.n_columns; i++)
        columns[i].refuses_unseen = refuses;
    return code ? code : open_prep(columns, err);
}

/* Warns if a selection of rows is fitted to itself: rows to test or predict on then mean something
 * else than those that a model was trained on. */
static void say_what_is_fitted(const struct tool *tool)
{
    const struct data_column *column = find_column(fit_needs_rows);
    bool is_selection =
        rows_text || request.rows.split || (request.path && !strcmp(request.path, "-"));
    if (column && !prep.path && is_selection)
        tool_say(tool,
                 "'%s' is fitted to the rows selected alone; for other rows to be prepared alike, "
                 "--fit FILE keeps what was found and --prep FILE uses it",
                 column->name);
}

/* Writes what was fitted; an open source has read all rows. */
static int write_fit(struct error *err)
{
    struct output *output;
    FILE *out;
    if (!fit_path)
        return 0;
    if (output_open_stream(fit_path, &output, &out, err))
        return err->code;
    if (!prep_write(&prep, out, err))
        output_commit(output, err);
    output_discard(output);
    return err->code;
}

static int parse_request(int n, char **operands, struct arena *arena, struct error *err)
{
    if (parse_operands(n, operands, arena, err))
        return err->code;
    bool from_stdin = request.path && strcmp(request.path, "-") == 0;
    if (parse_feeding(&request.feeding, from_stdin, err))
        return err->code;
    if ((split_text || fold_text) && part_text && strcmp(part_text, "new") != 0) {
        split_rule.where = group ? group : stratify;
        split_rule.by_group = group != NULL;
        request.rows.split = &split_rule;
        if (split_text ? split_rule_parse(&split_rule, split_text, part_text, err)
                       : split_rule_parse_fold(&split_rule, fold_text, part_text, err))
            return err->code;
    }
    return rows_text && ranges_parse(rows_text, &ranges, err) ? error_prefix(err, "--rows: ")
                                                              : parse_csv_format(&request.csv, err);
}

static int flush_writer(void *context, struct error *err)
{
    struct tool *tool = context;
    return tool->writer ? stream_flush(tool->writer, err) : 0;
}

/* The reader of the feed may end before it, as with tf-exec --stop-when: this is no failure. */
static void end_well(int number)
{
    (void)number;
    _exit(0);
}

static int feed(struct tool *tool, struct batches *batches, struct error *err)
{
    bool more = true;
    int code = tool_open_writer(tool, batches->expected, err);
    if (!tool_output)
        signal(SIGPIPE, end_well);
    while (!code) {
        struct batch batch = {0};
        code = batches->next(batches, &batch, &more, err);
        if (code || !more)
            break;
        code = stream_write_feed(tool->writer, RECORD_FEED, batch.step, &batch.position,
                                 batch.tensors, batch.n, err);
        batch_release(&batch);
    }
    return code;
}

/* ---- cut ---- */

struct stream_cutter {
    struct tool *tool;
    struct stream_reader *reader;
    struct ranges steps;
    int64_t before; /* steps of the streams before this one */
    int64_t last;   /* the step last read, counted within its stream */
    int64_t n_cut;
};

static int cut_record(struct stream_cutter *c, struct record *record, struct error *err)
{
    int64_t step = c->last + 1;
    if (record->kind != RECORD_FEED && record->kind != RECORD_FETCH)
        return error_set(err, ERR_DATA, "%s: a %s record where feeds are expected",
                         stream_reader_name(c->reader), record_kind_name(record->kind));
    record_get_int(&record->header, "step", &step);
    if (step < c->last)
        c->before += c->last;
    c->last = step;
    step += c->before;
    if (!ranges_contain(&c->steps, step))
        return 0;
    struct feed_position position;
    bool has_position = record_get_position(record, &record->arena, &position);
    c->n_cut++;
    return stream_write_feed(c->tool->writer, record->kind, step, has_position ? &position : NULL,
                             record->tensors, record->n_tensors, err);
}

/* Extracts the records of the steps of `list`, to run a step again alone. Steps are counted as
 * tf-exec counts them: by the records' numbers, continuing where one stream follows another. */
static int cut_stream(struct tool *tool, const char *list, const char *path, struct error *err)
{
    struct stream_cutter c = {.tool = tool};
    if (!ranges_parse(list, &c.steps, err) && !tool_open_writer(tool, -1, err) &&
        !tool_open_reader(tool, path, &c.reader, err)) {
        struct record record = {0};
        bool more = true;
        while (!err->code && more && c.before + c.last <= ranges_last(&c.steps))
            if (!stream_read(c.reader, &record, &more, err) && more)
                cut_record(&c, &record, err);
        record_release(&record);
        if (!err->code && !c.n_cut)
            error_set(err, ERR_DATA, "%s: has no such step; its last is %" PRId64,
                      stream_reader_name(c.reader), c.before + c.last);
        tool_close_reader(c.reader);
    }
    ranges_release(&c.steps);
    return err->code;
}

/* ---- describe ---- */

#define COMMONEST 3 /* values of a column that are shown */

static void add_number(struct columns *cells, double value)
{
    columns_add(cells, isnan(value) ? "-" : "%.6g", value);
}

/* An end of the range: of dates as it stands in the file, else the number. */
static void add_end(struct columns *cells, const struct column_summary *column, const char *date,
                    double value)
{
    if (column->type == COLUMN_DATE)
        columns_add(cells, "%s", date);
    else
        add_number(cells, value);
}

static void print_table(const struct table_description *d, FILE *out)
{
    static const char *const titles[] = {"column", "type", "missing", "distinct",
                                         "min",    "max",  "mean",    "commonest"};
    struct columns cells = {.n = sizeof titles / sizeof *titles};
    struct str text = STR_INIT;
    for (int i = 0; i < cells.n; i++)
        columns_add(&cells, "%s", titles[i]);
    vec_each(column, &d->columns) {
        str_clear(&text);
        str_append_escaped(&text, column->name);
        columns_add(&cells, "%s", str_text(&text));
        columns_add(&cells, "%s", column_type_name(column->type));
        columns_add(&cells, "%" PRId64, column->missing);
        columns_add(&cells, "%zu%s", column->distinct.n, column->has_more ? "+" : "");
        add_end(&cells, column, str_text(&column->first), column->min);
        add_end(&cells, column, str_text(&column->last), column->max);
        add_number(&cells, column->mean);
        str_clear(&text);
        for (size_t k = 0; k < column->distinct.n && k < COMMONEST; k++) {
            str_append(&text, k ? ", " : "");
            str_append_escaped(&text, column->distinct.items[k].text);
            str_printf(&text, " (%" PRId64 ")", column->distinct.items[k].rows);
        }
        columns_add(&cells, "%s", str_text(&text));
    }
    str_clear(&text);
    columns_print(&cells, &text);
    fputs(str_text(&text), out);
    str_release(&text);
}

/* NULL, which is null, for what is no number in JSON. */
static json_t *end_json(const struct column_summary *column, const char *date, double value)
{
    return column->type == COLUMN_DATE ? json_string(date) : json_real(value);
}

static int print_json(const struct table_description *d, const char *file, const char *command,
                      FILE *out, struct error *err)
{
    json_t *columns = json_array();
    vec_each(column, &d->columns) {
        json_t *commonest = json_array();
        struct str text = STR_INIT;
        for (size_t k = 0; k < column->distinct.n && k < COMMONEST; k++) {
            str_clear(&text);
            str_append_escaped(&text, column->distinct.items[k].text);
            json_array_append_new(commonest,
                                  json_pack("{s:s, s:I}", "value", str_text(&text), "rows",
                                            (json_int_t)column->distinct.items[k].rows));
        }
        str_clear(&text);
        str_append_escaped(&text, column->name);
        json_array_append_new(
            columns, json_pack("{s:s, s:s, s:I, s:I, s:b, s:o?, s:o?, s:o?, s:o}", "name",
                               str_text(&text), "type", column_type_name(column->type), "missing",
                               (json_int_t)column->missing, "distinct",
                               (json_int_t)column->distinct.n, "has_more", column->has_more, "min",
                               end_json(column, str_text(&column->first), column->min), "max",
                               end_json(column, str_text(&column->last), column->max), "mean",
                               json_real(column->mean), "commonest", commonest));
        str_release(&text);
    }
    json_t *root = json_pack("{s:s, s:I, s:o, s:s}", "file", file, "rows", (json_int_t)d->rows,
                             "columns", columns, "command", command);
    if (!root)
        return error_set(err, ERR_DATA, "%s: a name that is no text (UTF-8) has no JSON", file);
    json_dumpf(root, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(root);
    return 0;
}

/* Describes a file of CSV or, if it begins with a brace, of JSON lines. */
static int describe(struct tool *tool, const char *path, struct error *err)
{
    const struct csv_format *format = &request.csv;
    struct table_description d = {0};
    struct row_source *source;
    struct str command = STR_INIT, operands = STR_INIT;
    FILE *out;
    if (row_source_open(path, ROWS_GUESSED, format->separator, format->comment, &source, err))
        return err->code;
    bool is_jsonl = row_source_format(source) == ROWS_JSONL;
    enum csv_header_choice header = is_jsonl ? CSV_HEADER_YES : format->header;
    if (!tool_open_text(tool, &out, err) && !describe_rows(source, header, &d, err)) {
        str_printf(&command, "tf-data %s ", is_jsonl ? "jsonl" : "csv");
        str_append_quoted(&command, path);
        description_suggest(&d, &operands);
        str_printf(&command, " %s --fit prep.json --shuffle --batch 32", str_text(&operands));
        if (as_json) {
            print_json(&d, row_source_name(source), command.data, out, err);
        } else {
            fprintf(out, "%s: %" PRId64 " row%s, %zu column%s%s\n\n", row_source_name(source),
                    d.rows, d.rows == 1 ? "" : "s", d.columns.n, d.columns.n == 1 ? "" : "s",
                    d.has_header ? "" : ", without names");
            print_table(&d, out);
            fprintf(out, "\n%s\n", command.data);
        }
    }
    str_release(&command);
    str_release(&operands);
    description_release(&d);
    row_source_free(source);
    return err->code;
}

/* ---- running ---- */

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct arena arena = ARENA_INIT;
    struct batches *batches = NULL;
    if (n && !strcmp(operands[0], "cut"))
        return n == 2 || n == 3 ? cut_stream(tool, operands[1], n == 3 ? operands[2] : NULL, err)
                                : error_set(err, ERR_USAGE, "usage: tf-data cut STEPS [FILE]");
    if (n && !strcmp(operands[0], "describe")) {
        if (n != 2)
            return error_set(err, ERR_USAGE, "usage: tf-data describe FILE");
        return parse_csv_format(&request.csv, err) ? err->code : describe(tool, operands[1], err);
    }
    request.wait = flush_writer;
    request.wait_context = tool;
    request.csv.say = tool_say_line;
    request.csv.say_context = tool;
    int code = parse_request(n, operands, &arena, err);
    if (!code)
        code = data_open(&request, &batches, err);
    if (!code)
        code = write_fit(err);
    if (!code) {
        say_what_is_fitted(tool);
        int64_t last = rows_text ? ranges_last(&ranges) : RANGE_OPEN;
        if (last != RANGE_OPEN && request.last_row && request.last_row < last)
            tool_say(tool, "--rows %s: there are only %" PRId64 " rows", rows_text,
                     request.last_row);
        code = feed(tool, batches, err);
    }
    batches_free(batches);
    ranges_release(&ranges);
    prep_release(&prep);
    arena_release(&arena);
    return code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
