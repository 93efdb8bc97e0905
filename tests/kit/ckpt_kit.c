/* ckpt_kit.c - see ckpt_kit.h.  Never fails quietly: out of memory ends the program. */
#include "ckpt_kit.h"

#include "draw.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int dtype;
    unsigned n_dims;
    uint64_t dims[3];
    uint64_t bytes; /* 0 with n_dims 1: the large one, unless dims are 0 */
} plan[KIT_N_ARRAYS] = {
    {"global_step", MR_DT_I64, 0, {0}, 8}, {"net/conv1/w", MR_DT_F32, 3, {3, 5, 7}, 3 * 5 * 7 * 4},
    {"net/fc/w", MR_DT_F32, 1, {0}, 0},    {"net/fc/b", MR_DT_F32, 1, {10}, 40},
    {"net/none", MR_DT_F64, 2, {0, 4}, 0}, {"rng", MR_DT_U8, 1, {5}, 5},
};
#define LARGE 2

struct ckpt_kit *ckpt_kit_new(uint64_t large_bytes)
{
    struct ckpt_kit *k = calloc(1, sizeof *k);
    if (!k)
        abort();
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
        struct mr_array *a = &k->arrays[i];
        uint64_t bytes = i == LARGE ? large_bytes : plan[i].bytes;
        a->name = plan[i].name;
        a->dtype = plan[i].dtype;
        a->n_dims = plan[i].n_dims;
        memcpy(a->dims, plan[i].dims, sizeof plan[i].dims);
        if (i == LARGE)
            a->dims[0] = large_bytes / 4;
        a->data = malloc(bytes + 1);
        if (!a->data)
            abort();
        k->bytes += bytes;
    }
    return k;
}

void ckpt_kit_free(struct ckpt_kit *k)
{
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++)
        free(k->arrays[i].data);
    free(k);
}

static uint64_t size_of(const struct ckpt_kit *k, unsigned i)
{
    return i == LARGE ? k->arrays[i].dims[0] * 4 : plan[i].bytes;
}

static uint8_t byte_at(unsigned i, uint64_t at, uint64_t key)
{
    return (uint8_t)(mr_mix(key + (at >> 3) * KIT_N_ARRAYS + i) >> (at & 7) * 8);
}

static uint64_t key_of(uint64_t step, uint64_t version)
{
    return mr_mix(step * 1000 + version);
}

void ckpt_kit_fill_one(struct ckpt_kit *k, unsigned i, uint64_t step, uint64_t version)
{
    uint64_t key = key_of(step, version);
    uint8_t *p = k->arrays[i].data;
    for (uint64_t at = 0; at < size_of(k, i); at++)
        p[at] = byte_at(i, at, key);
    if (i == KIT_STEP)
        memcpy(p, &step, 8);
}

void ckpt_kit_fill(struct ckpt_kit *k, uint64_t step, uint64_t version)
{
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++)
        ckpt_kit_fill_one(k, i, step, version);
}

int ckpt_kit_is(const struct ckpt_kit *k, uint64_t step, uint64_t version)
{
    uint64_t key = key_of(step, version);
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
        const uint8_t *p = k->arrays[i].data;
        if (i == KIT_STEP) {
            if (memcmp(p, &step, 8))
                return 0;
            continue;
        }
        for (uint64_t at = 0; at < size_of(k, i); at++)
            if (p[at] != byte_at(i, at, key))
                return 0;
    }
    return 1;
}

void ckpt_kit_scramble(struct ckpt_kit *k)
{
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++)
        memset(k->arrays[i].data, 0xa5, size_of(k, i));
}
