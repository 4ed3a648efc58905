/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/chain_cpu.h"

#include <omp.h>
#include <stdatomic.h>

#define CHAIN_LINKS 8

struct chain_link {
    dnnl_primitive_t primitive;
    int n_args;
    struct chain_arg args[CHAIN_ARGS];
    dnnl_memory_desc_t descs[CHAIN_ARGS];
    size_t scratch_bytes;
};

/* oneDNN's handles of one run's operands. They contain addresses, so each concurrent run needs its
 * own; one set is kept between runs, and only overlapping runs make more. */
struct chain_operands {
    dnnl_exec_arg_t args[CHAIN_LINKS][CHAIN_ARGS];
};

struct chain {
    struct device *device;
    struct error *err; /* while it is being made */
    bool failed;
    int n_in, n_out, n_operands, n_links;
    int threads, threads_before;
    size_t offsets[CHAIN_OPERANDS]; /* of temporaries, in scratch */
    size_t temporary_bytes, scratch_bytes;
    struct chain_link links[CHAIN_LINKS];
    _Atomic(struct chain_operands *) idle;
};

struct chain *chain_new(struct kernel_setup *setup)
{
    struct chain *chain = mem_alloc(sizeof *chain);
    chain->device = setup->device;
    chain->err = setup->err;
    chain->n_in = setup->n_in;
    chain->n_out = setup->n_out;
    chain->n_operands = setup->n_in + setup->n_out;
    BUG_ON(chain->n_operands > CHAIN_OPERANDS);
    /* Primitives are partitioned for the team of the thread that makes them. */
    chain->threads_before = omp_get_max_threads();
    chain->threads = setup->threads > 0 ? setup->threads : 1;
    cpu_set_team(chain->threads);
    return chain;
}

int chain_output(const struct chain *chain, int output)
{
    return chain->n_in + output;
}

int chain_temporary(struct chain *chain, size_t bytes)
{
    BUG_ON(chain->n_operands == CHAIN_OPERANDS);
    chain->offsets[chain->n_operands] = chain->temporary_bytes;
    chain->temporary_bytes += ALIGN_UP(bytes);
    return chain->n_operands++;
}

void chain_check(struct chain *chain, dnnl_status_t status, const char *what)
{
    if (!chain->failed && cpu_dnnl_check(status, what, chain->err))
        chain->failed = true;
}

static dnnl_primitive_attr_t user_scratchpad(struct chain *chain)
{
    dnnl_primitive_attr_t attr = NULL;
    chain_check(chain, dnnl_primitive_attr_create(&attr), "attributes");
    if (attr)
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    return attr;
}

dnnl_primitive_desc_t chain_try(struct chain *chain, const void *op_desc,
                                const_dnnl_primitive_desc_t forward)
{
    dnnl_primitive_desc_t desc = NULL;
    if (chain->failed)
        return NULL;
    dnnl_engine_t engine = cpu_context(chain->device)->engine;
    dnnl_primitive_attr_t attr = user_scratchpad(chain);
    if (dnnl_primitive_desc_create(&desc, op_desc, attr, engine, forward))
        desc = NULL;
    dnnl_primitive_attr_destroy(attr);
    return desc;
}

void chain_add(struct chain *chain, dnnl_primitive_desc_t desc, const struct chain_arg *args,
               int n_args)
{
    if (chain->failed || !desc) {
        dnnl_primitive_desc_destroy(desc);
        return;
    }
    BUG_ON(chain->n_links == CHAIN_LINKS || n_args >= CHAIN_ARGS);
    struct chain_link *link = &chain->links[chain->n_links++];
    for (int i = 0; i < n_args; i++) {
        link->args[i] = args[i];
        link->descs[i] = *dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, args[i].arg);
    }
    link->n_args = n_args;
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    if (scratch && dnnl_memory_desc_get_size(scratch)) {
        link->scratch_bytes = dnnl_memory_desc_get_size(scratch);
        link->args[link->n_args].arg = DNNL_ARG_SCRATCHPAD;
        link->descs[link->n_args++] = *scratch;
    }
    if (link->scratch_bytes > chain->scratch_bytes)
        chain->scratch_bytes = link->scratch_bytes;
    chain_check(chain, dnnl_primitive_create(&link->primitive, desc), "primitive");
    dnnl_primitive_desc_destroy(desc);
}

void chain_reorder(struct chain *chain, int from, const dnnl_memory_desc_t *from_desc, int to,
                   const dnnl_memory_desc_t *to_desc)
{
    if (chain->failed)
        return;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_engine_t engine = cpu_context(chain->device)->engine;
    dnnl_primitive_attr_t attr = user_scratchpad(chain);
    chain_check(chain,
                dnnl_reorder_primitive_desc_create(&desc, from_desc, engine, to_desc, engine, attr),
                "change of layout");
    dnnl_primitive_attr_destroy(attr);
    const struct chain_arg args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    chain_add(chain, desc, args, 2);
}

int chain_wanted(struct chain *chain, int operand, const dnnl_memory_desc_t *has,
                 const dnnl_memory_desc_t *wants)
{
    if (chain->failed || dnnl_memory_desc_equal(has, wants))
        return operand;
    int temporary = chain_temporary(chain, dnnl_memory_desc_get_size(wants));
    chain_reorder(chain, operand, has, temporary, wants);
    return temporary;
}

int chain_result(struct chain *chain, int operand, const dnnl_memory_desc_t *has,
                 const dnnl_memory_desc_t *wants)
{
    if (chain->failed || dnnl_memory_desc_equal(has, wants))
        return operand;
    return chain_temporary(chain, dnnl_memory_desc_get_size(has));
}

void chain_deliver(struct chain *chain, int made, const dnnl_memory_desc_t *has, int operand,
                   const dnnl_memory_desc_t *wants)
{
    if (made != operand)
        chain_reorder(chain, made, has, operand, wants);
}

int chain_finish(struct chain *chain, struct kernel_setup *setup)
{
    omp_set_num_threads(chain->threads_before);
    if (chain->failed) {
        chain_free(chain);
        return setup->err->code;
    }
    setup->state = chain;
    setup->scratch_bytes = chain->temporary_bytes + chain->scratch_bytes;
    return 0;
}

static void frame_free(const struct chain *chain, struct chain_operands *frame)
{
    if (!frame)
        return;
    for (int i = 0; i < chain->n_links; i++)
        for (int a = 0; a < chain->links[i].n_args; a++)
            dnnl_memory_destroy(frame->args[i][a].memory);
    mem_free(frame);
}

void chain_free(void *state)
{
    struct chain *chain = state;
    if (!chain)
        return;
    frame_free(chain, atomic_load(&chain->idle));
    for (int i = 0; i < chain->n_links; i++)
        dnnl_primitive_destroy(chain->links[i].primitive);
    mem_free(chain);
}

static struct chain_operands *frame_new(const struct chain *chain, struct error *err)
{
    struct chain_operands *frame = mem_alloc(sizeof *frame);
    dnnl_engine_t engine = cpu_context(chain->device)->engine;
    for (int i = 0; i < chain->n_links; i++) {
        const struct chain_link *link = &chain->links[i];
        for (int a = 0; a < link->n_args; a++) {
            dnnl_exec_arg_t *arg = &frame->args[i][a];
            arg->arg = link->args[a].arg;
            if (cpu_dnnl_check(
                    dnnl_memory_create(&arg->memory, &link->descs[a], engine, DNNL_MEMORY_NONE),
                    "memory handle", err)) {
                frame_free(chain, frame);
                return NULL;
            }
        }
    }
    return frame;
}

static void *operand_data(const struct chain *chain, int operand, void *const *data, char *scratch)
{
    return operand < chain->n_in + chain->n_out ? data[operand] : scratch + chain->offsets[operand];
}

static int run_links(const struct chain *chain, struct chain_operands *frame, void *const *data,
                     char *scratch, struct error *err)
{
    dnnl_stream_t stream = cpu_context(chain->device)->stream;
    for (int i = 0; i < chain->n_links; i++) {
        const struct chain_link *link = &chain->links[i];
        for (int a = 0; a < link->n_args; a++) {
            void *address = link->args[a].arg == DNNL_ARG_SCRATCHPAD
                                ? scratch + chain->temporary_bytes
                                : operand_data(chain, link->args[a].operand, data, scratch);
            dnnl_memory_set_data_handle_v2(frame->args[i][a].memory, address, NULL);
        }
        dnnl_status_t status =
            dnnl_primitive_execute(link->primitive, stream, link->n_args, frame->args[i]);
        if (cpu_dnnl_check(status, "primitive", err))
            return err->code;
    }
    return 0;
}

/* `data`: inputs, then outputs. Returns 0 or an error code. */
static int chain_run(struct chain *chain, void *const *data, void *scratch, struct error *err)
{
    struct chain_operands *frame = atomic_exchange(&chain->idle, NULL);
    if (!frame && !(frame = frame_new(chain, err)))
        return err->code;
    cpu_set_team(chain->threads); /* whatever ran on this thread before */
    int code = run_links(chain, frame, data, scratch, err);
    frame_free(chain, atomic_exchange(&chain->idle, frame));
    return code;
}

int chain_run_call(struct chain *chain, struct kernel_call *call, const struct shape *shape)
{
    void *data[CHAIN_OPERANDS];
    struct tensor *out = kernel_alloc_output(call, 0, shape);
    if (!out)
        return call->err->code;
    for (int i = 0; i < call->n_in; i++)
        data[i] = call->in[i]->data;
    data[call->n_in] = out->data;
    return chain_run(chain, data, call->scratch, call->err);
}

int arrivals_prepare(struct arrivals *arrivals, struct kernel_setup *setup,
                     const struct layout *const *wanted)
{
    struct chain *chain = NULL;
    arrivals->n = setup->n_in;
    arrivals->chain = NULL;
    for (int i = 0; i < setup->n_in; i++) {
        const struct layout *has = setup->in_layouts ? setup->in_layouts[i] : NULL;
        arrivals->moved[i] = -1;
        if (cpu_layout_equal(has, wanted[i]))
            continue;
        if (!chain)
            chain = chain_new(setup);
        dnnl_memory_desc_t from = cpu_desc_of(&setup->in_types[i], has);
        dnnl_memory_desc_t to = cpu_desc_of(&setup->in_types[i], wanted[i]);
        arrivals->moved[i] = chain_wanted(chain, i, &from, &to);
    }
    if (!chain)
        return 0;
    void *state = setup->state;
    int code = chain_finish(chain, setup);
    arrivals->chain = code ? NULL : chain;
    setup->state = state;
    return code;
}

int arrivals_run(const struct arrivals *arrivals, struct kernel_call *call, const void **data)
{
    void *operands[CHAIN_OPERANDS] = {NULL};
    for (int i = 0; i < arrivals->n; i++)
        data[i] = operands[i] = call->in[i]->data;
    if (!arrivals->chain)
        return 0;
    for (int i = 0; i < arrivals->n; i++)
        if (arrivals->moved[i] >= 0)
            data[i] = operand_data(arrivals->chain, arrivals->moved[i], operands, call->scratch);
    return chain_run(arrivals->chain, operands, call->scratch, call->err);
}

void arrivals_release(void *state)
{
    const struct arrivals *arrivals = state;
    chain_free(arrivals->chain);
    mem_free(state);
}
