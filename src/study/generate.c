/* generate.c - workers that make photos, and one list of what they made.
 *
 *   worker:  take the next number -> draw its plan -> paint and encode -> write its file
 *   caller:  waits, reports progress, and writes the list when all workers are gone
 *
 * Numbers are handed out in order and a worker finishes what it took, so when the job is stopped
 * the images that exist are 0 .. next-1 without a gap: nobody has to remember which.
 *
 * Every file is on its way to the disk as soon as it is written, so what is left for the end, to
 * wait until all have arrived, is short: one commit of the file system's journal and the last
 * requests. Only our own files are waited for; what else is dirty in the file system, or broken, is
 * not ours.
 *
 * list.csv appears by rename, complete, when all files are there.
 *
 * Lock: g->mu guards next, n_done, n_bytes, n_running, stop and err; it is not held while a photo
 * is made or written, nor during the callback. */
#include "generate.h"

#include "draw.h"
#include "errtext.h"
#include "generated_set.h"
#include "new_file.h"
#include "photo_maker.h"
#include "write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_NS 100000000
#define MAX_THREADS 1024

struct job {
    struct mr_generate_opts o; /* with the defaults filled in */
    const char *dir;
    struct mr_generated_set set;

    pthread_mutex_t mu;
    pthread_cond_t event; /* a worker ended */
    uint64_t next, n_done, n_bytes;
    unsigned n_running;
    int stop;
    struct mr_error err;
};

static void image_path(const struct job *g, uint64_t index, char path[PATH_MAX])
{
    int at = snprintf(path, PATH_MAX, "%s/", g->dir); /* its length was checked */
    mr_generated_name(&g->set, index, path + at, PATH_MAX - (size_t)at);
}

/* Write the file whole, or leave none. */
static int write_file(const char *path, const uint8_t *bytes, size_t n, struct mr_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        int r = -errno;
        return mr_fail(err, r, "%s: %s", path, mr_errno_text(r));
    }
    int r = mr_write_all(fd, bytes, n);
    if (!r) /* a head start; whether it arrives is asked later */
        (void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (close(fd) && !r)
        r = -errno;
    if (r) {
        unlink(path);
        mr_fail(err, r, "%s: %s", path, mr_errno_text(r));
    }
    return r;
}

static int make_image(const struct job *g, struct mr_photo_maker *maker, uint64_t index,
                      uint64_t *n_bytes, struct mr_error *err)
{
    char path[PATH_MAX];
    struct mr_photo_plan plan;
    const uint8_t *bytes;
    size_t n;
    uint64_t key = mr_draw(g->o.seed, MR_DRAW_SYNTHETIC, (uint64_t)g->o.preset, index, 3);
    mr_photo_plan_draw(g->o.preset, g->o.seed, index, &plan);
    int r = mr_photo_make(maker, &plan, key, mr_generated_class(&g->set, index), &bytes, &n, err);
    if (r)
        return r;
    image_path(g, index, path);
    *n_bytes = n;
    return write_file(path, bytes, n, err);
}

/* Take a number: 1, or 0 when there is nothing left to do. */
static int take(struct job *g, uint64_t *index)
{
    pthread_mutex_lock(&g->mu);
    int more = !g->stop && g->next < g->o.count;
    if (more)
        *index = g->next++;
    pthread_mutex_unlock(&g->mu);
    return more;
}

static void note(struct job *g, int r, uint64_t n_bytes, const struct mr_error *err)
{
    pthread_mutex_lock(&g->mu);
    if (r) {
        mr_fail(&g->err, r, "%s", err->text);
        g->stop = 1;
    } else {
        g->n_done++;
        g->n_bytes += n_bytes;
    }
    pthread_mutex_unlock(&g->mu);
}

static void *work(void *arg)
{
    struct job *g = arg;
    struct mr_photo_maker *maker = NULL;
    struct mr_error err = {0};
    uint64_t index, n_bytes = 0;
    int r = mr_photo_maker_new(&maker);
    if (r) {
        mr_fail(&err, r, "no memory for a worker");
        note(g, r, 0, &err);
    }
    while (!r && take(g, &index)) {
        r = make_image(g, maker, index, &n_bytes, &err);
        note(g, r, n_bytes, &err);
    }
    mr_photo_maker_free(maker);
    pthread_mutex_lock(&g->mu);
    g->n_running--;
    pthread_cond_signal(&g->event);
    pthread_mutex_unlock(&g->mu);
    return NULL;
}

/* Wait for a worker to end, or a tenth of a second. */
static void wait_a_moment(struct job *g)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PROGRESS_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&g->event, &g->mu, &until);
}

/* Report until the workers are gone; -ECANCELED when the callback wanted to stop before the
 * end. */
static int watch(struct job *g)
{
    int r = 0;
    pthread_mutex_lock(&g->mu);
    for (int last = 0; !last;) {
        if (g->n_running)
            wait_a_moment(g);
        last = !g->n_running;
        uint64_t n_done = g->n_done;
        pthread_mutex_unlock(&g->mu);
        int stop = g->o.progress && !r && g->o.progress(g->o.arg, n_done, g->o.count);
        pthread_mutex_lock(&g->mu);
        if (stop && n_done < g->o.count) {
            r = -ECANCELED;
            g->stop = 1;
        }
    }
    pthread_mutex_unlock(&g->mu);
    return r;
}

static int run_workers(struct job *g, struct mr_error *err)
{
    unsigned n = 0;
    pthread_t *threads = calloc(g->o.threads, sizeof *threads);
    if (!threads)
        return mr_fail(err, -ENOMEM, "no memory for %u workers", g->o.threads);
    int r = 0;
    g->n_running = g->o.threads;
    for (; !r && n < g->o.threads; n += !r)
        r = -pthread_create(&threads[n], NULL, work, g);
    if (r) {
        pthread_mutex_lock(&g->mu);
        g->n_running -= g->o.threads - n;
        g->stop = 1;
        mr_fail(&g->err, r, "thread %u: %s", n, mr_errno_text(r));
        pthread_mutex_unlock(&g->mu);
    }
    int stopped = watch(g);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    if (g->err.code)
        return mr_fail(err, g->err.code, "%s", g->err.text);
    return g->n_done < g->o.count ? stopped : 0;
}

static int print_list(const struct job *g, FILE *f)
{
    char name[64];
    int r = fputs("path,label\n", f) < 0 ? -EIO : 0;
    for (uint64_t i = 0; !r && i < g->n_done; i++) {
        mr_generated_name(&g->set, i, name, sizeof name);
        if (fprintf(f, "%s,%u\n", name, (unsigned)mr_generated_class(&g->set, i)) < 0)
            r = errno ? -errno : -EIO;
    }
    return r;
}

static int write_list(const struct job *g, struct mr_error *err)
{
    char path[PATH_MAX];
    struct mr_new_file file;
    snprintf(path, sizeof path, "%s/list.csv", g->dir);
    int r = mr_new_file_begin(path, &file);
    if (!r) {
        int copy = fcntl(file.fd, F_DUPFD_CLOEXEC, 3);
        FILE *f = copy < 0 ? NULL : fdopen(copy, "w");
        r = f ? print_list(g, f) : -errno;
        if (f ? fclose(f) && !r : copy >= 0 && close(copy))
            r = -errno;
        if (r)
            mr_new_file_abort(&file);
        else
            r = mr_new_file_commit(&file);
    }
    return r ? mr_fail(err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

static int fill_in(struct job *g, const struct mr_generate_opts *opts, struct mr_error *err)
{
    static const struct mr_generate_opts defaults;
    struct mr_generate_opts *o = &g->o;
    *o = opts ? *opts : defaults;
    if ((unsigned)o->preset >= MR_N_PRESETS)
        return mr_fail(err, -EINVAL, "there is no preset %d", (int)o->preset);
    if (!o->count)
        o->count = mr_preset_count(o->preset);
    if (!o->classes) {
        o->classes = mr_preset_classes(o->preset);
        if (o->classes > o->count)
            o->classes = (uint32_t)o->count;
    }
    if (o->classes > o->count)
        return mr_fail(err, -EINVAL, "%u classes need at least as many images, not %llu",
                       (unsigned)o->classes, (unsigned long long)o->count);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (!o->threads)
        o->threads = cpus > 0 ? (unsigned)cpus : 1;
    if (o->threads > MAX_THREADS)
        o->threads = MAX_THREADS;
    if (o->threads > o->count)
        o->threads = (unsigned)o->count;
    g->set = (struct mr_generated_set){o->count, o->classes};
    if (strlen(g->dir) + 64 > PATH_MAX)
        return mr_fail(err, -ENAMETOOLONG, "%.100s...: %s", g->dir, mr_errno_text(ENAMETOOLONG));
    return 0;
}

static int write_out_one(const struct job *g, uint64_t index, struct mr_error *err)
{
    char path[PATH_MAX];
    image_path(g, index, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC), r = fd < 0 ? -errno : 0;
    if (!r && fdatasync(fd) && errno != EINVAL) { /* that is: has no such call */
        r = -errno;
        unlink(path);
    }
    if (fd >= 0)
        close(fd);
    return r ? mr_fail(err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

/* Files must be on the disk: only then can they be read cold, and only then do they have the
 * places that an emulated disk asks for. */
static int write_out(const struct job *g, struct mr_error *err)
{
    int r = 0;
    for (uint64_t i = 0; !r && i < g->n_done; i++)
        r = g->o.progress && g->o.progress(g->o.arg, g->n_done, g->o.count)
                ? -ECANCELED
                : write_out_one(g, i, err);
    return r;
}

int mr_generate(const char *dir, const struct mr_generate_opts *opts,
                struct mr_generate_result *result, struct mr_error *err)
{
    struct job g = {.dir = dir};
    pthread_condattr_t attr;
    int r = fill_in(&g, opts, err);
    if (r)
        return r;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&g.mu, NULL);
    pthread_cond_init(&g.event, &attr);
    pthread_condattr_destroy(&attr);
    r = mr_generated_claim(dir, &g.set, g.o.again, err);
    if (!r)
        r = run_workers(&g, err);
    if (!r)
        r = write_out(&g, err);
    if (!r || r == -ECANCELED) {
        int listed = write_list(&g, err);
        if (listed)
            r = listed;
        else if (result)
            *result = (struct mr_generate_result){g.n_done, g.n_bytes};
    }
    if (r == -ECANCELED)
        mr_fail(err, r, "stopped after %llu of %llu images", (unsigned long long)g.n_done,
                (unsigned long long)g.o.count);
    pthread_cond_destroy(&g.event);
    pthread_mutex_destroy(&g.mu);
    return r;
}
