/* graph.c - tensors, memory and operations of a network on oneDNN's C API; see graph.h.
 *
 * Every primitive is made once.  Work space is ours (scratchpad_mode_user): one block, as large as
 * the greediest primitive wants, instead of the library's block per thread that nobody counts. */
#include "graph.h"

#include "big_memory.h"
#include "errtext.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN_BYTES 4096 /* of tensors; keeps the start of one out of the pages of another */

struct owned {
    struct owned *next;
    max_align_t data[];
};

struct kept_pd {
    struct kept_pd *next;
    dnnl_primitive_desc_t pd;
};

static const char *status_text(dnnl_status_t s)
{
    switch (s) {
    case dnnl_out_of_memory:
        return "out of memory";
    case dnnl_invalid_arguments:
        return "invalid arguments";
    case dnnl_unimplemented:
        return "not implemented for this shape, layout or processor";
    default:
        return "failed";
    }
}

int graph_check(struct graph *g, dnnl_status_t status, const char *what)
{
    if (status != dnnl_success) {
        int code = status == dnnl_out_of_memory ? -ENOMEM : -ENOTSUP;
        mr_fail(&g->error, code, "oneDNN, %s: %s", what, status_text(status));
    }
    return g->error.code;
}

int graph_error(const struct graph *g)
{
    return g->error.code;
}

static int no_memory(struct graph *g)
{
    return mr_fail(&g->error, -ENOMEM, "no memory to build the network");
}

static dnnl_primitive_attr_t make_attr(struct graph *g, int relu)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    if (graph_check(g, dnnl_primitive_attr_create(&attr), "attributes"))
        return NULL;
    graph_check(g, dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
                "work space");
    if (relu && !graph_check(g, dnnl_post_ops_create(&post), "attributes")) {
        graph_check(g, dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0), "ReLU");
        graph_check(g, dnnl_primitive_attr_set_post_ops(attr, post), "ReLU");
        dnnl_post_ops_destroy(post);
    }
    return attr;
}

int graph_init(struct graph *g, unsigned batch, struct mr_team *team, struct mr_error *err)
{
    *g = (struct graph){.batch = batch, .team = team};
    if (!graph_check(g, dnnl_engine_create(&g->engine, dnnl_cpu, 0), "engine"))
        graph_check(g, dnnl_stream_create(&g->stream, g->engine, dnnl_stream_default_flags),
                    "stream");
    if (!graph_error(g)) {
        g->plain = make_attr(g, 0);
        g->with_relu = make_attr(g, 1);
    }
    return graph_error(g) ? mr_fail(err, g->error.code, "%s", g->error.text) : 0;
}

static void forget_ops(struct graph *g)
{
    for (int list = 0; list < N_OP_LISTS; list++) {
        for (unsigned i = 0; i < g->n_ops[list]; i++)
            if (g->ops[list][i].primitive)
                dnnl_primitive_destroy(g->ops[list][i].primitive);
        free(g->ops[list]);
    }
}

void graph_fini(struct graph *g)
{
    forget_ops(g);
    for (struct tensor *t = g->tensors, *next; t; t = next) {
        next = t->next;
        if (t->mem)
            dnnl_memory_destroy(t->mem);
        free(t);
    }
    for (struct kept_pd *k = g->pds, *next; k; k = next) {
        next = k->next;
        dnnl_primitive_desc_destroy(k->pd);
        free(k);
    }
    for (struct owned *o = g->owned, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    if (g->plain)
        dnnl_primitive_attr_destroy(g->plain);
    if (g->with_relu)
        dnnl_primitive_attr_destroy(g->with_relu);
    if (g->stream)
        dnnl_stream_destroy(g->stream);
    if (g->engine)
        dnnl_engine_destroy(g->engine);
    mr_big_free(g->arena);
    *g = (struct graph){0};
}

/* ---- tensors ---- */

dnnl_memory_desc_t graph_md(struct graph *g, int n, const dnnl_dim_t *dims, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md = {0};
    dnnl_dims_t all = {0};
    memcpy(all, dims, (size_t)n * sizeof *dims);
    graph_check(g, dnnl_memory_desc_init_by_tag(&md, n, all, dnnl_f32, tag), "layout");
    return md;
}

dnnl_memory_desc_t graph_query(dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    const dnnl_memory_desc_t *md = pd ? dnnl_primitive_desc_query_md(pd, what, 0) : NULL;
    return md ? *md : (dnnl_memory_desc_t){0};
}

static struct tensor *add_tensor(struct graph *g, const dnnl_memory_desc_t *md, struct tensor like)
{
    struct tensor *t = graph_error(g) ? NULL : calloc(1, sizeof *t);
    if (!t) {
        no_memory(g);
        return &g->none;
    }
    *t = like;
    t->md = *md;
    t->next = g->tensors;
    g->tensors = t;
    graph_check(g, dnnl_memory_create(&t->mem, md, g->engine, DNNL_MEMORY_NONE), "memory");
    return t;
}

struct tensor *graph_tensor(struct graph *g, const dnnl_memory_desc_t *md, enum region region)
{
    struct tensor *t = add_tensor(g, md, (struct tensor){.region = region});
    size_t bytes = dnnl_memory_desc_get_size(md);
    bytes = (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    if (region == REGION_OWN) {
        t->offset = g->bytes[REGION_OWN];
        g->bytes[REGION_OWN] += bytes;
    } else if (bytes > g->bytes[region]) {
        g->bytes[region] = bytes;
    }
    return t;
}

struct tensor *graph_fixed(struct graph *g, const dnnl_memory_desc_t *md, void *data)
{
    return add_tensor(g, md, (struct tensor){.region = REGION_FIXED, .fixed = data});
}

struct tensor *graph_view(struct graph *g, const dnnl_memory_desc_t *md, struct tensor *of)
{
    return add_tensor(g, md, (struct tensor){.region = of->region, .of = of});
}

enum region region_across(const struct tensor *t)
{
    return t->region == REGION_A ? REGION_B : REGION_A;
}

void *tensor_data(const struct tensor *t)
{
    void *data = NULL;
    dnnl_memory_get_data_handle(t->mem, &data);
    return data;
}

void *graph_own(struct graph *g, size_t bytes)
{
    struct owned *o = graph_error(g) ? NULL : calloc(1, sizeof *o + bytes);
    if (!o) {
        no_memory(g);
        return NULL;
    }
    o->next = g->owned;
    g->owned = o;
    return o->data;
}

/* ---- operations ---- */

static const char *code_name(dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return name ? name : "unknown";
}

static dnnl_status_t make_pd(struct graph *g, const void *desc, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out)
{
    struct kept_pd *k = calloc(1, sizeof *k);
    *out = NULL;
    if (!k) {
        no_memory(g);
        return dnnl_out_of_memory;
    }
    dnnl_status_t s = dnnl_primitive_desc_create(&k->pd, desc, attr, g->engine, hint);
    if (s != dnnl_success) {
        free(k);
        return s;
    }
    k->next = g->pds;
    g->pds = k;
    *out = k->pd;
    return s;
}

dnnl_primitive_desc_t graph_try_pd(struct graph *g, const void *desc, dnnl_primitive_attr_t attr,
                                   dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd;
    if (graph_error(g) || make_pd(g, desc, attr, hint, &pd) != dnnl_success)
        return NULL;
    return strstr(code_name(pd), "ref") ? NULL : pd;
}

dnnl_primitive_desc_t graph_pd(struct graph *g, const char *name, const void *desc,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;
    if (graph_error(g) || graph_check(g, make_pd(g, desc, attr, hint, &pd), name))
        return NULL;
    if (strstr(code_name(pd), "ref")) {
        mr_fail(&g->error, -ENOTSUP,
                "layer %s: oneDNN has only its slow reference code (%s) for this shape", name,
                code_name(pd));
        return NULL;
    }
    return pd;
}

static struct op *add_op(struct graph *g, enum op_list list, const char *name, const char *what)
{
    if (graph_error(g))
        return NULL;
    if (g->n_ops[list] == g->cap_ops[list]) {
        unsigned cap = g->cap_ops[list] ? 2 * g->cap_ops[list] : 32;
        struct op *bigger = realloc(g->ops[list], cap * sizeof *bigger);
        if (!bigger) {
            no_memory(g);
            return NULL;
        }
        g->ops[list] = bigger;
        g->cap_ops[list] = cap;
    }
    struct op *op = &g->ops[list][g->n_ops[list]++];
    *op = (struct op){0};
    snprintf(op->name, sizeof op->name, "%s %s", name, what);
    return op;
}

static void add_arg(struct op *op, int arg, struct tensor *t)
{
    op->args[op->n_args++] = (dnnl_exec_arg_t){arg, t->mem};
}

static void finish_primitive(struct graph *g, struct op *op, dnnl_primitive_desc_t pd)
{
    dnnl_memory_desc_t scratch = graph_query(pd, dnnl_query_scratchpad_md);
    if (dnnl_memory_desc_get_size(&scratch))
        add_arg(op, DNNL_ARG_SCRATCHPAD, graph_tensor(g, &scratch, REGION_SCRATCH));
    snprintf(op->code, sizeof op->code, "%s", code_name(pd));
    graph_check(g, dnnl_primitive_create(&op->primitive, pd), op->name);
}

void graph_primitive(struct graph *g, enum op_list list, const char *name, const char *what,
                     dnnl_primitive_desc_t pd, double flop, int n, ...)
{
    struct op *op = pd ? add_op(g, list, name, what) : NULL;
    va_list args;
    if (!op)
        return;
    op->flop = flop;
    va_start(args, n);
    for (int i = 0; i < n; i++) {
        int arg = va_arg(args, int);
        struct tensor *t = va_arg(args, struct tensor *);
        add_arg(op, arg, t);
    }
    va_end(args);
    finish_primitive(g, op, pd);
}

void graph_run_own(struct graph *g, enum op_list list, const char *name, const char *what,
                   own_fn *run, void *ctx)
{
    struct op *op = add_op(g, list, name, what);
    if (!op)
        return;
    op->run = run;
    op->ctx = ctx;
    snprintf(op->code, sizeof op->code, "own");
}

void graph_reorder(struct graph *g, enum op_list list, const char *name, struct tensor *from,
                   struct tensor *to)
{
    dnnl_primitive_desc_t pd = NULL;
    struct op *op = add_op(g, list, name, "reorder");
    if (!op || graph_check(g,
                           dnnl_reorder_primitive_desc_create(&pd, &from->md, g->engine, &to->md,
                                                              g->engine, g->plain),
                           name))
        return;
    add_arg(op, DNNL_ARG_FROM, from);
    add_arg(op, DNNL_ARG_TO, to);
    finish_primitive(g, op, pd);
    dnnl_primitive_desc_destroy(pd);
}

struct tensor *graph_adapt(struct graph *g, enum op_list list, const char *name, struct tensor *t,
                           const dnnl_memory_desc_t *md, enum region region)
{
    if (graph_error(g) || dnnl_memory_desc_equal(&t->md, md))
        return t;
    struct tensor *out = graph_tensor(g, md, region);
    graph_reorder(g, list, name, t, out);
    return out;
}

/* ---- memory and execution ---- */

size_t graph_bytes(const struct graph *g)
{
    size_t sum = 0;
    for (int r = 0; r < N_REGIONS; r++)
        sum += g->bytes[r];
    return sum;
}

int graph_allocate(struct graph *g)
{
    size_t start[N_REGIONS], at = 0;
    for (int r = 0; r < N_REGIONS; r++) {
        start[r] = at;
        at += g->bytes[r];
    }
    g->arena = mr_big_alloc(at);
    if (!g->arena)
        return mr_fail(&g->error, -ENOMEM, "no memory: activations need %zu bytes", at);
    mr_big_touch(g->arena, at, g->team);
    for (struct tensor *t = g->tensors; t; t = t->next) {
        const struct tensor *base = t;
        while (base->of)
            base = base->of;
        void *data = base->region == REGION_FIXED
                         ? base->fixed
                         : (void *)(g->arena + start[base->region] + base->offset);
        graph_check(g, dnnl_memory_set_data_handle(t->mem, data), "memory");
    }
    return graph_error(g);
}

int graph_run(struct graph *g, const struct op *op)
{
    if (op->run) {
        op->run(g, op->ctx);
        return 0;
    }
    dnnl_status_t s = dnnl_primitive_execute(op->primitive, g->stream, op->n_args, op->args);
    return s == dnnl_success ? 0 : s == dnnl_out_of_memory ? -ENOMEM : -EIO;
}

int graph_run_list(struct graph *g, enum op_list list)
{
    int r = 0;
    for (unsigned i = 0; !r && i < g->n_ops[list]; i++)
        r = graph_run(g, &g->ops[list][i]);
    if (dnnl_stream_wait(g->stream) != dnnl_success && !r)
        r = -EIO;
    return r;
}
