/* smaller_set.c - see smaller_set.h.
 *
 *     look      headers of some images: is it worth the trouble?
 *     shrink    each decoded to its new size (the mean of all that a pixel covers), encoded, kept
 *               in memory one behind the other
 *     write     to the folder, as often as wanted and as there is room for; on the storage before
 *               anybody reads them, as what is not written yet cannot be evicted
 *
 * Everything is bounded: images, memory, bytes on the disk, and the time for making them. */
#include "smaller_set.h"

#include "buffer.h"
#include "clock.h"
#include "errtext.h"
#include "jpeg_encode.h"
#include "scratch_dir.h"
#include "sample_set.h"
#include "write_all.h"

#include <millrace/image.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_LOOKS    64
#define MOST_IMAGES   192
#define FEWEST_IMAGES 8
#define MOST_FILES    2048
#define FEWEST_FILES  64
#define MOST_KEPT     ((size_t)48 << 20)
#define MOST_WRITTEN  ((uint64_t)256 << 20)
#define MOST_SIDE     16384 /* of the decoder */
#define MAX_BYTES     ((uint64_t)64 << 20)

struct maker {
    const struct mr_smaller_opts *o;
    struct mr_smaller_set *set;
    struct mr_error *err;
    struct mr_decoder *prober, *decoder; /* the second one makes images of width x height */
    unsigned width, height;
    struct mr_jpeg_encoder *encoder;
    struct mr_buffer file, pixels;
    struct mr_buffer kept;             /* all images, */
    size_t n_kept, end[MOST_IMAGES];   /* and where each ends */
    uint64_t sum_before;               /* bytes that they had */
    unsigned side[MOST_LOOKS], n_seen; /* shorter sides */
};

static int no_memory(struct maker *m)
{
    return mr_fail(m->err, -ENOMEM, "no memory for smaller images");
}

static int is_stopped(const struct maker *m)
{
    return m->o->should_stop && m->o->should_stop(m->o->ctx);
}

/* Read the i-th of n samples from all over the data set: 0 with what image it is, 1 when it is
 * none, or -errno. */
static int load(struct maker *m, uint64_t i, uint64_t n, size_t *len, struct mr_image_info *info)
{
    enum mr_stage stage;
    uint64_t at = i * mr_dataset_size(m->o->data) / n;
    if (is_stopped(m))
        return -ECANCELED;
    int r = mr_dataset_load(m->o->data, at, MAX_BYTES, &m->file, len, &stage);
    if (r == -ENOMEM)
        return no_memory(m);
    return r || mr_decoder_probe(m->prober, m->file.data, *len, info) ? 1 : 0;
}

static unsigned shorter(const struct mr_image_info *info)
{
    return info->width < info->height ? info->width : info->height;
}

static int by_size(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* How large are they?  1: most of them larger than needed, by more than an eighth. */
static int look(struct maker *m, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct mr_image_info info;
        size_t len;
        int r = load(m, i, n, &len, &info);
        if (r < 0)
            return r;
        m->set->n_looked_at++;
        m->set->n_broken += r == 1;
        if (r)
            continue;
        m->side[m->n_seen++] = shorter(&info);
        m->set->n_larger += shorter(&info) > m->o->side + m->o->side / 8;
    }
    if (!m->n_seen)
        return 0;
    qsort(m->side, m->n_seen, sizeof *m->side, by_size);
    m->set->shorter_side = m->side[m->n_seen / 2];
    return 2 * m->set->n_larger > m->n_seen;
}

/* ---- shrink ---- */

/* A decoder for images of this size; the last one, if it is. */
static int decoder_for(struct maker *m, unsigned width, unsigned height)
{
    struct mr_decoder_opts o = {
        .width = width, .height = height, .resize = MR_RESIZE_AREA, .dtype = MR_DT_U8};
    if (m->decoder && m->width == width && m->height == height)
        return 0;
    mr_decoder_free(m->decoder);
    m->decoder = NULL;
    if (mr_decoder_new(&o, &m->decoder, NULL) ||
        mr_buffer_reserve(&m->pixels, mr_decoder_bytes(&o)))
        return no_memory(m);
    m->width = width;
    m->height = height;
    return 0;
}

/* The image in m->file, smaller: 0, 1 when it cannot be decoded, or -errno. */
static int shrink(struct maker *m, const struct mr_image_info *info, size_t len,
                  const uint8_t **bytes, size_t *n)
{
    uint64_t least = shorter(info), side = m->o->side;
    uint64_t width = (info->width * side + least / 2) / least;
    uint64_t height = (info->height * side + least / 2) / least;
    *bytes = m->file.data;
    *n = len;
    if (least <= side || width > MOST_SIDE || height > MOST_SIDE)
        return 0;
    int r = decoder_for(m, (unsigned)width, (unsigned)height);
    if (r)
        return r;
    r = mr_decoder_run(m->decoder, m->file.data, len, 0, m->pixels.data);
    if (r)
        return r == -ENOMEM ? no_memory(m) : 1;
    int grey = info->format == MR_IMAGE_JPEG && info->components == 1;
    struct mr_pixels px = {.layout = MR_PIXELS_RGB,
                           .width = m->width,
                           .height = m->height,
                           .stride_bytes = 3 * (size_t)m->width,
                           .plane = {m->pixels.data}};
    struct mr_jpeg_opts jpeg = {.quality = MR_SMALLER_QUALITY,
                                .chroma = grey ? MR_CHROMA_GREY : MR_CHROMA_420};
    const uint8_t *coded;
    size_t n_coded;
    r = mr_jpeg_encode(m->encoder, &px, &jpeg, &coded, &n_coded, m->err);
    if (!r && n_coded < len) {
        *bytes = coded;
        *n = n_coded;
    }
    return r;
}

static int keep(struct maker *m, const uint8_t *bytes, size_t n)
{
    size_t end = m->n_kept + n;
    if (mr_buffer_reserve(&m->kept, end))
        return no_memory(m);
    memcpy(m->kept.data + m->n_kept, bytes, n);
    m->n_kept = m->end[m->set->n_images++] = end;
    return 0;
}

static int shrink_all(struct maker *m, uint64_t n)
{
    uint64_t begin = mr_clock_ns();
    for (uint64_t i = 0; i < n; i++) {
        struct mr_image_info info;
        const uint8_t *bytes;
        size_t len, n_bytes;
        if (m->n_kept > MOST_KEPT)
            break;
        if (i >= FEWEST_IMAGES && (double)(mr_clock_ns() - begin) / 1e9 > m->o->box_s)
            break;
        int r = load(m, i, n, &len, &info);
        if (!r)
            r = shrink(m, &info, len, &bytes, &n_bytes);
        if (!r) {
            m->sum_before += len;
            r = keep(m, bytes, n_bytes);
        }
        if (r < 0)
            return r;
    }
    if (!m->set->n_images)
        return mr_fail(m->err, -EBADMSG, "no image could be made smaller");
    m->set->bytes_before = (double)m->sum_before / m->set->n_images;
    m->set->bytes_after = (double)m->n_kept / m->set->n_images;
    return 0;
}

/* ---- write ---- */

/* How many files to write: as many as wanted, in a quarter of the room that there is. */
static int plan(struct maker *m)
{
    struct mr_smaller_set *s = m->set;
    uint64_t n = mr_dataset_size(m->o->data), room = mr_free_bytes(mr_scratch_fd(s->folder)) / 4;
    uint64_t most = room < MOST_WRITTEN ? room : MOST_WRITTEN;
    uint64_t block = (uint64_t)s->bytes_after + 4096; /* files end in the middle of one */
    uint64_t fits = most / block;
    if (!m->o->of_its_own)
        n = s->n_images;
    else if (n > MOST_FILES)
        n = MOST_FILES;
    uint64_t need = n < FEWEST_FILES ? n : FEWEST_FILES;
    if (fits < need)
        return mr_fail(m->err, -ENOSPC, "%s has %llu MB free, and trying them needs %llu MB",
                       m->o->scratch, (unsigned long long)(4 * room >> 20),
                       (unsigned long long)(4 * need * block >> 20) + 1);
    s->n_files = (unsigned)(n < fits ? n : fits);
    return 0;
}

static int write_file(struct maker *m, unsigned number)
{
    unsigned i = number % m->set->n_images;
    size_t begin = i ? m->end[i - 1] : 0;
    char name[32];
    snprintf(name, sizeof name, "%06u.jpg", number);
    int fd =
        openat(mr_scratch_fd(m->set->folder), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int r = fd < 0 ? -errno : mr_write_all(fd, m->kept.data + begin, m->end[i] - begin);
    if (fd >= 0 && close(fd) && !r)
        r = -errno;
    return r;
}

static int write_all(struct maker *m)
{
    const char *path = mr_scratch_path(m->set->folder);
    int r = plan(m);
    if (r)
        return r;
    for (unsigned i = 0; !r && i < m->set->n_files; i++)
        r = is_stopped(m) ? -ECANCELED : write_file(m, i);
    if (!r && syncfs(mr_scratch_fd(m->set->folder)))
        r = -errno;
    if (r == -ECANCELED)
        return r;
    return r ? mr_fail(m->err, r, "%s: %s", path, mr_errno_text(r))
             : mr_dataset_open(path, &m->set->data, m->err);
}

static int make(struct maker *m)
{
    uint64_t n = mr_dataset_size(m->o->data);
    int r = mr_decoder_new(NULL, &m->prober, NULL);
    if (!r)
        r = mr_jpeg_encoder_new(&m->encoder);
    if (r)
        return no_memory(m);
    r = look(m, n < MOST_LOOKS ? n : MOST_LOOKS);
    if (r <= 0)
        return r;
    r = mr_scratch_open(m->o->scratch, &m->set->folder, m->err);
    if (!r)
        r = shrink_all(m, n < MOST_IMAGES ? n : MOST_IMAGES);
    return r ? r : write_all(m);
}

int mr_smaller_set_make(const struct mr_smaller_opts *o, struct mr_smaller_set *out,
                        struct mr_error *err)
{
    struct mr_smaller_set set = {0};
    struct maker *m = calloc(1, sizeof *m);
    if (!m)
        return mr_fail(err, -ENOMEM, "no memory for smaller images");
    *m = (struct maker){.o = o, .set = &set, .err = err};
    int r = make(m);
    mr_decoder_free(m->prober);
    mr_decoder_free(m->decoder);
    mr_jpeg_encoder_free(m->encoder);
    mr_buffer_fini(&m->file);
    mr_buffer_fini(&m->pixels);
    mr_buffer_fini(&m->kept);
    free(m);
    if (r)
        mr_smaller_set_fini(&set);
    else
        *out = set;
    return r;
}

void mr_smaller_set_fini(struct mr_smaller_set *s)
{
    mr_dataset_unref(s->data);
    mr_scratch_close(s->folder);
    s->data = NULL;
    s->folder = NULL;
}
