/* SPDX-License-Identifier: Apache-2.0 */
#include "show/columns.h"
#include "show/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"

struct span { /* ns */
    int64_t start, end;
};

typedef VEC(struct span) span_vec;

struct total {
    const char *name; /* in the summary's arena */
    int64_t op;       /* its own index, or that of the node's op */
    double ns;        /* sum over all calls */
    int64_t calls;
    int64_t steps; /* steps with such calls */
    int64_t first_step, last_step;
    double first_ns; /* in the first of these; includes one-time work: memory, library code */
    int64_t first_calls;
};

struct totals {
    struct total *items;
    size_t n, capacity;
    struct map index; /* by name */
};

struct memory_fact {
    const char *type; /* in the summary's arena */
    int64_t bytes;    /* of the device that has the least */
};

struct trace_summary {
    VEC(struct memory_fact) devices;
    span_vec steps, kernels;
    struct totals ops, nodes;
    struct map threads; /* by thread numbers as text */
    int64_t last_thread;
    struct arena names;
    struct str scratch;
};

struct trace_summary *trace_summary_new(void)
{
    return mem_alloc(sizeof(struct trace_summary));
}

void trace_summary_free(struct trace_summary *summary)
{
    if (!summary)
        return;
    vec_release(&summary->devices);
    vec_release(&summary->steps);
    vec_release(&summary->kernels);
    map_release(&summary->threads);
    vec_release(&summary->ops);
    vec_release(&summary->nodes);
    map_release(&summary->ops.index);
    map_release(&summary->nodes.index);
    str_release(&summary->scratch);
    arena_release(&summary->names);
    mem_free(summary);
}

/* Puts the text of a field into `scratch`; false: it has none. */
static bool get_text(struct trace_summary *s, const msgpack_object *event, const char *field)
{
    const msgpack_object *text = record_field(event, field);
    if (!text || text->type != MSGPACK_OBJECT_STR)
        return false;
    str_clear(&s->scratch);
    str_append_bytes(&s->scratch, text->via.str.ptr, text->via.str.size);
    return true;
}

/* Returns the index of the total, maybe a new one, for a field of the event; -1 without a text. */
static int64_t find(struct trace_summary *s, struct totals *totals, const msgpack_object *event,
                    const char *field)
{
    if (!get_text(s, event, field))
        return -1;
    int64_t index = (int64_t)totals->n;
    if (map_get(&totals->index, str_text(&s->scratch), &index))
        return index;
    const char *name = arena_strdup(&s->names, str_text(&s->scratch));
    map_put(&totals->index, name, index);
    vec_push(totals, ((struct total){.name = name, .op = index}));
    return index;
}

/* Calls before the first step, such as those of init, belong to no step: they count only for an op
 * or a node that runs in no step. */
static void add_call(struct total *total, int64_t step, double ns)
{
    if (total->calls && !total->first_step && step)
        *total = (struct total){.name = total->name, .op = total->op};
    if (!total->calls)
        total->first_step = step;
    if (step == total->first_step) {
        total->first_ns += ns;
        total->first_calls++;
    }
    total->steps += !total->calls || total->last_step != step;
    total->last_step = step;
    total->ns += ns;
    total->calls++;
}

static bool add_event(struct trace_summary *s, const msgpack_object *event)
{
    int64_t ns, start = 0, thread = 0, step = 0;
    if (event->type != MSGPACK_OBJECT_MAP)
        return false;
    if (record_field(event, "peer")) /* for readers that count bytes */
        return true;
    if (record_field(event, "device")) {
        /* 0 bytes: the device's memory is unknown. */
        int64_t bytes;
        if (!get_text(s, event, "device") || !record_get_int(event, "memory", &bytes) || bytes < 0)
            return false;
        struct memory_fact *known = NULL;
        for (size_t i = 0; i < s->devices.n && !known; i++)
            if (!strcmp(s->devices.items[i].type, str_text(&s->scratch)))
                known = &s->devices.items[i];
        if (known && bytes < known->bytes)
            known->bytes = bytes;
        if (!known)
            vec_push(&s->devices,
                     ((struct memory_fact){arena_strdup(&s->names, str_text(&s->scratch)), bytes}));
        return true;
    }
    if (!record_get_int(event, "ns", &ns) || ns < 0)
        return false;
    record_get_int(event, "start", &start);
    const struct span span = {start, start + (ns < INT64_MAX / 2 ? ns : INT64_MAX / 2)};
    if (!record_field(event, "node")) {
        vec_push(&s->steps, span);
        return true;
    }
    int64_t op = find(s, &s->ops, event, "op"), node = find(s, &s->nodes, event, "node");
    if (op < 0 || node < 0)
        return false;
    /* an event without a thread is of a device's queue */
    if (record_get_int(event, "thread", &thread) && (!s->threads.n || s->last_thread != thread)) {
        int64_t known;
        s->last_thread = thread;
        str_clear(&s->scratch);
        str_printf(&s->scratch, "%" PRId64, thread);
        if (!map_get(&s->threads, str_text(&s->scratch), &known))
            map_put(&s->threads, arena_strdup(&s->names, str_text(&s->scratch)), thread);
    }
    record_get_int(event, "step", &step);
    add_call(&s->ops.items[op], step, (double)ns);
    add_call(&s->nodes.items[node], step, (double)ns);
    s->nodes.items[node].op = op;
    vec_push(&s->kernels, span);
    return true;
}

int trace_summary_add(struct trace_summary *summary, const struct record *record, struct error *err)
{
    const msgpack_object *events = record_field(&record->header, "events");
    if (!events || events->type != MSGPACK_OBJECT_ARRAY)
        return error_set(err, ERR_DATA, "trace record without events");
    for (uint32_t i = 0; i < events->via.array.size; i++)
        if (!add_event(summary, &events->via.array.ptr[i]))
            return error_set(err, ERR_DATA, "trace record: event %" PRIu32 " is malformed", i);
    return 0;
}

/* ---- times without the first calls ---- */

/* Returns the mean time per step, or per call. */
static double mean_ns(const struct total *total, bool of_step)
{
    /* The first step of an op or a node also allocates memory and loads code: it counts only if
     * there is no other. */
    bool others = total->calls > total->first_calls;
    int64_t calls = total->calls - (others ? total->first_calls : 0);
    int64_t steps = total->steps - others;
    return (total->ns - (others ? total->first_ns : 0)) / (double)(of_step ? steps : calls);
}

/* Returns the total time as if the first call had taken as long as the others. */
static double steady_ns(const struct total *total)
{
    return mean_ns(total, false) * (double)total->calls;
}

/* ---- how busy the devices were ---- */

static int by_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Returns the spans sorted, and joined where they touch. */
static span_vec join_spans(const span_vec *spans)
{
    span_vec all = VEC_INIT;
    vec_reserve(&all, spans->n + 1);
    if (spans->n)
        memcpy(all.items, spans->items, spans->n * sizeof *spans->items);
    qsort(all.items, spans->n, sizeof *all.items, by_start);
    for (size_t i = 0; i < spans->n; i++) {
        const struct span next = all.items[i];
        if (!all.n || next.start > all.items[all.n - 1].end)
            all.items[all.n++] = next;
        else if (next.end > all.items[all.n - 1].end)
            all.items[all.n - 1].end = next.end;
    }
    return all;
}

/* Returns the share of `all` that `busy` covers, 0 to 1, whether one thing ran or many at once; -1:
 * `all` is empty. */
static double busy_share(const span_vec *all, const span_vec *busy)
{
    span_vec wide = join_spans(all), narrow = join_spans(busy);
    double time = 0, filled = 0;
    for (size_t i = 0, k = 0; i < wide.n; i++) {
        const struct span *span = &wide.items[i];
        time += (double)(span->end - span->start);
        while (k < narrow.n && narrow.items[k].end <= span->start)
            k++;
        for (; k < narrow.n && narrow.items[k].start < span->end; k++) {
            const struct span *by = &narrow.items[k];
            int64_t start = by->start > span->start ? by->start : span->start;
            int64_t end = by->end < span->end ? by->end : span->end;
            filled += end > start ? (double)(end - start) : 0;
            if (narrow.items[k].end > span->end) /* it reaches into the next one */
                break;
        }
    }
    vec_release(&wide);
    vec_release(&narrow);
    return time > 0 ? filled / time : -1;
}

/* ---- printing ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b)
{
    double x = steady_ns(a), y = steady_ns(b);
    return (y > x) - (y < x);
}

/* "27 us", "0.31 ms", "61 ms", "1.2 s" */
static const char *time_text(double ns, char text[32])
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    size_t i = 0;
    while (i < 2 && ns < 0.1 * units[i].ns)
        i++;
    double value = ns / units[i].ns;
    snprintf(text, 32, "%.*f %s", value < 10 ? 2 : 0, value, units[i].name);
    return text;
}

void trace_summary_print(const struct trace_summary *summary, struct str *out)
{
    if (summary->steps.n) {
        size_t n = summary->steps.n;
        char median[32], p90[32];
        double *sorted = mem_array(n, sizeof *sorted),
               share = busy_share(&summary->steps, &summary->kernels);
        for (size_t i = 0; i < n; i++)
            sorted[i] = (double)(summary->steps.items[i].end - summary->steps.items[i].start);
        qsort(sorted, n, sizeof *sorted, by_value);
        str_printf(out, "trace   %zu step%s  median %s  p90 %s", n, n == 1 ? "" : "s",
                   time_text(sorted[n / 2], median), time_text(sorted[n * 9 / 10], p90));
        if (share >= 0)
            str_printf(out, "  in kernels %.0f%%", 100 * share);
        str_printf(out, "  %zu thread%s\n", summary->threads.n, summary->threads.n == 1 ? "" : "s");
        mem_free(sorted);
    }
    if (summary->ops.n) {
        static const char *const titles[] = {"OP", "TIME", "SHARE", "CALLS", "EACH", "SLOWEST"};
        struct total *sorted = mem_array(summary->ops.n, sizeof *sorted);
        memcpy(sorted, summary->ops.items, summary->ops.n * sizeof *sorted);
        qsort(sorted, summary->ops.n, sizeof *sorted, by_time);
        /* By op, the slowest node; NULL where all of its nodes also ran as another op. */
        const struct total **slowest = mem_array(summary->ops.n, sizeof(struct total *));
        vec_each(node, &summary->nodes) {
            if (!node->first_step && summary->ops.items[node->op].first_step)
                continue; /* it ran in no step */
            if (!slowest[node->op] || steady_ns(node) > steady_ns(slowest[node->op]))
                slowest[node->op] = node;
        }
        double all = 0;
        for (size_t i = 0; i < summary->ops.n; i++)
            all += steady_ns(&sorted[i]);
        struct columns columns = {.n = 6};
        for (int i = 0; i < columns.n; i++)
            columns_add(&columns, "%s", titles[i]);
        for (size_t i = 0; i < summary->ops.n; i++) {
            const struct total *op = &sorted[i];
            char time[32], each[32];
            columns_add(&columns, "%s", op->name);
            double ns = steady_ns(op);
            columns_add(&columns, "%s", time_text(ns, time));
            columns_add(&columns, "%.0f%%", all > 0 ? 100 * ns / all : 0);
            columns_add(&columns, "%" PRId64, op->calls);
            columns_add(&columns, "%s", time_text(mean_ns(op, false), each));
            columns_add(&columns, "%s", slowest[op->op] ? slowest[op->op]->name : "-");
        }
        columns_print(&columns, out);
        mem_free(slowest);
        mem_free(sorted);
    }
}

/* ---- for the placer ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct total *)a)->name, ((const struct total *)b)->name);
}

static void print_costs(const struct totals *totals, const char *kind, bool of_step,
                        struct str *out)
{
    struct total *sorted = mem_array(totals->n, sizeof *sorted);
    if (totals->n)
        memcpy(sorted, totals->items, totals->n * sizeof *sorted);
    qsort(sorted, totals->n, sizeof *sorted, by_name);
    for (size_t i = 0; i < totals->n; i++)
        str_printf(out, "%s %s %.0f\n", kind, sorted[i].name, mean_ns(&sorted[i], of_step));
    mem_free(sorted);
}

static int by_type(const void *a, const void *b)
{
    return strcmp(((const struct memory_fact *)a)->type, ((const struct memory_fact *)b)->type);
}

void trace_summary_print_costs(const struct trace_summary *summary, struct str *out)
{
    size_t n = summary->devices.n;
    struct memory_fact *sorted = mem_array(n, sizeof *sorted);
    if (n)
        memcpy(sorted, summary->devices.items, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_type);
    for (size_t i = 0; i < n; i++)
        if (sorted[i].bytes)
            str_printf(out, "device %s memory=%" PRId64 "\n", sorted[i].type, sorted[i].bytes);
    mem_free(sorted);
    print_costs(&summary->nodes, "node", true, out);
    print_costs(&summary->ops, "op", false, out);
}

/* ---- as JSON ---- */

int show_trace(const struct show *show, const struct record *record, struct error *err)
{
    int code = trace_summary_add(show->trace, record, err);
    if (code || !show->json || show->costs)
        return code;
    const msgpack_object *events = record_field(&record->header, "events");
    struct str line = STR_INIT;
    for (uint32_t i = 0; i < events->via.array.size; i++) {
        str_clear(&line);
        show_json_value(&line, &events->via.array.ptr[i]); /* {"step":1,"start":12,"ns":310,...} */
        str_append_char(&line, '\n');
        fwrite(str_text(&line), 1, line.n, show->out);
    }
    str_release(&line);
    return 0;
}
