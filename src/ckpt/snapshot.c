/* snapshot.c - see snapshot.h.
 *
 *   copier threads   copy the next unclaimed piece, in the file's order, so that writing can begin
 *   before_write(t)  copies unclaimed pieces of t; then waits for those that others are copying
 *   chunk(i, c)      waits until chunk c has no piece left
 *
 * A piece is claimed and reported under the lock, about once per MiB copied, and copied outside it.
 * `copying` repeats "n_left != 0" so that before_write costs one load when there is no copy.
 *
 * Lock: s->mu guards what follows it.  The bytes of a shot and its crcs belong to whoever claimed
 * the piece, and to the readers once its chunk has none left. */
#include "snapshot.h"

#include "buffer.h"
#include "clock.h"
#include "whole_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 16

struct shot {
    struct mr_buffer image;
    uint32_t *crcs;       /* [n_pieces] */
    uint32_t *chunk_left; /* [n_chunks]: pieces not yet copied */
    uint64_t copied_ns;
};

struct mr_snapshot {
    const struct mr_file_image *im;
    struct shot shots[MR_MAX_SHOTS];
    unsigned n_shots, n_threads;
    pthread_t threads[MAX_THREADS];
    atomic_int copying;

    pthread_mutex_t mu;
    pthread_cond_t begun, copied;
    int stop;
    unsigned current; /* the shot that is being copied */
    size_t n_left;    /* pieces of it not yet copied */
    size_t cursor;    /* pieces before this one are claimed */
    uint8_t *claimed; /* [n_pieces] */
    size_t *tensor_left;
};

/* Copy piece p, which the caller has claimed; the lock is dropped meanwhile. */
static void copy_piece(struct mr_snapshot *s, size_t p)
{
    const struct mr_piece *piece = &s->im->pieces[p];
    struct shot *shot = &s->shots[s->current];
    size_t c = mr_piece_chunk(piece);
    pthread_mutex_unlock(&s->mu);
    shot->crcs[p] = mr_file_image_copy(s->im, p, shot->image.data + c * MR_CHUNK_BYTES);
    pthread_mutex_lock(&s->mu);
    if (s->n_left == 1) /* before its chunk is told */
        shot->copied_ns = mr_clock_ns();
    int tell = --shot->chunk_left[c] == 0;
    tell |= --s->tensor_left[piece->tensor] == 0;
    if (--s->n_left == 0) {
        atomic_store_explicit(&s->copying, 0, memory_order_release);
        tell = 1;
    }
    if (tell)
        pthread_cond_broadcast(&s->copied);
}

/* Claim an unclaimed piece in [*at, end): 1, and *at is it. */
static int claim(struct mr_snapshot *s, size_t *at, size_t end)
{
    while (*at < end && s->claimed[*at])
        ++*at;
    if (*at >= end)
        return 0;
    s->claimed[*at] = 1;
    return 1;
}

static void *copier_main(void *arg)
{
    struct mr_snapshot *s = arg;
    pthread_mutex_lock(&s->mu);
    while (!s->stop) {
        if (s->n_left && claim(s, &s->cursor, s->im->n_pieces))
            copy_piece(s, s->cursor);
        else
            pthread_cond_wait(&s->begun, &s->mu);
    }
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

static int make_shot(struct shot *shot, const struct mr_file_image *im)
{
    shot->crcs = calloc(im->n_pieces + 1, sizeof *shot->crcs);
    shot->chunk_left = calloc(im->n_chunks + 1, sizeof *shot->chunk_left);
    if (!shot->crcs || !shot->chunk_left ||
        mr_buffer_reserve(&shot->image, mr_direct_round((size_t)im->bytes)))
        return -ENOMEM;
    mr_buffer_prefault(&shot->image);
    return 0;
}

int mr_snapshot_open(const struct mr_file_image *im, unsigned n_shots, unsigned n_threads,
                     struct mr_snapshot **out)
{
    struct mr_snapshot *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->begun, NULL);
    pthread_cond_init(&s->copied, NULL);
    s->im = im;
    s->claimed = calloc(im->n_pieces + 1, 1);
    s->tensor_left = calloc(im->table->n + 1, sizeof *s->tensor_left);
    int r = s->claimed && s->tensor_left ? 0 : -ENOMEM;
    for (; !r && s->n_shots < n_shots; s->n_shots++)
        r = make_shot(&s->shots[s->n_shots], im);
    for (; !r && s->n_threads < n_threads && s->n_threads < MAX_THREADS; s->n_threads++) {
        r = -pthread_create(&s->threads[s->n_threads], NULL, copier_main, s);
        if (r)
            break;
    }
    if (r) {
        mr_snapshot_close(s);
        return r;
    }
    *out = s;
    return 0;
}

void mr_snapshot_close(struct mr_snapshot *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mu);
    s->stop = 1;
    pthread_cond_broadcast(&s->begun);
    pthread_mutex_unlock(&s->mu);
    for (unsigned i = 0; i < s->n_threads; i++)
        pthread_join(s->threads[i], NULL);
    for (unsigned i = 0; i < MR_MAX_SHOTS; i++) {
        mr_buffer_fini(&s->shots[i].image);
        free(s->shots[i].crcs);
        free(s->shots[i].chunk_left);
    }
    free(s->claimed);
    free(s->tensor_left);
    pthread_cond_destroy(&s->copied);
    pthread_cond_destroy(&s->begun);
    pthread_mutex_destroy(&s->mu);
    free(s);
}

uint64_t mr_snapshot_memory(const struct mr_file_image *im, unsigned n_shots)
{
    return n_shots * (mr_direct_round((size_t)im->bytes) + im->n_pieces * sizeof(uint32_t) +
                      im->n_chunks * sizeof(uint32_t)) +
           im->n_pieces + im->table->n * sizeof(size_t);
}

/* Help until tensor range [first, end) has no piece left, as *left says. */
static void help(struct mr_snapshot *s, size_t first, size_t end, const size_t *left)
{
    while (*left) {
        if (claim(s, &first, end))
            copy_piece(s, first);
        else
            pthread_cond_wait(&s->copied, &s->mu);
    }
}

void mr_snapshot_begin(struct mr_snapshot *s, unsigned i)
{
    const struct mr_file_image *im = s->im;
    pthread_mutex_lock(&s->mu);
    help(s, 0, im->n_pieces, &s->n_left);
    s->current = i;
    s->cursor = 0;
    s->n_left = im->n_pieces;
    s->shots[i].copied_ns = mr_clock_ns();
    memset(s->claimed, 0, im->n_pieces);
    for (size_t c = 0; c < im->n_chunks; c++)
        s->shots[i].chunk_left[c] = (uint32_t)(im->chunk_first[c + 1] - im->chunk_first[c]);
    for (size_t t = 0; t < im->table->n; t++)
        s->tensor_left[t] = im->tensor_end[t] - im->tensor_first[t];
    atomic_store_explicit(&s->copying, s->n_left != 0, memory_order_release);
    pthread_cond_broadcast(&s->begun);
    pthread_mutex_unlock(&s->mu);
}

void mr_snapshot_before_write(struct mr_snapshot *s, size_t t)
{
    if (!atomic_load_explicit(&s->copying, memory_order_acquire))
        return;
    pthread_mutex_lock(&s->mu);
    help(s, s->im->tensor_first[t], s->im->tensor_end[t], &s->tensor_left[t]);
    pthread_mutex_unlock(&s->mu);
}

void mr_snapshot_finish(struct mr_snapshot *s)
{
    pthread_mutex_lock(&s->mu);
    help(s, 0, s->im->n_pieces, &s->n_left);
    pthread_mutex_unlock(&s->mu);
}

int mr_snapshot_is_done(struct mr_snapshot *s)
{
    return !atomic_load_explicit(&s->copying, memory_order_acquire);
}

uint8_t *mr_snapshot_chunk(struct mr_snapshot *s, unsigned i, size_t c)
{
    pthread_mutex_lock(&s->mu);
    while (s->shots[i].chunk_left[c])
        pthread_cond_wait(&s->copied, &s->mu);
    pthread_mutex_unlock(&s->mu);
    return s->shots[i].image.data + c * MR_CHUNK_BYTES;
}

const uint32_t *mr_snapshot_crcs(const struct mr_snapshot *s, unsigned i)
{
    return s->shots[i].crcs;
}

uint64_t mr_snapshot_copied_ns(const struct mr_snapshot *s, unsigned i)
{
    return s->shots[i].copied_ns;
}
