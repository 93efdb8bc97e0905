/* ckpt_samples.c - see ckpt_samples.h. */
#include "ckpt_samples.h"

#include "crc32c.h"
#include "safetensors.h"
#include "tf_bundle.h"
#include "tf_meta.h"
#include "train_state.h"
#include "unit.h"
#include "wire.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float weights[6] = {1, -2, 3.5f, 0, 1e-9f, 6}, moments[2][6] = {{1, 2, 3}, {4, 5, 6}};
static uint8_t image[257];
static int64_t step = 40, position[2] = {2, 17};
static uint8_t flags[3] = {1, 0, 1};
static uint8_t text[64];

uint32_t sample_strings(struct mr_bytes *out)
{
    static const char *const s[3] = {"one", "", "three and more"};
    uint32_t crc = 0;
    for (int i = 0; i < 3; i++) {
        uint8_t len[4] = {(uint8_t)strlen(s[i])};
        mr_wire_put_varint(out, strlen(s[i]));
        crc = mr_crc32c(crc, len, 4);
    }
    size_t from = out->len;
    mr_bytes_add_u32(out, mr_crc32c_mask(crc));
    for (int i = 0; i < 3; i++)
        mr_bytes_add_text(out, s[i]);
    return mr_crc32c(crc, out->data + from, out->len - from);
}

static void add(struct mr_tensor_table *t, const char *name, int dtype, unsigned n_dims,
                const uint64_t *dims, void *data, uint64_t bytes)
{
    struct mr_tensor x = {.name = name,
                          .dtype = dtype,
                          .n_dims = n_dims,
                          .data = data,
                          .bytes = bytes,
                          .has_crc = 1,
                          .crc = mr_crc32c(0, data, bytes)};
    for (unsigned d = 0; d < n_dims; d++)
        x.dims[d] = dims[d];
    assert_int_equal(mr_tensor_table_add(t, &x), 0);
}

void sample_table(struct mr_tensor_table *t)
{
    struct mr_bytes strings;
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(i * 7);
    mr_bytes_init(&strings);
    uint32_t crc = sample_strings(&strings);
    assert_true(strings.len <= sizeof text);
    memcpy(text, strings.data, strings.len);
    mr_tensor_table_init(t);
    add(t, "conv1/weights", MR_DT_F32, 2, (uint64_t[]){2, 3}, weights, sizeof weights);
    add(t, "conv1/weights/Adam", MR_DT_F32, 2, (uint64_t[]){2, 3}, moments[0], sizeof moments[0]);
    add(t, "conv1/weights/Adam_1", MR_DT_F32, 2, (uint64_t[]){2, 3}, moments[1], sizeof moments[1]);
    add(t, "global_step", MR_DT_I64, 0, NULL, &step, sizeof step);
    add(t, "image \"quoted\" \xc3\xa4", MR_DT_U8, 1, (uint64_t[]){257}, image, sizeof image);
    add(t, "nothing", MR_DT_F64, 3, (uint64_t[]){4, 0, 5}, image, 0);
    add(t, "flags", MR_DT_BOOL, 1, (uint64_t[]){3}, flags, sizeof flags);
    add(t, "quantized", MR_DT_QINT16, 2, (uint64_t[]){1, 3}, image, 6);
    add(t, MR_STATE_POSITION, MR_DT_I64, 1, (uint64_t[]){2}, position, sizeof position);
    add(t, "words", MR_DT_STRING, 1, (uint64_t[]){3}, text, strings.len);
    t->tensors[t->n - 1].crc = crc;
    mr_bytes_fini(&strings);
}

static void lay_out(const struct mr_tensor_table *t, uint64_t bytes, uint8_t **out)
{
    *out = calloc(1, bytes ? bytes : 1);
    assert_non_null(*out);
    for (size_t i = 0; i < t->n; i++)
        if (t->tensors[i].bytes)
            memcpy(*out + t->tensors[i].offset, t->tensors[i].data, t->tensors[i].bytes);
}

/* The data file and the index of a bundle. */
static void write_bundle(struct tempdir *dir, const char *name, struct mr_bundle *b, unsigned align)
{
    struct mr_bytes index;
    char file[256];
    uint64_t bytes;
    uint8_t *data;
    mr_bytes_init(&index);
    assert_int_equal(mr_bundle_layout(&b->tensors, align, &bytes), 0);
    assert_int_equal(mr_bundle_write_index(b, &index, NULL), 0);
    lay_out(&b->tensors, bytes, &data);
    snprintf(file, sizeof file, "%s.data-00000-of-00001", name);
    tempdir_write(dir, file, data, bytes);
    snprintf(file, sizeof file, "%s.index", name);
    tempdir_write(dir, file, index.data, index.len);
    free(data);
    mr_bytes_fini(&index);
}

void sample_write_tf(struct tempdir *dir, const char *name, unsigned align)
{
    static int64_t note[2];
    struct mr_bundle b;
    struct mr_bytes meta;
    char file[256];
    mr_bundle_init(&b);
    mr_bytes_init(&meta);
    sample_table(&b.tensors);
    assert_int_equal(mr_tf_meta_write(&b.tensors, &meta), 0);
    note[0] = (int64_t)meta.len;
    note[1] = mr_crc32c(0, meta.data, meta.len);
    add(&b.tensors, MR_STATE_META, MR_DT_I64, 1, (uint64_t[]){2}, note, sizeof note);
    write_bundle(dir, name, &b, align);
    snprintf(file, sizeof file, "%s.meta", name);
    tempdir_write(dir, file, meta.data, meta.len);
    mr_bytes_fini(&meta);
    mr_bundle_fini(&b);
}

/* Node of a TrackableObjectGraph: a child by name, or (child NULL) a variable under `key`. */
static void put_node(struct mr_bytes *graph, unsigned child_id, const char *child, const char *key)
{
    size_t node = mr_wire_begin(graph, 1), inner = mr_wire_begin(graph, child ? 1 : 2);
    if (child) {
        mr_wire_put_int(graph, 1, child_id);
        mr_wire_put_text(graph, 2, child);
    } else {
        mr_wire_put_text(graph, 1, "VARIABLE_VALUE");
        mr_wire_put_text(graph, 2, "kernel");
        mr_wire_put_text(graph, 3, key);
    }
    mr_wire_end(graph, inner);
    mr_wire_end(graph, node);
}

/* One string as an entry's data; its crc. */
static uint32_t put_string(struct mr_bytes *out, const struct mr_bytes *s)
{
    uint32_t len = htole32((uint32_t)s->len), crc = mr_crc32c(0, &len, sizeof len);
    mr_wire_put_varint(out, s->len);
    size_t from = out->len;
    mr_bytes_add_u32(out, mr_crc32c_mask(crc));
    mr_bytes_add(out, s->data, s->len);
    return mr_crc32c(crc, out->data + from, out->len - from);
}

void sample_write_tf2(struct tempdir *dir, const char *name)
{
    struct mr_bundle b;
    struct mr_bytes graph, string;
    char state[512];
    mr_bundle_init(&b);
    mr_bytes_init(&graph);
    mr_bytes_init(&string);
    put_node(&graph, 1, "model", NULL);
    put_node(&graph, 2, "conv1", NULL);
    put_node(&graph, 3, "kernel", NULL);
    put_node(&graph, 0, NULL, SAMPLE_TF2_KERNEL);
    uint32_t crc = put_string(&string, &graph);
    assert_int_equal(string.error, 0);
    add(&b.tensors, SAMPLE_TF2_GRAPH, MR_DT_STRING, 0, NULL, string.data, string.len);
    b.tensors.tensors[0].crc = crc;
    add(&b.tensors, SAMPLE_TF2_KERNEL, MR_DT_F32, 2, (uint64_t[]){2, 3}, weights, sizeof weights);
    add(&b.tensors, SAMPLE_TF2_COUNT, MR_DT_I64, 0, NULL, &step, sizeof step);
    write_bundle(dir, name, &b, 1);
    snprintf(state, sizeof state,
             "model_checkpoint_path: \"%s\"\nall_model_checkpoint_paths: \"%s\"\n"
             "all_model_checkpoint_timestamps: 1594089263.83\n"
             "last_preserved_timestamp: 1594089262.5\n",
             name, name);
    tempdir_text(dir, "checkpoint", state);
    mr_bytes_fini(&graph);
    mr_bytes_fini(&string);
    mr_bundle_fini(&b);
}

void sample_write_safetensors(struct tempdir *dir, const char *name)
{
    struct mr_tensor_table t;
    struct mr_bytes header;
    char file[256];
    uint64_t header_bytes, bytes;
    uint8_t *data;
    sample_table(&t);
    mr_bytes_init(&header);
    assert_int_equal(mr_safetensors_layout(&t, &header_bytes, &bytes, NULL), 0);
    assert_int_equal(mr_safetensors_write_header(&t, &header, NULL), 0);
    assert_int_equal(header.len, header_bytes);
    lay_out(&t, bytes, &data);
    memcpy(data, header.data, header.len);
    snprintf(file, sizeof file, "%s.safetensors", name);
    tempdir_write(dir, file, data, bytes);
    free(data);
    mr_bytes_fini(&header);
    mr_tensor_table_fini(&t);
}

void sample_check(struct mr_ckpt_file *c)
{
    struct mr_tensor_table expected;
    const struct mr_tensor_table *have = mr_ckpt_file_tensors(c);
    uint8_t bytes[512];
    sample_table(&expected);
    for (size_t i = 0; i < expected.n; i++) {
        const struct mr_tensor *e = &expected.tensors[i];
        const struct mr_tensor *h = mr_tensor_table_find(have, e->name);
        assert_non_null(h);
        assert_int_equal(h->dtype, e->dtype);
        assert_int_equal(h->n_dims, e->n_dims);
        assert_memory_equal(h->dims, e->dims, e->n_dims * sizeof *e->dims);
        assert_int_equal(h->bytes, e->bytes);
        assert_int_equal(mr_ckpt_file_read(c, (size_t)(h - have->tensors), bytes, NULL), 0);
        assert_memory_equal(bytes, e->data, e->bytes);
    }
    mr_tensor_table_fini(&expected);
}

uint8_t *sample_load(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *len = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*len + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *len, f), *len);
    fclose(f);
    return bytes;
}

/* The bytes of one part, appended to its data file. */
static void add_part(struct mr_bundle_part *p, const uint64_t dims[3], struct mr_bytes *data)
{
    size_t from = data->len;
    for (uint64_t x = p->start[0]; x < p->start[0] + p->length[0]; x++)
        for (uint64_t y = p->start[1]; y < p->start[1] + p->length[1]; y++)
            for (uint64_t z = p->start[2]; z < p->start[2] + p->length[2]; z++) {
                uint16_t v = htole16((uint16_t)(((x * dims[1] + y) * dims[2] + z) * 7 + 1));
                mr_bytes_add(data, &v, sizeof v);
            }
    p->offset = from;
    p->bytes = data->len - from;
    p->crc = mr_crc32c(0, data->data + from, p->bytes);
}

void sample_write_parts(struct tempdir *dir, const char *name)
{
    static const uint64_t dims[3] = SAMPLE_PARTS_DIMS;
    static const uint64_t cut[2] = {5, 4}; /* of dimensions 0 and 2 */
    struct mr_bundle_part parts[4];
    struct mr_bytes data[3] = {{0}}, index;
    struct mr_bundle b;
    char file[256];
    mr_bundle_init(&b);
    mr_bytes_init(&index);
    b.n_shards = 3;
    struct mr_tensor t = {.name = "p",
                          .dtype = MR_DT_U16,
                          .n_dims = 3,
                          .bytes = 2 * dims[0] * dims[1] * dims[2],
                          .has_crc = 1};
    memcpy(t.dims, dims, sizeof dims);
    assert_int_equal(mr_tensor_table_add(&b.tensors, &t), 0);
    for (unsigned i = 0; i < 4; i++) {
        unsigned x = i / 2, z = i % 2, shard = i % 3;
        parts[i] = (struct mr_bundle_part){
            .start = {x ? cut[0] : 0, 0, z ? cut[1] : 0},
            .length = {x ? dims[0] - cut[0] : cut[0], dims[1], z ? dims[2] - cut[1] : cut[1]},
            .full = 2,
            .shard = shard};
        add_part(&parts[i], dims, &data[shard]);
    }
    b.parts = parts;
    b.n_parts = 4;
    assert_int_equal(mr_bundle_write_index(&b, &index, NULL), 0);
    snprintf(file, sizeof file, "%s.index", name);
    tempdir_write(dir, file, index.data, index.len);
    for (unsigned s = 0; s < 3; s++) {
        snprintf(file, sizeof file, "%s.data-%05u-of-00003", name, s);
        tempdir_write(dir, file, data[s].data, data[s].len);
        mr_bytes_fini(&data[s]);
    }
    b.parts = NULL;
    b.n_parts = 0;
    mr_bundle_fini(&b);
    mr_bytes_fini(&index);
}
