/* tf_meta.c - read a MetaGraphDef and check that its references hold.
 *
 *   MetaGraphDef {2 graph_def {1 node {1 name  2 op  3 input  5 attr}  4 versions {1 producer}}
 *                 3 saver_def {1 filename_tensor  2 save_tensor  3 restore_op  7 version}
 *                 4 collection_def}
 *
 * Two passes over the nodes: the first gathers their names, the second looks inputs up.  An input
 * is "node", "node:2" or "^node" (runs after it).  Names are borrowed from the message. */
#include "tf_meta.h"

#include "errtext.h"
#include "grow.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *name;
    struct mr_wire *names; /* of nodes, sorted after the first pass */
    size_t n_names, cap;
    const struct mr_tensor_table *saved;
    struct mr_tf_meta m;
    struct mr_error *err;
};

static int bad(const struct parser *p, const char *what)
{
    return mr_fail(p->err, -EBADMSG, "%s: %s", p->name, what);
}

static int by_text(const void *a, const void *b)
{
    const struct mr_wire *x = a, *y = b;
    size_t m = mr_wire_left(x), n = mr_wire_left(y), least = m < n ? m : n;
    int c = least ? memcmp(x->at, y->at, least) : 0;
    return c ? c : (m > n) - (m < n);
}

static int equals(const struct mr_wire *w, const char *text)
{
    return mr_wire_left(w) == strlen(text) && !memcmp(w->at, text, strlen(text));
}

/* The first field `number` of a message, as bytes; empty when it is absent. */
static int find_bytes(struct mr_wire w, uint32_t number, struct mr_wire *out)
{
    struct mr_wire_field f;
    int r;
    *out = mr_wire_over(NULL, 0);
    while ((r = mr_wire_next(&w, &f)) > 0)
        if (f.number == number && f.type == MR_WIRE_BYTES) {
            *out = f.body;
            return 0;
        }
    return r;
}

static int add_name(struct parser *p, struct mr_wire node)
{
    struct mr_wire name, op;
    if (find_bytes(node, 1, &name) || find_bytes(node, 2, &op) || !mr_wire_left(&name) ||
        !mr_wire_left(&op))
        return bad(p, "a node without name or op");
    struct mr_wire *grown = mr_grown(p->names, p->n_names, &p->cap, sizeof *grown);
    if (!grown)
        return mr_fail(p->err, -ENOMEM, "%s: no memory", p->name);
    p->names = grown;
    p->names[p->n_names++] = name;
    p->m.n_variables +=
        equals(&op, "VariableV2") || equals(&op, "VarHandleOp") || equals(&op, "Variable");
    return 0;
}

/* Does "node", "node:2" or "^node" name a node? */
static int is_node(const struct parser *p, struct mr_wire ref)
{
    if (mr_wire_left(&ref) && *ref.at == '^')
        ref.at++;
    const uint8_t *colon = mr_wire_left(&ref) ? memchr(ref.at, ':', mr_wire_left(&ref)) : NULL;
    if (colon)
        ref.end = colon;
    return p->n_names && bsearch(&ref, p->names, p->n_names, sizeof ref, by_text);
}

/* A tensor's name that the graph restores has to be saved. */
static int check_saved(struct parser *p, struct mr_wire text)
{
    p->m.n_restored++;
    if (!p->saved)
        return 0;
    char name[MR_TENSOR_MAX_NAME + 1];
    size_t len = mr_wire_left(&text);
    if (!len || len > MR_TENSOR_MAX_NAME)
        return bad(p, "a restored tensor without a name");
    memcpy(name, text.at, len);
    name[len] = 0;
    if (!mr_tensor_table_find(p->saved, name))
        return mr_fail(p->err, -EBADMSG, "%s: restores '%.200s', which is not saved", p->name,
                       name);
    return 0;
}

/* The strings of a Const: attr "value" {8 tensor {8 string_val}}. */
static int check_names(struct parser *p, struct mr_wire node)
{
    struct mr_wire_field f, s;
    int r;
    while ((r = mr_wire_next(&node, &f)) > 0) {
        struct mr_wire key, value, tensor;
        if (f.number != 5 || f.type != MR_WIRE_BYTES)
            continue;
        if (find_bytes(f.body, 1, &key) || find_bytes(f.body, 2, &value) ||
            (equals(&key, "value") && find_bytes(value, 8, &tensor)))
            return bad(p, "a bad attribute");
        if (!equals(&key, "value"))
            continue;
        int q;
        while ((q = mr_wire_next(&tensor, &s)) > 0)
            if (s.number == 8 && s.type == MR_WIRE_BYTES && (q = check_saved(p, s.body)))
                return q;
        if (q)
            return bad(p, "a bad tensor");
    }
    return r ? bad(p, "a bad node") : 0;
}

static int ends_with(const struct mr_wire *w, const char *end)
{
    size_t n = strlen(end);
    return mr_wire_left(w) >= n && !memcmp(w->end - n, end, n);
}

static int check_node(struct parser *p, struct mr_wire node)
{
    struct mr_wire w = node, name;
    struct mr_wire_field f;
    int r;
    while ((r = mr_wire_next(&w, &f)) > 0)
        if (f.number == 3 && f.type == MR_WIRE_BYTES && !is_node(p, f.body))
            return mr_fail(p->err, -EBADMSG, "%s: a node's input '%.*s' is no node", p->name,
                           (int)(mr_wire_left(&f.body) < 200 ? mr_wire_left(&f.body) : 200),
                           (const char *)f.body.at);
    if (r || find_bytes(node, 1, &name))
        return bad(p, "a bad node");
    return ends_with(&name, "save/RestoreV2/tensor_names") ? check_names(p, node) : 0;
}

static int each_node(struct parser *p, struct mr_wire graph,
                     int (*each)(struct parser *p, struct mr_wire node))
{
    struct mr_wire_field f;
    int r;
    while ((r = mr_wire_next(&graph, &f)) > 0)
        if (f.number == 1 && f.type == MR_WIRE_BYTES) {
            int e = each(p, f.body);
            if (e)
                return e;
        }
    return r ? bad(p, "a bad graph") : 0;
}

static int parse_graph(struct parser *p, struct mr_wire graph)
{
    struct mr_wire versions;
    struct mr_wire_field f;
    int r = each_node(p, graph, add_name);
    if (r)
        return r;
    if (p->n_names)
        qsort(p->names, p->n_names, sizeof *p->names, by_text);
    for (size_t i = 1; i < p->n_names; i++)
        if (!by_text(&p->names[i - 1], &p->names[i]))
            return bad(p, "two nodes of one name");
    p->m.n_nodes = p->n_names;
    r = each_node(p, graph, check_node);
    if (r)
        return r;
    if (find_bytes(graph, 4, &versions))
        return bad(p, "a bad graph");
    while ((r = mr_wire_next(&versions, &f)) > 0)
        if (f.number == 1 && f.type == MR_WIRE_VARINT)
            p->m.producer = f.value > INT32_MAX ? 0 : (unsigned)f.value;
    return r ? bad(p, "bad versions") : 0;
}

static int parse_saver(struct parser *p, struct mr_wire saver)
{
    struct mr_wire file, save, restore;
    struct mr_wire_field f;
    int r;
    if (find_bytes(saver, 1, &file) || find_bytes(saver, 2, &save) ||
        find_bytes(saver, 3, &restore))
        return bad(p, "a bad saver");
    if (!is_node(p, file) || !is_node(p, save) || !is_node(p, restore))
        return bad(p, "the saver names nodes that are not there");
    while ((r = mr_wire_next(&saver, &f)) > 0)
        if (f.number == 7 && f.type == MR_WIRE_VARINT)
            p->m.saver_version = f.value > 99 ? 99 : (unsigned)f.value;
    p->m.has_saver = 1;
    return r ? bad(p, "a bad saver") : 0;
}

int mr_tf_meta_parse(const char *name, const uint8_t *bytes, size_t len,
                     const struct mr_tensor_table *saved, struct mr_tf_meta *out,
                     struct mr_error *err)
{
    struct parser p = {.name = name, .saved = saved, .err = err};
    struct mr_wire w = mr_wire_over(bytes, len), graph, saver;
    struct mr_wire_field f;
    int r = find_bytes(w, 2, &graph) || find_bytes(w, 3, &saver) ? bad(&p, "not a graph") : 0;
    if (!r)
        r = graph.at ? parse_graph(&p, graph) : bad(&p, "there is no graph in it");
    if (!r && saver.at)
        r = parse_saver(&p, saver);
    int q = 0;
    while (!r && (q = mr_wire_next(&w, &f)) > 0)
        p.m.n_collections += f.number == 4;
    if (!r && q)
        r = bad(&p, "not a graph");
    free(p.names);
    if (!r)
        *out = p.m;
    return r;
}
