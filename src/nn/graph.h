/* graph.h - what the layers build: tensors in memory, and lists of operations on them.
 *
 * Layers are built by straight code that does not look at results: after the first failure every
 * call here does nothing and hands out `g->none`, and graph_error tells at the end.  Tensors have
 * no memory until graph_allocate; sizes are therefore known before any is taken.
 *
 * Regions: a tensor of REGION_OWN has memory of its own.  All others of a region share it: the
 * gradient that flows backward alternates between A and B, and primitives work in SCRATCH. */
#ifndef MR_GRAPH_H
#define MR_GRAPH_H

#include "thread_team.h"

#include <millrace/api.h>

#include <dnnl.h>

enum region { REGION_OWN, REGION_A, REGION_B, REGION_SCRATCH, N_REGIONS, REGION_FIXED };

struct tensor {
    dnnl_memory_desc_t md;
    dnnl_memory_t mem;
    enum region region;
    size_t offset;     /* in REGION_OWN */
    void *fixed;       /* in REGION_FIXED */
    struct tensor *of; /* a view of this one's memory */
    struct tensor *next;
};

enum op_list { OPS_PREPARE, OPS_FORWARD, OPS_BACKWARD, N_OP_LISTS };

/* What a batch brings; operations of ours read it while they run. */
struct batch_state {
    unsigned n;          /* images; the rest up to the batch size is empty */
    const float *images; /* [n, height, width, channels] */
    const uint32_t *labels;
    uint64_t seed, step;
    int training;
    double loss;
    unsigned n_correct;
};

struct graph;
typedef void own_fn(struct graph *g, void *ctx);

struct op {
    char name[40], code[48];
    double flop;
    dnnl_primitive_t primitive; /* or NULL and `run` */
    int n_args;
    dnnl_exec_arg_t args[6];
    own_fn *run;
    void *ctx;
};

struct graph {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t plain, with_relu; /* attributes of primitives */
    struct mr_team *team;
    unsigned batch;
    struct batch_state now;
    struct tensor none;
    struct op *ops[N_OP_LISTS];
    unsigned n_ops[N_OP_LISTS], cap_ops[N_OP_LISTS];
    struct tensor *tensors;
    struct owned *owned; /* contexts of own operations */
    struct kept_pd *pds; /* primitive descriptors, kept until the end */
    size_t bytes[N_REGIONS];
    char *arena;
    struct mr_error error;
};

int graph_init(struct graph *g, unsigned batch, struct mr_team *team, struct mr_error *err);
void graph_fini(struct graph *g);
int graph_error(const struct graph *g);
/* Remember the first failure; returns nonzero when there is one, this or an earlier. */
int graph_check(struct graph *g, dnnl_status_t status, const char *what);

/* Descriptions of f32 memory: `n` dimensions in the layout `tag`. */
dnnl_memory_desc_t graph_md(struct graph *g, int n, const dnnl_dim_t *dims, dnnl_format_tag_t tag);
/* The layout that a primitive has chosen for one of its arguments. */
dnnl_memory_desc_t graph_query(dnnl_primitive_desc_t pd, dnnl_query_t what);

struct tensor *graph_tensor(struct graph *g, const dnnl_memory_desc_t *md, enum region region);
/* A tensor over memory that somebody else owns. */
struct tensor *graph_fixed(struct graph *g, const dnnl_memory_desc_t *md, void *data);
/* Another description of the same memory. */
struct tensor *graph_view(struct graph *g, const dnnl_memory_desc_t *md, struct tensor *of);
void *tensor_data(const struct tensor *t); /* after graph_allocate */
/* The other of the two regions of gradients. */
enum region region_across(const struct tensor *t);

/* Memory that lives as long as the graph. */
void *graph_own(struct graph *g, size_t bytes);

/* A primitive descriptor that the graph keeps; NULL when there is none or only the reference
 * implementation, which is many times slower.  graph_pd takes that as a failure. */
dnnl_primitive_desc_t graph_try_pd(struct graph *g, const void *desc, dnnl_primitive_attr_t attr,
                                   dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t graph_pd(struct graph *g, const char *name, const void *desc,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t hint);

/* Append an operation.  `n` pairs of (int argument, struct tensor *) follow. */
void graph_primitive(struct graph *g, enum op_list list, const char *name, const char *what,
                     dnnl_primitive_desc_t pd, double flop, int n, ...);
void graph_run_own(struct graph *g, enum op_list list, const char *name, const char *what,
                   own_fn *run, void *ctx);
/* `t` itself when it has the layout `md`; else a new tensor in `region` and a reordering. */
struct tensor *graph_adapt(struct graph *g, enum op_list list, const char *name, struct tensor *t,
                           const dnnl_memory_desc_t *md, enum region region);
void graph_reorder(struct graph *g, enum op_list list, const char *name, struct tensor *from,
                   struct tensor *to);

/* Bytes that graph_allocate will take. */
size_t graph_bytes(const struct graph *g);
int graph_allocate(struct graph *g);
int graph_run(struct graph *g, const struct op *op);
int graph_run_list(struct graph *g, enum op_list list);

#endif
