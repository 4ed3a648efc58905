/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "bin/ops_option.h"
#include "bin/show_arrays.h"
#include "cli/tool.h"
#include "ops/eager.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "wire/npy.h"

static bool json, markdown, types;
static int64_t threads;

static const struct option_row rows[] = {
    {0, "json", OPTION_FLAG, &json, NULL, "an object a line"},
    {0, "markdown", OPTION_FLAG, &markdown, NULL, "the reference of all ops, docs/ops.md"},
    {0, "types", OPTION_FLAG, &types, NULL,
     "the types that each op computes in, a line an attribute"},
    {0, "threads", OPTION_NATURAL, &threads, "N", "size of the compute team (as many as cores)"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_verb verbs[] = {
    {"", "OP [INPUT]... [NAME=VALUE]...", "run the op", "threads"},
    {"list", "", "all ops", "json markdown types"},
    {"show", "OP", "what an op is: inputs, outputs, attributes, gradient", "json"},
    {NULL, NULL, NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-op",
    .summary = "run one op",
    .operands = "OP [INPUT]... [NAME=VALUE]... | list | show OP",
    .description =
        "An INPUT is a .npy or .npz file, a file of records (all its tensors), a number or a list "
        "like '[[1,2],[3,4]]', or - for the next tensor on stdin, which is such a file, too; if no "
        "input is named, all of stdin is taken. Numbers take the type of the other inputs. "
        "NAME=VALUE sets an attribute of the op. "
        "An operand that begins with a minus comes after --.\n"
        "-o FILE.npy writes NumPy's format.",
    .examples =
        "tf-op MatMul '[[1.0,2],[3,4]]' '[[1.0],[1]]' | tf-show\n"
        "tf-op RandomStandardNormal '[4,3]' dtype=float32 seed=7 -o a.npy\n"
        "tf-op MatMul a.npy a.npy transpose_b=true | tf-op Softmax | tf-op Sum - 1 | tf-show\n"
        "tf-op show MatMul",
    .rows = rows,
    .verbs = verbs,
    .operands_max = -1,
    .writes_stream = true,
};

struct arguments {
    VEC(struct eager_input) inputs;
    VEC(struct eager_attr) attrs;
    struct tensor_source in; /* stdin; without a reader until an operand needs it */
    struct record record;    /* of stdin; `next` is its first unused tensor */
    int next;
};

/* ---- inputs ---- */

static void push_tensor(struct arguments *args, const struct tensor *t)
{
    struct eager_input input = {{0}, NULL};
    tensor_share(&input.tensor, t);
    vec_push(&args->inputs, input);
}

/* An array that is no tensor is an error here. */
static int read_record(struct tensor_source *source, struct record *record, bool *more,
                       struct error *err)
{
    if (!tensor_source_read(source, record, more, err) && source->unread.code)
        *err = source->unread;
    return err->code;
}

static int open_stdin(struct tool *tool, struct arguments *args, struct error *err)
{
    return args->in.reader ? 0 : tool_open_reader(tool, "-", &args->in.reader, err);
}

/* Adds the next tensor of stdin; *more is false at its end. */
static int next_of_stdin(struct arguments *args, bool *more, struct error *err)
{
    *more = true;
    for (; args->next >= args->record.n_tensors; args->next = 0)
        if (read_record(&args->in, &args->record, more, err) || !*more)
            return err->code;
    push_tensor(args, &args->record.tensors[args->next++].tensor);
    return 0;
}

/* ---- operands ---- */

static int take_operand(struct tool *tool, char *text, struct arguments *args, struct error *err)
{
    if (strcmp(text, "-") == 0) {
        bool more;
        if (open_stdin(tool, args, err) || next_of_stdin(args, &more, err))
            return err->code;
        return more ? 0 : error_set(err, ERR_NOINPUT, "stdin: no further tensor");
    }
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    if (n && text[n] == '=') {
        char *equals = strchr(text, '=');
        *equals = 0;
        struct eager_attr attr = {text, equals + 1};
        vec_push(&args->attrs, attr);
        return 0;
    }
    if (access(text, F_OK) && eager_is_literal(text)) {
        struct eager_input input = {{0}, text};
        vec_push(&args->inputs, input);
        return 0;
    }
    struct tensor_source source = {0};
    struct record record = {0};
    bool more = true;
    size_t before = args->inputs.n;
    if (tool_open_reader(tool, text, &source.reader, err))
        return err->code;
    while (!read_record(&source, &record, &more, err) && more)
        for (int i = 0; i < record.n_tensors; i++)
            push_tensor(args, &record.tensors[i].tensor);
    record_release(&record);
    tool_close_reader(source.reader);
    if (!err->code && args->inputs.n == before)
        error_set(err, ERR_DATA, "%s: no tensor", text);
    return err->code;
}

/* ---- the verbs ---- */

static int print_outputs(struct tool *tool, struct str *text, struct error *err)
{
    FILE *out;
    int code = tool_open_text(tool, &out, err);
    if (!code)
        fputs(str_text(text), out);
    str_release(text);
    return code;
}

static int execute(struct tool *tool, const char *op, const struct arguments *args,
                   struct error *err)
{
    struct device_options options = {.threads = (int)threads, .exact = true};
    struct device *device = device_open("CPU", 0, &options, err);
    struct eager_result result = {0};
    if (!device)
        return err->code;
    struct eager_call call = {.op = op,
                              .inputs = args->inputs.items,
                              .n_inputs = (int)args->inputs.n,
                              .attrs = args->attrs.items,
                              .n_attrs = (int)args->attrs.n,
                              .device = device};
    int code = eager_run(&call, &result, err);
    FILE *out;
    if (!code && !tool->writer && result.n != 1)
        code = error_set(err, ERR_USAGE, "%s has %d outputs; a .npy file holds one",
                         result.op->def->name, result.n);
    if (!code && !tool->writer && !(code = tool_open_text(tool, &out, err)))
        code = npy_write(out, &result.outputs[0], err);
    for (int i = 0; i < result.n && tool->writer && !code; i++) {
        struct named_tensor named = {result.n == 1 ? "" : result.names[i], result.outputs[i]};
        stream_begin(tool->writer, RECORD_TENSOR, 0);
        code = stream_write(tool->writer, &named, 1, err);
    }
    eager_release(&result);
    device_free(device);
    return code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    if (!n)
        return error_set(err, ERR_USAGE, "which op? tf-op list names all");
    if (threads > 1024)
        return error_set(err, ERR_USAGE, "--threads must be between 0 and 1024");
    if (strcmp(operands[0], "list") == 0 && n == 1) {
        struct str text = STR_INIT;
        if (markdown)
            reference_markdown(&text);
        else if (types)
            reference_types(&text);
        else if (!json)
            reference_list(&text);
        for (size_t i = 0; json && i < registry_count(ops_registry()); i++)
            reference_json(&text, registry_at(ops_registry(), i));
        return print_outputs(tool, &text, err);
    }
    if (strcmp(operands[0], "show") == 0 && n == 2) {
        const struct op *op = eager_find(operands[1], err);
        struct str text = STR_INIT;
        if (!op)
            return err->code;
        if (json)
            reference_json(&text, op);
        else
            reference_show(&text, op);
        return print_outputs(tool, &text, err);
    }
    if (strcmp(operands[0], "list") == 0 || strcmp(operands[0], "show") == 0)
        return error_set(err, ERR_USAGE, "expected 'list' or 'show OP'");
    struct arguments args = {0};
    const struct op *op = eager_find(operands[0], err);
    int code = op ? 0 : err->code;
    if (!code && !(tool_output && str_ends(tool_output, ".npy")))
        code = tool_open_writer(tool, -1, err);
    for (int i = 1; i < n && !code; i++)
        code = take_operand(tool, operands[i], &args, err);
    if (!code && !args.inputs.n && op->n_inputs) {
        code = open_stdin(tool, &args, err);
        for (bool more = true; !code && more;)
            code = next_of_stdin(&args, &more, err);
    }
    if (!code)
        code = execute(tool, operands[0], &args, err);
    for (size_t i = 0; i < args.inputs.n; i++)
        tensor_release(&args.inputs.items[i].tensor);
    vec_release(&args.inputs);
    vec_release(&args.attrs);
    record_release(&args.record);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
